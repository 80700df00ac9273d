# mypy: ignore-errors
"""Runs TRL's DPOTrainer over the tokens of a job. It runs in an environment of its own and imports nothing of ours.

`python dpo.py JOB.json`: the job's `out` receives {seconds, processor, steps, losses}. The seconds are those of
training and of the reference's log-probabilities, wherever the trainer computes them.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch.utils.data import SequentialSampler
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import DPOConfig, DPOTrainer


class Tokens(DPOTrainer):
    """Trains on tokens as they are, instead of on texts."""

    def _prepare_dataset(self, dataset: Dataset, *_: Any, **__: Any) -> Dataset:
        return dataset


class InOrder(Tokens):
    """Takes the rows in their order, so that its batches are the same as our trainer's."""

    def _get_train_sampler(self, *_: Any) -> SequentialSampler:
        return SequentialSampler(self.train_dataset)


class Timed:
    """Adds up what the calls of a method take."""

    def __init__(self, method: Any) -> None:
        self.method, self.seconds, self.processor = method, 0.0, 0.0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        began, used = time.monotonic(), time.process_time()
        try:
            return self.method(*arguments, **named)
        finally:
            # A GPU works on after the call that started it has returned.
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self.seconds += time.monotonic() - began
            self.processor += time.process_time() - used


def main(job: dict[str, Any]) -> None:
    torch.set_num_threads(job["threads"])
    model, reference = (AutoModelForCausalLM.from_pretrained(job["model"], dtype=torch.float32) for _ in range(2))
    tokenizer = AutoTokenizer.from_pretrained(job["model"])
    rows = [json.loads(line) for line in Path(job["data"]).read_text().splitlines()]
    config = DPOConfig(
        output_dir=job["scratch"],
        max_length=None,
        num_train_epochs=1,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        per_device_train_batch_size=job["batch"],
        learning_rate=job["rate"],
        beta=job["beta"],
        **job["settings"],
    )
    # The reference's log-probabilities are computed when the trainer is made, if they are computed in advance.
    ahead = Timed(DPOTrainer._precompute_ref_logps)
    DPOTrainer._precompute_ref_logps = lambda *arguments, **named: ahead(*arguments, **named)
    trainer = (InOrder if job["in_order"] else Tokens)(
        model=model, ref_model=None if job["settings"].get("precompute_ref_log_probs") else reference, args=config,
        train_dataset=Dataset.from_list(rows), processing_class=tokenizer,
    )  # fmt: skip
    train = Timed(trainer.train)
    train()
    result = {
        "seconds": train.seconds + ahead.seconds,
        "processor": train.processor + ahead.processor,
        "steps": trainer.state.global_step,
        "losses": [entry["loss"] for entry in trainer.state.log_history if "loss" in entry],
    }
    Path(job["out"]).write_text(json.dumps(result))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))

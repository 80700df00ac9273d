# mypy: ignore-errors
"""Runs TRL's RewardTrainer over the tokens of a job. It runs in an environment of its own and imports nothing of ours.

`python trl.py JOB.json`: the job's `out` receives {seconds, processor, steps, losses}.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch.utils.data import SequentialSampler
from transformers import AutoModelForSequenceClassification, AutoTokenizer, TrainerCallback
from trl import RewardConfig, RewardTrainer


class Clock(TrainerCallback):
    """Measures from the beginning of the first step to the end of the last."""

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self.began, self.used = time.monotonic(), time.process_time()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        # A GPU works on after the call that started it has returned.
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.seconds, self.processor = time.monotonic() - self.began, time.process_time() - self.used


class InOrder(RewardTrainer):
    """Takes the rows in their order, so that its batches are the same as our trainer's."""

    def _get_train_sampler(self, *_: Any) -> SequentialSampler:
        return SequentialSampler(self.train_dataset)


def main(job: dict[str, Any]) -> None:
    torch.set_num_threads(job["threads"])
    model = AutoModelForSequenceClassification.from_pretrained(job["model"], dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(job["model"])
    rows = [json.loads(line) for line in Path(job["data"]).read_text().splitlines()]
    clock = Clock()
    config = RewardConfig(
        output_dir=job["scratch"],
        max_length=None,
        num_train_epochs=1,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        **job["settings"],
    )
    trainer_class = InOrder if job["in_order"] else RewardTrainer
    trainer = trainer_class(
        model=model, args=config, train_dataset=Dataset.from_list(rows), processing_class=tokenizer, callbacks=[clock]
    )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    if job["save"]:
        trainer.model.save_pretrained(job["save"])
        tokenizer.save_pretrained(job["save"])
    result = {
        "seconds": clock.seconds,
        "processor": clock.processor,
        "steps": trainer.state.global_step,
        "losses": losses,
    }
    Path(job["out"]).write_text(json.dumps(result))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))

# mypy: ignore-errors
"""Runs TRL's RewardTrainer or DPOTrainer over the tokens of a job, in an environment of its own, without our modules.

`python trl_peer.py JOB.json`: the job's `out` receives {seconds, processor, losses}. The seconds are those from the
first step to the end of the last, and of the reference's log-probabilities if they are computed ahead.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
import trl
from datasets import Dataset
from torch.utils.data import SequentialSampler
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer, TrainerCallback


class Clock(TrainerCallback):
    """Adds up what is measured."""

    def __init__(self) -> None:
        self.seconds = self.processor = 0.0

    def start(self) -> None:
        self.began, self.used = time.monotonic(), time.process_time()

    def stop(self) -> None:
        # A GPU works on after the call that started it has returned.
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.seconds += time.monotonic() - self.began
        self.processor += time.process_time() - self.used

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self.start()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self.stop()


def main(job: dict[str, Any]) -> None:
    torch.set_num_threads(job["threads"])
    settings, clock, is_dpo = job["settings"], Clock(), job["trainer"] == "dpo"
    auto = AutoModelForCausalLM if is_dpo else AutoModelForSequenceClassification
    base, config = (trl.DPOTrainer, trl.DPOConfig) if is_dpo else (trl.RewardTrainer, trl.RewardConfig)

    class Trainer(base):
        """Takes tokens as they are, and in their order where its batches are to be the same as our trainer's."""

        def _prepare_dataset(self, dataset: Dataset, *given: Any, **named: Any) -> Dataset:
            return dataset if is_dpo else super()._prepare_dataset(dataset, *given, **named)

        def _get_train_sampler(self, *given: Any) -> Any:
            return SequentialSampler(self.train_dataset) if job["in_order"] else super()._get_train_sampler(*given)

        def _precompute_ref_logps(self, *given: Any, **named: Any) -> Any:
            clock.start()
            try:
                return super()._precompute_ref_logps(*given, **named)
            finally:
                clock.stop()

    model = auto.from_pretrained(job["model"], dtype=torch.float32)
    more = {}
    if is_dpo:
        ahead = settings.get("precompute_ref_log_probs")
        more["ref_model"] = None if ahead else auto.from_pretrained(job["model"], dtype=torch.float32)
    plain = {"max_length": None, "num_train_epochs": 1, "logging_steps": 1, "report_to": [], "save_strategy": "no"}
    trainer = Trainer(
        model=model,
        args=config(output_dir=job["scratch"], disable_tqdm=True, **plain, **settings),
        train_dataset=Dataset.from_list([json.loads(line) for line in Path(job["data"]).read_text().splitlines()]),
        processing_class=AutoTokenizer.from_pretrained(job["model"]),
        callbacks=[clock],
        **more,
    )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    result = {"seconds": clock.seconds, "processor": clock.processor, "losses": losses}
    Path(job["out"]).write_text(json.dumps(result))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))

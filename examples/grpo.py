"""Some steps of TRL's GRPO, rewarded by the reward model of a Rewardloop server over `POST score/`.

    python -m venv grpo && grpo/bin/pip install torch trl requests
    grpo/bin/python examples/grpo.py --url http://127.0.0.1:8000 --token TOKEN --project demo --policy Qwen/Qwen3-0.6B

The server needs a project with a champion, and its score worker. `manage.py issue_token NAME --scope score` makes a
token that may do nothing but this. For a run of days name a `--model`, or the reward changes with the next promotion.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import requests
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

PROMPTS = ("Name a prime above 10.", "Why is the sky blue?", "How do I boil an egg?", "What is a noun?")
TRIES, PAUSE = 60, 2.0


class Rewards:
    """Asks a server for the rewards of completions, and waits while its worker still loads the model."""

    __name__ = "rewardloop"  # the trainer logs the rewards under this name

    def __init__(self, url: str, token: str, which: dict[str, Any]) -> None:
        self.address = f"{url.rstrip('/')}/api/v1/score/"
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Token {token}"
        self.which = which

    def __call__(self, prompts: list[Any], completions: list[Any], **_: Any) -> list[float]:
        pairs = zip(prompts, completions, strict=True)
        items = [{"conversation": prompt, "response": completion[0]["content"]} for prompt, completion in pairs]
        for _attempt in range(TRIES):
            answer = self.session.post(self.address, json={**self.which, "items": items}, timeout=60)
            # 202: the worker has not answered yet; 429: too many calls; 503: no worker just now.
            if answer.status_code not in (202, 429, 503):
                answer.raise_for_status()
                return [result["reward"] for result in answer.json()["results"]]
            time.sleep(float(answer.headers.get("Retry-After", PAUSE)))
        raise SystemExit(f"{self.address} gave no rewards: {answer.status_code} {answer.text[:200]}")


def main() -> None:
    options = parsed()
    which = {"model": options.model} if options.model else {"project": options.project}
    rewards = Rewards(options.url, options.token, which)
    how = GRPOConfig(
        output_dir=options.out,
        max_steps=options.steps,
        num_generations=options.answers,
        per_device_train_batch_size=options.answers,
        max_completion_length=options.tokens,
        learning_rate=options.rate,
        use_cpu=options.cpu,
        bf16=not options.cpu,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        seed=0,
    )
    trainer = GRPOTrainer(options.policy, reward_funcs=rewards, args=how, train_dataset=prompts(options.prompts))
    trainer.train()
    trainer.save_model(options.out)
    steps = [row["reward"] for row in trainer.state.log_history if "reward" in row]
    print(json.dumps({"steps": len(steps), "rewards": steps, "policy": options.out}))


def prompts(file: Path | None) -> Dataset:
    """The prompts of a JSONL file of {"conversation": [{"role", "content"}]}, or a few of our own."""
    if file is None:
        return Dataset.from_list([{"prompt": [{"role": "user", "content": text}]} for text in PROMPTS])
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return Dataset.from_list([{"prompt": row["conversation"]} for row in rows])


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="GRPO of TRL with the rewards of a Rewardloop server.")
    parser.add_argument("--url", required=True, help="the server, like http://127.0.0.1:8000")
    parser.add_argument("--token", required=True)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--project", help="its champion gives the rewards")
    which.add_argument("--model", type=int, help="the number of a reward model")
    parser.add_argument("--policy", required=True, help="a directory or a Hugging Face id of a causal language model")
    parser.add_argument("--prompts", type=Path, help='JSONL of {"conversation": [...]}')
    parser.add_argument("--out", default="grpo-policy")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--answers", type=int, default=4, help="to each prompt")
    parser.add_argument("--tokens", type=int, default=64, help="the most of an answer")
    parser.add_argument("--rate", type=float, default=1e-6)
    parser.add_argument("--cpu", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""The card of a model: README.md with the front matter of the Hugging Face Hub's model cards, and what to know.

It is written anew for each download, as evaluations are added. It names nobody, and no folder of this server.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from django.utils import translation

from annotator.infrastructure.storage.hidden_paths import without_places
from annotator.infrastructure.web.markdown_tables import line, table
from annotator.outputs.releases.particulars import OTHER, UNKNOWN
from rewards.evaluation.evaluation import newest_by_name
from rewards.learning.data import EXAMPLE
from rewards.models import RewardModel
from rewards.registry import registry
from rewards.reports import model_figures, run_report
from rewards.reports.model_figures import FigureValue

BASE_MODELS = {"minilm": ("sentence-transformers/all-MiniLM-L6-v2", "apache-2.0")}
"""Backbones that have a name of ours: their ids on the Hub and their licences."""
KINDS = {"ridge": "a linear head (ridge regression) on the frozen language model", "finetuned": "all weights"}
DECODER = "last"
SEQUENCE_CLASSIFIER = """\
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("reward")
model = AutoModelForSequenceClassification.from_pretrained("reward", dtype=torch.float32).eval()

messages = [{"role": "user", "content": "QUESTION"}, {"role": "assistant", "content": "ANSWER"}]
text = tokenizer.apply_chat_template(messages, tokenize=False, date_string="26 Jul 2024")
inputs = tokenizer(text, add_special_tokens=False, return_token_type_ids=False, return_tensors="pt")
with torch.no_grad():
    reward = model(**inputs).logits[0, 0].item()"""
TOKEN_CLASSIFIER = """\
import math

import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("reward")
model = AutoModelForTokenClassification.from_pretrained("reward", dtype=torch.float32).eval()
pooling = model.config.reward_pooling

conversation, response = [{"role": "user", "content": "QUESTION"}], "ANSWER"
prompt = tokenizer.apply_chat_template(conversation, tokenize=False)
inputs = tokenizer(prompt, response, truncation="only_first", max_length=pooling["max_length"], return_tensors="pt")
sides = inputs.sequence_ids(0)  # 0: the prompt's tokens, 1: the response's, None: special tokens
start, length = sides.index(1), sides.count(1)
with torch.no_grad():
    values = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits[0]
reward = values[start:, 0].mean().item() + values[:start, 1].mean().item()
reward += pooling["length_weight"] * math.log1p(length) + pooling["bias"]"""
_FIGURE = (
    "The `reward` of this example is %.4f, computed in float32 as here. A Rewardloop server may compute in bfloat16, "
    "which changes a reward by some thousandths: each of its answers names its `precision`."
)
_USE_OF_DECODER = (
    "Trainers such as TRL, verl and OpenRLHF, and vLLM, load the folder as a reward model with one output. Keep "
    "float32: rewards that are close tie in half precision. The chat template adds the special tokens; the tokenizer "
    "must add none. In training, prompt and response had at most %s tokens; a longer prompt lost its beginning."
)
_USE_OF_ENCODER = (
    "The reward of this encoder is a mean over the response's tokens, a mean over the prompt's, and the response's "
    "length. No sequence classifier of transformers pools like that, so the folder holds a token classifier whose two "
    "outputs are averaged as above. Programs that want a sequence classifier with one output (a path among TRL's "
    "`reward_funcs`, vLLM's pooling) cannot use it: let them ask a Rewardloop server (`POST /api/v1/score/` or `POST "
    "/api/v1/openrlhf/PROJECT/`). Prompt and response have at most %s tokens; a longer prompt loses its beginning."
)
_NO_REWARD_FOLDER = (
    "There is no folder `reward/`. Either no class of transformers computes this model's reward, or the model was "
    "trained before there were such folders; then `manage.py write_reward %s` writes it on the server. Until then, ask "
    "the server for rewards (`POST /api/v1/score/`), or use `python -m rewards.learning score DIR` of Rewardloop."
)
_INTENDED_USE = (
    "Ranking responses to the same prompt as the people would who rated this project's data: choosing among several "
    "responses, filtering data, and as a reward in training. The figures above say how far that can be trusted."
)
_LIMITS = (
    "A reward is a prediction of what a few people prefer, and no fact about the world. Prompts unlike those that it "
    "learnt from, other languages, and responses written to please it can mislead it. Its zero and its size have no "
    "meaning of their own: compare rewards of one prompt only."
)
_NO_LICENSE = (
    "No licence has been chosen. Ask whoever gave you this model before you use it, and before you pass it on. The "
    "language model that it was made from has a licence of its own."
)


def card(model: RewardModel, reward: Mapping[str, Any] | None) -> str:
    """Returns the text of README.md; `reward` is what reward.json says, None where there is no such folder."""
    with translation.override("en"):
        title = line(f"{model.project.name}: reward model {model.version}")
        is_decoder = model.manifest.get("pooling") == DECODER
        lines = [f"license: {model.license or UNKNOWN}", "library_name: transformers"]
        if model.license == OTHER:
            lines += ["license_name: described-in-the-card", "license_link: README.md"]
        if (base := base_model(model)) and "/" in base and "..." not in base:
            lines.append(f"base_model: {json.dumps(base)}")
        if reward:
            lines.append(f"pipeline_tag: {'text-classification' if is_decoder else 'token-classification'}")
        lines += [f"model_name: {json.dumps(title)}", "tags:", "- reward-model", "- human-feedback", "- rewardloop"]
        names = {attribute.key: attribute.name for attribute in model.project.every_attribute()}
        levels = model.manifest.get("levels", {})
        rows = [
            [
                f"`{key}`",
                line(names.get(key, key)),
                f"0 to {levels.get(key, 5) - 1}",
                f"{model.attribute_weights[key]:g}",
            ]
            for key in model.attributes
        ]
        parts = [
            "\n".join(["---", *lines, "---"]),
            f"# {title}\n\nMade with Rewardloop from the ratings of people.",
            _contents(model, reward),
            _use(model, reward),
            "## What it predicts\n\nThe reward is the weighted sum of the attributes' predictions. A prediction is on "
            "the scale of the labels, but is not cut off at its ends.\n\n"
            + table(["attribute", "name", "scale", "weight in the reward"], rows),
            *_evaluations(model),
            _origin(model),
            f"## Intended use\n\n{_INTENDED_USE}",
            f"## Known limits\n\n{_LIMITS}",
            _license(model),
        ]
    return "\n\n".join(parts) + "\n"


def base_model(model: RewardModel) -> str:
    """Returns the backbone's id on the Hub, or its name."""
    name = str(model.manifest.get("backbone", ""))
    return BASE_MODELS[name][0] if name in BASE_MODELS else without_places(name)


def _contents(model: RewardModel, reward: Mapping[str, Any] | None) -> str:
    rows = [["`model/`", "the model with an output for each attribute, as Rewardloop loads it"]]
    if reward:
        what = f"the reward alone, as `{reward['architecture']}` of transformers, with its chat template"
        rows.insert(0, ["`reward/`", what])
    text = "## What is in it\n\n" + table(["folder", "content"], rows)
    if reward:
        return text + "\n\n`reward.json` and `reward_model.json` have every file's SHA-256. Nothing in it is a pickle."
    return f"{text}\n\n{_NO_REWARD_FOLDER % model.pk}"


def _use(model: RewardModel, reward: Mapping[str, Any] | None) -> str:
    head = "## How to use it\n\n"
    if not reward:
        return f"{head}See Rewardloop's documentation on serving rewards."
    program, use = (
        (SEQUENCE_CLASSIFIER, _USE_OF_DECODER)
        if model.manifest.get("pooling") == DECODER
        else (TOKEN_CLASSIFIER, _USE_OF_ENCODER)
    )
    program = program.replace("QUESTION", EXAMPLE.conversation[0].content).replace("ANSWER", EXAMPLE.response)
    parts = [f"{head}```python\n{program}\n```", use % f"{model.manifest.get('max_length', 0):,}"]
    # Models of earlier releases have not scored the example.
    if (figure := model.manifest.get("example")) is not None:
        parts.insert(1, _FIGURE % figure)
    return "\n\n".join(parts)


def _evaluations(model: RewardModel) -> Iterator[str]:
    named = newest_by_name(model.evaluations.all())
    if not named:
        yield "## Evaluations\n\nIt has not been judged yet."
        return
    yield "## Evaluations\n\nOn prompts that it has not learnt from. Brackets hold 95 % intervals over prompts."
    for name, metrics in sorted(named.items()):
        yield f"### {line(name)}\n\n" + "\n\n".join(_evaluation(model, metrics))


def _evaluation(model: RewardModel, metrics: Mapping[str, Any]) -> Iterator[str]:
    if sentences := model_figures.in_words(metrics):
        yield " ".join(sentences)
    rows = [
        [line(row.title), f"{row.labels:,}", _value(row.rmse), _value(FigureValue(row.mean)), _value(row.spearman),
         _value(row.kappa)]
        for row in model_figures.figures(metrics, model.project.every_attribute())
    ]  # fmt: skip
    if rows:
        yield table(["attribute", "labels", "RMSE", "RMSE of the mean", "Spearman", "weighted kappa"], rows)
    overall = {name: metrics[name] for name in ("score", "overall", "accuracy") if isinstance(metrics.get(name), float)}
    if overall:
        yield ", ".join(f"{name} {value:.4f}" for name, value in overall.items())


def _value(value: FigureValue) -> str:
    if value.value is None:
        return ""
    interval = f" [{value.low:.3f}, {value.high:.3f}]" if value.low is not None and value.high is not None else ""
    return f"{value.value:.3f}{interval}"


def _origin(model: RewardModel) -> str:
    lineage, snapshot = registry.lineage(model), model.run.snapshot
    rows = [["language model", line(base_model(model))], ["trained", KINDS.get(lineage["kind"], lineage["kind"])]]
    if snapshot:
        tasks = f"{snapshot.train_tasks:,} to learn from, {snapshot.validation_tasks:,} held out"
        rows += [["tasks", tasks], ["labelled responses", f"{snapshot.labels:,}"]]
    if rubric := registry.rubric_in_words(model):
        rows.append(["rubric", rubric])
    rows += [
        ["snapshot", f"`{lineage['snapshot']}`"],
        ["settings", f"`{lineage['config_hash']}`"],
        ["seed", str(lineage["seed"])],
        ["code", f"`{lineage['code_version']}`"],
        ["chat template", f"`{lineage['template_hash']}`"],
        ["rendering of conversations", lineage["rendering"]],
        ["judged against", f"version {lineage['parent']}" if lineage["parent"] else "no earlier version"],
    ]
    verdict = f"{run_report.in_words(model.run.verdict)} {run_report.power(model.run.verdict)}".strip()
    text = "## Where it comes from\n\n" + table(["what", "value"], rows)
    return f"{text}\n\n{verdict}" if verdict else text


def _license(model: RewardModel) -> str:
    text = model.license_text.strip()
    if not text:
        chosen = model.license not in ("", UNKNOWN)
        text = f"This model is released under `{model.license}`." if chosen else _NO_LICENSE
    name = str(model.manifest.get("backbone", ""))
    if name in BASE_MODELS:
        text += " The language model {} is released under `{}`.".format(*BASE_MODELS[name])
    return f"## Licence\n\n{text}"

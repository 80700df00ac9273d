"""Guesses from the names of a file's columns which of them are prompts, responses and models."""

import re
from collections.abc import Sequence
from typing import Any

from annotator.limits import MOST_RESPONSES

_PROMPTS = ("prompt", "question", "instruction", "input", "query", "request", "user")
_ANSWER = r"(?:response|answer|completion|output|reply|chosen|rejected|generation)s?"
_ANSWERS = re.compile(rf"{_ANSWER}|.*[\W_]{_ANSWER}(?:[\W_]?(?:\d+|[a-z]))?$", re.IGNORECASE)
"""Names such as `response_1`, `answer_a_text` and `model_a_answer`."""
_MODELS = re.compile(rf"models?(?!.*[\W_]{_ANSWER})|systems?[\W_]+(?:\d+|[a-z])$", re.IGNORECASE)


def _asking(columns: Sequence[str], answers: Sequence[str]) -> str:
    """Returns the first column whose last word is that of a prompt, such as User question; else an empty text."""
    others = (name for name in columns if name not in answers)
    return next((name for name in others if re.split(r"[\W_]+", name.lower())[-1] in _PROMPTS), "")


def guessed(columns: Sequence[str]) -> dict[str, Any]:
    """Returns the mapping that the names of the columns suggest, as JSON; what they do not suggest is empty."""
    by_name = {name.lower(): name for name in reversed(columns)}
    models = [name for name in columns if _MODELS.match(name)]
    answers = [name for name in columns if _ANSWERS.match(name) and name not in models][:MOST_RESPONSES]
    of_answers = models if len(models) == len(answers) else []
    return {
        "prompt": next((by_name[name] for name in _PROMPTS if name in by_name), _asking(columns, answers)),
        "messages": "",
        "responses": [
            {"text": name, "model": of_answers[number] if of_answers else ""} for number, name in enumerate(answers)
        ],
        "id": next((by_name[name] for name in ("id", "uid", "uuid", "task_id") if name in by_name), ""),
        "language": next((by_name[name] for name in ("lang", "language") if name in by_name), ""),
        "priority": by_name.get("priority", ""),
        "metadata": by_name.get("metadata", ""),
    }

"""Why the gate promotes a model or not, why a run was started, and why a policy is offered or not.

A row stores a code with its parameters, because nobody knows yet who will read it; pages word it for each reader.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotator.infrastructure.web.numbers import number, percent

Reason = str | dict[str, Any]
"""{code, params}, or a text: what a person gave as the reason, or an earlier version stored."""

SQUARES, PAIRS = "mean squared error", "share of pairs in the wrong order"
"""What the gate compares: squared errors where both models predict on the scale of the labels, else orders of pairs."""

SENTENCES = {
    # The gate's verdicts, and the rivals that they name.
    "too_few_prompts": gettext_noop(
        "%(prompts)s held-out prompts are too few for a judgement. At least %(fewest)s are needed."
    ),
    "not_numbers": gettext_noop("Some of the scores are not numbers."),
    "all_the_same": gettext_noop("It gives every response the same scores."),
    "as_many_wrong": gettext_noop("On every prompt, it puts as many pairs in the wrong order as %(rival)s does."),
    "same_predictions": gettext_noop("It predicts the same as %(rival)s on every prompt."),
    "reaches_zero": gettext_noop(
        "No evidence that it is better: the interval of the gain reaches 0 or below. "
        "These %(prompts)s prompts would show a gain of about %(gain)s or more."
    ),
    "below_zero": gettext_noop(
        "No evidence that it is better: the interval of the gain lies below 0. "
        "These %(prompts)s prompts would show a gain of about %(gain)s or more."
    ),
    "no_better_than_length": gettext_noop(
        "It orders pairs no better than the rule that the longer response is the better one."
    ),
    "first": gettext_noop(
        "The first model, and better than predicting the mean on prompts that it has not learnt from."
    ),
    "worse_at": gettext_noop("Better overall, but clearly worse at %(attributes)s."),
    "worse_at_segments": gettext_noop("Better overall, but clearly worse at the %(aspects)s of segments."),
    "no_segments": gettext_noop("Better overall, but it scores no segments, as the champion does."),
    "same_attributes": gettext_noop("Better overall, but it gives every response the same %(attributes)s."),
    "fewer_pairs": gettext_noop(
        "Better overall, but it puts fewer pairs in the right order: %(after)s instead of %(before)s."
    ),
    "better": gettext_noop("Better on prompts that neither model has learnt from, and not clearly worse at anything."),
    "champion": gettext_noop("the champion"),
    "mean": gettext_noop("the mean"),
    # Runs.
    "in_workspace": gettext_noop("requested in the workspace"),
    "by": gettext_noop("requested by %(name)s"),
    "failed_before": gettext_noop("run %(run)s again, which failed"),
    "cancelled_before": gettext_noop("run %(run)s again, which was cancelled"),
    "on_new_snapshot": gettext_noop(
        "%(reason)s, on a new snapshot: tasks of the old one have been redacted or deleted"
    ),
    "enough_news": gettext_noop("%(news)s, and the project retrains after %(number)s"),
    "long_ago": gettext_noop("the last run is %(hours)s hours old, and there are %(news)s"),
    "labels_and_preferences": gettext_noop("%(labels)s new labels and %(preferences)s new preferences"),
    "labels": gettext_noop("%(labels)s new labels"),
    "preferences": gettext_noop("%(preferences)s new preferences"),
    # Policies.
    "no_champion": gettext_noop("It is not judged: the project has no champion yet that could compare its answers."),
    "no_prompts": gettext_noop(
        "It is not judged: only %(prompts)s held-out prompts are new to the champion too, and at least %(fewest)s are "
        "needed."
    ),
    "rewards_not_numbers": gettext_noop("Refused: some of the champion's rewards are not numbers."),
    "same_answers": gettext_noop(
        "Refused: on all %(prompts)s prompts its answers are worth as much as those of its base. It has hardly learnt "
        "anything: give it more epochs, or a higher learning rate."
    ),
    "better_answers": gettext_noop(
        "Offered: on %(prompts)s prompts the champion prefers its answers to those of its base in %(rate)s per cent, "
        "and the interval begins at %(low)s per cent, above a draw at 50."
    ),
    "may_be_chance": gettext_noop(
        "Refused: on %(prompts)s prompts the champion prefers its answers to those of its base in %(rate)s per cent. "
        "That may be chance, as the interval begins at %(low)s per cent, not above a draw at 50."
    ),
    "worse_answers": gettext_noop(
        "Refused: on %(prompts)s prompts the champion prefers its answers to those of its base in %(rate)s per cent "
        "only, where a draw has 50."
    ),
    "by_hand": gettext_noop("Offered by hand. %(before)s"),
}
NO_EVIDENCE = ("reaches_zero", "below_zero")
"""Codes of verdicts that say that chance alone could have made the difference."""

_FORMATS: Mapping[str, Callable[[float], str]] = {
    "gain": partial(number, digits=3),
    "rate": partial(number, digits=1),
    "low": partial(number, digits=1),
    "after": percent,
    "before": percent,
}


def coded(code: str, **params: Any) -> Reason:
    """Returns what a row stores. A parameter may be a text, a number or another reason; ids are texts."""
    return {"code": code, "params": params}


def in_words(reason: Reason) -> str:
    """Returns the reason in the reader's language; a text stays as it is."""
    if isinstance(reason, str):
        return reason
    sentence = SENTENCES[reason["code"]]
    return _(sentence) % {name: _shown(name, value) for name, value in reason["params"].items()}


def _shown(name: str, value: Any) -> str:
    if isinstance(value, float):
        return _FORMATS[name](value)
    return number(value, 0) if isinstance(value, int) else in_words(value)


def in_english(reason: Reason) -> str:
    """Returns the reason for programs, the audit and logs, whose language does not depend on who asks."""
    with translation.override("en"):
        return in_words(reason)


def verdict_in_english(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a stored verdict with its reason as a sentence, as REST answers it."""
    return {name: in_english(value) if name == "reason" else value for name, value in verdict.items()}

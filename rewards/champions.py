"""A model is made its project's champion, by any door: what the gate said is heard first, and scoring starts."""

from dataclasses import dataclass
from datetime import datetime

from annotator.refusals import Refusal
from rewards import promotion, run_report, scoring
from rewards.models import RewardModel


class ConfirmationNeeded(Refusal):
    """The gate did not promote the model; whoever wants it all the same has to say so."""

    code = "confirmation_needed"


@dataclass(frozen=True)
class Promoted:
    """The new champion, and why its scores come later; empty where scoring has started."""

    model: RewardModel
    scores_wait: str = ""


def promote(model: RewardModel, *, confirmed: bool, now: datetime) -> Promoted:
    """Makes the model the champion and sends it over its project's responses. A former champion is the rollback.

    Raises:
        ConfirmationNeeded: the gate turned it down, it has never been in use, and nobody has confirmed.
        FilesErased: there is nothing left to score with.
    """
    words = against(model)
    if words and not confirmed:
        raise ConfirmationNeeded(
            f"{model} was not promoted by its run. {words} Confirm to make it the champion anyway."
        )
    promotion.promote(model, now=now, overruled=model.run.verdict["reason"] if words else "")
    try:
        scoring.start(model, now=now)
    except Refusal as refused:
        return Promoted(model, f"Scores will follow later. {refused}")
    return Promoted(model)


def against(model: RewardModel) -> str:
    """The gate's verdict in words where it spoke against a model that has never been champion; else empty."""
    verdict = model.run.verdict
    if model.is_champion or model.promoted_at or verdict.get("promote") is not False:
        return ""
    return f"{verdict['reason']} {run_report.verdict(verdict)}".strip()

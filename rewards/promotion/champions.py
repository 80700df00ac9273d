"""Makes a model its project's champion for every door: asks for confirmation against the gate, and starts scoring."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from annotator.infrastructure.refusals import Refusal
from rewards import reasons, scoring
from rewards.models import RewardModel
from rewards.promotion import promotion
from rewards.reports import run_report


@dataclass(frozen=True)
class Promoted:
    """The new champion; `scores_wait` says why its scores come later, and is empty where scoring has started."""

    model: RewardModel
    scores_wait: str = ""


def promote(model: RewardModel, *, confirmed: bool, now: datetime) -> Promoted:
    """Makes the model the champion and sends it over its project's responses. Promoting a former champion rolls back.

    Raises:
        Refusal: the gate turned it down, it has never been in use, and nobody has confirmed.
        Refusal: there is nothing left to score with.
    """
    words = against(model)
    if words and not confirmed:
        text = _("%(model)s was not promoted by its run. %(reason)s Confirm to make it the champion anyway.")
        raise Refusal(text % {"model": model, "reason": words}, code="confirmation_needed")
    promotion.promote(model, now=now, overruled=reasons.in_english(model.run.verdict["reason"]) if words else "")
    try:
        scoring.start(model, now=now)
    except Refusal as refused:
        # The promotion stands: `start_due` wakes the lanes when a worker listens and the disk has room.
        return Promoted(model, _("Scores will follow later. %(reason)s") % {"reason": refused})
    return Promoted(model)


def against(model: RewardModel) -> str:
    """Returns the gate's verdict in words if it is against a model that has never been champion; else an empty text."""
    verdict = model.run.verdict
    if model.is_champion or model.promoted_at or verdict.get("promote") is not False:
        return ""
    return f"{reasons.in_words(verdict['reason'])} {run_report.verdict(verdict)}".strip()

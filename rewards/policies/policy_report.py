"""Says in words and figures how a policy was judged, for its pages."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotator.infrastructure.web.numbers import number, percent
from rewards.models import Policy, TrainingRun
from rewards.policies import policy_registry

STATES: Mapping[str, Any] = {
    Policy.State.CANDIDATE: gettext_lazy("not judged"),
    Policy.State.OFFERED: gettext_lazy("offered"),
    Policy.State.REFUSED: gettext_lazy("not offered"),
}
TONES = {Policy.State.OFFERED: "good", Policy.State.REFUSED: "bad"}


@dataclass(frozen=True)
class Figure:
    """One figure of a judgement as text, with its 95 % interval where there is one, and what it means."""

    title: str
    value: str
    interval: str = ""
    note: str = ""


def state_of(policy: Policy) -> dict[str, str]:
    """Returns the state of a policy as a word, and the tone of its colour."""
    return {"word": str(STATES[policy.state]), "tone": TONES.get(Policy.State(policy.state), "")}


def win_rate(policy: Policy) -> Figure | None:
    """Returns the win rate with its interval; None for a policy that nobody has judged."""
    judgement = policy.judgement
    if not judgement:
        return None
    interval = _shares(judgement.get("win_rate_interval"))
    note = _("The share of prompts on which the champion prefers its answer to that of its base. A draw counts half.")
    return Figure(_("Win rate"), percent(judgement["win_rate"], 1), interval, note)


def figures(policy: Policy) -> Iterator[Figure]:
    """Yields the figures of the judgement; none for a policy that nobody has judged."""
    judgement, rate = policy.judgement, win_rate(policy)
    if rate is None:
        return
    yield rate
    yield Figure(
        _("Length-controlled win rate"),
        percent(judgement["length_controlled"], 1),
        _shares(judgement.get("length_controlled_interval")),
        _("The win rate if both answered at the same length, by a regression on the difference."),
    )
    kl = judgement.get("kl_per_token_interval")
    yield Figure(
        _("Distance from its base"),
        number(judgement["kl_per_token"], 3),
        _between(number(kl[0], 3), number(kl[1], 3)) if kl else "",
        _("The divergence (KL) of its answers for each token, in nats. 0 means that nothing has changed."),
    )
    yield _pair(_("Mean reward"), judgement["reward"], 3)
    yield _pair(_("Mean length in tokens"), judgement["tokens"], 1)
    yield Figure(
        _("Prompts"),
        number(judgement["prompts"], 0),
        note=_("Held out, and not learnt by the champion either."),
    )


def measured(run: TrainingRun) -> list[Figure]:
    """Returns what the aligner measured of the policy in a run: on which rows, and how often it is right there."""
    rows, held_out = run.metrics.get("rows"), run.metrics.get("held_out") or {}
    parts = run.metrics.get("data") or {}
    shown: list[Figure] = []
    if rows:
        every = _("of %(number)s tasks") % {"number": number(rows["tasks"], 0)}
        learnt = (parts.get("train") or rows)["rows"]
        shown.append(Figure(_("Rows to learn from"), number(learnt, 0), every))
    if held_out.get("loss") is not None:
        aside = number((parts.get("held_out") or {}).get("rows") or held_out.get("examples") or 0, 0)
        note = _("Rows that were kept aside and not learnt: %(rows)s.") % {"rows": aside}
        shown.append(Figure(_("Loss on the measured part"), number(held_out["loss"], 4), note=note))
    if held_out.get("reward_accuracy") is not None:
        interval = (held_out.get("intervals") or {}).get("accuracy")
        share = percent(held_out["reward_accuracy"], 1)
        note = _("How often the policy prefers the response that people chose, in the measured part.")
        shown.append(Figure(_("Pairs in the right order"), share, _shares(interval), note))
    return shown


def origin(policy: Policy) -> list[tuple[str, Any]]:
    """Returns the names and values of a policy's origin."""
    lineage, judge = policy_registry.lineage(policy), policy.judge
    judged = _("version %(version)s") % {"version": judge.version} if judge else _("nobody")
    return [
        (_("Base policy"), lineage["base"]),
        (_("Method"), lineage["method"]),
        (_("Judged by"), judged),
        (_("Snapshot"), lineage["snapshot"]),
        (_("Settings"), lineage["config_hash"]),
        (_("Code"), lineage["code_version"]),
        (_("Seed"), str(lineage["seed"])),
        (_("Hash of the artifact"), lineage["artifact_hash"]),
    ]


def _pair(title: str, values: Mapping[str, float], digits: int) -> Figure:
    text = _("its base: %(value)s") % {"value": number(values["base"], digits)}
    return Figure(title, number(values["policy"], digits), text)


def _shares(interval: list[float] | None) -> str:
    return _between(percent(interval[0], 1), percent(interval[1], 1)) if interval else ""


def _between(low: str, high: str) -> str:
    return _("%(low)s to %(high)s") % {"low": low, "high": high}

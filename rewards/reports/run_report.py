"""Presents a run to people: its verdict, its predictors side by side, and which one is the candidate."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext, pgettext

from annotator.infrastructure.web.numbers import number, percent
from rewards import reasons
from rewards.learning.paired_gain import t_quantile
from rewards.reasons import PAIRS, SQUARES

DIGITS = 3


def in_words(decision: Mapping[str, Any]) -> str:
    """Returns the decision in two sentences: how much better or worse the new model is, and what follows from it.

    Decisions that were made on too little, or by an earlier version, give their reason alone.
    """
    if not decision:
        return ""
    gain, before = decision.get("gain"), decision.get("before")
    if not decision.get("prompts") or gain is None or not before:
        return reasons.in_words(decision["reason"])
    return f"{_difference(decision, gain, before)} {_consequence(decision, gain)}"


def _difference(decision: Mapping[str, Any], gain: float, before: float) -> str:
    first = decision["against"] != "the champion"
    numbers = {
        "prompts": number(decision["prompts"], 0),
        "after": percent(1 - before + gain, 1),
        "before": percent(1 - before, 1),
    }
    if decision.get("measure", SQUARES) == PAIRS:
        if first:
            text = _(
                "On %(prompts)s prompts that it has not learnt from, the new model puts %(after)s of the pairs in the "
                "right order, where the toss of a coin would put %(before)s."
            )
        else:
            text = _(
                "On %(prompts)s prompts that neither has learnt from, the new model puts %(after)s of the pairs in the "
                "right order, the champion %(before)s."
            )
        return text % numbers
    numbers["share"] = percent(abs(gain) / before, 1)
    if first and gain >= 0:
        text = _(
            "On %(prompts)s prompts that it has not learnt from, the squared error of the new model is %(share)s "
            "smaller than that of predicting the mean."
        )
    elif first:
        text = _(
            "On %(prompts)s prompts that it has not learnt from, the squared error of the new model is %(share)s "
            "larger than that of predicting the mean."
        )
    elif gain >= 0:
        text = _(
            "On %(prompts)s prompts that neither has learnt from, the squared error of the new model is %(share)s "
            "smaller than the champion’s."
        )
    else:
        text = _(
            "On %(prompts)s prompts that neither has learnt from, the squared error of the new model is %(share)s "
            "larger than the champion’s."
        )
    return text % numbers


def _consequence(decision: Mapping[str, Any], gain: float) -> str:
    if decision["promote"]:
        return _("The difference is statistically significant. The new model can be promoted.")
    reason = decision["reason"]
    if isinstance(reason, str) or reason["code"] not in reasons.NO_EVIDENCE:
        # Something else holds it back: too few prompts, a constant score, or what has become worse.
        return reasons.in_words(reason)
    if gain <= 0:
        return _("It is not promoted.")
    enough = math.ceil(decision["prompts"] * (decision["detectable"] / gain) ** 2) if decision.get("detectable") else 0
    text = _(
        "That may be chance, so it is not promoted: if it is really that much better, about %(enough)s prompts would "
        "show it."
    )
    return text % {"enough": number(enough, 0)} if enough else _("That may be chance, so it is not promoted.")


def verdict(decision: Mapping[str, Any]) -> str:
    """Returns the change in what was measured with its interval, as a sentence; empty where nothing was measured.

    The interval is the 95 % one, as everywhere; the gate itself asks for more. What the decision rests on follows.
    """
    if not decision.get("prompts") or decision["gain"] is None:
        return ""
    by_pairs, look = decision.get("measure", SQUARES) == PAIRS, decision.get("look", 1)
    # Of a rise there is nothing to add: its interval is not the one that has to lie above 0.
    stricter = decision.get("confidence", CONFIDENCE) > CONFIDENCE and round(decision["gain"], DIGITS) >= 0
    again = _(STRICTER) if stricter else ""
    if look > 1:
        text = _("It is comparison %(look)s with %(rival)s, and each one needs more evidence than the last.")
        again = text % {"look": look, "rival": _rival(decision)}
    notes = [_change(decision), again, power(decision), _(BY_PAIRS) if by_pairs else ""]
    return " ".join(note for note in notes if note)


def power(decision: Mapping[str, Any]) -> str:
    """Returns how much the decision rests on, and the smallest gain that so much shows in four cases of five.

    It is empty for decisions of earlier versions, and where nothing was measured.
    """
    by_pairs, before = decision.get("measure", SQUARES) == PAIRS, decision.get("before")
    counted, detectable = decision.get("pairs" if by_pairs else "labels"), decision.get("detectable")
    if not counted or not decision.get("prompts"):
        return ""
    if by_pairs:
        text = ngettext(
            "The judgement rests on %(prompts)s prompts with %(counted)s pair.",
            "The judgement rests on %(prompts)s prompts with %(counted)s pairs.",
            counted,
        )
        more = _(
            "Four times in five, they would show a share of right pairs that is %(points)s percentage points higher."
        )
    else:
        text = ngettext(
            "The judgement rests on %(prompts)s prompts with %(counted)s label.",
            "The judgement rests on %(prompts)s prompts with %(counted)s labels.",
            counted,
        )
        more = _("Four times in five, they would show a squared error that is %(share)s smaller.")
    said = text % {"prompts": number(decision["prompts"], 0), "counted": number(counted, 0)}
    if not detectable or not before:
        return said
    if detectable >= before:
        return " ".join((said, _("They are too few to show any gain reliably.")))
    numbers = {"points": number(100 * detectable, 1), "share": percent(detectable / before, 1)}
    return f"{said} {more % numbers}"


CONFIDENCE = 0.95
STRICTER = gettext_noop("A promotion needs a little more evidence than that this interval lies above 0.")


def _interval(decision: Mapping[str, Any]) -> tuple[float, float]:
    """Returns the bounds of the gain's 95 % interval, from those of the interval that the gate has used."""
    gain, low, high = decision["gain"], decision["low"], decision["high"]
    confidence, prompts = decision.get("confidence", CONFIDENCE), decision["prompts"]
    if prompts < 2 or confidence == CONFIDENCE or low is None or high is None:
        return low, high
    factor = _reach(CONFIDENCE, prompts) / _reach(confidence, prompts)
    return gain - (gain - low) * factor, gain + (high - gain) * factor


def _reach(confidence: float, prompts: int) -> float:
    return t_quantile(1 - (1 - confidence) / 2, prompts - 1)


BY_PAIRS = gettext_noop(
    "The verdict compares the order of pairs, because the scores of a model whose last stage learnt from preferences "
    "are not on the scale of the labels."
)


def _change(decision: Mapping[str, Any]) -> str:
    gain, (low, high) = decision["gain"], _interval(decision)
    if round(gain, DIGITS) == 0:
        text = _(
            "%(measure)s stays the same against %(rival)s (%(confidence)s %% interval of the fall %(low)s to %(high)s, "
            "%(prompts)s prompts)."
        )
    elif gain > 0:
        text = _(
            "%(measure)s falls by %(change)s against %(rival)s (%(confidence)s %% interval %(low)s to %(high)s, "
            "%(prompts)s prompts)."
        )
    else:
        # Said as a rise, the interval is that of the rise too: its bounds change sign and place.
        low, high = -high, -low
        text = _(
            "%(measure)s rises by %(change)s against %(rival)s (%(confidence)s %% interval %(low)s to %(high)s, "
            "%(prompts)s prompts)."
        )
    by_pairs = decision.get("measure", SQUARES) == PAIRS
    return text % {
        "measure": _("The share of pairs in the wrong order") if by_pairs else _("The mean squared error"),
        "change": number(abs(gain), DIGITS),
        "rival": _rival(decision),
        "confidence": number(100 * CONFIDENCE, 0),
        "low": number(low, DIGITS),
        "high": number(high, DIGITS),
        "prompts": number(decision["prompts"], 0),
    }


def _rival(decision: Mapping[str, Any]) -> str:
    """Returns with what the new model was compared, as it stands after “against” and “with”."""
    if decision["against"] == "the champion":
        return pgettext("against or with", "the champion")
    return pgettext("against or with", "predicting the mean")


def left_out(data: Mapping[str, Any]) -> list[str]:
    """Returns in sentences which pairs a run has left out, as it read the same of both responses.

    data: what the run's metrics count, by part.
    """
    counts = [part["alike"] for part in data.values() if part.get("alike")]
    totals = {name: sum(count[name] for count in counts) for name in ("pairs", "same_text", "cut", "hidden")}
    limits = {name: max((count[name] for count in counts), default=0) for name in ("max_length", "apart_at", "most")}
    shown = {name: number(value, 0) for name, value in {**totals, **limits}.items()}
    said = []
    if totals["cut"]:
        text = _(
            "%(cut)s of %(pairs)s pairs are the same once cut to %(max_length)s tokens: they were neither learnt from "
            "nor judged by. A max_length of %(apart_at)s would keep them apart."
        )
        said.append(text % shown)
    if totals["cut"] and 0 < limits["most"] < limits["apart_at"]:
        said.append(_("The language model reads at most %(most)s tokens.") % shown)
    if totals["hidden"]:
        text = _(
            "%(hidden)s of %(pairs)s pairs were left out, because the chat template or the tokenizer drops what "
            "differs between their responses."
        )
        said.append(text % shown)
    if totals["same_text"]:
        said.append(_("%(same_text)s of %(pairs)s pairs were left out, because they have the same text twice.") % shown)
    return said


def judged_on(decision: Mapping[str, Any], manifest: Mapping[str, Any]) -> str:
    """Returns of which prompts and which models the decision's numbers are; empty where that is not known."""
    held, every = manifest.get("counts", {}).get("validation_prompts"), decision.get("prompts")
    if not held or not every:
        return ""
    numbers = {"held": number(held, 0), "every": number(every, 0), "crossed": number(every - held, 0)}
    if every <= held:
        return _("These %(every)s prompts are held out: the model itself is judged on them.") % numbers
    text = _(
        "Of these %(every)s prompts, %(held)s are held out, and the model itself is judged on them. The other "
        "%(crossed)s are cross-fitted: each was judged by a model that was fitted in the same way without it."
    )
    return text % numbers


def held_out(manifest: Mapping[str, Any]) -> str:
    """Returns how many of a snapshot's prompts are held out; of its tasks, where the snapshot did not count prompts."""
    counts = manifest.get("counts", {})
    by_prompts = "validation_prompts" in counts
    unit = "prompts" if by_prompts else "tasks"
    validation, train = counts.get(f"validation_{unit}"), counts.get(f"train_{unit}")
    if not validation or not train:
        return ""
    every = validation + train
    text = (
        _("Held out: %(part)s of %(every)s prompts (%(share)s).")
        if by_prompts
        else _("Held out: %(part)s of %(every)s tasks (%(share)s).")
    )
    return text % {"part": number(validation, 0), "every": number(every, 0), "share": percent(validation / every)}


def winner(metrics: Mapping[str, Any]) -> str:
    """Returns which of the run's two models is the candidate; empty before that is known."""
    kind = metrics.get("candidate", {}).get("kind")
    if kind is None:
        return ""
    layers = metrics.get("baseline", {}).get("layers")
    read = " " + _("Layers of the backbone in use: %(layers)s.") % {"layers": layers} if layers else ""
    if kind == "ridge" and metrics.get("training", {}).get("steps") == 0:
        return _("The candidate is the ridge on frozen features; nothing was fine-tuned.") + read
    if kind == "ridge":
        said = _(
            "The ridge on frozen features is the candidate, because fine-tuning was not better on the dev prompts."
        )
        return said + read
    return _("The candidate is fine-tuned, and better than the ridge on the dev prompts.") + read


# Side by side -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Predictor:
    """One of the predictors that a run tries on the held-out prompts, with its metrics."""

    title: str
    metrics: Mapping[str, Any]

    def of(self, attribute: str, name: str) -> float | None:
        """Returns a measure of one attribute; None where it is undefined."""
        value: float | None = self.metrics.get("attributes", {}).get(attribute, {}).get(name)
        return value

    def of_one_rater(self, attribute: str) -> float | None:
        """Returns the RMSE against the ratings of single people; None where nobody's is left to compare with."""
        value: float | None = self.metrics.get("human", {}).get(attribute, {}).get("model_rmse")
        return value

    def accuracy(self) -> float | None:
        """Returns the share of pairs in the right order; None where there are no pairs."""
        accuracy: float | None = self.metrics.get("pairwise", {}).get("accuracy")
        return accuracy

    def is_measured(self, attributes: Sequence[str]) -> bool:
        """Returns whether there is anything to show."""
        values = [value for key in attributes for value in (self.of(key, "rmse"), self.of_one_rater(key))]
        return self.accuracy() is not None or any(value is not None for value in values)


@dataclass(frozen=True)
class ReportLine:
    """A line of a table: its title, and a value for each column."""

    title: str
    values: list[float | None]


@dataclass(frozen=True)
class SideBySide:
    """A table with a column for each predictor; its lines are grouped by what they measure."""

    columns: list[str]
    groups: list[tuple[str, list[ReportLine]]]


def side_by_side(
    metrics: Mapping[str, Any], attributes: Sequence[str], *, champion: Mapping[str, Any] | None = None
) -> SideBySide | None:
    """Returns the measures of each predictor of a run on the held-out prompts; None before they are known.

    champion: the metrics on the same prompts of the model that the run was judged against. Where several people rated
    a response, each of them in turn is predicted by the mean of the others as well: no model can be asked for more.
    """
    predictors = [predictor for predictor in _predictors(metrics, champion or {}) if predictor.is_measured(attributes)]
    by_attribute = [
        (title, [ReportLine(key, [predictor.of(key, name) for predictor in predictors]) for key in attributes])
        for title, name in (("RMSE", "rmse"), ("Spearman", "spearman"))
    ]
    accuracies = ReportLine(_("in the right order"), [predictor.accuracy() for predictor in predictors])
    pairs, pairwise = "", metrics.get("candidate", {}).get("pairwise", {})
    if pairwise.get("pairs"):
        text = _("%(pairs)s pairs (of which the longer response is right in %(share)s)")
        pairs = text % {"pairs": number(pairwise["pairs"], 0), "share": number(pairwise["longer_wins"], 3)}
    one_rater = [ReportLine(key, [predictor.of_one_rater(key) for predictor in predictors]) for key in attributes]
    every = [*by_attribute, (_("RMSE against one rater at a time"), one_rater), (pairs, [accuracies])]
    groups = [
        (title, [line for line in lines if any(value is not None for value in line.values)]) for title, lines in every
    ]
    kept = [(title, lines) for title, lines in groups if lines]
    return SideBySide([predictor.title for predictor in predictors], kept) if kept else None


def _predictors(metrics: Mapping[str, Any], champion: Mapping[str, Any]) -> Iterator[Predictor]:
    candidate = metrics.get("candidate", {})
    kind = candidate.get("kind")
    # The metrics of older runs leave out a fine-tuned model that was not kept.
    fine_tuned = metrics.get("fine_tuned") or (candidate if kind == "finetuned" else {})
    evaluations = {"mean": metrics.get("mean"), "ridge": metrics.get("baseline"), "finetuned": fine_tuned}
    for name, evaluation in evaluations.items():
        if evaluation:
            title = _(PREDICTORS[name])
            yield Predictor(
                _("%(predictor)s (candidate)") % {"predictor": title} if name == kind else title, evaluation
            )
    if champion:
        yield Predictor(_("the champion"), champion)
    people = {key: {"model_rmse": measured.get("rmse")} for key, measured in candidate.get("human", {}).items()}
    yield Predictor(_("the other raters"), {"human": people})


PREDICTORS = {
    "mean": gettext_noop("the mean"),
    "ridge": gettext_noop("ridge on frozen features"),
    "finetuned": gettext_noop("fine-tuned"),
}

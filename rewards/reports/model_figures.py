"""Presents the figures of a model's version: in words, as rows of a table, and as charts against what people said.

Its learning curve says what the next labels would bring.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotator.infrastructure.web.charts import Chart, ChartKind, Series
from annotator.infrastructure.web.numbers import number, percent
from annotator.models import Attribute


@dataclass(frozen=True)
class FigureValue:
    """A measure with the ends of its 95 % interval, None where it is undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Figures:
    """The measures of one attribute on held-out prompts; `mean` is the RMSE of predicting the training mean."""

    title: str
    labels: int
    rmse: FigureValue
    mean: float | None
    spearman: FigureValue
    kappa: FigureValue
    calibration: float | None
    slope: float | None


def figures(metrics: Mapping[str, Any], attributes: Sequence[Attribute]) -> list[Figures]:
    """Returns the measures of each attribute that has labels, in the order of the rubric."""
    measured = metrics.get("attributes") or {}
    known = [attribute for attribute in attributes if (measured.get(attribute.key) or {}).get("rmse") is not None]
    return [_of(measured[attribute.key], attribute.shown_name) for attribute in known]


def segment_figures(metrics: Mapping[str, Any], aspects: Sequence[Attribute]) -> list[Figures]:
    """Returns the measures of each aspect over the held-out segments; none for a model that scores no segments."""
    return figures({"attributes": (metrics.get("segments") or {}).get("aspects")}, aspects)


@dataclass(frozen=True)
class LanguagePart:
    """A version's figures on the held-out responses of one language."""

    language: str
    responses: int
    rmse: FigureValue
    pairs: int
    accuracy: FigureValue


def by_language(metrics: Mapping[str, Any]) -> list[LanguagePart]:
    """Returns the figures by language, the one with the most responses first; none where all tasks have one."""
    parts = (metrics.get("slices") or {}).get("language") or {}
    found = [
        LanguagePart(
            language,
            int(part.get("n") or 0),
            value_of(part, "rmse"),
            int((part.get("pairwise") or {}).get("pairs") or 0),
            value_of(part.get("pairwise") or {}, "accuracy"),
        )
        for language, part in parts.items()
    ]
    return sorted(found, key=lambda part: -part.responses)


def worst_in_words(metrics: Mapping[str, Any]) -> str:
    """Says how often the model finds the worst segment of a response; empty for one that scores no segments."""
    worst = ((metrics.get("segments") or {}).get("worst") or {}).get("all") or {}
    if worst.get("accuracy") is None:
        return ""
    text = _(
        "It finds the worst segment in %(share)s of %(responses)s responses. Chance would in %(chance)s, and the best "
        "fixed place in the response in %(position)s."
    )
    if worst.get("longest") is not None:
        text = _(
            "It finds the worst segment in %(share)s of %(responses)s responses. Chance would in %(chance)s, the best "
            "fixed place in the response in %(position)s, and always choosing the longest segment in %(longest)s."
        )
    return text % {
        "longest": percent(worst.get("longest") or 0.0, 1),
        "share": percent(worst["accuracy"], 1),
        "responses": number(worst["responses"], 0),
        "chance": percent(worst["chance"], 1),
        "position": percent(worst["position"]["accuracy"], 1),
    }


def _of(measures: Mapping[str, Any], title: str) -> Figures:
    calibration = measures.get("calibration") or {}
    return Figures(
        title,
        int(measures.get("n") or 0),
        value_of(measures, "rmse"),
        measures.get("mean_rmse"),
        value_of(measures, "spearman"),
        value_of(measures, "qwk"),
        calibration.get("error"),
        calibration.get("slope"),
    )


def value_of(measures: Mapping[str, Any], name: str) -> FigureValue:
    """Returns a measure with its interval."""
    low, high = (measures.get("intervals") or {}).get(name) or (None, None)
    return FigureValue(measures.get(name), low, high)


def measured_on(metrics: Mapping[str, Any]) -> str:
    """Returns on how many held-out prompts a version was measured; empty where the metrics do not say."""
    measured = [one.get("prompts") or 0 for one in (metrics.get("attributes") or {}).values() if one]
    if not any(measured):
        return ""
    text = _("Measured on %(prompts)s held-out prompts, from which this version has not learnt.")
    return text % {"prompts": number(max(measured), 0)}


def beside_length(metrics: Mapping[str, Any]) -> str:
    """Says plainly where a version orders pairs no better than the rule that the longer response is the better one."""
    pairs = metrics.get("pairwise") or {}
    share, longer = value_of(pairs, "accuracy"), pairs.get("longer_wins")
    if not pairs.get("pairs") or share.value is None or longer is None:
        return ""
    shares = {"share": percent(share.value, 1), "longer": percent(longer, 1), "pairs": number(pairs["pairs"], 0)}
    if share.value <= longer:
        text = _(
            "It orders pairs no better than by their length: %(share)s of %(pairs)s held-out pairs are right, and "
            "%(longer)s if the longer response is always chosen."
        )
        return text % shares
    if share.low is not None and share.low <= longer:
        text = _(
            "It may order pairs no better than by their length: %(share)s of %(pairs)s held-out pairs are right, and "
            "%(longer)s if the longer response is always chosen, which is within its interval."
        )
        return text % shares
    return ""


def in_words(metrics: Mapping[str, Any]) -> list[str]:
    """Returns the key figures as sentences: how often it orders a pair as people do, and how far it is off."""
    return [sentence for sentence in (_of_pairs(metrics), _of_errors(metrics)) if sentence]


def _of_pairs(metrics: Mapping[str, Any]) -> str:
    pairs = metrics.get("pairwise") or {}
    if not pairs.get("pairs") or pairs.get("accuracy") is None:
        return ""
    share = value_of(pairs, "accuracy")
    values = {"share": percent(share.value, 1), "pairs": number(pairs["pairs"], 0)}
    text = _("It puts %(share)s of %(pairs)s pairs of responses in the order that people gave them.")
    if share.low is not None:
        text = _(
            "It puts %(share)s of %(pairs)s pairs of responses in the order that people gave them (95 %% interval "
            "%(low)s to %(high)s)."
        )
        values |= {"low": percent(share.low, 1), "high": percent(share.high, 1)}
    text %= values
    if pairs.get("longer_wins") is None:
        return text
    longer = _("Always choosing the longer response would be right in %(share)s.")
    return f"{text} {longer % {'share': percent(pairs['longer_wins'], 1)}}"


def _of_errors(metrics: Mapping[str, Any]) -> str:
    measured = [one for one in (metrics.get("attributes") or {}).values() if one and one.get("rmse") is not None]
    labels = sum(one.get("n") or 0 for one in measured)
    if metrics.get("rmse") is None or not labels:
        return ""
    known = [one for one in measured if one.get("mean_rmse") is not None]
    if len(known) < len(measured):
        return _("Its predictions are %(error)s levels off (root mean square).") % {"error": number(metrics["rmse"])}
    mean = math.sqrt(sum(one["mean_rmse"] ** 2 * one["n"] for one in known) / labels)
    text = _(
        "Its predictions are %(error)s levels off (root mean square). Predicting the mean of each attribute would be "
        "%(mean)s levels off."
    )
    return text % {"error": number(metrics["rmse"]), "mean": number(mean)}


def calibration_charts(metrics: Mapping[str, Any], attributes: Sequence[Attribute]) -> list[Chart]:
    """Returns a chart for each attribute: the mean prediction and the mean label in tenths of the responses."""
    measured = metrics.get("attributes") or {}
    charts = []
    for attribute in attributes:
        bins = ((measured.get(attribute.key) or {}).get("calibration") or {}).get("bins") or []
        if len(bins) < 2:
            continue
        # Scores count from 0 in the files and from 1 on the pages.
        charts.append(
            Chart(
                name=f"predicted-{attribute.key}",
                title=attribute.shown_name,
                kind=ChartKind.LINE,
                places=[number(place, 0) for place in range(1, len(bins) + 1)],
                series=[
                    Series(_("predicted"), [part["predicted"] + 1 for part in bins]),
                    Series(_("by people"), [part["label"] + 1 for part in bins]),
                ],
                place_label=_("Part of the responses, from the lowest prediction to the highest"),
                value_label=_("Mean level"),
                digits=2,
                # Predictions are not clamped, so they may lie outside the levels.
                minimum=math.floor(min(1, *(part["predicted"] + 1 for part in bins))),
                maximum=math.ceil(max(len(attribute.levels), *(part["predicted"] + 1 for part in bins))),
            )
        )
    return charts


# Learning curves --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """A learning curve in words: what to expect, and how many pairs are put in the right order."""

    sentence: str
    order: str


def summary(metrics: Mapping[str, Any], *, name: str = "learning_curve") -> Summary | None:
    """Returns the ridge's learning curve in a run's metrics, or the one of this name; None if there is none."""
    curve = metrics.get(name)
    if not curve:
        return None
    words = _words(curve)
    return Summary(_sentence(curve, words), _order(curve["points"], words))


def figure(metrics: Mapping[str, Any], *, name: str = "learning_curve") -> Chart | None:
    """Returns the curve of `summary` as a figure of the workspace: what was measured, and the law up to the outlook."""
    curve = metrics.get(name)
    if not curve:
        return None
    words, points, law, ahead = _words(curve), curve["points"], curve["law"], curve["outlook"]
    sizes = [int(point["labels"]) for point in points]
    sizes += [ahead["labels"] + ahead["more"]] if ahead["labels"] + ahead["more"] > sizes[-1] else []
    gap: list[None] = [None] * (len(sizes) - len(points))
    fitted = [max(0.0, law["floor"] + law["slope"] * size ** -law["exponent"]) for size in sizes]
    return Chart(
        name=name.replace("_", "-"),
        title=_("Error by the number of %(labels)s") % words,
        kind=ChartKind.LINE,
        places=[number(size, 0) for size in sizes],
        series=[
            Series(
                _("measured"),
                [*(_either(point, "error", "rmse") for point in points), *gap],
                [*(point["low"] for point in points), *gap],
                [*(point["high"] for point in points), *gap],
            ),
            Series(_("fitted law, and what it expects"), fitted),
        ],
        place_label=words["labels_axis"],
        value_label=words["error_axis"],
        digits=3,
    )


def _words(curve: Mapping[str, Any]) -> dict[str, str]:
    """Returns what the curve's labels and its error are called: ratings and RMSE, or preferences and wrong pairs."""
    if curve.get("measure") == "wrong":
        return {
            "labels_axis": _("preferences"),
            "error_axis": _("share of pairs in the wrong order"),
            "labels": _("preferences"),
            "error": _("the share of pairs in the wrong order"),
        }
    return {"labels_axis": _("labelled responses"), "error_axis": "RMSE", "labels": _("labels"), "error": _("the RMSE")}


def _sentence(curve: Mapping[str, Any], words: Mapping[str, str]) -> str:
    outlook = curve["outlook"]
    numbers = {
        "more": number(outlook["more"], 0),
        "count": number(outlook["labels"], 0),
        "now": number(_either(outlook, "now", "rmse_now"), 3),
        "then": number(_either(outlook, "then", "rmse_then"), 3),
        **{name: number(outlook[name], 3) for name in ("low", "high")},
        **words,
    }
    if not outlook["evidence"]:
        text = _(
            "It is uncertain whether the next %(more)s %(labels)s would lower %(error)s from %(now)s: the fall would "
            "lie between %(low)s and %(high)s (95 %% interval)."
        )
    else:
        text = _(
            "The next %(more)s %(labels)s would lower %(error)s from about %(now)s to %(then)s, by %(low)s to %(high)s "
            "(95 %% interval)."
        )
    if outlook.get("probability") is not None:
        text += " " + _("The probability that they lower it at all is %(probability)s.")
        numbers["probability"] = percent(outlook["probability"])
    if outlook["evidence"] and outlook["far"]:
        text += " " + _("This reaches far beyond the existing %(count)s %(labels)s, so treat it as a guess.")
    return text % numbers


def _either(values: Mapping[str, Any], name: str, former: str) -> float:
    """Returns a number that earlier versions stored under another name."""
    value: float = values[name] if name in values else values[former]
    return value


def _order(points: list[Mapping[str, Any]], words: Mapping[str, str]) -> str:
    first, last = points[0], points[-1]
    if last["accuracy"] is None or first["accuracy"] is None:
        return ""
    text = _("Pairs in the right order: %(few)s with %(fewer)s %(labels)s, %(many)s with %(more)s.")
    return text % {
        "few": percent(first["accuracy"]),
        "fewer": number(first["labels"], 0),
        "many": percent(last["accuracy"]),
        "more": number(last["labels"], 0),
        "labels": words["labels"],
    }

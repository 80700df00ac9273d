"""The glossary: it explains words of the pages for managers and reviewers, each under an anchor of its own."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET


@dataclass(frozen=True)
class Term:
    """A term: `word` as it stands in a sentence, and its `meaning` for somebody who has never heard it."""

    word: Promise
    meaning: Promise


TERMS: Mapping[str, Term] = {
    "alpha": Term(
        _("alpha"),
        _(
            "Krippendorff's alpha, another measure of agreement: 1 is full agreement, 0 is chance. It weighs every "
            "rating the same, so that responses with many ratings count more than in kappa."
        ),
    ),
    "calibration": Term(
        _("calibration"),
        _(
            "Whether a model is as sure as it should be. If it expects a difference between two responses, people "
            "should see it as often as the model says."
        ),
    ),
    "candidate": Term(
        _("candidate"),
        _("The model that a training run proposes. It becomes the champion only if it is better than the one in use."),
    ),
    "champion": Term(
        _("champion"),
        _(
            "The reward model in use: it scores every response of the project. A new model takes its place only if it "
            "is better on prompts that neither has learnt from, and each earlier one can be brought back."
        ),
    ),
    "fine-tuned": Term(
        _("fine-tuned"),
        _("Said of a model of which training has changed all weights, not only the last step that makes the scores."),
    ),
    "gold": Term(
        _("gold task"),
        _("A task that experts have rated beforehand. It measures how well annotators agree with them."),
    ),
    "held-out": Term(
        _("held-out prompts"),
        _(
            "A part of the prompts that no model learns from, kept to judge models by. A prompt never changes sides, "
            "so a model is always judged by what it has not seen."
        ),
    ),
    "interval": Term(
        _("confidence interval"),
        _(
            "A range around a measured number, made so that in about 95 of 100 repetitions with other data of the same "
            "kind it holds the true value. A wide range means that the number is uncertain."
        ),
    ),
    "kappa": Term(
        _("kappa"),
        _(
            "A measure of how far annotators agree beyond chance: 1 is full agreement, 0 is what chance alone would "
            "give, and less than 0 is worse than chance. Weighted kappa counts ratings that are far apart as worse "
            "than neighbouring ones."
        ),
    ),
    "kept": Term(
        _("kept"),
        _(
            "The ratings of a task that make its label: the ones that are closest to each other, three as a rule. "
            "The others stay stored, but do not count in the label."
        ),
    ),
    "label": Term(
        _("label"),
        _("What a response gets in the end: for each attribute the mean of the kept ratings, or what a reviewer set."),
    ),
    "learning-curve": Term(
        _("learning curve"),
        _("The error of a model by the number of labels that it learnt from. It tells what more labels would bring."),
    ),
    "mean-predictor": Term(
        _("mean predictor"),
        _("The simplest rival of a model: it gives every response the mean of all labels. A model has to beat it."),
    ),
    "promoted": Term(
        _("promoted"),
        _("Said of a model that has become the champion."),
    ),
    "quarantine": Term(
        _("quarantine"),
        _(
            "Where a task goes that somebody has reported, or skipped for personal information. Nobody gets it, and "
            "it gives no label, until a manager decides."
        ),
    ),
    "reward": Term(
        _("reward"),
        _(
            "One number for how good a response is: the weighted sum of what the model expects for each attribute, "
            "with levels counted from 0 as in the exports."
        ),
    ),
    "ridge": Term(
        _("ridge"),
        _(
            "A simple model that is fitted in seconds. It reads what a language model makes of the text, leaves that "
            "language model as it is, and learns only how to weigh it. With few labels it is often the best."
        ),
    ),
    "rmse": Term(
        _("RMSE"),
        _(
            "Root mean square error: how far, in levels, a model's scores lie from the labels. 0 would be perfect, "
            "and large misses weigh more than small ones."
        ),
    ),
    "snapshot": Term(
        _("snapshot"),
        _(
            "The labels and texts as they were at one moment, kept unchanged. Every model learns from one, so that "
            "one can always tell what it has seen."
        ),
    ),
    "spearman": Term(
        _("Spearman"),
        _("Whether two rankings are in the same order: 1 is the same order, 0 is no relation, −1 is the reverse."),
    ),
    "spread": Term(
        _("spread"),
        _(
            "The largest difference between two ratings of the same response. With a spread that is too wide, more "
            "annotators are asked, and in the end a reviewer settles the task."
        ),
    ),
}


@login_required
@require_GET
def glossary(request: HttpRequest) -> HttpResponse:
    """Lists all terms in alphabetical order in the reader's language."""
    terms = sorted(TERMS.items(), key=lambda item: str(item[1].word).casefold())
    return render(request, "glossary.html", {"terms": terms})

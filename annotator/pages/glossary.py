"""The glossary: it explains words of the pages for managers and reviewers, each under an anchor of its own."""

from collections.abc import Mapping
from dataclasses import dataclass

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
            "Krippendorff's alpha, another measure of agreement: 1 is full agreement, 0 is chance. It gives every "
            "rating the same weight, so responses with many ratings count more than in kappa."
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
            "The reward model in use. It scores every response of the project. A new model replaces it only if it is "
            "better on prompts that neither has learnt from. Every earlier model can be brought back."
        ),
    ),
    "fine-tuned": Term(
        _("fine-tuned"),
        _(
            "Describes a model in which training has changed all weights, not only those of the last step, which "
            "produces the scores."
        ),
    ),
    "gold": Term(
        _("gold task"),
        _("A task that experts have rated beforehand. It measures how well annotators agree with them."),
    ),
    "held-out": Term(
        _("held-out prompts"),
        _(
            "The part of the prompts that no model learns from. It is kept to judge models. A prompt never moves to "
            "the other part, so a model is always judged on prompts that it has not seen."
        ),
    ),
    "interval": Term(
        _("confidence interval"),
        _(
            "A range around a measured number. If the measurement were repeated 100 times with other data of the same "
            "kind, about 95 of these ranges would contain the true value. A wide range means that the number is "
            "uncertain."
        ),
    ),
    "kappa": Term(
        _("kappa"),
        _(
            "A measure of how far annotators agree beyond chance: 1 is full agreement, 0 is what chance alone would "
            "give, and less than 0 is worse than chance. Weighted kappa penalises ratings that are far apart more "
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
        _(
            "The final scores of a response: for each attribute, the mean of the kept ratings or the level that a "
            "reviewer set."
        ),
    ),
    "learning-curve": Term(
        _("learning curve"),
        _(
            "The error of a model, shown against the number of labels that it learnt from. The curve shows what more "
            "labels would bring."
        ),
    ),
    "mean-predictor": Term(
        _("mean predictor"),
        _(
            "The simplest baseline for a model: it gives every response the mean of all labels. A model must do "
            "better than this."
        ),
    ),
    "policy": Term(
        _("policy"),
        _(
            "A language model that writes responses, seen as what alignment changes. It learns from the judgements of "
            "a project, and starts from a base policy."
        ),
    ),
    "promoted": Term(
        _("promoted"),
        _("Describes a model that has become the champion."),
    ),
    "quarantine": Term(
        _("quarantine"),
        _(
            "The place for tasks that somebody has reported, or skipped for personal information. Nobody gets such a "
            "task, and it gives no label, until a manager decides."
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
            "A simple model that is fitted in seconds. It uses the numbers that a language model computes from the "
            "text. It leaves the language model unchanged and learns only how to weight those numbers. With few "
            "labels it is often the best model."
        ),
    ),
    "rmse": Term(
        _("RMSE"),
        _(
            "Root mean square error: how far, in levels, a model's scores lie from the labels. 0 is perfect. Large "
            "errors count more than small ones."
        ),
    ),
    "snapshot": Term(
        _("snapshot"),
        _(
            "The labels and texts as they were at one moment, kept unchanged. Every model learns from a snapshot, so "
            "you can always tell what it has seen."
        ),
    ),
    "spearman": Term(
        _("Spearman"),
        _("Whether two rankings are in the same order: 1 is the same order, 0 is no relation, −1 is the reverse."),
    ),
    "spread": Term(
        _("spread"),
        _(
            "The largest difference between two ratings of the same response. If the spread is too wide, more "
            "annotators are asked. If it stays too wide, a reviewer settles the task."
        ),
    ),
    "win-rate": Term(
        _("win rate"),
        _(
            "The share of held-out prompts on which the champion gives the policy's answer a higher reward than the "
            "answer of its base; a draw counts half. 50 % would mean that nothing was gained."
        ),
    ),
}


@require_GET
def glossary(request: HttpRequest) -> HttpResponse:
    """Lists all terms in alphabetical order in the reader's language."""
    terms = sorted(TERMS.items(), key=lambda item: str(item[1].word).casefold())
    return render(request, "glossary.html", {"terms": terms})

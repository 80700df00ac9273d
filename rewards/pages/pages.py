"""Pages of the machine half for a project's reviewers and managers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotator.infrastructure.web.acting import show_refusal
from annotator.infrastructure.web.lane_shares import require_share
from annotator.models import Project, User
from annotator.reading import access
from annotator.reading.access import user_of
from rewards.access import managed_evaluation, managed_job
from rewards.evaluation import evaluation, evaluation_jobs
from rewards.evaluation.comparison import DIGITS, Cell, ComparisonLine, compare, groups_of
from rewards.models import Evaluation, EvaluationJob, RewardModel
from rewards.reports import run_progress

MEASURES = {
    "accuracy": gettext_lazy("Accuracy"),
    "easy": gettext_lazy("Easy"),
    "normal": gettext_lazy("Normal"),
    "hard": gettext_lazy("Hard"),
    "rmse": gettext_lazy("RMSE"),
    "mae": gettext_lazy("Mean absolute error"),
    "spearman": gettext_lazy("Spearman"),
    "qwk": gettext_lazy("Weighted kappa"),
    "ties": gettext_lazy("Ties"),
    "ece": gettext_lazy("Calibration error"),
    "error": gettext_lazy("Calibration error"),
    "slope": gettext_lazy("Calibration slope"),
    "longer_wins": gettext_lazy("The longer response wins"),
    "length_correlation": gettext_lazy("Reward and length"),
    "reward": gettext_lazy("Reward and length"),
    "label": gettext_lazy("Label and length"),
}
PARTS = {
    "overall": gettext_lazy("Overall"),
    "sections": gettext_lazy("Sections"),
    "domains": gettext_lazy("Domains"),
    "categories": gettext_lazy("Categories"),
    "sources": gettext_lazy("Sources"),
    "subsets": gettext_lazy("Subsets"),
    "pairwise": gettext_lazy("Pairs of responses"),
    "by_strength": gettext_lazy("Pairs by how far apart they are"),
    "all": gettext_lazy("All rows alike"),
    "length": gettext_lazy("Length"),
    "segments": gettext_lazy("Segments"),
    "worst": gettext_lazy("The worst segment of a response"),
    "position": gettext_lazy("always at the best place"),
    "human": gettext_lazy("One annotator compared with the others"),
    "turns": gettext_lazy("By number of turns"),
    "model": gettext_lazy("By the response's model"),
    "source": gettext_lazy("By source"),
    "language": gettext_lazy("By language"),
    "single": gettext_lazy("one turn"),
    "multi": gettext_lazy("several turns"),
    "short": gettext_lazy("short"),
    "medium": gettext_lazy("medium"),
    "long": gettext_lazy("long"),
    "unnamed": gettext_lazy("unnamed"),
}
BY_LENGTH = gettext_lazy("By length")
DEEPER = (("attributes",), ("slices",))
"""Parts whose own parts have a heading each."""
REASONS = (gettext_noop("the same score for every response"), gettext_noop("the same label for every response"))
"""The metrics' reasons why there is no correlation, listed here so that they are translated."""


@dataclass(frozen=True)
class Row:
    """A measure, and how many rows, pairs or labels it is over."""

    label: str
    cells: Sequence[Cell | None]
    n: int | None
    digits: int


@dataclass(frozen=True)
class Section:
    """Rows of the table under one heading."""

    title: str
    rows: list[Row]


@require_GET
def comparison(request: HttpRequest, slug: str) -> HttpResponse:
    """Shows the versions of a project's model side by side.

    The parameter `of` chooses the evaluation; by default it is the champion's newest.
    """
    project = access.reviewed_project(user_of(request), slug)
    groups = groups_of(project)
    newest = request.GET.get("of", "")
    requested = [group for group in groups if str(group.newest) == newest]
    chosen = next(iter([*requested, *(group for group in groups if group.has_champion), *groups]), None)
    page = {"groups": groups, "chosen": chosen, **shown_jobs(user_of(request), project)}
    page["has_models"] = bool(groups) or project.reward_models.exists()
    page["form"] = EvaluationForm(project)
    if chosen:
        comparison = compare(project, name=chosen.name, data_hash=chosen.data_hash)
        # All of a group share their name and their data, by which a run's own are known.
        if page["manages"] and not evaluation.is_of_a_run(comparison.evaluations[0]):
            page["deletable"] = comparison.evaluations
        names = {attribute.key: attribute.shown_name for attribute in project.every_attribute()}
        page["evaluations"] = comparison.evaluations
        page["notes"] = [note for evaluation in comparison.evaluations for note in _notes(evaluation, names)]
        # The ties of each part would fill the page: those of all parts together are enough.
        lines = [line for line in comparison.lines if line.measure != "ties" or len(line.path) == 1]
        lines = [line for line in lines if not line.is_empty]
        page["sections"] = list(_sections([line for line in lines if not line.is_fine], names))
        page["fine"] = list(_sections([line for line in lines if line.is_fine], names))
    return render(request, "comparison.html", page)


def _notes(evaluation: Evaluation, attributes: Mapping[str, str]) -> Iterator[str]:
    """Yields what makes the numbers of a version mean less than they seem to."""
    metrics, version = evaluation.metrics, evaluation.reward_model.version
    constant = (metrics.get("all") or {}).get("constant") or metrics.get("constant")
    lost = (metrics.get("all") or {}).get("not_finite") or metrics.get("not_finite")
    if constant is True:
        yield _("Version %(version)s gives every answer the same reward.") % {"version": version}
    elif constant:
        names = ", ".join(attributes.get(name, name) for name in constant)
        yield _("Version %(version)s gives every response the same %(names)s.") % {"version": version, "names": names}
    if lost:
        yield _("Version %(version)s: %(count)s scores are not numbers.") % {"version": version, "count": lost}
    if metrics.get("seen_in_training"):
        values = {"version": version, "count": metrics["seen_in_training"]}
        yield _("Version %(version)s was trained on the prompts of %(count)s of these rows.") % values


def _sections(lines: Sequence[ComparisonLine], attributes: Mapping[str, str]) -> Iterator[Section]:
    # The lines come sorted by part, so those under one heading follow each other.
    for title, in_section in groupby(lines, key=lambda line: _title(line, attributes)):
        rows = [
            Row(_label(line, attributes), line.cells, line.n, digits=0 if line.measure == "ties" else DIGITS)
            for line in in_section
        ]
        yield Section(title, rows)


def _title(line: ComparisonLine, attributes: Mapping[str, str]) -> str:
    """Returns the heading of a line: an attribute, a part of the data, or all labels."""
    if not line.path:
        return _("All labels")
    if line.path[0] == "attributes":
        return attributes.get(line.path[1], line.path[1])
    if line.path[:2] == ("segments", "aspects"):
        return f"{PARTS['segments']}: {attributes.get(line.path[2], line.path[2])}"
    if line.path[:2] == ("segments", "worst"):
        return str(PARTS["worst"])
    if line.path[0] == "slices":
        return str(BY_LENGTH) if line.path[1] == "length" else _part(line.path[1])
    return _part("by_strength" if "by_strength" in line.path else line.path[0])


def _label(line: ComparisonLine, attributes: Mapping[str, str]) -> str:
    """Returns the part within the heading, the measure, or both where a part has several measures."""
    depth = 3 if line.path[:2] == ("segments", "aspects") else 2 if line.path[:1] in DEEPER else 1
    names = [part for part in line.path[depth:] if part not in ("by_strength", "pairwise", "worst")]
    parts = ", ".join(attributes.get(name) or _part(name) for name in names)
    measure = str(MEASURES[line.measure])
    if parts and line.measure == "accuracy" and line.path[0] != "slices":
        return parts
    return f"{parts}: {measure}" if parts else measure


def _part(name: str) -> str:
    """Returns the title of a part from its name in the metrics: `preference 2`, `labels 0.5-1`, a section, a model."""
    kind, _space, size = name.partition(" ")
    if kind == "preference":
        return _("Preference of %(strength)s") % {"strength": size}
    if kind == "labels":
        return _("Labels %(levels)s levels apart") % {"levels": size.replace("-", "\N{EN DASH}")}
    return str(PARTS.get(name, name))


# Evaluations ------------------------------------------------------------------------------------------------


JOBS_SHOWN = 20


class ModelChoice(forms.ModelChoiceField):  # type: ignore[type-arg]
    def label_from_instance(self, obj: object) -> str:
        assert isinstance(obj, RewardModel)
        version = _("Version %(version)s") % {"version": obj.version}
        return " · ".join((version, _("Champion"))) if obj.is_champion else version


class EvaluationForm(forms.Form):
    """A file to judge a model by; which rows it may hold is for the learning core to say."""

    model = ModelChoice(RewardModel.objects.none(), label=gettext_lazy("Model"), empty_label=None)
    file = forms.FileField(label=gettext_lazy("File"))
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=evaluation.LONGEST_NAME,
        required=False,
        help_text=gettext_lazy("By default the file's name."),
    )

    def __init__(self, project: Project, *args: object, **kwargs: object) -> None:
        super().__init__(*args, label_suffix="", **kwargs)  # type: ignore[arg-type, misc]
        models = project.reward_models.select_related("project").order_by("-is_champion", "-version")
        self.fields["model"].queryset = models  # type: ignore[attr-defined]


def shown_jobs(user: User, project: Project) -> dict[str, object]:
    """Returns what the part of the page on evaluation jobs shows."""
    jobs = EvaluationJob.objects.filter(reward_model__project=project).select_related("reward_model")
    newest = list(jobs[:JOBS_SHOWN])
    return {
        "project": project,
        "manages": access.manages(user, project),
        "jobs": [(job, run_progress.responses_done(job.progress) if job.is_under_way() else "") for job in newest],
        "under_way": any(job.is_under_way() for job in newest),
    }


@require_http_methods(["GET", "POST"])
def jobs(request: HttpRequest, slug: str) -> HttpResponse:
    """Shows the jobs of a project; a POST sends the file of a new one."""
    user = user_of(request)
    if request.method == "GET":
        return render(request, "_evaluation_jobs.html", shown_jobs(user, access.reviewed_project(user, slug)))
    project = access.managed_project(user, slug)
    form = EvaluationForm(project, request.POST, request.FILES)
    if not form.is_valid():
        for name, problems in form.errors.items():
            messages.error(request, f"{form.fields[name].label}: {' '.join(map(str, problems))}")
        return redirect("comparison", slug)
    fields = form.cleaned_data
    file = fields["file"]
    with show_refusal(request):
        require_share(request, user.pk)
        job = evaluation_jobs.request(fields["model"], file, file_name=file.name, name=fields["name"], by=user)
        messages.success(
            request,
            _("Version %(version)s is being judged on %(name)s. The result appears on this page.")
            % {"version": job.reward_model.version, "name": job.name},
        )
    return redirect("comparison", slug)


@require_POST
def remove_job(request: HttpRequest, pk: int) -> HttpResponse:
    """Stops a job, or takes an ended one off the list."""
    job = managed_job(user_of(request), pk)
    evaluation_jobs.remove(job)
    return redirect("comparison", job.reward_model.project.slug)


@require_POST
def delete_evaluation(request: HttpRequest, pk: int) -> HttpResponse:
    """Deletes an evaluation, or shows why it stays."""
    row = managed_evaluation(user_of(request), pk)
    with show_refusal(request):
        evaluation.delete(row)
        messages.success(
            request,
            _("The evaluation of version %(version)s on %(name)s is deleted.")
            % {"version": row.reward_model.version, "name": row.name},
        )
    return redirect("comparison", row.reward_model.project.slug)

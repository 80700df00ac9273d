"""Pages on which managers judge models by files of their own, and delete what they judged them by."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from annotator import access
from annotator.access import user_of
from annotator.models import Project, User
from annotator.web.acting import show_refusal
from annotator.web.lane_shares import require_share
from rewards import evaluation, evaluation_jobs, run_progress
from rewards.access import managed_evaluation, managed_job
from rewards.models import EvaluationJob, RewardModel

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

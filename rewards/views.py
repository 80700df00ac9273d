"""What the admin's buttons do: retrain, promote, cancel."""

from django.contrib import messages
from django.contrib.admin.views.decorators import staff_member_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from annotator import access
from annotator.access import user_of
from annotator.models import Project
from annotator.refusals import Refusal
from rewards import promotion, retraining, scoring
from rewards.models import RewardModel, TrainingRun


@staff_member_required
@require_POST
def retrain(request: HttpRequest, slug: str) -> HttpResponse:
    """Starts a run, or says why not."""
    project = access.managed_project(user_of(request), slug)
    try:
        run = retraining.request(project, reason=f"asked for by {request.user}", by=user_of(request))
    except Refusal as refused:
        messages.error(request, str(refused))
        return redirect("admin:index")
    messages.success(request, f"Run {run.pk} is queued.")
    return redirect("admin:rewards_trainingrun_change", run.pk)


@staff_member_required
@require_POST
def promote(request: HttpRequest, pk: int) -> HttpResponse:
    """Makes the model the champion; an earlier one is the rollback."""
    managed = Project.objects.managed_by(user_of(request))
    model = get_object_or_404(RewardModel.objects.filter(project__in=managed).select_related("project"), pk=pk)
    promotion.promote(model, now=timezone.now())
    messages.success(request, f"{model} is the champion.")
    try:
        scoring.start(model)
    except Refusal as refused:
        messages.warning(request, f"Scores will follow later. {refused}")
    return redirect("admin:rewards_rewardmodel_changelist")


@staff_member_required
@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Ends an active run."""
    managed = Project.objects.managed_by(user_of(request))
    run = get_object_or_404(TrainingRun.objects.filter(project__in=managed), pk=pk)
    try:
        retraining.cancel(run, now=timezone.now())
    except Refusal as refused:
        messages.warning(request, str(refused))
    else:
        messages.info(request, f"Run {run.pk} is cancelled.")
    return redirect("admin:rewards_trainingrun_change", run.pk)

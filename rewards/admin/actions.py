"""The actions of the admin's buttons: retrain, retry, cancel, promote, reject, offer, verify, erase, test mail.

Each calls the same stage function as the API and shows its refusal as a message.
"""

from django.contrib import messages
from django.contrib.admin.views.decorators import staff_member_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from annotator import access
from annotator.access import user_of
from annotator.db.clock import database_now
from annotator.refusals import Refusal
from rewards import champions, erasure, registry, runs
from rewards.access import managed_model, managed_policy, managed_run_of_any_kind, managed_snapshot
from rewards.admin import installation
from rewards.new_labels import unchanged_since
from rewards.policies import offers
from rewards.reasons import coded


@staff_member_required
@require_POST
def send_test_mail(request: HttpRequest) -> HttpResponse:
    """Sends the administrator a mail, or shows why none can be sent."""
    user = user_of(request)
    if not user.is_superuser:
        raise PermissionDenied
    try:
        installation.send_test_mail(user)
    except Refusal as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, _("A test mail is on its way to %(address)s.") % {"address": user.email})
    return redirect("admin:index")


@staff_member_required
@require_POST
def retrain(request: HttpRequest, slug: str) -> HttpResponse:
    """Starts a run, or shows why it cannot be started."""
    project = access.managed_project(user_of(request), slug)
    unchanged = unchanged_since(project)
    try:
        run = runs.request(project, reason=coded("by", name=str(request.user)), by=user_of(request))
    except Refusal as refused:
        messages.error(request, str(refused))
        return redirect("admin:index")
    messages.success(request, _("Run %(run)s is queued.") % {"run": run.pk})
    if unchanged:
        text = _("Nothing has been labelled since version %(version)s was trained.")
        messages.warning(request, text % {"version": unchanged})
    return redirect("admin:rewards_trainingrun_change", run.pk)


@staff_member_required
@require_POST
def promote(request: HttpRequest, pk: int) -> HttpResponse:
    """Makes the model the champion, be it newer or older than the present one.

    A model that the gate turned down needs the tick in `confirm`.
    """
    model = managed_model(user_of(request), pk)
    try:
        promoted = champions.promote(model, confirmed="confirm" in request.POST, now=database_now())
    except Refusal as refused:
        messages.error(request, str(refused))
        return redirect("admin:rewards_rewardmodel_change", model.pk)
    messages.success(request, _("%(model)s is the champion.") % {"model": model})
    if promoted.scores_wait:
        messages.warning(request, promoted.scores_wait)
    return redirect("admin:rewards_rewardmodel_changelist")


@staff_member_required
@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Ends an active run."""
    run = managed_run_of_any_kind(user_of(request), pk)
    try:
        runs.cancel(run, now=database_now())
    except Refusal as refused:
        messages.warning(request, str(refused))
    else:
        messages.info(request, _("Run %(run)s is cancelled.") % {"run": run.pk})
    return redirect("admin:rewards_trainingrun_change", run.pk)


@staff_member_required
@require_POST
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Starts a run like one that failed or was cancelled, or shows why it cannot be started."""
    run = managed_run_of_any_kind(user_of(request), pk)
    try:
        run = runs.retry(run, by=user_of(request))
    except Refusal as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, _("Run %(run)s is queued.") % {"run": run.pk})
    return redirect("admin:rewards_trainingrun_change", run.pk)


@staff_member_required
@require_POST
def reject(request: HttpRequest, pk: int) -> HttpResponse:
    """Turns down a model that waits for a decision."""
    run = managed_run_of_any_kind(user_of(request), pk)
    try:
        runs.reject(run, now=database_now())
    except Refusal as refused:
        messages.warning(request, str(refused))
    else:
        messages.info(request, _("The model stays out of use."))
    return redirect("admin:rewards_trainingrun_change", run.pk)


@staff_member_required
@require_POST
def offer(request: HttpRequest, pk: int) -> HttpResponse:
    """Offers a policy that the rule has refused, or that nobody has judged; it needs the tick in `confirm`."""
    policy = managed_policy(user_of(request), pk)
    try:
        offers.offer(policy, confirmed="confirm" in request.POST, now=database_now())
    except Refusal as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, _("Policy %(version)s is offered now.") % {"version": policy.version})
    return redirect("admin:rewards_policy_change", policy.pk)


@staff_member_required
@require_POST
def verify(request: HttpRequest, pk: int) -> HttpResponse:
    """Hashes the model's files again and shows which ones have changed."""
    model = managed_model(user_of(request), pk)
    problems = registry.verify(model)
    for problem in problems:
        messages.error(request, problem)
    if not problems:
        said = _("The files of %(model)s and of its snapshot are unchanged since they were written.")
        messages.success(request, said % {"model": model})
    return redirect("admin:rewards_rewardmodel_change", model.pk)


@staff_member_required
@require_POST
def erase(request: HttpRequest, pk: int) -> HttpResponse:
    """Removes a snapshot that holds redacted or deleted texts from the disk, with all models that learnt from it."""
    snapshot = managed_snapshot(user_of(request), pk)
    try:
        erasure.erase(snapshot, now=database_now())
    except Refusal as refused:
        messages.error(request, str(refused))
    else:
        messages.success(
            request, _("The snapshot's files have been erased, and so have those of every model that learnt from it.")
        )
    return redirect("admin:rewards_snapshot_change", snapshot.pk)

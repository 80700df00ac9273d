"""One way through every door that changes something, with the entry it leaves; and the doors that leave none."""

import json

from rewards.models import RunState
from tests.audited.sending import (
    ITEMS,
    TALK,
    a_new_account,
    an_account,
    answered_gap,
    change_of_many,
    changed_settings,
    command,
    deleted,
    delivery_at,
    erased_on_the_page,
    evaluation,
    exported_model,
    first_administrator,
    invitation,
    invited_elsewhere,
    login,
    new_password_by_link,
    new_token,
    own_password,
    policy_run,
    rating_of_an_expert,
    redaction_on_the_page,
    requested_policy_run,
    revision,
    rewards_for_a_trainer,
    run_request,
    scores,
    sent_answer,
    sent_bulk_change,
    sent_evaluation,
    sent_evaluation_on_the_page,
    sent_exclusion,
    sent_import,
    sent_policy_form,
    sent_rating,
    sent_readmission,
    sent_run_form,
    sent_segments,
    sent_segments_on_the_page,
    sent_settling,
    settled,
    settling,
    snapshot,
    submission,
    token_by_password,
    undone_report,
    undone_skip,
)
from tests.audited.world import COLUMNS, Change, World, group
from tests.builders import make_import, make_task, task_row
from tests.rewards.policies.snapshots import make_policy

RUBRIC = {
    "key": "mine",
    "name": "Mine",
    "attributes": [{"key": "tone", "name": "Tone", "levels": ["rude", "plain", "kind"]}],
}
LEAVES_NONE = {
    # Leases and drafts come and go; the test's answers are rows of their own.
    "page draft",
    "page recut",
    "page heartbeat",
    "page ahead",
    "page let-go",
    "rest ahead post",
    "rest ahead delete",
    "page begin-qualification",
    "page draft-qualification",
    "page take-qualification",
    "rest next post",
    "rest heartbeat post",
    "rest assignment delete",
    # What concerns oneself alone.
    "page guidelines",
    "page settings",
    "page layout",
    "page set_language",
    # There is no mail server here; where there is one, see tests/annotator/admin/test_installation.py.
    "page send-test-mail",
    # Leads to a page that changes something, or computes from what is there.
    "command agreement",
    "command migrate",
    "command store_artifacts",
    "command quality",
    "command verify_model",
    "command write_reward",
    "page verify-version",
    "page verify-policy",
    "page preview-guidelines",
}

CHANGES: dict[str, tuple[str, Change]] = {
    # REST
    "rest token post": ("token.issued", token_by_password),
    "rest tokens post": ("token.issued", lambda w: w.rest.post("/api/v1/tokens/", {"name": "new"})),
    "rest one-token delete": ("token.ended", lambda w: w.rest.delete(f"/api/v1/tokens/{w.own_token().pk}/")),
    "rest projects post": ("project.created", lambda w: w.rest.post("/api/v1/projects/", {"slug": "new", "name": "N"})),
    "rest project patch": ("project.changed", lambda w: w.rest.patch(f"{TALK}/", {"keep": 2})),
    "rest project delete": ("project.deleted", lambda w: w.archived().rest.delete(f"{TALK}/?confirm=talk")),
    "rest archive post": ("project.archived", lambda w: w.rest.post(f"{TALK}/archive/")),
    "rest archive delete": ("project.restored", lambda w: w.archived().rest.delete(f"{TALK}/archive/")),
    "rest member delete": ("membership.ended", lambda w: w.rest.delete(f"{TALK}/members/alice/")),
    "rest rubrics post": ("rubric.offered", lambda w: w.rest.post("/api/v1/rubrics/", RUBRIC)),
    "rest rubric put": ("rubric.published", lambda w: w.rest.put(f"{TALK}/rubric/", RUBRIC)),
    "rest member patch": (
        "membership.changed",
        lambda w: w.rest.patch(f"{TALK}/members/alice/", {"role": "reviewer"}),
    ),
    "rest pause-member post": ("membership.paused", lambda w: w.rest.post(f"{TALK}/members/alice/pause/")),
    "rest resume-member post": ("membership.resumed", lambda w: w.rest.post(f"{TALK}/members/alice/resume/")),
    "rest another-try post": (
        "membership.given_another_try",
        lambda w: w.rest.post(f"{TALK}/members/alice/another-try/"),
    ),
    "rest qualify-member post": ("membership.qualified", lambda w: w.rest.post(f"{TALK}/members/alice/qualify/")),
    "rest password-link post": ("password.link_made", lambda w: w.rest.post(f"{TALK}/members/alice/password-link/")),
    "rest invitations post": ("invitation.made", lambda w: w.rest.post(f"{TALK}/invitations/")),
    "rest one-invitation delete": (
        "invitation.revoked",
        lambda w: w.rest.delete(f"{TALK}/invitations/{invitation(w).pk}/"),
    ),
    "rest webhooks post": (
        "webhook.made",
        lambda w: w.rest.post(f"{TALK}/webhooks/", {"url": "https://example.org/"}),
    ),
    "rest webhook patch": (
        "webhook.changed",
        lambda w: w.rest.patch(f"{TALK}/webhooks/{w.webhook().pk}/", {"active": False}),
    ),
    "rest webhook delete": ("webhook.deleted", lambda w: w.rest.delete(f"{TALK}/webhooks/{w.webhook().pk}/")),
    "rest test-webhook post": ("webhook.tested", lambda w: w.rest.post(f"{TALK}/webhooks/{w.webhook().pk}/test/")),
    "rest rotate-webhook post": (
        "webhook.secret_rotated",
        lambda w: w.rest.post(f"{TALK}/webhooks/{w.webhook().pk}/rotate-secret/"),
    ),
    "rest retry-delivery post": (
        "webhook.sent_again",
        lambda w: w.rest.post(delivery_at(w, TALK + "/webhooks/{webhook}/deliveries/{delivery}/retry/")),
    ),
    "rest accept-invitation post": (
        "invitation.accepted",
        lambda w: w.rest.post("/api/v1/invitations/accept/", {"token": invited_elsewhere(w)}),
    ),
    "rest guidelines post": (
        "guidelines.published",
        lambda w: w.rest.post(f"{TALK}/guidelines/", {"text": "Read this."}),
    ),
    "rest offer post": ("membership.changed", lambda w: w.offered().rest.post(f"{TALK}/offer/", {"accept": True})),
    "rest members post": ("membership.created", lambda w: w.rest.post(f"{TALK}/members/", {"username": "dave"})),
    "rest import post": ("tasks.imported", lambda w: w.rest.post(f"{TALK}/import/", [task_row("t-9")])),
    "rest one-import delete": (
        "tasks.taken_back",
        lambda w: w.rest.delete(f"{TALK}/imports/{make_import(w.project)}/"),
    ),
    "rest import-jobs post": (
        "import.started",
        lambda w: w.rest.post(f"{TALK}/import-jobs/", [task_row("t-9")], format="json"),
    ),
    "rest start-import-job post": (
        "import.started",
        lambda w: w.rest.post(f"{TALK}/import-jobs/{w.import_job().pk}/start/"),
    ),
    "rest import-job delete": (
        "import.cancelled",
        lambda w: w.rest.delete(f"{TALK}/import-jobs/{w.import_job().pk}/"),
    ),
    "rest export-jobs post": ("labels.file_requested", lambda w: w.rest.post(f"{TALK}/export-jobs/")),
    "rest export-job delete": (
        "labels.file_deleted",
        lambda w: w.rest.delete(f"{TALK}/export-jobs/{w.export_job().pk}/"),
    ),
    "rest import-mappings post": (
        "import_mapping.kept",
        lambda w: w.rest.post(f"{TALK}/import-mappings/", {"name": "ours", "mapping": COLUMNS}, format="json"),
    ),
    "rest import-mapping delete": (
        "import_mapping.deleted",
        lambda w: w.rest.delete(f"{TALK}/import-mappings/{w.import_mapping().pk}/"),
    ),
    "rest export get": ("labels.exported", lambda w: w.rest.get(f"{TALK}/export/")),
    "rest snapshots post": ("snapshot.requested", snapshot),
    "rest training-runs post": (
        "run.requested",
        run_request(lambda w: w.rest.post(f"{TALK}/training-runs/", {"reason": "a test"})),
    ),
    "rest cancel-training-run post": (
        "run.cancelled",
        lambda w: w.rest.post(f"/api/v1/training-runs/{w.run().pk}/cancel/"),
    ),
    "rest retry-training-run post": (
        "run.requested",
        lambda w: w.rest.post(f"/api/v1/training-runs/{w.run(RunState.FAILED).pk}/retry/"),
    ),
    "rest reject-training-run post": (
        "run.rejected",
        lambda w: w.rest.post(f"/api/v1/training-runs/{w.waiting().pk}/reject/"),
    ),
    "rest erase-snapshot post": (
        "snapshot.erased",
        lambda w: w.rest.post(f"/api/v1/snapshots/{w.marked_snapshot().pk}/erase/"),
    ),
    "rest evaluation-jobs post": ("evaluation.requested", sent_evaluation),
    "rest evaluation-job delete": (
        "evaluation.removed",
        lambda w: w.rest.delete(f"/api/v1/evaluation-jobs/{w.evaluation_job().pk}/"),
    ),
    "rest evaluation delete": (
        "evaluation.deleted",
        lambda w: w.rest.delete(f"/api/v1/evaluations/{w.evaluation().pk}/"),
    ),
    "rest policy-runs post": ("run.requested", policy_run(requested_policy_run)),
    "rest cancel-policy-run post": (
        "run.cancelled",
        lambda w: w.rest.post(f"/api/v1/policy-runs/{w.policy_run().pk}/cancel/"),
    ),
    "rest retry-policy-run post": (
        "run.requested",
        policy_run(lambda w: w.rest.post(f"/api/v1/policy-runs/{w.policy_run(RunState.FAILED).pk}/retry/")),
    ),
    "rest offer-policy post": (
        "policy.offered",
        lambda w: w.rest.post(f"/api/v1/policies/{make_policy(w.project).pk}/offer/", {"confirm": True}),
    ),
    "rest reward-model patch": (
        "model.licensed",
        lambda w: w.rest.patch(f"/api/v1/reward-models/{w.model().pk}/", {"license": "mit"}),
    ),
    "rest promote post": ("model.promoted", lambda w: w.rest.post(f"/api/v1/reward-models/{w.model().pk}/promote/")),
    "rest score post": (
        "scoring.asked",
        lambda w: w.rest.post("/api/v1/score/", {"model": w.model().pk, "items": ITEMS}),
    ),
    "rest openrlhf post": ("scoring.asked", rewards_for_a_trainer),
    "rest annotation put": ("annotation.submitted", sent_rating),
    "rest skip post": (
        "task.skipped",
        lambda w: w.rest.post(f"/api/v1/assignments/{w.held().pk}/skip/", {"reason": "other"}),
    ),
    "rest guideline-gaps post": (
        "task.guidelines_silent",
        lambda w: w.rest.post(f"/api/v1/assignments/{w.held().pk}/guideline-gaps/"),
    ),
    "rest answer-gaps post": ("task.guidelines_answered", sent_answer),
    "rest report post": (
        "task.reported",
        lambda w: w.rest.post(f"/api/v1/assignments/{w.held().pk}/report/", {"category": "bias"}),
    ),
    "rest task-segments put": ("task.recut", sent_segments),
    "page recut-task": ("task.recut", sent_segments_on_the_page),
    "rest adjudication put": ("label.adjudicated", sent_settling),
    "rest adjudication delete": (
        "label.withdrawn",
        lambda w: w.rest.delete(f"/api/v1/tasks/{settled(w).public_id}/adjudication/"),
    ),
    "rest verdict post": (
        "annotation.accepted",
        lambda w: w.rest.post(f"/api/v1/assignments/{w.rated(w.cast.bob).pk}/verdict/", {"decision": "accepted"}),
    ),
    "rest bulk-changes post": ("bulk_change.made", sent_bulk_change),
    "rest edits post": ("tasks.imported", lambda w: w.rest.post(f"{TALK}/edits/", {"edits": [w.edit().pk]})),
    "rest undo-bulk-change post": (
        "bulk_change.undone",
        lambda w: w.rest.post(f"{TALK}/bulk-changes/{change_of_many(w)}/undo/"),
    ),
    "rest exclusions post": ("annotator.excluded", sent_exclusion),
    "rest exclusions delete": ("annotator.readmitted", sent_readmission),
    # Pages of managers
    "page new-project": (
        "project.created",
        lambda w: w.page.post("/new-project/", {"name": "New", "rubric": "helpsteer2", "protocol": "quick"}),
    ),
    "page project-settings": ("project.changed", changed_settings),
    "page archive-project": ("project.archived", lambda w: w.page.post("/projects/talk/settings/archive/")),
    "page restore-project": ("project.restored", lambda w: w.archived().page.post("/projects/talk/settings/restore/")),
    "page delete-project": (
        "project.deleted",
        lambda w: w.archived().page.post("/projects/talk/settings/delete/", {"confirm": "Talk"}),
    ),
    "page webhooks": (
        "webhook.made",
        lambda w: w.page.post("/projects/talk/settings/webhooks/", {"url": "https://example.org/"}),
    ),
    "page webhook": (
        "webhook.changed",
        lambda w: w.page.post(f"/projects/talk/settings/webhooks/{w.webhook().pk}/", {"url": "https://example.org/2"}),
    ),
    "page delete-webhook": (
        "webhook.deleted",
        lambda w: w.page.post(f"/projects/talk/settings/webhooks/{w.webhook().pk}/delete/"),
    ),
    "page test-webhook": (
        "webhook.tested",
        lambda w: w.page.post(f"/projects/talk/settings/webhooks/{w.webhook().pk}/test/"),
    ),
    "page rotate-webhook": (
        "webhook.secret_rotated",
        lambda w: w.page.post(f"/projects/talk/settings/webhooks/{w.webhook().pk}/secret/"),
    ),
    "page retry-delivery": (
        "webhook.sent_again",
        lambda w: w.page.post(delivery_at(w, "/projects/talk/settings/webhooks/{webhook}/log/{delivery}/retry/")),
    ),
    # Pages of annotators and reviewers
    "page password": ("password.set", lambda w: own_password(w, "/password/")),
    "page login": ("login.succeeded", lambda w: login(w, "/login/")),
    "rest releases post": ("release.requested", lambda w: w.rest.post(f"{TALK}/releases/")),
    "rest release delete": (
        "release.deleted",
        lambda w: w.rest.delete(f"{TALK}/releases/{w.release().number}/"),
    ),
    "page logout": ("login.ended", lambda w: w.page.post("/logout/")),
    "page tokens": ("token.issued", new_token),
    "page end-token": ("token.ended", lambda w: w.page.post(f"/settings/tokens/{w.own_token().pk}/end/")),
    "page import-data": ("import.uploaded", sent_import),
    "page request-export": (
        "labels.file_requested",
        lambda w: w.page.post("/projects/talk/data/export/request/", {"layout": "wide"}),
    ),
    "page delete-export": (
        "labels.file_deleted",
        lambda w: w.page.post(f"/projects/talk/data/export/files/{w.export_job().pk}/delete/"),
    ),
    "page releases": ("release.requested", lambda w: w.page.post("/projects/talk/data/releases/", {"license": "mit"})),
    "page delete-release": (
        "release.deleted",
        lambda w: w.page.post(f"/projects/talk/data/releases/{w.release().number}/delete/"),
    ),
    "page start-import": (
        "import.started",
        lambda w: w.page.post(f"/projects/talk/data/imports/{w.import_job().pk}/start/", {"action": "import"}),
    ),
    "page cancel-import": (
        "import.cancelled",
        lambda w: w.page.post(f"/projects/talk/data/imports/{w.import_job().pk}/cancel/"),
    ),
    "page keep-mapping": (
        "import_mapping.kept",
        lambda w: w.page.post(
            f"/projects/talk/data/imports/{w.import_job().pk}/mapping/",
            {"name": "ours", "mapping": json.dumps(COLUMNS)},
        ),
    ),
    "page delete-mapping": (
        "import_mapping.deleted",
        lambda w: w.page.post(f"/projects/talk/data/mappings/{w.import_mapping().pk}/delete/"),
    ),
    "page take-back": (
        "tasks.taken_back",
        lambda w: w.page.post(f"/projects/talk/data/import/{make_import(w.project)}/take-back/"),
    ),
    "page edits": ("tasks.imported", lambda w: w.page.post("/projects/talk/data/edits/", {"edits": [w.edit().pk]})),
    "page change-tasks": (
        "bulk_change.made",
        lambda w: w.page.post(
            f"/projects/talk/data/change/?tasks=ticked&action=retire&task={make_task(w.project).public_id}"
        ),
    ),
    "page undo-change": (
        "bulk_change.undone",
        lambda w: w.page.post(f"/projects/talk/data/changes/{change_of_many(w)}/undo/"),
    ),
    "page submit": ("annotation.submitted", submission),
    "page revise": ("annotation.revised", revision),
    "page skip": ("task.skipped", lambda w: w.page.post(f"/assignments/{w.held().pk}/skip/", {"reason": "other"})),
    "page undo-skip": ("task.unskipped", undone_skip),
    "page undo-report": ("task.unreported", undone_report),
    "page report": (
        "task.reported",
        lambda w: w.page.post(f"/assignments/{w.held().pk}/report/", {"category": "bias"}),
    ),
    "page silent": ("task.guidelines_silent", lambda w: w.page.post(f"/assignments/{w.held().pk}/silent/")),
    "page answer-gaps": ("task.guidelines_answered", answered_gap),
    "page review-task": ("label.adjudicated", settling),
    "page withdraw": (
        "label.withdrawn",
        lambda w: w.page.post(f"/projects/talk/review/{settled(w).public_id}/withdraw/"),
    ),
    "page decide": (
        "task.retired",
        lambda w: w.page.post(f"/projects/talk/review/{w.quarantined().public_id}/decide/", {"decision": "retire"}),
    ),
    "page quarantined-task": ("task.redacted", redaction_on_the_page),
    "page verdict": (
        "annotation.rejected",
        lambda w: w.page.post(
            f"/projects/talk/review/submissions/{w.rated(w.cast.bob).pk}/", {"decision": "rejected", "comment": "No."}
        ),
    ),
    "page rubric": (
        "rubric.published",
        lambda w: w.page.post(
            "/projects/talk/rubric/",
            {"do": "publish", "name": "Mine", "row": "a0", "a0-name": "Tone", "a0-levels": "rude\nplain\nkind"},
        ),
    ),
    "page people": (
        "membership.paused",
        lambda w: w.page.post("/projects/talk/people/", {"action": "pause", "member": w.member().pk}),
    ),
    "page person": (
        "membership.changed",
        lambda w: w.page.post("/projects/talk/people/alice/", {"role": "reviewer"}),
    ),
    "page dismiss-person": ("membership.ended", lambda w: w.page.post("/projects/talk/people/alice/dismiss/")),
    "page exclude-person": (
        "annotator.excluded",
        lambda w: w.page.post("/projects/talk/people/alice/exclude/", {"reason": "A bot."}),
    ),
    "page readmit-person": (
        "annotator.readmitted",
        lambda w: w.page.post(f"/projects/talk/people/{w.excluded().annotator}/readmit/"),
    ),
    "page password-link": (
        "password.link_made",
        lambda w: w.page.post("/projects/talk/people/alice/password-link/"),
    ),
    "page invitations": (
        "invitation.made",
        lambda w: w.page.post("/projects/talk/invitations/", {"role": "annotator", "places": 1, "days": 7}),
    ),
    "page invite-list": (
        "invitation.made",
        lambda w: w.page.post("/projects/talk/invitations/list/", {"lines": "Frank", "days": 7}),
    ),
    "page revoke-invitation": (
        "invitation.revoked",
        lambda w: w.page.post(f"/projects/talk/invitations/{invitation(w).pk}/revoke/"),
    ),
    "page invitation": (
        "invitation.accepted",
        lambda w: w.page.post(f"/invitation/{invited_elsewhere(w)}/"),
    ),
    "page new-password": ("password.set", new_password_by_link),
    "page edit-guidelines": (
        "guidelines.published",
        lambda w: w.page.post("/projects/talk/guidelines/edit/", {"text": "Read this.", "based_on": 0}),
    ),
    "page offer": (
        "membership.changed",
        lambda w: w.offered().page.post("/projects/talk/offer/", {"answer": "accept"}),
    ),
    # The admin's own buttons
    "page start-run": ("run.requested", run_request(sent_run_form)),
    "page stop-run": (
        "run.cancelled",
        lambda w: w.page.post(f"/projects/talk/models/runs/{w.run().pk}/stop/"),
    ),
    "page repeat-run": (
        "run.requested",
        run_request(lambda w: w.page.post(f"/projects/talk/models/runs/{w.run(RunState.CANCELLED).pk}/repeat/")),
    ),
    "page start-policy-run": ("run.requested", policy_run(sent_policy_form)),
    "page offer-policy": (
        "policy.offered",
        lambda w: w.page.post(f"/projects/talk/models/policies/{make_policy(w.project).pk}/offer/", {"confirm": "on"}),
    ),
    "page promote-version": (
        "model.promoted",
        lambda w: w.page.post(f"/projects/talk/models/{w.model().pk}/promote/"),
    ),
    "page license-version": (
        "model.licensed",
        lambda w: w.page.post(f"/projects/talk/models/{w.model().pk}/license/", {"license": "mit"}),
    ),
    "page reject-version": (
        "run.rejected",
        lambda w: w.page.post(f"/projects/talk/models/{w.waiting().reward_model.pk}/reject/"),
    ),
    "page erase-version": ("snapshot.erased", erased_on_the_page),
    "page evaluation-jobs": ("evaluation.requested", sent_evaluation_on_the_page),
    "page remove-evaluation-job": (
        "evaluation.removed",
        lambda w: w.page.post(f"/evaluation-jobs/{w.evaluation_job().pk}/remove/"),
    ),
    "page delete-evaluation": (
        "evaluation.deleted",
        lambda w: w.page.post(f"/evaluations/{w.evaluation().pk}/delete/"),
    ),
    "page admin-logout": ("login.ended", lambda w: w.page.post("/admin/logout/")),
    "page admin-password": ("password.set", lambda w: own_password(w, "/admin/password_change/")),
    # Its actions
    "admin token delete_selected": ("token.ended", lambda w: w.act("annotator/token", "delete_selected", w.token())),
    "admin user delete_selected": (
        "account.deleted",
        lambda w: w.act("annotator/user", "delete_selected", w.cast.dave),
    ),
    "admin group delete_selected": ("group.deleted", lambda w: w.act("auth/group", "delete_selected", group(w))),
    # Its forms
    "admin gold change": ("gold.rating_changed", rating_of_an_expert),
    "admin user add": ("account.created", a_new_account),
    "admin user change": ("account.changed", an_account),
    "admin user delete": ("account.deleted", deleted("annotator/user", lambda w: w.cast.dave)),
    "admin group add": ("group.created", lambda w: w.form("auth/group", name="new")),
    "admin group change": ("group.changed", lambda w: w.form("auth/group", group(w), name="new", permissions=[])),
    "admin group delete": ("group.deleted", deleted("auth/group", group)),
    "admin token delete": ("token.ended", deleted("annotator/token", World.token)),
    # Commands
    "command import_tasks": ("tasks.imported", command("import_tasks", "talk", World.file)),
    "command take_back_import": (
        "tasks.taken_back",
        lambda w: command("take_back_import", "talk", str(make_import(w.project)))(w),
    ),
    "command export_labels": ("labels.exported", command("export_labels", "talk", output="/dev/null")),
    "command issue_token": ("token.issued", command("issue_token", "alice")),
    "command evaluate": ("model.evaluated", evaluation),
    "command export_model": ("model.downloaded", exported_model),
    "command adopt_artifacts": ("artifacts.adopted", command("adopt_artifacts")),
    "command recount": ("project.recounted", command("recount", "talk")),
    "command retrain": ("run.requested", run_request(command("retrain", "talk"))),
    "command score": ("scoring.started", scores),
    "command first_administrator": ("account.created", first_administrator),
    "command seed_demo": ("project.created", command("seed_demo")),
}
# What reads one moment needs a transaction of its own, which a test's is not.
READS_ONE_MOMENT: dict[str, tuple[str, Change]] = {
    "command release": ("release.requested", lambda w: (w.complete(), command("release", "talk")(w))[1]),
}

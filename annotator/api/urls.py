"""The human half's REST addresses."""

from django.urls import path

from annotator.api import (
    account,
    agreement,
    annotators,
    audit,
    exclusions,
    guidelines,
    health,
    imports,
    invitations,
    members,
    projects,
    review,
    schema,
    transfer,
    work,
)

__all__ = ["schema", "urlpatterns"]

_member = members.MemberAction.action_view

urlpatterns = [
    # Django tries addresses in turn: the calls that annotators make for every task come first.
    path("assignments/<int:assignment_id>/annotation/", work.AnnotationOfAssignment.as_view(), name="annotation"),
    path("projects/<slug:slug>/next/", work.Next.as_view(), name="next"),
    path("token/", account.Token.as_view(), name="token"),
    path("tokens/", account.Tokens.as_view(), name="tokens"),
    path("tokens/<int:pk>/", account.OneToken.as_view(), name="one-token"),
    path("me/", account.Me.as_view(), name="me"),
    path("projects/", projects.Projects.as_view(), name="projects"),
    path("projects/<slug:slug>/", projects.OneProject.as_view(), name="project"),
    path("projects/<slug:slug>/archive/", projects.Archive.as_view(), name="archive"),
    path("projects/<slug:slug>/members/", projects.Members.as_view(), name="members"),
    path("projects/<slug:slug>/members/<str:username>/", members.OneMember.as_view(), name="member"),
    path("projects/<slug:slug>/members/<str:username>/pause/", _member("pause"), name="pause-member"),
    path("projects/<slug:slug>/members/<str:username>/resume/", _member("resume"), name="resume-member"),
    path("projects/<slug:slug>/members/<str:username>/another-try/", _member("another-try"), name="another-try"),
    path("projects/<slug:slug>/members/<str:username>/qualify/", _member("qualify"), name="qualify-member"),
    path(
        "projects/<slug:slug>/members/<str:username>/password-link/",
        members.PasswordLinkOfMember.as_view(),
        name="password-link",
    ),
    path("projects/<slug:slug>/invitations/", invitations.Invitations.as_view(), name="invitations"),
    path("projects/<slug:slug>/invitations/<int:pk>/", invitations.OneInvitation.as_view(), name="one-invitation"),
    path("invitations/accept/", invitations.Acceptance.as_view(), name="accept-invitation"),
    path("projects/<slug:slug>/guidelines/", guidelines.Guidelines.as_view(), name="guidelines"),
    path("projects/<slug:slug>/offer/", projects.Offer.as_view(), name="offer"),
    path("projects/<slug:slug>/import/", transfer.Import.as_view(), name="import"),
    path("projects/<slug:slug>/imports/", imports.Imports.as_view(), name="imports"),
    path("projects/<slug:slug>/imports/<int:import_id>/", imports.OneImport.as_view(), name="one-import"),
    path("projects/<slug:slug>/export/", transfer.Export.as_view(), name="export"),
    path("projects/<slug:slug>/tasks/", projects.Tasks.as_view(), name="tasks"),
    path("projects/<slug:slug>/annotations/", projects.Annotations.as_view(), name="annotations"),
    path("projects/<slug:slug>/agreement/", agreement.ProjectAgreement.as_view(), name="agreement"),
    path("projects/<slug:slug>/review/", review.Queue.as_view(), name="review"),
    path("projects/<slug:slug>/exclusions/", exclusions.Exclusions.as_view(), name="exclusions"),
    path("review/<task:task_id>/", review.OneReviewed.as_view(), name="reviewed"),
    path("tasks/<task:task_id>/adjudication/", review.AdjudicationOfTask.as_view(), name="adjudication"),
    path("assignments/<int:assignment_id>/verdict/", review.VerdictOnAssignment.as_view(), name="verdict"),
    path("projects/<slug:slug>/audit/", audit.Audit.as_view(), name="audit"),
    path("projects/<slug:slug>/annotators/", annotators.AnnotatorQualities.as_view(), name="annotators"),
    path("assignments/<int:assignment_id>/", work.OneAssignment.as_view(), name="assignment"),
    path("assignments/<int:assignment_id>/skip/", work.SkipOfAssignment.as_view(), name="skip"),
    path("assignments/<int:assignment_id>/report/", work.ReportOfAssignment.as_view(), name="report"),
    path("assignments/<int:assignment_id>/heartbeat/", work.Heartbeat.as_view(), name="heartbeat"),
    path("health/live/", health.Live.as_view(), name="live"),
    path("health/ready/", health.Ready.as_view(), name="ready"),
]

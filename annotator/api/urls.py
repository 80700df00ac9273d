"""The human half's REST addresses."""

from django.urls import path

from annotator.api import (
    account,
    agreement,
    annotators,
    audit,
    exclusions,
    health,
    import_jobs,
    imports,
    projects,
    review,
    rubrics,
    schema,
    transfer,
    work,
)

__all__ = ["schema", "urlpatterns"]

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
    path("rubrics/", rubrics.Rubrics.as_view(), name="rubrics"),
    path("projects/<slug:slug>/rubric/", rubrics.RubricOfProject.as_view(), name="rubric"),
    path("projects/<slug:slug>/archive/", projects.Archive.as_view(), name="archive"),
    path("projects/<slug:slug>/members/", projects.Members.as_view(), name="members"),
    path("projects/<slug:slug>/members/<str:username>/", projects.OneMember.as_view(), name="member"),
    path("projects/<slug:slug>/offer/", projects.Offer.as_view(), name="offer"),
    path("projects/<slug:slug>/import/", transfer.Import.as_view(), name="import"),
    path("projects/<slug:slug>/imports/", imports.Imports.as_view(), name="imports"),
    path("projects/<slug:slug>/imports/<int:import_id>/", imports.OneImport.as_view(), name="one-import"),
    path("projects/<slug:slug>/import-jobs/", import_jobs.ImportJobs.as_view(), name="import-jobs"),
    path("projects/<slug:slug>/import-jobs/<int:job_id>/", import_jobs.OneImportJob.as_view(), name="import-job"),
    path(
        "projects/<slug:slug>/import-jobs/<int:job_id>/start/",
        import_jobs.StartOfImportJob.as_view(),
        name="start-import-job",
    ),
    path(
        "projects/<slug:slug>/import-jobs/<int:job_id>/preview/",
        import_jobs.PreviewOfImportJob.as_view(),
        name="import-job-preview",
    ),
    path(
        "projects/<slug:slug>/import-jobs/<int:job_id>/errors/",
        import_jobs.ErrorsOfImportJob.as_view(),
        name="import-job-errors",
    ),
    path("projects/<slug:slug>/import-mappings/", import_jobs.ImportMappings.as_view(), name="import-mappings"),
    path(
        "projects/<slug:slug>/import-mappings/<int:mapping_id>/",
        import_jobs.OneImportMapping.as_view(),
        name="import-mapping",
    ),
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

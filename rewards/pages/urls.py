"""Pages of the machine half."""

from django.urls import path

from rewards.admin import metrics
from rewards.pages import models, overview, pages, policies, ranking, versions

urlpatterns = [
    path("metrics", metrics.metrics, name="metrics"),
    path("projects/<slug:slug>/", overview.overview, name="overview"),
    path("projects/<slug:slug>/models/", models.models, name="models"),
    path("projects/<slug:slug>/models/<int:pk>/", versions.version, name="model-version"),
    path("projects/<slug:slug>/models/<int:pk>/files/<path:path>", versions.model_file, name="model-file"),
    path("projects/<slug:slug>/models/<int:pk>/archive/<slug:part>/", versions.model_archive, name="model-archive"),
    path("projects/<slug:slug>/models/<int:pk>/license/", versions.license_version, name="license-version"),
    path("projects/<slug:slug>/models/<int:pk>/promote/", versions.promote_version, name="promote-version"),
    path("projects/<slug:slug>/models/<int:pk>/reject/", versions.reject_version, name="reject-version"),
    path("projects/<slug:slug>/models/<int:pk>/verify/", versions.verify_version, name="verify-version"),
    path("projects/<slug:slug>/models/<int:pk>/erase/", versions.erase_version, name="erase-version"),
    path("projects/<slug:slug>/models/ranking/", ranking.model_ranking, name="model-ranking"),
    path("projects/<slug:slug>/models/runs/start/", models.start_run, name="start-run"),
    path("projects/<slug:slug>/models/runs/<int:pk>/", models.run, name="run"),
    path("projects/<slug:slug>/models/runs/<int:pk>/live/", models.run_live, name="run-live"),
    path("projects/<slug:slug>/models/runs/<int:pk>/losses/", models.run_losses, name="run-losses"),
    path("projects/<slug:slug>/models/runs/<int:pk>/log/", models.run_log, name="run-log"),
    path("projects/<slug:slug>/models/runs/<int:pk>/stop/", models.stop_run, name="stop-run"),
    path("projects/<slug:slug>/models/runs/<int:pk>/repeat/", models.repeat_run, name="repeat-run"),
    path("projects/<slug:slug>/models/policies/", policies.policies, name="policies"),
    path("projects/<slug:slug>/models/policies/start/", policies.start_policy_run, name="start-policy-run"),
    path("projects/<slug:slug>/models/policies/<int:pk>/", policies.policy, name="policy"),
    path("projects/<slug:slug>/models/policies/<int:pk>/offer/", policies.offer_policy, name="offer-policy"),
    path("projects/<slug:slug>/models/policies/<int:pk>/verify/", policies.verify_policy, name="verify-policy"),
    path("projects/<slug:slug>/models/policies/<int:pk>/archive/", policies.policy_archive, name="policy-archive"),
    path("projects/<slug:slug>/models/policies/<int:pk>/files/<path:path>", policies.policy_file, name="policy-file"),
    path("projects/<slug:slug>/comparison/", pages.comparison, name="comparison"),
    path("projects/<slug:slug>/evaluation-jobs/", pages.jobs, name="evaluation-jobs"),
    path("evaluation-jobs/<int:pk>/remove/", pages.remove_job, name="remove-evaluation-job"),
    path("evaluations/<int:pk>/delete/", pages.delete_evaluation, name="delete-evaluation"),
]

"""The machine half's REST addresses."""

from django.urls import path

from rewards import api, evaluation_api, openrlhf

urlpatterns = [
    path("projects/<slug:slug>/snapshots/", api.Snapshots.as_view(), name="snapshots"),
    path("snapshots/<int:pk>/erase/", api.EraseSnapshot.as_view(), name="erase-snapshot"),
    path("projects/<slug:slug>/training-runs/", api.TrainingRuns.as_view(), name="training-runs"),
    path("training-runs/<int:pk>/", api.OneTrainingRun.as_view(), name="training-run"),
    path("training-runs/<int:pk>/cancel/", api.CancelTrainingRun.as_view(), name="cancel-training-run"),
    path("training-runs/<int:pk>/retry/", api.RetryTrainingRun.as_view(), name="retry-training-run"),
    path("training-runs/<int:pk>/reject/", api.RejectTrainingRun.as_view(), name="reject-training-run"),
    path("reward-models/", api.RewardModels.as_view(), name="reward-models"),
    path("reward-models/<int:pk>/promote/", api.Promote.as_view(), name="promote"),
    path("reward-models/<int:pk>/verification/", api.Verification.as_view(), name="verification"),
    path("openrlhf/<slug:slug>/", openrlhf.OpenRLHF.as_view(), name="openrlhf"),
    path("evaluations/", evaluation_api.Evaluations.as_view(), name="evaluations"),
    path("projects/<slug:slug>/comparison/", evaluation_api.Comparison.as_view(), name="comparison"),
    path("score/", api.ScoreItems.as_view(), name="score"),
    path("scoring-jobs/<int:pk>/", api.OneScoringJob.as_view(), name="scoring-job"),
]

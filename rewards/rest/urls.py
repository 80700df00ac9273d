"""The machine half's REST addresses."""

from django.urls import path

from rewards import api_calls
from rewards.rest import evaluations, openrlhf

urlpatterns = [
    path("projects/<slug:slug>/snapshots/", api_calls.Snapshots.as_view(), name="snapshots"),
    path("snapshots/<int:pk>/erase/", api_calls.EraseSnapshot.as_view(), name="erase-snapshot"),
    path("projects/<slug:slug>/training-runs/", api_calls.TrainingRuns.as_view(), name="training-runs"),
    path("training-runs/<int:pk>/", api_calls.OneTrainingRun.as_view(), name="training-run"),
    path("training-runs/<int:pk>/cancel/", api_calls.CancelTrainingRun.as_view(), name="cancel-training-run"),
    path("training-runs/<int:pk>/retry/", api_calls.RetryTrainingRun.as_view(), name="retry-training-run"),
    path("training-runs/<int:pk>/reject/", api_calls.RejectTrainingRun.as_view(), name="reject-training-run"),
    path("reward-models/", api_calls.RewardModels.as_view(), name="reward-models"),
    path("reward-models/<int:pk>/promote/", api_calls.Promote.as_view(), name="promote"),
    path("reward-models/<int:pk>/verification/", api_calls.Verification.as_view(), name="verification"),
    path("openrlhf/<slug:slug>/", openrlhf.OpenRLHF.as_view(), name="openrlhf"),
    path("evaluations/", evaluations.Evaluations.as_view(), name="evaluations"),
    path("projects/<slug:slug>/comparison/", evaluations.Comparison.as_view(), name="comparison"),
    path("score/", api_calls.ScoreItems.as_view(), name="score"),
    path("scoring-jobs/<int:pk>/", api_calls.OneScoringJob.as_view(), name="scoring-job"),
]

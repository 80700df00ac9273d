"""The machine half's REST addresses."""

from django.urls import path

from rewards.api import evaluations, model_downloads, openrlhf, rankings, reward_models, runs, scores, snapshots

urlpatterns = [
    path("projects/<slug:slug>/snapshots/", snapshots.Snapshots.as_view(), name="snapshots"),
    path("snapshot-jobs/<int:pk>/", snapshots.OneSnapshotJob.as_view(), name="snapshot-job"),
    path("snapshots/<int:pk>/erase/", snapshots.EraseSnapshot.as_view(), name="erase-snapshot"),
    path("projects/<slug:slug>/training-runs/", runs.TrainingRuns.as_view(), name="training-runs"),
    path("training-runs/<int:pk>/", runs.OneTrainingRun.as_view(), name="training-run"),
    path("training-runs/<int:pk>/cancel/", runs.CancelTrainingRun.as_view(), name="cancel-training-run"),
    path("training-runs/<int:pk>/retry/", runs.RetryTrainingRun.as_view(), name="retry-training-run"),
    path("training-runs/<int:pk>/reject/", runs.RejectTrainingRun.as_view(), name="reject-training-run"),
    path("reward-models/", reward_models.RewardModels.as_view(), name="reward-models"),
    path("reward-models/<int:pk>/", reward_models.OneRewardModel.as_view(), name="reward-model"),
    path("reward-models/<int:pk>/files/", model_downloads.FilesOfModel.as_view(), name="model-files"),
    path("reward-models/<int:pk>/files/<path:path>", model_downloads.FileOfModel.as_view(), name="model-file"),
    path("reward-models/<int:pk>/archive/", model_downloads.ArchiveOfModel.as_view(), name="model-archive"),
    path("reward-models/<int:pk>/promote/", reward_models.Promote.as_view(), name="promote"),
    path("reward-models/<int:pk>/verification/", reward_models.Verification.as_view(), name="verification"),
    path("openrlhf/<slug:slug>/", openrlhf.OpenRLHF.as_view(), name="openrlhf"),
    path("evaluations/", evaluations.Evaluations.as_view(), name="evaluations"),
    path("evaluations/<int:pk>/", evaluations.OneEvaluation.as_view(), name="evaluation"),
    path("projects/<slug:slug>/evaluation-jobs/", evaluations.EvaluationJobs.as_view(), name="evaluation-jobs"),
    path("evaluation-jobs/<int:pk>/", evaluations.OneEvaluationJob.as_view(), name="evaluation-job"),
    path("projects/<slug:slug>/comparison/", evaluations.Comparison.as_view(), name="comparison"),
    path("projects/<slug:slug>/model-ranking/", rankings.ModelRanking.as_view(), name="model-ranking"),
    path("score/", scores.ScoreItems.as_view(), name="score"),
    path("scoring-jobs/<int:pk>/", scores.OneScoringJob.as_view(), name="scoring-job"),
]

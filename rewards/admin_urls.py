"""Buttons of the admin's opening page, beside the admin's own addresses."""

from django.urls import path

from rewards import buttons

urlpatterns = [
    path("projects/<slug:slug>/retrain/", buttons.retrain, name="retrain"),
    path("reward-models/<int:pk>/promote/", buttons.promote, name="promote-model"),
    path("reward-models/<int:pk>/verify/", buttons.verify, name="verify-model"),
    path("training-runs/<int:pk>/cancel/", buttons.cancel, name="cancel-run"),
    path("training-runs/<int:pk>/retry/", buttons.retry, name="retry-run"),
    path("training-runs/<int:pk>/reject/", buttons.reject, name="reject-run"),
    path("snapshots/<int:pk>/erase/", buttons.erase, name="erase-snapshot"),
]

"""Buttons of the admin's opening page, beside the admin's own addresses."""

from django.urls import path

from rewards import views

urlpatterns = [
    path("projects/<slug:slug>/retrain/", views.retrain, name="retrain"),
    path("reward-models/<int:pk>/promote/", views.promote, name="promote-model"),
    path("reward-models/<int:pk>/verify/", views.verify, name="verify-model"),
    path("training-runs/<int:pk>/cancel/", views.cancel, name="cancel-run"),
    path("training-runs/<int:pk>/retry/", views.retry, name="retry-run"),
    path("training-runs/<int:pk>/reject/", views.reject, name="reject-run"),
    path("snapshots/<int:pk>/erase/", views.erase, name="erase-snapshot"),
]

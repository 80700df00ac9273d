"""Buttons of the admin's opening page, beside the admin's own addresses."""

from django.urls import path

from rewards import views

urlpatterns = [
    path("projects/<slug:slug>/retrain/", views.retrain, name="retrain"),
    path("reward-models/<int:pk>/promote/", views.promote, name="promote-model"),
    path("training-runs/<int:pk>/cancel/", views.cancel, name="cancel-run"),
]

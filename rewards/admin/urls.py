"""Buttons of the admin's opening page, beside the admin's own addresses."""

from django.urls import path

from rewards.admin import actions

urlpatterns = [
    path("test-mail/", actions.send_test_mail, name="send-test-mail"),
    path("projects/<slug:slug>/retrain/", actions.retrain, name="retrain"),
    path("reward-models/<int:pk>/promote/", actions.promote, name="promote-model"),
    path("reward-models/<int:pk>/verify/", actions.verify, name="verify-model"),
    path("policies/<int:pk>/offer/", actions.offer, name="offer-policy-by-hand"),
    path("training-runs/<int:pk>/cancel/", actions.cancel, name="cancel-run"),
    path("training-runs/<int:pk>/retry/", actions.retry, name="retry-run"),
    path("training-runs/<int:pk>/reject/", actions.reject, name="reject-run"),
    path("snapshots/<int:pk>/erase/", actions.erase, name="erase-snapshot"),
]

"""Pages of the machine half."""

from django.urls import path

from rewards.views import evaluations, overview, pages

urlpatterns = [
    path("projects/<slug:slug>/", overview.overview, name="overview"),
    path("projects/<slug:slug>/comparison/", pages.comparison, name="comparison"),
    path("projects/<slug:slug>/evaluation-jobs/", evaluations.jobs, name="evaluation-jobs"),
    path("evaluation-jobs/<int:pk>/remove/", evaluations.remove_job, name="remove-evaluation-job"),
    path("evaluations/<int:pk>/delete/", evaluations.delete_evaluation, name="delete-evaluation"),
]

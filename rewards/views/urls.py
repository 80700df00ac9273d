"""Pages of the machine half."""

from django.urls import path

from rewards.views import pages

urlpatterns = [
    path("projects/<slug:slug>/comparison/", pages.comparison, name="comparison"),
]

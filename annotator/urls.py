"""Every address: pages, the admin, REST."""

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from annotator import views

urlpatterns = [
    path("", views.home, name="home"),
    path("login/", auth.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("projects/<slug:slug>/guidelines/", views.guidelines, name="guidelines"),
    path("projects/<slug:slug>/annotate/", views.annotate, name="annotate"),
    path("assignments/<int:assignment_id>/submit/", views.submit, name="submit"),
    path("assignments/<int:assignment_id>/skip/", views.skip, name="skip"),
    path("assignments/<int:assignment_id>/report/", views.report, name="report"),
    path("admin/", include("rewards.admin_urls")),
    path("admin/", admin.site.urls),
    path("api/v1/", include("annotator.api.urls")),
    path("api/v1/", include("rewards.urls")),
    path("api/v1/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/v1/docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="docs"),
]

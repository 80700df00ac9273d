"""The addresses of the pages, the admin and REST."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, register_converter
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from annotator.api.schema import KeptSchema
from annotator.models.public_ids import TaskIdConverter
from annotator.pages.account import login, settings

# `path` looks the converter up, so it is registered before the addresses that use it.
register_converter(TaskIdConverter, "task")

handler400 = "annotator.api.errors.bad_request"
handler404 = "annotator.api.errors.not_found"
handler500 = "annotator.api.errors.server_error"

rest: list[URLPattern | URLResolver] = [
    path("", include("annotator.api.urls")),
    path("", include("rewards.api.urls")),
    path("schema/", SpectacularAPIView.as_view(generator_class=KeptSchema), name="schema"),
    path("docs/", SpectacularSwaggerView.as_view(url_name="api:schema"), name="docs"),
]
urlpatterns = [
    # First, because Django tries addresses in turn and these are asked for most.
    path("api/v1/", include((rest, "api"))),
    path("", include("annotator.pages.urls")),
    path("", include("rewards.pages.urls")),
    # Before the admin's own addresses, so that there is one way to log in, to log out, and to choose a password.
    path("admin/login/", login.admin_login, name="admin-login"),
    path("admin/logout/", login.Logout.as_view(), name="admin-logout"),
    path("admin/password_change/", settings.Password.as_view(), name="admin-password"),
    path("admin/", include("rewards.admin.urls")),
    path("admin/", admin.site.urls),
]

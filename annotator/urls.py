"""The addresses of the pages, the admin and REST."""

from django.contrib import admin
from django.contrib.auth.decorators import login_required
from django.urls import URLPattern, URLResolver, include, path, register_converter
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from annotator.models.public_ids import TaskIdConverter
from annotator.views import (
    agreement,
    annotators,
    glossary,
    history,
    login,
    person,
    projects,
    qualification,
    review,
    settings,
    work,
)

# `path` looks the converter up, so it is registered before the addresses that use it.
register_converter(TaskIdConverter, "task")

handler400 = "annotator.api.errors.bad_request"
handler404 = "annotator.api.errors.not_found"
handler500 = "annotator.api.errors.server_error"

rest: list[URLPattern | URLResolver] = [
    path("", include("annotator.api.urls")),
    path("", include("rewards.api.urls")),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerView.as_view(url_name="api:schema"), name="docs"),
]
urlpatterns = [
    # First, because Django tries addresses in turn and these are asked for most.
    path("api/v1/", include((rest, "api"))),
    path("", projects.home, name="home"),
    path("login/", login.Login.as_view(), name="login"),
    path("logout/", login.Logout.as_view(), name="logout"),
    path("settings/", settings.settings, name="settings"),
    path("settings/tokens/", settings.make_token, name="tokens"),
    path("settings/tokens/<int:pk>/end/", settings.end_token, name="end-token"),
    path("password/", login_required(settings.Password.as_view()), name="password"),
    path("layout/", settings.layout, name="layout"),
    path("i18n/", include("django.conf.urls.i18n")),
    path("glossary/", glossary.glossary, name="glossary"),
    path("mine/", person.mine, name="mine"),
    path("projects/<slug:slug>/offer/", projects.offer, name="offer"),
    path("projects/<slug:slug>/guidelines/", projects.guidelines, name="guidelines"),
    path("projects/<slug:slug>/qualification/", qualification.overview, name="qualification"),
    path("projects/<slug:slug>/qualification/begin/", qualification.begin, name="begin-qualification"),
    path("qualification/<int:run_id>/", qualification.take, name="take-qualification"),
    path("qualification/<int:run_id>/draft/", qualification.draft, name="draft-qualification"),
    path("qualification/<int:run_id>/tasks/<task:task_id>/", qualification.explained, name="explained-gold"),
    path("projects/<slug:slug>/history/", history.history, name="history"),
    path("projects/<slug:slug>/review/", review.review, name="review"),
    path("projects/<slug:slug>/review/submissions/", review.review_submissions, name="review-submissions"),
    path("projects/<slug:slug>/review/submissions/<int:assignment_id>/", review.verdict, name="verdict"),
    path("projects/<slug:slug>/review/<task:task_id>/", review.review_task, name="review-task"),
    path("projects/<slug:slug>/review/<task:task_id>/withdraw/", review.withdraw_adjudication, name="withdraw"),
    path("projects/<slug:slug>/review/<task:task_id>/decide/", review.decide, name="decide"),
    path("projects/<slug:slug>/agreement/", agreement.agreement, name="agreement"),
    path("projects/<slug:slug>/annotators/", annotators.annotators, name="annotators"),
    path("projects/<slug:slug>/annotate/", work.annotate, name="annotate"),
    path("assignments/<int:assignment_id>/submit/", work.submit, name="submit"),
    path("assignments/<int:assignment_id>/revise/", history.revise, name="revise"),
    path("assignments/<int:assignment_id>/draft/", work.draft, name="draft"),
    path("assignments/<int:assignment_id>/heartbeat/", work.heartbeat, name="heartbeat"),
    path("assignments/<int:assignment_id>/skip/", work.skip, name="skip"),
    path("assignments/<int:assignment_id>/undo-skip/", work.undo_skip, name="undo-skip"),
    path("assignments/<int:assignment_id>/report/", work.report, name="report"),
    path("", include("rewards.views.urls")),
    # Before the admin's own addresses, so that there is one way to log in, to log out, and to choose a password.
    path("admin/login/", login.StaffLogin.as_view(), name="admin-login"),
    path("admin/logout/", login.Logout.as_view(), name="admin-logout"),
    path("admin/password_change/", login_required(settings.Password.as_view()), name="admin-password"),
    path("admin/", include("rewards.admin.urls")),
    path("admin/", admin.site.urls),
]

"""All settings, from the environment. A bad value stops the start with the variable's name.

DATABASE_URL, REDIS_URL, SECRET_KEY, PUBLIC_URL, VAR_DIR, PORT and REWARD_BACKBONE are what an operator sets.
"""

import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent


def _flag(name: str) -> bool:
    value = os.environ.get(name, "0").strip().lower()
    if value not in {"0", "1", "true", "false", ""}:
        raise ImproperlyConfigured(f"{name} is {value!r}: write 1 or 0")
    return value in {"1", "true"}


def _number(name: str, default: int) -> int:
    value = os.environ.get(name, str(default))
    if not value.isdigit():
        raise ImproperlyConfigured(f"{name} is {value!r}: write a whole number")
    return int(value)


def _database(url: str) -> dict[str, object]:
    """Django's DATABASES entry for a postgresql:// URL; query parameters become libpq options."""
    parts = urlsplit(url)
    if parts.scheme not in {"postgresql", "postgres"}:
        raise ImproperlyConfigured(f"DATABASE_URL starts with {parts.scheme!r}: Rewardloop needs postgresql://")
    options: dict[str, object] = dict(parse_qsl(parts.query))
    host = str(options.pop("host", "")) or unquote(parts.hostname or "")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(parts.port or ""),
        "OPTIONS": options,
    }


def _secret_key() -> str:
    """SECRET_KEY, or the one that `make run` keeps in VAR_DIR; commands that sign nothing need none."""
    kept = VAR_DIR / "secret-key"
    if key := os.environ.get("SECRET_KEY", ""):
        return key
    if kept.exists():
        return kept.read_text().strip()
    return "not-secret-" + "0" * 50 if {"test", "check", "makemigrations", "pytest"} & _words() else ""


def _server(name: str, default: str) -> str:
    """The variable, or the address of the servers that a running `make run` left for commands beside it."""
    if address := os.environ.get(name, ""):
        return address
    left = VAR_DIR / "services.json"
    try:
        return str(json.loads(left.read_text()).get(name, default))
    except (FileNotFoundError, PermissionError):
        return default


def _words() -> set[str]:
    return {Path(word).name for word in sys.argv[:2]} | ({"pytest"} if "pytest" in sys.modules else set())


# Paths and secrets -----------------------------------------------------------------------------------------
VAR_DIR = Path(os.environ.get("VAR_DIR", BASE_DIR / "var")).resolve()
ARTIFACTS = VAR_DIR / "artifacts"
SECRET_KEY = _secret_key()
DEBUG = _flag("DEBUG")

# Where people reach us; hosts, CSRF origins and the proxy header follow from it ------------------------------
PORT = _number("PORT", 8000)
PUBLIC_URL = os.environ.get("PUBLIC_URL", f"http://127.0.0.1:{PORT}")
_public = urlsplit(PUBLIC_URL)
if _public.scheme not in {"http", "https"} or not _public.hostname:
    raise ImproperlyConfigured(
        f"PUBLIC_URL is {PUBLIC_URL!r}: write the address people open, like https://rate.example.org"
    )
ALLOWED_HOSTS = [_public.hostname, "127.0.0.1", "localhost", "[::1]", "web"]
CSRF_TRUSTED_ORIGINS = [f"{_public.scheme}://{_public.netloc}"]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _public.scheme == "https"
if _public.scheme == "https":
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# Applications ----------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "unfold.contrib.forms",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "knox",
    "django_htmx",
    "django_celery_beat",
    # Last, so that the admin's own registrations are there to be replaced.
    "annotator.apps.AnnotatorConfig",
    "rewards.apps.RewardsConfig",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "annotator.storable_requests.StorableRequestMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "annotator.audit.ActorMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "annotator.htmx.WholeLoginPageMiddleware",
    "annotator.security.ContentSecurityPolicyMiddleware",
    "annotator.unavailable.DatabaseAwayMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "annotator.urls"
WSGI_APPLICATION = "annotator.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# Database and people ---------------------------------------------------------------------------------------
DATABASES = {"default": _database(_server("DATABASE_URL", "postgresql://rewardloop@127.0.0.1:5432/rewardloop"))}
DATABASES["default"]["OPTIONS"] = {
    **DATABASES["default"]["OPTIONS"],  # type: ignore[dict-item]
    # Only what asks for it is prepared (annotator/statements.py); without a number here nothing ever is.
    "prepare_threshold": 2**31,
    "pool": {"min_size": 1, "max_size": _number("DATABASE_POOL", 8), "timeout": 15},
}
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True  # a restarted PostgreSQL costs no request
AUTH_USER_MODEL = "annotator.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
] + [{"NAME": "annotator.audit.PasswordsNoted"}]
CSRF_FAILURE_VIEW = "annotator.views.refused.csrf_failure"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"

# Language, time, files -------------------------------------------------------------------------------------
LANGUAGE_CODE = "en"
# Each in its own tongue. A new one: CONTRIBUTING.md says how.
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LOCALE_PATHS = [BASE_DIR / "locale"]
LANGUAGE_COOKIE_AGE = 365 * 24 * 60 * 60
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_SECURE = SESSION_COOKIE_SECURE
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
if "pytest" in sys.modules or DEBUG:
    STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
WHITENOISE_USE_FINDERS = True

# Without this, Django keeps the tracebacks of its own errors to itself unless DEBUG is on.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"stderr": {"class": "logging.StreamHandler"}},
    "loggers": {"django": {"handlers": ["stderr"], "level": "ERROR"}},
}

# REST ------------------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "annotator.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["annotator.api.parsing.StorableJSONParser"],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_PAGINATION_CLASS": "annotator.api.pagination.CursorPages",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "annotator.api.errors.answer_error",
    "URL_FORMAT_OVERRIDE": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
REST_KNOX = {"TOKEN_TTL": timedelta(days=365), "AUTO_REFRESH": False}
SPECTACULAR_SETTINGS = {
    "TITLE": "Rewardloop",
    "DESCRIPTION": "From imported conversations to agreed labels, reward models and scores.",
    "VERSION": "0.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

# Work in the background ------------------------------------------------------------------------------------
REDIS_URL = _server("REDIS_URL", "redis://127.0.0.1:6379/0")
CELERY_BROKER_URL = REDIS_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "light"
CELERY_TASK_ROUTES = {"rewards.tasks.train": {"queue": "train"}, "rewards.tasks.score*": {"queue": "score"}}
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A full or absent Redis must answer the web at once, never hang a page.
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 3, "socket_timeout": 10}
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 2, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.5}
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
CELERY_BEAT_SCHEDULE = {
    "expire-leases": {"task": "annotator.tasks.expire_leases", "schedule": 60.0},
    "enforce-exclusions": {"task": "annotator.tasks.enforce_exclusions", "schedule": 60.0, "options": {"expires": 60}},
    "refresh-agreement": {"task": "annotator.tasks.refresh_agreement", "schedule": 10.0, "options": {"expires": 10}},
    "assess-annotators": {"task": "annotator.tasks.assess_annotators", "schedule": 60.0, "options": {"expires": 60}},
    "finish-withdrawals": {
        "task": "annotator.tasks.finish_withdrawals",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "find-pii": {"task": "annotator.tasks.find_pii", "schedule": 30.0, "options": {"expires": 30}},
    "start-due-retraining": {"task": "rewards.tasks.start_due_runs", "schedule": 30.0},
    "ask-again-for-review": {
        "task": "rewards.tasks.ask_again_for_review",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "sweep-files": {"task": "rewards.tasks.sweep_files", "schedule": 60.0, "options": {"expires": 60}},
    "recover-lost-runs": {"task": "rewards.tasks.recover_lost_runs", "schedule": 15.0},
    "score-new-responses": {"task": "rewards.tasks.start_due_scoring", "schedule": 30.0},
    "order-queues": {"task": "rewards.tasks.order_queues", "schedule": 60.0, "options": {"expires": 60}},
}
WORKER_HEARTBEAT_SECONDS = 5

# Reward models ---------------------------------------------------------------------------------------------
TRAINING_CONFIG_CHECK = "rewards.retraining.check_config"
REWARD_BACKBONE = os.environ.get("REWARD_BACKBONE", "minilm")
RUN_HEARTBEAT_SECONDS = 2
RUN_LOST_AFTER_SECONDS = _number("RUN_LOST_AFTER_SECONDS", 60)
RUN_ATTEMPTS = 3
SCORE_MODELS_KEPT = _number("SCORE_MODELS_KEPT", 2)  # in the memory of each score worker

# Imports: what one file may hold. Memory follows the bytes of a row, about 35 times as many while it is read -------
IMPORT_MAX_TEXT = _number("IMPORT_MAX_TEXT", 1_000_000)  # characters
IMPORT_MAX_MESSAGES = _number("IMPORT_MAX_MESSAGES", 1_000)  # of one conversation
IMPORT_MAX_ROW_BYTES = _number("IMPORT_MAX_ROW_BYTES", 4 << 20)
IMPORT_MAX_ROWS = _number("IMPORT_MAX_ROWS", 10_000_000)
IMPORT_MAX_FILE_BYTES = _number("IMPORT_MAX_FILE_BYTES", 10 << 30)  # once it is decompressed
IMPORT_MAX_GZIP_RATIO = _number("IMPORT_MAX_GZIP_RATIO", 200)  # bytes that come out for each one in the file
IMPORT_ERRORS_REPORTED = _number("IMPORT_ERRORS_REPORTED", 1_000)  # further ones are counted

# The admin's look ------------------------------------------------------------------------------------------
UNFOLD = {
    "SITE_TITLE": "Rewardloop",
    "SITE_HEADER": "Rewardloop",
    "SITE_SYMBOL": "all_inclusive",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": "rewards.dashboard.mark"}],
    "STYLES": ["rewards.dashboard.style"],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "DASHBOARD_CALLBACK": "rewards.dashboard.context",
    "SIDEBAR": {"show_search": False, "show_all_applications": False, "navigation": "rewards.dashboard.navigation"},
}

"""All settings, from the environment (docs/settings.md). A bad value stops the start with its variable's name."""

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from annotator.infrastructure import limits
from annotator.launch import environment
from annotator.version import VERSION

BASE_DIR = Path(__file__).resolve().parent.parent
# Templates, static files and translations: a wheel carries them inside the package.
_INSTALLED = Path(__file__).with_name("shipped")
SHIPPED = _INSTALLED if _INSTALLED.is_dir() else BASE_DIR


# Paths and secrets -----------------------------------------------------------------------------------------
VAR_DIR = Path(os.environ.get("VAR_DIR", BASE_DIR / "var")).resolve()
ARTIFACTS, ARTIFACTS_STORE = environment.artifacts("ARTIFACTS_URL", VAR_DIR / "artifacts")
ARTIFACTS_CACHE_MB = environment.number("ARTIFACTS_CACHE_MB", 50_000)  # what a host keeps of an object store
# Where `make run` keeps its own PostgreSQL; empty if the server belongs to somebody else.
DATABASE_DIR = environment.server("DATABASE_DIR", "", var_dir=VAR_DIR)
DISK_RESERVE_MB = environment.number("DISK_RESERVE_MB", 500)  # what writes much is refused where less is free
SECRET_KEY = environment.secret_key(VAR_DIR)
DEBUG = environment.flag("DEBUG")

# Where people reach us; hosts, CSRF origins and the proxy header follow from it ------------------------------
PORT = environment.number("PORT", 8000)
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
    SECURE_HSTS_SECONDS = 365 * 24 * 60 * 60
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = [r"^api/v1/health/", r"^metrics$"]  # probes speak plain HTTP to the process itself

# The web server --------------------------------------------------------------------------------------------
# Two at least: while one is busy or is started again, the other answers.
WEB_PROCESSES = environment.count("WEB_PROCESSES", min(max(2, environment.cores()), 8))
WEB_THREADS = environment.count("WEB_THREADS", 4)
# The largest body, by the address that it is sent to (annotator/infrastructure/web/body_limits.py).
FORM_MAX_BYTES = environment.count("FORM_MAX_BYTES", 1_000_000)
JSON_MAX_BYTES = environment.count("JSON_MAX_BYTES", 10_000_000)
IMPORT_MAX_BYTES = environment.count("IMPORT_MAX_BYTES", 1_000_000_000)
EVALUATION_MAX_BYTES = environment.count("EVALUATION_MAX_BYTES", 200_000_000)
# How long PostgreSQL may work on one statement of a request, and of an import or export; 0: without limit.
WEB_STATEMENT_SECONDS = environment.number("WEB_STATEMENT_SECONDS", 30)
WEB_FILE_STATEMENT_SECONDS = environment.number("WEB_FILE_STATEMENT_SECONDS", 900)
IMPORT_SECONDS = environment.count("IMPORT_SECONDS", 300)  # of an import within one request
# Django's own limit, the same for every address, has to admit what the limits by address admit.
DATA_UPLOAD_MAX_MEMORY_SIZE = max(JSON_MAX_BYTES, FORM_MAX_BYTES, limits.LARGEST_FORM)
DATA_UPLOAD_MAX_NUMBER_FIELDS = limits.MOST_FIELDS

# How many proxies in front of us write X-Forwarded-For, each adding the address that called it. What anybody else
# writes there is ignored: callers could give any address, and so evade the limits on wrong passwords.
TRUSTED_PROXIES = environment.number("TRUSTED_PROXIES", 0)

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
    "annotator.infrastructure.request_logs.RequestIdMiddleware",
    "annotator.infrastructure.web.middleware.HealthHostMiddleware",
    "annotator.infrastructure.web.middleware.NoStoreMiddleware",
    "annotator.body_middleware.BodyLimitMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "annotator.infrastructure.web.middleware.StorableRequestMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    # Every page but those marked `login_not_required`. REST answers for itself.
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "annotator.infrastructure.audit.ActorMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "annotator.infrastructure.web.middleware.WholeLoginPageMiddleware",
    "annotator.accounts.passwords.OwnPasswordMiddleware",
    "annotator.infrastructure.web.middleware.ContentSecurityPolicyMiddleware",
    "annotator.infrastructure.web.middleware.DatabaseAwayMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
# What Prometheus sends to read /metrics, which does not exist without it.
METRICS_TOKEN = os.environ.get("METRICS_TOKEN", "")
if METRICS_TOKEN:
    MIDDLEWARE.insert(0, "annotator.infrastructure.web.request_metrics.RequestMetricsMiddleware")
ROOT_URLCONF = "annotator.urls"
WSGI_APPLICATION = "annotator.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [SHIPPED / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "annotator.infrastructure.storage.disk_space.for_pages",
            ],
        },
    },
]

# Database and people ---------------------------------------------------------------------------------------
DATABASES = {
    "default": environment.database(
        environment.server("DATABASE_URL", "postgresql://rewardloop@127.0.0.1:5432/rewardloop", var_dir=VAR_DIR)
    )
}
_options = cast("dict[str, Any]", DATABASES["default"]["OPTIONS"])
DATABASES["default"]["OPTIONS"] = {
    # So that a server that is away is noticed within seconds. Options in DATABASE_URL override these.
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    **_options,
    # As for data in memory or on an SSD; PostgreSQL's own number is for disks that turn. It would read small tables
    # whole, and a prepared statement goes on so while the table grows, until its statistics are taken again: in a new
    # project, a submission took half as long again after half a minute's work.
    "options": f"-c random_page_cost=1.1 {_options.get('options', '')}".strip(),
    # Only statements that ask for it are prepared (annotator/infrastructure/db/statements.py). Without a number psycopg
    # would prepare none, not even those.
    "prepare_threshold": 2**31,
    "pool": {
        "min_size": 1,
        # Every thread of a web process may want one: WEB_THREADS for pages, as many for trainers, half as many each for
        # imports, uploads and exports, single ones for health, metrics and what takes long
        # (annotator/launch/webserver/thread_pools.py).
        "max_size": environment.count("DATABASE_POOL", 2 * WEB_THREADS + 3 * max(2, WEB_THREADS // 2) + 5),
        "timeout": 5,
        # The pause between attempts doubles within this time. With the pool's default of 300 s, the last pause could be
        # as long as the outage, which would so last twice as long.
        "reconnect_timeout": 5,
    },
}
AUTH_USER_MODEL = "annotator.User"
AUTHENTICATION_BACKENDS = ["annotator.accounts.logins.LimitedBackend"]
_DJANGOS = "django.contrib.auth.password_validation"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"{_DJANGOS}.UserAttributeSimilarityValidator"},
    {"NAME": f"{_DJANGOS}.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": f"{_DJANGOS}.CommonPasswordValidator"},
    {"NAME": f"{_DJANGOS}.NumericPasswordValidator"},
    {"NAME": "annotator.accounts.passwords.PasswordChanges"},
]
# Wrong passwords for one account from one address until both have to wait; accounts/logins.py has the other limits.
LOGIN_FAILURES = environment.count("LOGIN_FAILURES", 5)
LOGIN_WAIT_MINUTES = environment.count("LOGIN_WAIT_MINUTES", 15)
SESSION_COOKIE_AGE = environment.count("SESSION_DAYS", 14) * 24 * 60 * 60
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "annotator.pages.account.login.csrf_failure"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"

# Mail: invitations are sent where a server is named; else their links are shown to be copied -----------------
_MAIL = environment.mail_server("EMAIL_URL")
EMAIL_HOST, EMAIL_PORT = _MAIL.host, _MAIL.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _MAIL.user, _MAIL.password
EMAIL_USE_TLS, EMAIL_USE_SSL = _MAIL.starts_tls, _MAIL.tls_from_the_start
EMAIL_TIMEOUT = 10  # seconds, for each answer of the server: a manager waits for it
DEFAULT_FROM_EMAIL = _MAIL.sender

# Webhooks: addresses that are not of the public internet are refused, unless receivers stand beside us ----------
WEBHOOK_PRIVATE_ADDRESSES = environment.choice("WEBHOOK_PRIVATE_ADDRESSES", "refuse", "allow")

# The Hugging Face Hub, to which `manage.py release --push` takes a release ----------------------------------
HF_TOKEN = os.environ.get("HF_TOKEN", "")

# Language, time, files -------------------------------------------------------------------------------------
LANGUAGE_CODE = "en"
# Each language is named in itself. CONTRIBUTING.md says how to add one.
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LOCALE_PATHS = [SHIPPED / "locale"]
FORMAT_MODULE_PATH = ["annotator.infrastructure.web.formats"]
LANGUAGE_COOKIE_AGE = 365 * 24 * 60 * 60
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_SECURE = SESSION_COOKIE_SECURE
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [SHIPPED / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "annotator.infrastructure.health.ModuleStorage"},
}
if "pytest" in sys.modules or DEBUG:
    STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
WHITENOISE_USE_FINDERS = True

LOG_FORMAT = environment.choice("LOG_FORMAT", "text", "json")
# Without this, Django keeps the tracebacks of its own errors to itself unless DEBUG is on.
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"stderr": {"class": "logging.StreamHandler"}},
    "loggers": {
        "django": {"handlers": ["stderr"], "level": "ERROR"},
        "annotator.accounts.logins": {"handlers": ["stderr"], "level": "INFO"},
    },
}
if LOG_FORMAT == "json":
    LOGGING["formatters"] = {"json": {"()": "annotator.infrastructure.request_logs.JsonFormatter"}}
    LOGGING["handlers"]["stderr"]["formatter"] = "json"
    LOGGING["root"] = {"handlers": ["stderr"], "level": "WARNING"}
    LOGGING["loggers"] = {
        "django": {"level": "ERROR", "handlers": [], "propagate": True},
        "annotator": {"level": "INFO"},
        "rewards": {"level": "INFO"},
        "celery": {"level": "INFO"},
    }

# REST ------------------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "annotator.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "annotator.api.scopes.WithinScopes",
    ],
    "DEFAULT_THROTTLE_CLASSES": ["annotator.api.throttling.ByToken"],
    "DEFAULT_RENDERER_CLASSES": ["annotator.api.json_bodies.Renderer"],
    "DEFAULT_PARSER_CLASSES": ["annotator.api.json_bodies.StorableJSONParser"],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_PAGINATION_CLASS": "annotator.api.pagination.CursorPages",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "annotator.api.errors.answer_error",
    "URL_FORMAT_OVERRIDE": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
API_CALLS_A_MINUTE = environment.number("API_CALLS_A_MINUTE", 60_000)  # of one token; 0: no limit
TOKEN_DAYS, TOKEN_DAYS_MOST = environment.count("TOKEN_DAYS", 90), 365
if TOKEN_DAYS > TOKEN_DAYS_MOST:
    raise ImproperlyConfigured(f"TOKEN_DAYS is {TOKEN_DAYS}: a token lasts {TOKEN_DAYS_MOST} days at most")
KNOX_TOKEN_MODEL = "annotator.Token"
MIGRATION_MODULES = {"knox": None}  # its own table, which ours replaces
REST_KNOX = {"TOKEN_TTL": timedelta(days=TOKEN_DAYS), "AUTO_REFRESH": False}
SPECTACULAR_SETTINGS = {
    "TITLE": "Rewardloop",
    "DESCRIPTION": "From imported conversations to agreed labels, reward models and scores.",
    "VERSION": VERSION,
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "annotator.api.schema.allow_several",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

# Work in the background ------------------------------------------------------------------------------------
REDIS_URL = environment.server("REDIS_URL", "redis://127.0.0.1:6379/0", var_dir=VAR_DIR)
CELERY_BROKER_URL = REDIS_URL
# Results are rows in the database: nothing reads them from Redis.
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "light"
CELERY_TASK_ROUTES = {
    "rewards.tasks.train": {"queue": "train"},
    "rewards.tasks.evaluate": {"queue": "train"},
    "rewards.tasks.score*": {"queue": "score"},
}
# A worker that is busy for long must not hold messages that another one could take.
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# For the workers' connections; whoever sends a message waits for less (annotator/celery.py).
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 3, "socket_timeout": 10}
# Jobs of each kind that the installation works on at once, and jobs of all kinds that a light worker has at once: one
# of its four threads is left to what takes a moment (annotator/infrastructure/jobs.py).
JOBS_AT_ONCE = environment.count("JOBS_AT_ONCE", max(2, os.cpu_count() or 2))
JOBS_A_WORKER = environment.count("JOBS_A_WORKER", 3)
CELERY_TASK_PUBLISH_RETRY = (
    False  # annotator/infrastructure/background/messages.py tries again, and beat finds lost work
)
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
# `expires` drops a message that no worker took within a period: the next one asks for the same work.
CELERY_BEAT_SCHEDULE = {
    "expire-leases": {"task": "annotator.tasks.expire_leases", "schedule": 60.0},
    "enforce-exclusions": {"task": "annotator.tasks.enforce_exclusions", "schedule": 60.0, "options": {"expires": 60}},
    "finish-deletions": {"task": "annotator.tasks.finish_deletions", "schedule": 60.0, "options": {"expires": 60}},
    "recount-changed": {"task": "annotator.tasks.recount_changed", "schedule": 60.0, "options": {"expires": 60}},
    "refresh-agreement": {"task": "annotator.tasks.refresh_agreement", "schedule": 10.0, "options": {"expires": 10}},
    "assess-annotators": {"task": "annotator.tasks.assess_annotators", "schedule": 60.0, "options": {"expires": 60}},
    "forget-ended-logins": {"task": "annotator.tasks.forget_ended_logins", "schedule": 3600.0},
    "finish-withdrawals": {
        "task": "annotator.tasks.finish_withdrawals",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "finish-bulk-changes": {
        "task": "annotator.tasks.finish_bulk_changes",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "take-words": {"task": "annotator.tasks.take_words", "schedule": 10.0, "options": {"expires": 10}},
    "run-exports": {"task": "annotator.tasks.run_exports", "schedule": 15.0, "options": {"expires": 15}},
    "sweep-exports": {"task": "annotator.tasks.sweep_exports", "schedule": 600.0, "options": {"expires": 600}},
    "write-releases": {"task": "annotator.tasks.write_releases", "schedule": 15.0, "options": {"expires": 15}},
    "sweep-releases": {"task": "annotator.tasks.sweep_releases", "schedule": 600.0, "options": {"expires": 600}},
    "erase-gone-artifacts": {
        "task": "annotator.tasks.erase_gone_artifacts",
        "schedule": 10.0,
        "options": {"expires": 10},
    },
    "erase-orphaned-artifacts": {
        "task": "annotator.tasks.erase_orphaned_artifacts",
        "schedule": 86_400.0,
        "options": {"expires": 3600},
    },
    "run-imports": {"task": "annotator.tasks.run_imports", "schedule": 15.0, "options": {"expires": 15}},
    "sweep-imports": {"task": "annotator.tasks.sweep_imports", "schedule": 600.0, "options": {"expires": 600}},
    "send-webhooks": {"task": "annotator.tasks.send_webhooks", "schedule": 5.0, "options": {"expires": 5}},
    "sweep-webhooks": {"task": "annotator.tasks.sweep_webhooks", "schedule": 3600.0, "options": {"expires": 3600}},
    "find-pii": {"task": "annotator.tasks.find_pii", "schedule": 30.0, "options": {"expires": 30}},
    "start-due-retraining": {"task": "rewards.tasks.start_due_runs", "schedule": 30.0},
    "ask-again-for-review": {
        "task": "rewards.tasks.ask_again_for_review",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "note-unlikely": {"task": "rewards.tasks.note_unlikely_left", "schedule": 60.0, "options": {"expires": 60}},
    "build-snapshots": {"task": "rewards.tasks.build_snapshots", "schedule": 15.0, "options": {"expires": 15}},
    "sweep-files": {"task": "rewards.tasks.sweep_files", "schedule": 60.0, "options": {"expires": 60}},
    "recover-lost-runs": {"task": "rewards.tasks.recover_lost_runs", "schedule": 15.0},
    "recover-lost-evaluations": {
        "task": "rewards.tasks.recover_lost_evaluations",
        "schedule": 15.0,
        "options": {"expires": 15},
    },
    "watch-workers": {"task": "rewards.tasks.watch_workers", "schedule": 60.0, "options": {"expires": 60}},
    "score-new-responses": {"task": "rewards.tasks.start_due_scoring", "schedule": 30.0},
    "thin-scores": {"task": "rewards.tasks.thin_scores", "schedule": 3600.0, "options": {"expires": 3600}},
    "forget-old-drafts": {
        "task": "annotator.tasks.forget_old_drafts",
        "schedule": 3600.0,
        "options": {"expires": 3600},
    },
}
WORKER_HEARTBEAT_SECONDS = 5

# What one annotator may do -----------------------------------------------------------------------------------
RELEASES_AN_HOUR = environment.number("RELEASES_AN_HOUR", 20)  # tasks given back, in each project
SKIPS_AN_HOUR = environment.number("SKIPS_AN_HOUR", 120)
OPEN_REPORTS = environment.number("OPEN_REPORTS", 10)  # tasks set aside that no manager has decided on

# Reward models ---------------------------------------------------------------------------------------------
TRAINING_CONFIG_CHECK = "rewards.runs.run_settings.check_config"
CHAMPION_SCORES = "rewards.scoring.champion_scores"
REWARD_BACKBONES, REWARD_BACKBONE = environment.backbones(
    os.environ.get("REWARD_BACKBONES", ""), os.environ.get("REWARD_BACKBONE", "") or "minilm"
)
POLICY_BASES = environment.policies("POLICY_BASES")
# The words of the command that starts trainers, with placeholders; without any, trainers are the worker's children.
TRAIN_LAUNCHER = environment.launcher("TRAIN_LAUNCHER")
GPU_QUEUES = environment.words("GPU_QUEUES", "light", "train", "score")  # their workers take no work without a GPU
RUN_HOURS = environment.hours("RUN_HOURS", 24)  # the longest that a run may work
RUN_HEARTBEAT_SECONDS = 2
RUN_LOST_AFTER_SECONDS = environment.number("RUN_LOST_AFTER_SECONDS", 60)
RUN_ATTEMPTS = 3
SCORES_OF_FORMER_CHAMPIONS = environment.number("SCORES_OF_FORMER_CHAMPIONS", 2)  # in each project
SCORE_MODELS_KEPT = environment.number("SCORE_MODELS_KEPT", 2)  # in the memory of each score worker
SCORE_PRECISION = environment.choice("SCORE_PRECISION", "auto", "float32", "bfloat16")

# Imports: what one file may hold. Memory follows the bytes of a row, about 35 times as many while it is read -------
IMPORT_MAX_TEXT = environment.number("IMPORT_MAX_TEXT", limits.LONGEST_TEXT)  # characters
IMPORT_MAX_MESSAGES = environment.number("IMPORT_MAX_MESSAGES", limits.MOST_MESSAGES)  # of one conversation
IMPORT_MAX_ROW_BYTES = environment.number("IMPORT_MAX_ROW_BYTES", 4 << 20)
IMPORT_MAX_ROWS = environment.number("IMPORT_MAX_ROWS", 10_000_000)
IMPORT_MAX_FILE_BYTES = environment.number("IMPORT_MAX_FILE_BYTES", 10 << 30)  # once it is decompressed
IMPORT_MAX_GZIP_RATIO = environment.number("IMPORT_MAX_GZIP_RATIO", 200)  # bytes that come out for each one in the file
IMPORT_ERRORS_REPORTED = environment.number("IMPORT_ERRORS_REPORTED", 1_000)  # further ones are counted

# The admin's look: that of the pages, whose values it takes from static/css/variables.css --------------------
_SHADES = ("50", "100", "200", "300", "400", "500", "600", "700", "800", "900", "950")
UNFOLD = {
    "SITE_TITLE": "Rewardloop",
    "SITE_HEADER": "Rewardloop",
    "SITE_ICON": "rewards.admin.dashboard.mark",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": "rewards.admin.dashboard.mark"}],
    "STYLES": ["rewards.admin.dashboard.variables", "rewards.admin.dashboard.style"],
    "COLORS": {scale: {shade: f"var(--{scale}-{shade})" for shade in _SHADES} for scale in ("base", "primary")},
    "BORDER_RADIUS": "var(--radius-control)",
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "DASHBOARD_CALLBACK": "rewards.admin.dashboard.context",
    "SIDEBAR": {
        "show_search": False,
        "show_all_applications": False,
        "navigation": "rewards.admin.dashboard.navigation",
    },
}

"""The halves meet in files only: the web loads no torch, the learning core no Django."""

import subprocess
import sys

import pytest
from django.conf import settings
from django.urls import URLPattern, URLResolver, get_resolver

OPEN_TO_ALL = {"login", "set_language", "logout", "schema", "docs", "live", "ready", "token"}
OPEN_TO_ALL |= {"admin-login", "admin-logout"}
OPEN_TO_ALL |= {"worker"}  # a script, as the static ones
OPEN_TO_ALL |= {"metrics"}  # it has a token of its own (tests/attacks/test_metrics.py)
# Whoever has such a link comes in by it.
OPEN_TO_ALL |= {"invitation", "new-password", "accept-invitation"}


def run_python(code: str) -> list[str]:
    """What a program says, line by line."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return [*done.stdout.splitlines(), done.stderr]


@pytest.fixture(scope="module")
def loaded_by_the_web() -> set[str]:
    """The packages that the web, the light worker and the search for personal information have loaded."""
    said, errors = run_python(
        "import os, sys, django\n"
        "os.environ['DJANGO_SETTINGS_MODULE'] = 'annotator.settings'\n"
        "os.environ.setdefault('SECRET_KEY', 'x')\n"
        "django.setup()\n"
        "import annotator.urls, annotator.tasks, rewards.tasks, annotator.stages.pii.recognisers\n"
        "print(*sys.modules)"
    )
    packages = {name.partition(".")[0] for name in said.split()}
    assert {"django", "annotator", "rewards"} <= packages, errors
    return packages


def test_django_starts_without_torch_and_without_the_client(loaded_by_the_web: set[str]) -> None:
    assert {"torch", "transformers", "sklearn", "pyarrow", "httpx", "rewardloop"} & loaded_by_the_web == set()


def test_the_web_and_the_light_worker_load_no_recognisers(loaded_by_the_web: set[str]) -> None:
    assert {"phonenumbers", "stdnum"} & loaded_by_the_web == set()


@pytest.fixture(scope="module")
def imports() -> list[str]:
    """What a process says that imports the learning core without Django, and then everything, without what only tests
    have. It is one process, as torch alone takes seconds."""
    return run_python(
        "import os, pkgutil, sys\n"
        "missing = ['sklearn', 'scipy', 'krippendorff', 'pytest', 'hypothesis']\n"
        "missing_in_the_core = ['django', 'celery', 'annotator', 'rest_framework']\n"
        "for name in missing + missing_in_the_core: sys.modules[name] = None\n"
        "import rewards.learning.train, rewards.learning.evaluate, rewards.learning.score, rewards.learning.__main__\n"
        "import rewards.learning.aligning.align\n"
        "print('the learning core')\n"
        "for name in missing_in_the_core: del sys.modules[name]\n"
        "os.environ['DJANGO_SETTINGS_MODULE'] = 'annotator.settings'\n"
        "os.environ.setdefault('SECRET_KEY', 'x')\n"
        "import django\n"
        "django.setup()\n"
        "import annotator.urls, rewards\n"
        "for package in (annotator, rewards):\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        if not module.name.endswith('__main__'): __import__(module.name)\n"
        "print('everything')"
    )


def test_nothing_is_imported_that_only_tests_have(imports: list[str]) -> None:
    assert imports[1:2] == ["everything"], imports[-1]


def test_the_learning_core_imports_without_django(imports: list[str]) -> None:
    assert imports[0] == "the learning core", imports[-1]


def test_no_page_is_open_to_strangers_by_accident(client: object) -> None:
    """Every view of ours asks for a login or is on the list of those that need none."""
    assert "django.contrib.auth.middleware.LoginRequiredMiddleware" in settings.MIDDLEWARE
    unguarded = {name for name, callback in _named_views(get_resolver()) if not _guarded(callback)}
    assert unguarded == OPEN_TO_ALL


def _named_views(resolver: URLResolver) -> list[tuple[str, object]]:
    views: list[tuple[str, object]] = []
    for url_pattern in resolver.url_patterns:
        if isinstance(url_pattern, URLResolver):
            if url_pattern.namespace != "admin":
                views += _named_views(url_pattern)
        elif isinstance(url_pattern, URLPattern):
            views.append((str(url_pattern.name), url_pattern.callback))
    return views


def _guarded(callback: object) -> bool:
    """Left to Django's middleware for logins, or a REST view whose permissions ask for a user."""
    view_class = vars(callback).get("cls")
    if view_class is not None:
        return any(permission_class.__name__ == "IsAuthenticated" for permission_class in view_class.permission_classes)
    return bool(vars(callback).get("login_required", True))

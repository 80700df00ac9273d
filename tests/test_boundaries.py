"""The halves meet in files only: the web loads no torch, the learning core no Django."""

import subprocess
import sys
from types import FunctionType

from django.urls import URLPattern, URLResolver, get_resolver

OPEN_TO_ALL = {"login", "set_language", "logout", "schema", "docs", "live", "ready", "token"}
OPEN_TO_ALL |= {"admin-login", "admin-logout"}
# Whoever has such a link comes in by it.
OPEN_TO_ALL |= {"invitation", "new-password", "accept-invitation"}


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_django_starts_without_torch_and_without_the_client() -> None:
    done = run_python(
        "import os, sys, django\n"
        "os.environ['DJANGO_SETTINGS_MODULE'] = 'annotator.settings'\n"
        "os.environ.setdefault('SECRET_KEY', 'x')\n"
        "django.setup()\n"
        "import annotator.urls, rewards.tasks\n"
        "print(sorted({'torch', 'transformers', 'sklearn', 'pyarrow', 'httpx', 'rewardloop'} & set(sys.modules)))"
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_the_web_and_the_light_worker_load_no_recognisers() -> None:
    done = run_python(
        "import os, sys, django\n"
        "os.environ['DJANGO_SETTINGS_MODULE'] = 'annotator.settings'\n"
        "os.environ.setdefault('SECRET_KEY', 'x')\n"
        "django.setup()\n"
        "import annotator.urls, annotator.tasks, annotator.pii.recognisers\n"
        "print(sorted({'phonenumbers', 'stdnum'} & set(sys.modules)))"
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_nothing_is_imported_that_only_tests_have() -> None:
    done = run_python(
        "import os, pkgutil, sys, django\n"
        "for name in ('sklearn', 'scipy', 'krippendorff', 'pytest', 'hypothesis'): sys.modules[name] = None\n"
        "os.environ['DJANGO_SETTINGS_MODULE'] = 'annotator.settings'\n"
        "os.environ.setdefault('SECRET_KEY', 'x')\n"
        "django.setup()\n"
        "import annotator.urls, rewards\n"
        "for package in (annotator, rewards):\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        if not module.name.endswith('__main__'): __import__(module.name)\n"
        "print('fine')"
    )
    assert done.stdout.strip() == "fine", done.stderr


def test_the_learning_core_imports_without_django() -> None:
    done = run_python(
        "import sys\n"
        "for name in ('django', 'celery', 'annotator', 'rest_framework'): sys.modules[name] = None\n"
        "import rewards.learning.train, rewards.learning.evaluate, rewards.learning.score, rewards.learning.__main__\n"
        "import rewards.learning.aligning.align\n"
        "print('fine')"
    )
    assert done.stdout.strip() == "fine", done.stderr


def test_no_page_is_open_to_strangers_by_accident(client: object) -> None:
    """Every view of ours asks for a login or is on the list of those that need none."""
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
    """Wrapped by a login decorator, or a REST view whose permissions ask for a user."""
    view_class = vars(callback).get("cls") or vars(callback).get("view_class")
    if view_class is not None and "permission_classes" in dir(view_class):
        return any(permission_class.__name__ == "IsAuthenticated" for permission_class in view_class.permission_classes)
    return _wrapped_by_login(callback)


def _wrapped_by_login(callback: object) -> bool:
    if "__wrapped__" not in vars(callback) or not isinstance(callback, FunctionType):
        return False
    return "test_func" in callback.__code__.co_freevars or _wrapped_by_login(vars(callback)["__wrapped__"])

"""Brings the database, the static files and the translations up to date, before anything serves them.

`python -m annotator.launch.prepare`; with the word `demo` it also seeds the demo project.
"""

import hashlib
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import django
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

from annotator.launch.compiled_translations import compile_translations

_DEMO_TASKS = Path(__file__).parents[1] / "management" / "demo" / "tasks.jsonl"
_TINY_SECONDS = 120


def main(words: list[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")
    django.setup()
    call_command("migrate", interactive=False, verbosity=0)
    call_command("adopt_artifacts", only_new=True)
    for folder in settings.LOCALE_PATHS:
        compile_translations(folder)
    collect_static()
    if "demo" in words:
        call_command("seed_demo")
        make_policy_base()


def make_policy_base() -> None:
    """Makes the demo's base policy where there is none, in a process of its own: torch must not stay in this one.

    Without the packages of `learning`, or when it fails, the demo goes without one.
    """
    from annotator.infrastructure.storage import store  # noqa: PLC0415  Django must be set up

    place = Path(settings.ARTIFACTS) / "policy-bases" / "demo-tiny"
    if not store.has(place) and find_spec("torch"):
        words = [sys.executable, "-m", "rewards.learning.aligning.tiny_base", str(place), str(_DEMO_TASKS)]
        subprocess.run(words, check=False, timeout=_TINY_SECONDS, cwd=settings.BASE_DIR)
        if place.exists():
            store.put(place)


def collect_static() -> None:
    """Collects and compresses the static files, only when a source has changed: it takes seconds."""
    stamp = Path(settings.STATIC_ROOT) / "collected"
    sources = fingerprint()
    if stamp.exists() and stamp.read_text() == sources:
        return
    call_command("collectstatic", interactive=False, clear=True, verbosity=0)
    # Last: a collection that was interrupted leaves no stamp and is done again.
    stamp.write_text(sources)


def fingerprint() -> str:
    """Returns a digest that changes with every static file that is added, removed or written."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list(ignore_patterns=None):
            status = Path(storage.path(name)).stat()
            digest.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


if __name__ == "__main__":
    main(sys.argv[1:])

"""Brings the database and the static files up to date, before anything serves them.

`python -m annotator.launch.prepare`; with the word `demo` it also seeds the demo project.
"""

import hashlib
import os
import sys
from pathlib import Path

import django
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command


def main(words: list[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")
    django.setup()
    call_command("migrate", interactive=False, verbosity=0)
    call_command("adopt_artifacts", only_new=True)
    collect_static()
    if "demo" in words:
        call_command("seed_demo")


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

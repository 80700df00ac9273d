"""Serves static files under names that contain their hash, and lets modules import each other by those names."""

from functools import cache
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.storage import ManifestFilesMixin, staticfiles_storage
from whitenoise.storage import CompressedManifestStaticFilesStorage


class ModuleStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # the package is untyped
    """Rewrites `import ... from "./name.js"` to hashed names, so that an open page never mixes old and new modules."""

    support_js_module_import_aggregation = True
    # Our own scripts only: some packages ship modules whose imports lead nowhere.
    _js_module_import_aggregation_patterns = (
        "js/*.js",
        CompressedManifestStaticFilesStorage._js_module_import_aggregation_patterns[1],
    )


def missing() -> list[str]:
    """Returns our files under `static` that pages cannot name here, because `prepare` has not collected them.

    Without it, or with those of an earlier version, every page fails on this host. None where names have no hashes.
    """
    if not isinstance(staticfiles_storage, ManifestFilesMixin):
        return []
    return [name for name in _ours() if name not in staticfiles_storage.hashed_files]


@cache
def _ours() -> list[str]:
    folders = [Path(folder) for folder in settings.STATICFILES_DIRS]
    return sorted(str(path.relative_to(folder)) for folder in folders for path in folder.rglob("*") if path.is_file())

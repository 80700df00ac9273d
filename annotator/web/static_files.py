"""Serves static files under names that contain their hash, and lets modules import each other by those names."""

from whitenoise.storage import CompressedManifestStaticFilesStorage


class ModuleStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # the package is untyped
    """Rewrites `import ... from "./name.js"` to hashed names, so that an open page never mixes old and new modules."""

    support_js_module_import_aggregation = True
    # Our own scripts only: some packages ship modules whose imports lead nowhere.
    _js_module_import_aggregation_patterns = (
        "js/*.js",
        CompressedManifestStaticFilesStorage._js_module_import_aggregation_patterns[1],
    )

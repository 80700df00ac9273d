"""Static files under names that carry their hash, and modules that import each other by them."""

from whitenoise.storage import CompressedManifestStaticFilesStorage


class ModuleStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # the package is untyped
    """Rewrites `import ... from "./name.js"`: an old page keeps its old modules, all of them."""

    support_js_module_import_aggregation = True
    # Our own scripts only: some packages ship modules whose imports lead nowhere.
    _js_module_import_aggregation_patterns = (
        "js/*.js",
        CompressedManifestStaticFilesStorage._js_module_import_aggregation_patterns[1],
    )

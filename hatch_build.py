"""Puts the compiled translations into the wheel; hatchling runs this."""

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledTranslations(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        # By its path: a package of ours asks for more than what builds a wheel has.
        program = runpy.run_path(str(root / "annotator" / "launch" / "compiled_translations.py"))
        for mo in program["compile_translations"](root / "locale"):
            build_data["force_include"][str(mo)] = f"annotator/shipped/{mo.relative_to(root)}"

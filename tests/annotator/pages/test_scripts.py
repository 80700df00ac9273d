"""The pages' JavaScript: modules that share nothing but what they export."""

import re
from pathlib import Path

import pytest
from django.conf import LazySettings, settings
from django.core.management import call_command

SCRIPTS = sorted((settings.BASE_DIR / "static" / "js").glob("*.js"))
PAGES = sorted((settings.BASE_DIR / "templates").rglob("*.html"))
GLOBAL = re.compile(r"\b(?:window|globalThis|self)(?:\.\w+|\[[^\]]+\])\s*(?:[-+*/?&|]{0,2}=)(?!=)")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_module_makes_no_global(script: Path) -> None:
    assert not GLOBAL.findall(script.read_text())


def test_an_assignment_to_a_global_is_seen() -> None:
    assert GLOBAL.search("window.kept = {}")
    assert GLOBAL.search('globalThis["kept"] ??= {}')
    assert not GLOBAL.search("if (window.kept === other) window.stop();")


def test_every_script_of_ours_is_loaded_as_a_module() -> None:
    tags = [tag for page in PAGES for tag in re.findall(r"<script[^>]*'js/[^>]*>", page.read_text())]
    assert len(tags) > 20
    assert [tag for tag in tags if 'type="module"' not in tag] == []


@pytest.mark.slow
def test_every_file_is_collected_and_a_module_imports_another_by_its_hashed_name(
    settings: LazySettings, tmp_path: Path
) -> None:
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {"BACKEND": "annotator.infrastructure.health.ModuleStorage"}
    }
    call_command("collectstatic", interactive=False, verbosity=0)
    (drafts,) = (tmp_path / "js").glob("drafts.????????????.js")
    (named,) = re.findall(r'from "\./(csrf\.\w{12}\.js)"', drafts.read_text())
    assert (tmp_path / "js" / named).exists()

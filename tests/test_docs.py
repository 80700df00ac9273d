"""The lists in the documentation match the product. Its links are checked where it is built, by `make check`."""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.urls import resolve

from annotator.api.projects import ProjectSerializer
from annotator.infrastructure.webhooks.events import EVENTS, TEST
from annotator.models import SkipReason, UnsafeCategory
from annotator.outputs.exporting.file_formats import FORMATS
from annotator.outputs.exporting.layouts import LAYOUTS
from rewards.api.scores import BETTER, WORSE
from rewards.learning.aligning.align_config import AlignConfig
from rewards.learning.config import TrainConfig
from tests.each import each

ROOT = Path(settings.BASE_DIR)
DOCS = ROOT / "docs"
NOT_SETTINGS = {"PATH", "DATABASE_DIR", "VENV", "PROMETHEUS_MULTIPROC_DIR"}
"""What `make run` sets for its own processes."""
NOT_ROOMS = {"__pycache__", "migrations"}
NOT_KEPT = {"build", "var"}
LONGEST = {
    "BENCHMARKS.md": 12_000,
    "CHANGELOG.md": 4_000,
    "README.md": 7_000,
    "docs/architecture.md": 15_000,
    "docs/rest.md": 10_000,
}
"""The bytes that a page may have: it says what holds today, and leaves reference to the schema and the docstrings."""
NOT_FOR_MANAGERS = {"snapshot", "backbone_source", "alphas"}


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text()


def first_cells(text: str) -> set[str]:
    """The names in backticks in the first column of every table."""
    return {name for line in text.splitlines() if line.startswith("| `") for name in codes(line.split("|")[1])}


def codes(text: str) -> list[str]:
    """The texts in single backticks, outside of code blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))


def variables_read() -> Iterator[str]:
    """The environment variables that the human half reads; names with HTTP_ are headers of a request."""
    asks = re.compile(r"""(?:environ\.get\(|environ\[|environment\.\w+\(\s*)["']([A-Z][A-Z_]+)["']""")
    for file in (ROOT / "annotator").rglob("*.py"):
        yield from (name for name in asks.findall(file.read_text()) if not name.startswith("HTTP_"))


def test_the_settings_page_has_every_variable_and_no_other() -> None:
    assert first_cells(page("settings")) == set(variables_read()) - NOT_SETTINGS


def test_the_commands_page_has_every_command() -> None:
    ours = {file.stem for file in ROOT.glob("*/management/commands/*.py")} - {"__init__"}
    listed = {name.split()[0] for name in first_cells(page("commands").split("## Make")[0])}
    assert listed == ours | {"createsuperuser"}


def test_the_training_page_has_every_setting() -> None:
    table = page("training").split("## Settings")[1].split("## Objectives")[0]
    assert first_cells(table) == {field.name for field in fields(TrainConfig)} - NOT_FOR_MANAGERS


def test_the_aligning_page_has_every_setting() -> None:
    table = page("aligning").split("## Settings")[1].split("## Asking for levels")[0]
    assert first_cells(table) == {field.name for field in fields(AlignConfig)}


def test_the_managing_page_has_every_setting_of_a_project() -> None:
    table = page("managing").split("## Settings of a project")[1].split("## Archiving")[0]
    assert first_cells(table) == {name for name, field in ProjectSerializer().fields.items() if not field.read_only}


def test_the_formats_page_has_every_export() -> None:
    export = page("formats").split("## Export")[1]
    assert first_cells(export) == set(LAYOUTS)
    assert set(FORMATS) <= set(codes(export))


def test_the_webhooks_page_has_every_event() -> None:
    assert first_cells(page("webhooks").split("## Events")[1].split("## Receiving")[0]) == {*EVENTS, TEST}


def test_the_rest_page_has_every_reason_to_skip_or_report() -> None:
    assert {*SkipReason.values, *UnsafeCategory.values} <= set(codes(page("rest")))


def test_contributing_names_files_and_names_that_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    files = {code for code in codes(text) if re.fullmatch(r"[.\w]+(/\w+)*/[\w.]*", code) and not code.startswith("/")}
    assert {"annotator/managing/preset_rubrics.py", "annotator/stages/importing/layouts/"} <= files
    assert [file for file in files - {".venv", "var/"} if not (ROOT / file).exists()] == []
    named = re.findall(r"`([A-Z_]{4,})`\s+(?:in|of)\s+`([\w/.]+)`", text)
    assert {"LAYOUTS", "STAGES", "LANGUAGES"} <= {name for name, _ in named}
    assert [name for name, file in named if not re.search(rf"^{name}\b", (ROOT / file).read_text(), re.MULTILINE)] == []


def test_functions_and_modules_are_as_short_as_contributing_says() -> None:
    size = re.search(
        r"none has more than\s(\d+)\.(?s:.*?)before it has more than (\d+)", (ROOT / "CONTRIBUTING.md").read_text()
    )
    assert size
    longest, long = (int(number) for number in size.groups())
    for half in ("annotator", "rewards", "rewardloop"):
        for file in (path for path in (ROOT / half).rglob("*.py") if "migrations" not in path.parts):
            source = file.read_text()
            assert len(source.splitlines()) <= long, file
            for part in ast.walk(ast.parse(source)):
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                    assert (part.end_lineno or 0) - part.lineno < longest, f"{file}: {part.name}"


def test_scripts_are_as_short_as_contributing_says() -> None:
    limit = re.search(r"stays under (\d+) lines", (ROOT / "CONTRIBUTING.md").read_text())
    assert limit
    lengths = {file.name: len(file.read_text().splitlines()) for file in (ROOT / "static" / "js").glob("*.js")}
    assert {name: length for name, length in lengths.items() if length >= int(limit[1])} == {}


def test_every_make_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)) | {"bench-"}
    targets |= {file.stem.replace("_", "-") for file in (ROOT / "benchmarks").glob("bench_*.py")}
    pages = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "BENCHMARKS.md")), *DOCS.glob("*.md")]
    named = {name for file in pages for name in re.findall(r"(?:`|^)make ([a-z-]+)", file.read_text(), re.MULTILINE)}
    assert named <= targets


def calls(text: str) -> Iterator[tuple[str, str]]:
    """Method and path of each call, whether in a sentence or in a curl command."""
    yield from re.findall(r"`(GET|POST|PUT|PATCH|DELETE) ([a-z][\w/-]*/)", text)
    for line in re.findall(r"^curl .*", text, re.MULTILINE):
        named = re.search(r"-X (\w+)", line)
        sends = " -d " in line or "--data" in line
        for path in re.findall(r"\$API/([\w/-]+/)", line):
            yield (named[1] if named else "POST" if sends else "GET"), path


@pytest.mark.parametrize("name", ["rest", "webhooks", "serving", "training"])
def test_every_call_that_a_page_names_exists(name: str) -> None:
    for method, path in each(calls(page(name).replace(" \\\n", " "))):
        address = "/api/v1/" + re.sub(r"\b(SLUG|PROJECT)\b", "demo", path).replace("ID", "1")
        view: Any = resolve(address).func
        assert hasattr(view.view_class, method.lower()), f"{method} {path}"


def test_every_table_says_what_one_of_its_rows_is() -> None:
    models = [model for half in ("annotator", "rewards") for model in apps.get_app_config(half).get_models()]
    # Django writes a docstring of its own, a list of the fields, where there is none.
    assert [model for model in models if not model.__doc__ or model.__doc__.startswith(f"{model.__name__}(")] == []


def test_every_constraint_of_the_architecture_page_exists() -> None:
    section = page("architecture").split("| constraint |")[1].split("\n## ")[0]
    files = [*ROOT.glob("*/migrations/*.py"), *ROOT.glob("**/triggers/*.sql")]
    made = "".join(file.read_text() for file in files)
    assert [name for name in first_cells(section) if name not in made] == []


@pytest.mark.parametrize("name", ["rest", "serving"])
def test_the_first_example_for_trainers_is_one_that_the_demos_model_gets_right(name: str) -> None:
    example = re.compile(r"/score/[^\n]*-d '(\{.*?\})'\n```\n\n```json\n(.*?)```", re.DOTALL)
    ((asked, answered),) = example.findall(page(name))
    assert [item["response"] for item in json.loads(asked)["items"]] == [BETTER, WORSE]
    better, worse = json.loads(answered)["results"]
    assert better["reward"] - worse["reward"] > better["uncertainty"] + worse["uncertainty"]


def folders_in_the_page() -> set[str]:
    """The tree of the architecture page as paths; indentation says which folder holds which."""
    tree = page("architecture").split("## The folders")[1].split("```text\n")[1].split("```")[0]
    headings, above = set(), ""
    for line in tree.splitlines():
        depth = len(line) - len(line.lstrip())
        named = re.findall(r"(\w+)/(?= |$)", line if depth == 0 else re.split(" {2,}", line.strip())[0])
        if depth == 0:
            above = named[0]
            headings |= set(named)
        elif depth == 2:
            headings |= {f"{above}/{name}" for name in named}
    return headings


def folders_there() -> set[str]:
    tops = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "_"))}
    rooms = [path for half in ("annotator", "rewards") for path in (ROOT / half).iterdir() if path.is_dir()]
    return tops - NOT_KEPT | {f"{room.parent.name}/{room.name}" for room in rooms if room.name not in NOT_ROOMS}


def test_the_architecture_page_has_the_folders_that_exist() -> None:
    assert folders_in_the_page() == folders_there()


@pytest.mark.parametrize(("name", "most"), LONGEST.items())
def test_a_page_stays_short(name: str, most: int) -> None:
    assert (ROOT / name).stat().st_size <= most


def test_the_links_of_the_readme_lead_somewhere() -> None:
    readme = (ROOT / "README.md").read_text()
    linked = {target.split("#")[0] for target in re.findall(r"\]\(([^)]+)\)", readme) if "://" not in target}
    assert [target for target in linked if not (ROOT / target).exists()] == []

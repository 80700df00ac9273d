"""The pages on file formats: what they show goes in as it stands, and what they say leaves does leave."""

import json
import re
from io import BytesIO
from pathlib import Path

import pytest

from annotator.models import Project
from annotator.outputs.exporting.export_rows import export
from annotator.stages.importing import import_rows
from tests.annotator.segmented import make_segmented_project
from tests.builders import NOW
from tests.servers import ROOT

FOLDER = ROOT / "docs" / "formats"
PAGES = sorted(FOLDER.glob("*.md"))
LAYOUTS = {
    "argilla": {"argilla"},
    "comparisons": {"comparisons"},
    "completions": {"completions"},
    "helpsteer2": {"helpsteer2"},
    "helpsteer3": {"helpsteer3"},
    "label-studio": {"label_studio"},
    "pairs": {"pairs"},
    "potato": {"tasks", "potato"},
    "score-tables": {"tasks", "ratings"},
    "segments": {"tasks", "helpsteer2", "stepwise", "segments"},
    "spans": {"spans"},
    "tasks": {"tasks"},
}
"""The layouts that the examples of each page are recognised as."""


def files(part: str) -> list[bytes]:
    return [text.encode() for text in re.findall(r"```(?:json|text)\n(.*?)```", part, re.DOTALL)]


def parts_of(page: Path) -> dict[str, str]:
    """The parts of a page by their headings."""
    _, *parts = re.split(r"^## ", page.read_text(), flags=re.MULTILINE)
    return {part.partition("\n")[0]: part for part in parts}


def test_every_format_has_a_page() -> None:
    assert {page.stem for page in PAGES} == set(LAYOUTS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_goes_in(project: Project, page: Path) -> None:
    layouts = set()
    if page.stem == "segments":
        project = make_segmented_project("segmented")
    for file in files(parts_of(page)["In"]):
        result = import_rows(project, BytesIO(file), now=NOW)
        assert result.rejected == []
        layouts |= result.layouts
    assert layouts == LAYOUTS[page.stem]


OUT = [(page, heading) for page in PAGES for heading in parts_of(page) if heading.startswith("Out: ")]


@pytest.mark.parametrize(("page", "heading"), OUT, ids=lambda value: getattr(value, "stem", value))
def test_what_a_page_says_leaves_does(project: Project, page: Path, heading: str) -> None:
    parts = parts_of(page)
    for file in files(parts["In"]):
        import_rows(project, BytesIO(file), now=NOW)
    layout = heading.split("`")[1]
    written = b"".join(export(project, layout=layout, format="jsonl")).splitlines()
    (shown,) = files(parts[heading])
    assert [json.loads(line) for line in written] == [json.loads(line) for line in shown.splitlines()]

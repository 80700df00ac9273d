"""Texts that a spreadsheet would compute: they leave as text, and come back as they were."""

import csv
import io
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from annotator.infrastructure.spreadsheets import cell_of_text, csv_lines, text_of_cell
from annotator.models import Project, Response
from annotator.outputs.exporting.export_rows import export
from annotator.stages.importing import import_rows
from annotator.stages.importing.sources import read_rows
from rewards.evaluation import comparison
from tests.annotator.models.test_constraints import make_model
from tests.builders import NOW, imported, label_row, make_task, rate
from tests.conftest import Cast
from tests.rewards.evaluated import make_evaluation

FORMULAS = ["=1+1", "+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''+1"]
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def cells(project: Project, layout: str = "helpsteer2") -> list[dict[str, str]]:
    text = b"".join(export(project, layout=layout, format="csv")).decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("text", FORMULAS)
def test_no_text_of_an_export_is_computed(project: Project, text: str) -> None:
    imported(project, label_row(text, text))
    (row,) = cells(project)
    assert row["prompt"] == row["response"] == f"'{text}"


def test_no_justification_is_computed_and_numbers_stay_numbers(project: Project, cast: Cast) -> None:
    make_task(project)
    rate(project, cast.alice, justification="=HYPERLINK(1)", preference=-2)
    rows = cells(project, "annotations")
    assert {row["justification"] for row in rows} == {"'=HYPERLINK(1)"}
    assert {row["preference"] for row in rows} <= {"-2", "2"}


def test_no_name_in_a_comparison_is_computed(project: Project) -> None:
    make_evaluation(make_model(project, 1), name="=1+1")
    text = b"".join(csv_lines(comparison.rows_of(project), comparison.COLUMNS)).decode()
    assert {row["evaluation"] for row in csv.DictReader(io.StringIO(text))} == {"'=1+1"}


@given(TEXTS)
@example("'=1")
def test_a_cell_is_never_a_formula_and_reads_back_as_the_text(text: str) -> None:
    assert not cell_of_text(text).startswith(STARTS_A_FORMULA)
    assert text_of_cell(cell_of_text(text)) == text


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_our_import_reads_the_texts_of_our_csv(pairs: list[tuple[str, str]]) -> None:
    rows: list[dict[str, Any]] = [{"prompt": prompt, "response": response} for prompt, response in pairs]
    file = io.BytesIO(b"".join(csv_lines(rows, ["prompt", "response"])))
    assert [row.values for row in read_rows(file)] == rows


@pytest.mark.parametrize("text", FORMULAS)
def test_an_exported_csv_imported_again_changes_nothing(project: Project, text: str) -> None:
    imported(project, label_row("p", text))
    data = b"".join(export(project, layout="helpsteer2", format="csv"))
    result = import_rows(project, io.BytesIO(data), now=NOW)
    assert (result.created, result.existing, result.rejected) == (0, 1, [])
    assert Response.objects.get().text == text

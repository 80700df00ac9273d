"""Versions side by side: what is compared with what, and which value is the best."""

import csv
import io

import numpy as np
import pytest

from annotator.infrastructure.spreadsheets import csv_lines
from annotator.models import Project
from rewards.evaluation.comparison import COLUMNS, ComparisonLine, compare, groups_of, lines_of, rows_of
from rewards.learning.metrics import attribute_measures
from rewards.pages import pages
from tests.annotator.models.test_constraints import make_model
from tests.rewards.evaluated import HASH, benchmark_metrics, make_evaluation, snapshot_metrics


def line(lines: list[ComparisonLine], *path: str, measure: str) -> ComparisonLine:
    return next(candidate for candidate in lines if (candidate.path, candidate.measure) == (path, measure))


def test_a_lower_error_and_a_higher_accuracy_are_best() -> None:
    lines = lines_of([snapshot_metrics(0.9, accuracy=0.7), snapshot_metrics(0.8, accuracy=0.6)], ["helpfulness"])
    assert [cell and cell.best for cell in line(lines, measure="rmse").cells] == [False, True]
    assert [cell and cell.best for cell in line(lines, "pairwise", measure="accuracy").cells] == [True, False]


def test_one_version_alone_is_the_best_of_nothing() -> None:
    (cell,) = line(lines_of([snapshot_metrics(0.9)], []), measure="rmse").cells
    assert cell
    assert not cell.best


def test_where_all_are_equal_none_is_best() -> None:
    lines = lines_of([snapshot_metrics(0.9), snapshot_metrics(0.9)], [])
    assert not any(cell and cell.best for cell in line(lines, measure="rmse").cells)


def best_of(measure: str, *values: float) -> list[bool | None]:
    (line,) = lines_of([{measure: value} for value in values], [])
    return [cell.best if cell else None for cell in line.cells]


def test_what_is_shown_alike_is_alike() -> None:
    assert best_of("rmse", 0.81234, 0.81231) == [False, False]
    assert best_of("rmse", 0.81234, 0.81231, 0.9) == [True, True, False]


@pytest.mark.parametrize("measure", ["spearman", "qwk"])
def test_no_better_than_chance_is_never_the_best(measure: str) -> None:
    assert best_of(measure, 0.0, -0.2) == [False, False]
    assert best_of(measure, 0.0, 0.2) == [False, True]


def test_what_has_an_order_of_its_own_keeps_it() -> None:
    parts = {name: {"n": 1, "rmse": 1.0} for name in ("long", "medium", "short")}
    lines = lines_of([{"slices": {"length": parts, "model": {"b": {"rmse": 1.0}, "a": {"rmse": 1.0}}}}], [])
    assert [line.path[-1] for line in lines] == ["short", "medium", "long", "a", "b"]


def test_a_part_without_rows_is_empty() -> None:
    (line,) = lines_of([{"slices": {"turns": {"multi": {"pairs": 0, "accuracy": None}}}}], [])
    assert line.is_empty


def test_what_people_reach_is_no_contest() -> None:
    lines = lines_of([snapshot_metrics(0.9), snapshot_metrics(0.8)], [])
    assert not any(cell and cell.best for cell in line(lines, "human", "helpfulness", measure="rmse").cells)


def test_calibration_stands_with_what_it_calibrates() -> None:
    lines = lines_of([snapshot_metrics(0.9)], [])
    assert line(lines, "attributes", "helpfulness", measure="slope").cells[0]
    assert line(lines, "pairwise", measure="ece").cells[0]


def test_what_is_missing_has_its_reason_and_a_measure_that_one_lacks_a_gap() -> None:
    lines = lines_of([benchmark_metrics(0.5), {}], [])
    first, second = line(lines, "overall", measure="accuracy").cells
    assert first
    assert (first.value.value, first.value.reason) == (None, "Math has 1 of 183 rows")
    assert second is None


def test_the_page_has_words_for_every_reason_of_a_missing_correlation() -> None:
    same, different = np.array([1.0, 1.0]), np.array([1.0, 2.0])
    sides = ((same, different), (different, same))
    assert [attribute_measures(*side, mean=1.0)["reason"] for side in sides] == list(pages.REASONS)


def test_whole_measures_come_before_those_of_parts() -> None:
    paths = [line.path for line in lines_of([snapshot_metrics(0.9)], ["helpfulness"])]
    assert paths[0] == ()
    assert paths[-1][0] == "slices"


def test_only_what_was_judged_on_the_same_data_is_compared(project: Project) -> None:
    first, second = make_model(project, 1), make_model(project, 2)
    for model, data_hash in ((first, HASH), (second, HASH), (second, "1" * 64)):
        make_evaluation(model, data_hash=data_hash)
    assert [
        evaluation.reward_model.version
        for evaluation in compare(project, name="validation", data_hash=HASH).evaluations
    ] == [
        1,
        2,
    ]
    assert {group.data_hash: group.versions for group in groups_of(project)} == {HASH: 2, "1" * 64: 1}


def test_the_champion_stays_in_sight_among_many_versions(project: Project) -> None:
    models = [make_model(project, version, is_champion=version == 1) for version in range(1, 13)]
    for model in models:
        make_evaluation(model)
    shown = compare(project, name="validation", data_hash=HASH).evaluations
    assert [evaluation.reward_model.version for evaluation in shown] == [1, *range(6, 13)]


def test_the_rows_to_take_away_name_version_and_interval(project: Project) -> None:
    make_evaluation(make_model(project, 1), rmse=0.9)
    row = next(line for line in rows_of(project) if line["measure"] == "rmse" and line["part"] == "")
    assert (row["version"], row["value"], row["low"], row["high"], row["n"]) == (1, 0.9, 0.8, 1.0, 16)


def test_the_csv_holds_a_line_for_each_row(project: Project) -> None:
    make_evaluation(make_model(project, 1))
    text = b"".join(csv_lines(rows_of(project), COLUMNS)).decode()
    assert len(list(csv.DictReader(io.StringIO(text)))) == len(list(rows_of(project)))


def test_a_model_that_scores_segments_has_headings_for_them(project: Project) -> None:
    worst = {"all": {"accuracy": 0.5, "responses": 4, "position": {"share": 0.0, "accuracy": 0.4}}}
    segments = {"aspects": {"clarity": {"n": 8, "rmse": 0.7}}, "rmse": 0.8, "n": 8, "worst": worst}
    lines = lines_of([{**snapshot_metrics(0.9), "segments": segments}], ["helpfulness"])
    titles = [section.title for section in pages._sections(lines, {"clarity": "Clarity"})]
    assert {"Segments", "Segments: Clarity", "The worst segment of a response"} <= set(titles)

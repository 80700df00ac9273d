"""What annotators mark when they skip a task for personal information."""

import pytest

from annotator.models import PiiSpan, Project, Skip, Task
from annotator.stages import annotation
from annotator.stages.annotation import undo_skip
from annotator.stages.pii.quotations import MarksWithoutReason, NotInTheText
from annotator.stages.pii.scans import scan
from annotator.stages.pii.texts import occurrences, text_at, texts_of
from tests.annotator.stages.pii.test_scans import finds_first_letters
from tests.builders import NOW, claimed, make_task
from tests.conftest import Cast


def marks(task: Task) -> list[tuple[int | None, str, str]]:
    texts = texts_of(task)
    spans = task.pii_spans.filter(source="annotator").in_order()
    return [(span.turn, span.kind, text_at(span, texts)) for span in spans]


def test_every_occurrence_of_a_quote_is_marked(project: Project, cast: Cast) -> None:
    task = make_task(project, prompt="I am Ola Nord. Ola  Nord!")
    annotation.skip(claimed(project, cast.alice).pk, reason="pii", quotes=["ola nord"], now=NOW)
    assert marks(task) == [(0, "other", "Ola Nord"), (0, "other", "Ola  Nord")]
    assert {span.marked_by for span in PiiSpan.objects.all()} == {cast.alice}


def test_a_detected_span_is_confirmed_with_its_kind(project: Project, cast: Cast) -> None:
    task = make_task(project, prompt="X and X")
    scan(finds_first_letters, now=NOW)
    span = task.pii_spans.get(turn=0)
    annotation.skip(claimed(project, cast.alice).pk, reason="pii", spans=[span.pk], now=NOW)
    assert marks(task) == [(0, "other", "X"), (0, "other", "X")]


def test_a_quote_that_is_nowhere_is_refused_and_nothing_happens(project: Project, cast: Cast) -> None:
    task = make_task(project)
    with pytest.raises(NotInTheText, match="“Ola” is not in the text"):
        annotation.skip(claimed(project, cast.alice).pk, reason="pii", quotes=["Ola"], now=NOW)
    task.refresh_from_db()
    assert (task.state, Skip.objects.count()) == (Task.State.OPEN, 0)


def test_marks_beside_another_reason_are_refused(project: Project, cast: Cast) -> None:
    make_task(project, prompt="Ola")
    with pytest.raises(MarksWithoutReason):
        annotation.skip(claimed(project, cast.alice).pk, reason="other", quotes=["Ola"], now=NOW)


def test_an_undone_skip_takes_its_marks_along(project: Project, cast: Cast) -> None:
    make_task(project, prompt="Ola")
    held = claimed(project, cast.alice)
    annotation.skip(held.pk, reason="pii", quotes=["Ola"], now=NOW)
    undo_skip(held.pk, now=NOW)
    assert not PiiSpan.objects.exists()


def test_a_span_of_another_task_is_not_taken(project: Project, cast: Cast) -> None:
    one, other = make_task(project, "one"), make_task(project, "two")
    scan(finds_first_letters, now=NOW)
    strange = other.pii_spans.first()
    assert strange
    annotation.skip(claimed(project, cast.alice).pk, reason="pii", spans=[strange.pk], now=NOW)
    assert marks(one) == marks(other) == []


@pytest.mark.parametrize(
    ("quote", "text", "places"),
    [
        ("Ann", "Annual Ann", [(7, 10)]),
        ("王小明", "我是王小明先生", [(2, 5)]),
        ("Ola Nord", "**Ola** Nord", [(2, 12)]),
        ("a.b", "axb a.b", [(4, 7)]),
        ("Ola", "Lola", [(1, 4)]),
        ("12 Long Street", "12 Long\n  Street", [(0, 16)]),
    ],
)
def test_where_a_quote_stands(quote: str, text: str, places: list[tuple[int, int]]) -> None:
    assert list(occurrences(quote, text)) == places

"""The words of texts: taken in the background, gone at once when a text changes or a task is deleted."""

import pytest
from django.db import connection

from annotator.models import Project, Response, StaleWords, Task, TaskWords
from annotator.reading.search.word_index import LONGEST_RESPONSE, take_words, waiting
from annotator.stages.pii.redaction import Choice, redact
from tests.builders import NOW, imported, make_task, task_row


@pytest.fixture
def task(project: Project) -> Task:
    made = make_task(project, "t-1", prompt="Where is Oslo?")
    take_words()
    return made


def found(word: str) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.external_id FROM annotator_taskwords w JOIN annotator_task t ON t.id = w.task_id "
            "WHERE w.words @@ websearch_to_tsquery('simple', %s)",
            [word],
        )
        return {row[0] for row in cursor.fetchall()}


def test_a_new_task_waits_until_its_words_are_taken(project: Project) -> None:
    make_task(project)
    assert waiting()
    assert not TaskWords.objects.exists()
    assert take_words() == 1
    assert not waiting()


def test_a_task_is_found_by_its_prompt_its_responses_and_its_id(task: Task) -> None:
    assert found("oslo") == found("answer") == found("t-1") == {"t-1"}
    assert found("bergen") == set()


def test_a_redacted_word_is_gone_at_once_and_the_rest_comes_back(task: Task) -> None:
    Task.objects.update(state=Task.State.QUARANTINED)
    redact(task.pk, Choice(quotes=["Oslo"]), now=NOW)
    assert found("oslo") == found("where") == set()
    take_words()
    assert found("oslo") == set()
    assert found("where") == {"t-1"}


def test_a_changed_response_is_read_again(task: Task) -> None:
    Response.objects.update(text="Bergen, rather.")
    assert found("answer") == set()
    take_words()
    assert found("bergen") == {"t-1"}


def test_the_words_of_a_deleted_task_are_deleted(task: Task) -> None:
    Task.objects.all().delete()
    assert not TaskWords.objects.exists()


def test_a_task_that_is_gone_before_its_turn_is_passed_over(project: Project) -> None:
    make_task(project)
    Task.objects.all().delete()
    assert take_words() == 1
    assert not StaleWords.objects.exists()


def test_other_changes_of_a_task_leave_its_words_alone(task: Task) -> None:
    Task.objects.update(priority=3, state=Task.State.RETIRED)
    Response.objects.update(external_id="x")
    assert not waiting()
    assert found("oslo") == {"t-1"}


@pytest.mark.parametrize(
    "text",
    [
        " ".join(chr(0x10000 + number) for number in range(300_000)),
        " ".join(f"{number:x}" for number in range(200_000)),
        "-".join("ab" for _ in range(300_000)),
        " ".join(f"http://{number}.example.org/{number}" for number in range(30_000)),
        "😀" * 900_000,
        "x" * 1_000_000,
    ],
)
def test_texts_of_a_megabyte_break_nothing(project: Project, text: str) -> None:
    row = task_row("long", prompt=text)
    row["responses"] = [{"text": f"{number} {text}"} for number in range(6)]
    imported(project, task_row("long", prompt="short"))
    Task.objects.update(conversation=row["messages"])
    for response, longer in zip(Response.objects.order_by("position"), row["responses"], strict=False):
        Response.objects.filter(pk=response.pk).update(text=longer["text"])
    assert take_words() > 0
    assert TaskWords.objects.count() == 1


def test_the_end_of_a_very_long_response_is_not_found(project: Project) -> None:
    make_task(project, "t-1")
    Response.objects.update(text="a " * LONGEST_RESPONSE + "zebra")
    take_words()
    assert found("zebra") == set()

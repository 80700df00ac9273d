"""Scores carry the words of the response for which they were given: checked, stored, moved, sent and exported."""

import json
from io import BytesIO
from time import process_time
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from rest_framework.test import APIClient

from annotator.models import Draft, Project, Rating, Response, Task
from annotator.outputs.exporting.export_rows import export
from annotator.outputs.exporting.filters import Filters
from annotator.outputs.exporting.layouts import LAYOUTS
from annotator.stages.annotation import IncompleteRating, ResponseRating, Submission, save_draft, submit
from annotator.stages.annotation.quoted_words import Letters
from annotator.stages.importing import import_rows
from annotator.stages.pii.redaction import Choice, redact
from annotator.stages.review import judge
from annotator.stages.segmenting import Range
from rewards.snapshots.evidence import scored_by_evidence
from tests.builders import ATTRIBUTES, NOW, claimed, imported, make_project, make_task
from tests.conftest import Cast

pytestmark = pytest.mark.django_db
TEXT = "Call Ola Nord at once. It always rains."
FIRST = ("helpfulness", TEXT.index("at once"), TEXT.index("at once") + 7, "Too late.")


@pytest.fixture
def task(project: Project) -> Task:
    made = make_task(project, responses=1)
    made.responses.update(text=TEXT)
    return made


def rated(task: Task, *evidence: tuple[str, int, int, str]) -> Submission:
    scores = dict.fromkeys(ATTRIBUTES, 3)
    return Submission({one.pk: ResponseRating(scores, evidence=evidence) for one in task.responses.all()})


def test_it_is_stored_and_another_evidence_is_a_revision(project: Project, cast: Cast, task: Task) -> None:
    held = claimed(project, cast.alice)
    first, same, other = (submit(held.pk, rated(task, *given), now=NOW) for given in ([FIRST], [FIRST], []))
    assert first.annotation.pk == same.annotation.pk != other.annotation.pk
    assert Rating.objects.get(annotation=first.annotation).evidence == [list(FIRST)]


@pytest.mark.parametrize(
    ("evidence", "says"),
    [
        (("taste", 0, 4, ""), "not an attribute"),
        (("helpfulness", 4, 4, ""), "characters 4 to 4"),
        (("helpfulness", -1, 4, ""), "characters -1 to 4"),
        (("helpfulness", 0, len(TEXT) + 1, ""), f"of a text that has {len(TEXT)}"),
        (("helpfulness", 0, 4, "x" * 5_001), "more than 5000 characters"),
        (("helpfulness", 0, 4, "a\0b"), "cannot be stored"),
    ],
)
def test_what_does_not_fit_is_refused(
    project: Project, cast: Cast, task: Task, evidence: tuple[str, int, int, str], says: str
) -> None:
    with pytest.raises(IncompleteRating, match=says):
        submit(claimed(project, cast.alice).pk, rated(task, evidence), now=NOW)


def test_too_many_are_refused(project: Project, cast: Cast, task: Task) -> None:
    with pytest.raises(IncompleteRating, match="at most 20"):
        submit(claimed(project, cast.alice).pk, rated(task, *[FIRST] * 21), now=NOW)


@transaction.atomic
def write_past_all_checks(evidence: list[Any]) -> None:
    Rating.objects.update(evidence=evidence)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def test_the_database_holds_none_outside_the_text(project: Project, cast: Cast, task: Task) -> None:
    submit(claimed(project, cast.alice).pk, rated(task, FIRST), now=NOW)
    for start, end in ((-1, 3), (3, 3), (0, len(TEXT) + 1)):
        with pytest.raises(DatabaseError, match="outside the text"):
            write_past_all_checks([["helpfulness", start, end, ""]])


def test_rest_takes_and_gives_it(project: Project, cast: Cast, task: Task) -> None:
    alice = APIClient()
    alice.force_authenticate(cast.alice)
    address = f"/api/v1/assignments/{claimed(project, cast.alice).pk}/annotation/"
    [response] = task.responses.all()
    one = dict(zip(("attribute", "start", "end", "note"), FIRST, strict=True))
    body: dict[str, Any] = {"ratings": [{"response": response.public_id, "scores": dict.fromkeys(ATTRIBUTES, 3)}]}
    for wrong in ("x", [{"attribute": "helpfulness"}], [one | {"start": "3"}], [one | {"more": 1}], [one] * 21):
        body["ratings"][0]["evidence"] = wrong
        assert alice.put(address, body, format="json").status_code == 400
    body["ratings"][0]["evidence"] = [one]
    assert alice.put(address, body, format="json").status_code == 201
    carol = APIClient()
    carol.force_authenticate(cast.carol)
    [rater] = carol.get(f"/api/v1/review/{task.public_id}/").json()["raters"]
    assert rater["ratings"][0]["evidence"] == [one]


def test_the_page_finds_the_words_in_the_source(project: Project, cast: Cast, task: Task, client: Client) -> None:
    Response.objects.update(text="Rain.\n\nIt **always**\nrains. It always rains.")
    client.force_login(cast.alice)
    held = claimed(project, cast.alice)
    [response] = task.responses.all()
    form = {f"{key}-{response.public_id}": "3" for key in ATTRIBUTES}
    name = f"evidence-{response.public_id}"

    def sent(value: str) -> int:
        return client.post(f"/assignments/{held.pk}/submit/", form | {name: value}).status_code

    for wrong in (
        *("{", "[1]", "5", "[null]", '[{"attribute": "helpfulness", "quote": "rains", "nth": Infinity}]'),
        json.dumps([{"attribute": "helpfulness", "quote": "rains"}] * 21),
        *('[{"quote": "rains"}]', '[{"attribute": "helpfulness"}]'),
        *('[{"attribute": "helpfulness", "quote": "snow"}]', '[{"attribute": "taste", "quote": "rains"}]'),
    ):
        assert sent(wrong) == 422, wrong
    quotes = [{"attribute": "helpfulness", "quote": "always rains", "nth": nth, "of": 2} for nth in (0, 1)]
    assert sent(json.dumps(quotes)) in {200, 302}
    found = [response.text[start:end] for _key, start, end, _note in Rating.objects.get().evidence]
    assert found == ["always**\nrains", "always rains"]


def test_a_redaction_moves_it_and_erases_its_note(project: Project, cast: Cast, task: Task) -> None:
    held = claimed(project, cast.alice)
    inside = ("verbosity", TEXT.index("Ola"), TEXT.index("Ola") + 8, "")
    submit(held.pk, rated(task, (*FIRST[:3], "As Ola Nord says."), inside), now=NOW)
    task.state = Task.State.QUARANTINED
    task.save()
    redact(task.pk, Choice(quotes=["Ola Nord"]), now=NOW)
    [rating], text = Rating.objects.all(), Response.objects.get().text
    assert "Ola" not in str(rating.evidence) + text
    key, start, end, _note = rating.evidence[0]
    assert (key, text[start:end]) == ("helpfulness", "at once")


def test_the_export_names_it(project: Project, cast: Cast, task: Task) -> None:
    submit(claimed(project, cast.alice).pk, rated(task, FIRST), now=NOW)
    submit(claimed(project, cast.bob).pk, rated(task), now=NOW)
    lines = b"".join(export(project, layout="annotations", format="jsonl")).splitlines()
    one = dict(zip(("attribute", "start", "end", "note"), FIRST, strict=True))
    assert [json.loads(line)["evidence"] for line in lines] == [[one], []]
    for format in ("csv", "parquet", "json"):
        assert b"".join(export(project, layout="annotations", format=format))


def test_the_layout_of_spans_comes_back_as_tasks(project: Project, cast: Cast, task: Task) -> None:
    second = ("verbosity", 0, 4, "")
    submit(claimed(project, cast.alice).pk, rated(task, FIRST, second), now=NOW)
    submit(claimed(project, cast.bob).pk, rated(task, second), now=NOW)
    [line] = b"".join(export(project, layout="spans", format="jsonl")).splitlines()
    row = json.loads(line)
    assert [(span["aspect"], span["text"], span["score"]) for span in row["spans"]] == [
        ("helpfulness", "at once", 3),
        ("verbosity", "Call", 3),
        ("verbosity", "Call", 3),
    ]
    assert LAYOUTS["spans"].count(project, Filters()) == 1
    copy = make_project("copy")
    import_rows(copy, BytesIO(line), now=NOW)
    [response] = Response.objects.filter(task__project=copy)
    assert (response.text, response.metadata["spans"]) == (TEXT, row["spans"])


def test_a_rating_that_does_not_count_has_no_spans(project: Project, cast: Cast, task: Task) -> None:
    made = submit(claimed(project, cast.alice).pk, rated(task, FIRST), now=NOW).annotation
    judge(made.assignment_id, decision="rejected", comment="No.", by=cast.carol, now=NOW)
    assert b"".join(export(project, layout="spans", format="jsonl")) == b""
    assert LAYOUTS["spans"].count(project, Filters()) == 0


@pytest.mark.parametrize(
    ("text", "quote", "after"),
    [
        ("See [the docs](https://example.org/not/this) first. It is not slow. It is not safe.", "not", "safe"),
        ("# Is\n\n1. It is ok.\n2. It is ok.\n3. It is ok.", "is", None),
        ("A brainy brain and rain, rainy rain.", "rain", None),
        ("It _rains_ here. It rains there.", "rains", None),
        ("It is un**believ**able, \\*truly\\*.", "unbelievable, *truly*", None),
        ("- one\n- two", "one two", None),
        ("\U0001f600\U0001f600 no no no", "no", None),
    ],
)
def test_each_place_of_the_words_is_told_from_the_others(text: str, quote: str, after: str | None) -> None:
    letters = Letters(text)
    found = letters.found(quote)
    if after:
        start, end = letters.range_of(quote, nth=1, of=2, share=0.1, after=after) or (0, 0)
        assert (text[start:end], start) == (quote, text.rindex(quote)), "the source has more such places than the page"
        return
    ranges = [letters.range_of(quote, nth=nth, of=len(found), share=0) or (0, 0) for nth in range(len(found))]
    assert ranges == sorted(set(ranges))
    for start, end in ranges:
        again = letters.selection(text[start:end], start)
        assert letters.range_of(**again) == (start, end)


def test_many_places_in_a_long_text_are_found_at_once() -> None:
    text = "the cat and the dog. " * 20_000
    began = process_time()
    letters = Letters(text)
    for nth in range(20):
        assert letters.range_of("the", nth=nth, of=40_000, share=0)
    assert process_time() - began < 5


def test_words_that_are_too_many_are_refused(project: Project, cast: Cast, task: Task) -> None:
    Response.objects.update(text="word " * 300)
    with pytest.raises(IncompleteRating, match="at most 1000 are stored"):
        submit(claimed(project, cast.alice).pk, rated(task, ("helpfulness", 0, 1_001, "")), now=NOW)


def test_a_redaction_takes_selected_words_from_drafts(project: Project, cast: Cast, task: Task) -> None:
    held = claimed(project, cast.alice)
    [response] = task.responses.all()
    save_draft(held.pk, {f"evidence-{response.public_id}": '[{"quote": "Call Ola"}]', "justification": "So."}, now=NOW)
    task.state = Task.State.QUARANTINED
    task.save()
    redact(task.pk, Choice(quotes=["Ola Nord"]), now=NOW)
    assert Draft.objects.get().form == {"justification": "So."}


def test_the_export_of_annotations_brings_it_back(project: Project, cast: Cast, task: Task) -> None:
    submit(claimed(project, cast.alice).pk, rated(task, FIRST, ("verbosity", 0, 4, "")), now=NOW)
    copy = make_project("copy")
    imported(copy, {"id": task.external_id, "prompt": "Hello?", "responses": [TEXT]})
    line = b"".join(export(project, layout="annotations", format="jsonl"))
    assert imported_rows(copy, line) == ([], 1)
    assert imported_rows(copy, line) == ([], 0)
    [rating] = Rating.objects.filter(response__task__project=copy)
    assert rating.evidence == [list(FIRST), ["verbosity", 0, 4, ""]]
    without = json.dumps(json.loads(line) | {"evidence": []}).encode()
    [[refused], added] = imported_rows(copy, without)
    assert ("other ratings by its imported raters" in refused, added) == (True, 0)


def test_what_was_imported_without_evidence_gets_it_later(project: Project, task: Task) -> None:
    one = dict(zip(("attribute", "start", "end", "note"), FIRST, strict=True))
    row = {"task": task.external_id, "response": "1", "annotator": "a", "position": 0, "evidence": []}
    row["scores"] = dict.fromkeys(ATTRIBUTES, 3)
    assert imported_rows(project, json.dumps(row).encode()) == ([], 1)
    for _ in range(2):
        assert imported_rows(project, json.dumps(row | {"evidence": [one]}).encode()) == ([], 0)
        assert Rating.objects.get().evidence == [list(FIRST)]
    other = json.dumps(row | {"evidence": [one | {"note": "Other."}]}).encode()
    [[refused], added] = imported_rows(project, other)
    assert ("other ratings by its imported raters" in refused, added) == (True, 0)


def test_two_rows_of_one_person_must_not_contradict_each_other(project: Project, task: Task) -> None:
    one = dict(zip(("attribute", "start", "end", "note"), FIRST, strict=True))
    row = {"task": task.external_id, "response": "1", "annotator": "a", "position": 0}
    row["scores"] = dict.fromkeys(ATTRIBUTES, 3)
    lines = [json.dumps(row | {"evidence": [one | {"note": note}]}) for note in ("So.", "Not so.")]
    [[refused], added] = imported_rows(project, "\n".join(lines).encode())
    assert ("two rows give different evidence of response 1" in refused, added) == (True, 0)


@pytest.mark.parametrize(
    ("evidence", "says"),
    [
        (
            [{"attribute": "helpfulness", "start": 0, "end": len(TEXT) + 1, "note": ""}],
            f"of a text that has {len(TEXT)}",
        ),
        ([{"attribute": "helpfulness", "start": 0, "end": 4}] * 21, "at most 20"),
        ([{"attribute": "helpfulness", "start": 0, "end": 4, "note": "a\0b"}], "cannot be stored"),
        ([{"attribute": "helpfulness", "start": "0", "end": 4}], "must be a list of objects"),
        ([{"attribute": "helpfulness", "start": True, "end": 4}], "must be a list of objects"),
        ({"attribute": "helpfulness"}, "must be a list of objects"),
        ("[", "must be a list of objects"),
        (7, "must be a list of objects"),
        ([[]], "must be a list of objects"),
    ],
)
def test_an_import_refuses_what_does_not_fit(project: Project, task: Task, evidence: Any, says: str) -> None:
    row = {"task": task.external_id, "response": "1", "annotator": "a", "position": 0, "evidence": evidence}
    line = json.dumps(row | {"scores": dict.fromkeys(ATTRIBUTES, 3)}).encode()
    [[refused], added] = imported_rows(project, line)
    assert says in refused
    assert (added, Rating.objects.count()) == (0, 0)


def imported_rows(project: Project, line: bytes) -> tuple[list[str], int]:
    """Imports a line; returns the refusals and the number of raters whose answers were added."""
    result = import_rows(project, BytesIO(line), now=NOW)
    return [one.error for one in result.rejected], result.ratings_added


ONE, OTHER = "It is right. ", "It is wrong."


@pytest.mark.parametrize(
    ("ratings", "cut", "scores"),
    [
        ([({"a": 4}, [("a", 0, 12)])], [(0, 13), (13, 25)], [[4.0, None], [None, None]]),
        ([({"a": 4}, [("a", 0, 25)])], [(0, 13), (13, 25)], [[4.0, None], [4.0, None]]),
        (
            [({"a": 0, "b": 3}, [("a", 19, 24), ("b", 13, 25)]), ({"a": 1}, [("a", 13, 25)])],
            [(0, 13), (13, 19), (19, 24), (24, 25)],
            [[None, None], [1.0, 3.0], [0.5, 3.0], [1.0, 3.0]],
        ),
        # Selected twice by one rater, it counts once; what is no attribute any more counts not at all.
        (
            [
                ({"a": 0}, [("a", 0, 12), ("a", 0, 13)]),
                ({"a": 4, "c": 1}, [("a", 0, 12), ("c", 0, 12)]),
            ],
            [(0, 13), (13, 25)],
            [[2.0, None], [None, None]],
        ),
    ],
)
def test_segments_have_the_scores_that_are_based_on_them(ratings: Any, cut: Any, scores: Any) -> None:
    base = [Range(0, 13), Range(13, 25)]
    assert scored_by_evidence(ONE + OTHER, base, ratings, ["a", "b"]) == (tuple(Range(*one) for one in cut), scores)

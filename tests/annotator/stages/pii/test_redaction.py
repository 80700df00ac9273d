"""After a redaction the original is in no row any more, whoever looks."""

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from redis import Redis

from annotator.models import (
    Adjudication,
    Annotation,
    Draft,
    Exclusion,
    ExportJob,
    ImportJob,
    ImportJobError,
    PiiSpan,
    Project,
    Report,
    Skip,
    Task,
)
from annotator.models.imports import ERASED
from annotator.outputs.exporting.filters import EVERYTHING
from annotator.outputs.exporting.layouts import LAYOUTS
from annotator.reading.blindness import tasks_held_by
from annotator.stages import annotation
from annotator.stages.annotation import decide_quarantine
from annotator.stages.importing import jobs as imports
from annotator.stages.pii.quotations import NotInTheText
from annotator.stages.pii.redaction import Choice, preview, redact
from annotator.stages.pii.texts import Place, texts_of
from annotator.stages.review import judge
from tests.builders import NOW, claimed, gold_row, imported, make_task, make_user, rate, task_row
from tests.conftest import As, Cast
from tests.refusals import refusal

MAIL = "ola.nord@example.com"
SECRET = f"Write to {MAIL}, or to Ola Nord."


def find_in_database(text: str) -> list[str]:
    """Every column of every table that holds the text, as text or anywhere in JSON."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'")
        columns = cursor.fetchall()
        places = []
        for table, column in columns:
            cursor.execute(f'SELECT 1 FROM "{table}" WHERE "{column}"::text ILIKE %s LIMIT 1', [f"%{text}%"])
            places += [f"{table}.{column}"] if cursor.fetchone() else []
    return places


def find_in_redis(text: str) -> list[bytes]:
    redis = Redis.from_url(settings.REDIS_URL)
    read: dict[bytes | str, Callable[[bytes], Any]] = {
        b"string": redis.get,
        b"list": lambda key: redis.lrange(key, 0, -1),
        b"hash": redis.hgetall,
        b"set": redis.smembers,
        b"zset": lambda key: redis.zrange(key, 0, -1),
    }
    return [key for key in redis.scan_iter() if text in str((key, read[redis.type(key)](key)))]


def secret_row(**fields: Any) -> dict[str, Any]:
    row = task_row("t-1", prompt=SECRET, metadata={"from": {MAIL: [MAIL.upper()]}, "phone": 5550142}, **fields)
    row["responses"][0] |= {"text": f"**Ola Nord** has {MAIL}", "metadata": {"sent": MAIL}}
    return row


@pytest.fixture
def secret(project: Project, cast: Cast) -> Task:
    """A quarantined task whose e-mail address stands in every place that people can write to."""
    imported(project, secret_row())
    task = Task.objects.get()
    made = rate(project, cast.bob, justification=f"{MAIL} is wrong").annotation
    judge(made.assignment_id, decision="accepted", comment=f"Not {MAIL}.", by=cast.carol, now=NOW)
    Adjudication.objects.create(task=task, scores={}, reason="slip", comment=MAIL, by=cast.carol, made_at=NOW)
    held = claimed(project, cast.erin)
    annotation.save_draft(held.pk, {"justification": f"To {MAIL}"}, now=NOW)
    annotation.report(held.pk, category="other", note=f"see {MAIL}", now=NOW)
    Task.objects.update(state=Task.State.OPEN)
    annotation.skip(claimed(project, cast.alice).pk, reason="pii", note=MAIL, quotes=[MAIL, "Ola Nord"], now=NOW)
    return task


def marked(task: Task) -> list[int]:
    return list(task.pii_spans.values_list("pk", flat=True))


def test_the_original_is_in_no_column_and_not_in_redis(secret: Task) -> None:
    assert len(find_in_database(MAIL)) >= 9
    redact(secret.pk, Choice(marked(secret)), now=NOW)
    for text in (MAIL, "Ola Nord", "nord"):
        assert find_in_database(text) == []
        assert find_in_redis(text) == []


def find_in_files(text: str) -> list[str]:
    files = [path for path in settings.ARTIFACTS.rglob("*") if path.is_file()]
    return [str(path) for path in files if text.encode() in path.read_bytes()]


def test_what_quotes_it_elsewhere_gives_it_up_too(
    secret: Task, project: Project, cast: Cast, django_capture_on_commit_callbacks: Any
) -> None:
    rows = json.dumps({"prompt": MAIL}).encode()
    imports.upload(project, BytesIO(rows).read, file_name="rows.jsonl", by=cast.carol, now=NOW)
    ended: dict[str, Any] = {"project": project, "created_at": NOW, "finished_at": NOW, "state": "failed"}
    checked = ImportJob.objects.create(**ended, dry_run=True, file_hash="0", error=f"no column {MAIL}")
    checked.directory().mkdir(parents=True)
    (checked.directory() / "file").write_bytes(rows)
    ImportJobError.objects.create(job=checked, line=1, field=MAIL, error=f"scores must be a number, not '{MAIL}'")
    Exclusion.objects.create(project=project, annotator=cast.bob, reason=f"copies {MAIL}", by=cast.carol, made_at=NOW)
    made: dict[str, Any] = {"project": project, "requested_by": cast.carol, "created_at": NOW}
    export = ExportJob.objects.create(**made, layout="wide", format="csv", state="done", sha256="0", finished_at=NOW)
    export.directory().mkdir(parents=True)
    export.file().write_bytes(rows)
    assert len(find_in_database(MAIL)) >= 13
    assert len(find_in_files(MAIL)) == 4
    with django_capture_on_commit_callbacks(execute=True):
        redact(secret.pk, Choice(marked(secret)), now=NOW)
    assert find_in_database(MAIL) == []
    assert find_in_files(MAIL) == []
    assert set(ImportJob.objects.values_list("state", "error")) == {("cancelled", ERASED)}


def test_a_placeholder_takes_its_place(secret: Task) -> None:
    redact(secret.pk, Choice(marked(secret)), now=NOW)
    texts = list(texts_of(Task.objects.get()).values())
    gone = "[personal information removed]"
    assert texts[:2] == [f"Write to {gone}, or to {gone}.", f"**{gone}** has {gone}"]
    assert Draft.objects.get().form == {"justification": f"To {gone}"}
    assert (Skip.objects.get().note, Report.objects.get().note) == (gone, f"see {gone}")
    assert Annotation.objects.get().justification == f"{gone} is wrong"


def test_the_task_returns_to_the_queue_and_is_scanned_anew(secret: Task) -> None:
    task = redact(secret.pk, Choice(marked(secret)), now=NOW)
    task.refresh_from_db()
    assert (task.state, task.redacted_at, task.pii_scanned_at) == (Task.State.OPEN, NOW, None)
    assert not PiiSpan.objects.exists()


def test_what_is_not_chosen_stays(secret: Task) -> None:
    spans = [span.pk for span in secret.pii_spans.filter(turn=0).order_by("start")][:1]
    redact(secret.pk, Choice(spans), now=NOW)
    assert find_in_database(MAIL) == []
    assert "Ola Nord" in texts_of(Task.objects.get())[Place(turn=0)]


def test_a_manager_may_name_more(secret: Task) -> None:
    redact(secret.pk, Choice(quotes=["write to ola.nord@example.com, or"]), now=NOW)
    assert texts_of(Task.objects.get())[Place(turn=0)] == "[personal information removed] to Ola Nord."


def test_the_same_file_again_does_not_bring_it_back(secret: Task, project: Project) -> None:
    hashes = (secret.content_hash, secret.prompt_hash)
    redact(secret.pk, Choice(marked(secret)), now=NOW)
    without_id = {name: value for name, value in secret_row().items() if name != "id"}
    for row in (secret_row(), without_id):
        assert imported(project, row).existing == 1
    assert find_in_database(MAIL) == []
    task = Task.objects.get()
    assert (task.content_hash, task.prompt_hash) == hashes


def test_given_preferences_again_do_not_bring_it_back(project: Project) -> None:
    words = {"strength": -2, "justification": f"{MAIL} is wrong", "elo": None}
    row = {
        "split": "train",
        "prompt": SECRET,
        "response_1": "a",
        "response_2": "b",
        "preference_strength": -2,
        "all_preferences_unprocessed": [{key: words[key] for key in ("strength", "justification")}],
    }
    imported(project, row)
    Task.objects.update(state=Task.State.QUARANTINED)
    redact(Task.objects.get().pk, Choice(quotes=[MAIL]), now=NOW)
    imported(project, row)
    assert find_in_database(MAIL) == []


def test_experts_given_again_do_not_bring_it_back(project: Project) -> None:
    row = gold_row("g", prompt=SECRET)
    row["responses"][0]["expert"]["explanation"] = f"{MAIL} is personal"
    imported(project, row)
    Task.objects.update(state=Task.State.QUARANTINED)
    task = redact(Task.objects.get().pk, Choice(quotes=[MAIL]), now=NOW)
    imported(project, row)
    assert find_in_database(MAIL) == []
    assert task.state == Task.State.GOLD


def test_exports_and_rest_do_not_show_it(secret: Task, project: Project, cast: Cast, as_user: As) -> None:
    redact(secret.pk, Choice(marked(secret)), now=NOW)
    for number in range(2):
        rate(project, make_user(f"rater-{number}"))
    for layout in LAYOUTS.values():
        assert MAIL not in str(list(layout.rows(project, EVERYTHING, tasks_held_by(None))))
    for path in ("tasks", "annotations"):
        assert MAIL not in as_user(cast.carol).get(f"/api/v1/projects/talk/{path}/").content.decode()


def test_a_preview_changes_nothing(secret: Task) -> None:
    shown = preview(secret, Choice(marked(secret)))
    assert [place.turn for place in shown] == [0, None]
    assert MAIL not in "".join(shown.values())
    assert MAIL in "".join(texts_of(Task.objects.get()).values())


def test_places_that_overlap_go_together(project: Project, cast: Cast) -> None:
    task = make_task(project, prompt="At 12 Long Street, Apt 3, Oslo.")
    quotes = ["12 Long Street", "Long Street, Apt 3"]
    annotation.skip(claimed(project, cast.alice).pk, reason="pii", quotes=quotes, now=NOW)
    redact(task.pk, Choice(marked(task)), now=NOW)
    assert texts_of(Task.objects.get())[Place(turn=0)] == "At [personal information removed], Oslo."


def test_the_kind_that_was_found_names_the_placeholder(project: Project, cast: Cast) -> None:
    task = make_task(project, prompt=SECRET)
    place = {"task": task, "turn": 0, "start": 9, "end": 9 + len(MAIL), "created_at": NOW}
    PiiSpan.objects.create(**place, kind="email", source="detected")
    annotation.skip(claimed(project, cast.alice).pk, reason="pii", quotes=[MAIL], now=NOW)
    redact(task.pk, Choice(marked(task)), now=NOW)
    assert texts_of(Task.objects.get())[Place(turn=0)] == "Write to [e-mail address removed], or to Ola Nord."


def test_scripts_without_spaces_are_redacted(project: Project, cast: Cast) -> None:
    task = make_task(project, prompt="我是王小明先生")
    annotation.skip(claimed(project, cast.alice).pk, reason="pii", quotes=["王小明"], now=NOW)
    redact(task.pk, Choice(marked(task)), now=NOW)
    assert find_in_database("王小明") == []


def test_numbers_in_metadata_give_way(secret: Task) -> None:
    Task.objects.update(conversation=[{"role": "user", "content": "Call 5550142."}])
    redact(secret.pk, Choice(quotes=["5550142"]), now=NOW)
    assert find_in_database("5550142") == []


@pytest.mark.parametrize("state", [Task.State.OPEN, Task.State.COMPLETE, Task.State.RETIRED, Task.State.GOLD])
def test_only_a_quarantined_task_is_redacted(secret: Task, state: str) -> None:
    Task.objects.update(state=state)
    with refusal("cannot_redact", match="Only a quarantined task"):
        redact(secret.pk, Choice(marked(secret)), now=NOW)


def test_nothing_chosen_is_refused(secret: Task) -> None:
    with refusal("cannot_redact", match="at least one place"):
        redact(secret.pk, Choice(), now=NOW)


def test_a_quote_that_is_nowhere_is_refused(secret: Task) -> None:
    with pytest.raises(NotInTheText):
        redact(secret.pk, Choice(quotes=["Kari"]), now=NOW)


def test_an_id_that_holds_the_text_is_refused_and_nothing_changes(secret: Task) -> None:
    Task.objects.update(external_id=f"mail-{MAIL}")
    with refusal("cannot_redact", match="Retire the task"):
        redact(secret.pk, Choice(marked(secret)), now=NOW)
    assert MAIL in Task.objects.get().conversation[0]["content"]


def test_a_gold_task_released_is_gold_again(project: Project) -> None:
    imported(project, gold_row("g"))
    Task.objects.update(state=Task.State.QUARANTINED)
    assert decide_quarantine(Task.objects.get().pk, safe_to_use=True, now=NOW).state == Task.State.GOLD

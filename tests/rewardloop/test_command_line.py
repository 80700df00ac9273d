"""The verbs of `rewardloop`, against the server."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from annotator.models import Project, Task
from rewardloop.command_line import main
from tests.builders import imported, json_lines, rate, task_row
from tests.conftest import Cast
from tests.rewardloop.conftest import Run
from tests.rewardloop.scripted import Script


# Projects, files ---------------------------------------------------------------------------------------------
def test_projects_are_listed_for_people_and_for_scripts(as_carol: None, run: Run) -> None:
    shown = run("projects", "list").out
    assert "talk" in shown
    assert "manager" in shown
    assert run("projects").out == shown
    assert [project["slug"] for project in run("projects", "--json").data] == ["talk"]


def test_refused_rows_are_listed_and_change_the_exit_code(as_carol: None, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(json_lines(task_row("a", lang="Deutsch"), {"bad": 1}).getvalue())
    done = run("import", "talk", str(file))
    assert done.code == 3
    assert "1 new, 0 known, 1 refused" in done.out
    assert "line 2, prompt: " in done.out
    assert "of no language: “Deutsch”. Write a code such as de, or the English name. (1 of the tasks, from" in done.out
    (again,) = run("import", "talk", str(file), "--json").data
    assert (again["existing"], [row["line"] for row in again["refused"]]) == (1, [2])
    assert Task.objects.count() == 1


def test_a_mapping_may_be_in_a_file(as_carol: None, run: Run, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("question,answer\nName a prime.,7\n")
    (tmp_path / "mapping.json").write_text('{"prompt": "question", "responses": [{"text": "answer"}]}')
    mapping = ("--mapping", str(tmp_path / "mapping.json"))
    assert run("import", "talk", str(tmp_path / "rows.csv"), "--dry-run", *mapping).code == 0
    assert not Task.objects.exists()
    assert run("import", "talk", str(tmp_path / "rows.csv"), *mapping).code == 0
    assert Task.objects.get().conversation[0]["content"] == "Name a prime."


def test_a_file_that_is_not_there_is_named(as_carol: None, run: Run) -> None:
    done = run("import", "talk", "nowhere.jsonl")
    assert (done.code, done.err) == (1, "rewardloop: nowhere.jsonl: No such file or directory\n")


def test_labels_are_exported(project: Project, cast: Cast, as_carol: None, run: Run, tmp_path: Path) -> None:
    imported(project, task_row("a"))
    for user in cast.annotators:
        rate(project, user)
    file = tmp_path / "labels.csv"
    done = run("export", "talk", "--format", "csv", "--filter", "fields=prompt,helpfulness", "-o", str(file))
    assert done.code == 0, done.err
    assert file.read_text().splitlines() == ["prompt,helpfulness", *["What is a?,3"] * 2]


def test_an_unknown_layout_is_refused_with_those_that_there_are(as_carol: None, run: Run, tmp_path: Path) -> None:
    done = run("export", "talk", "--layout", "fancy", "-o", str(tmp_path / "x"))
    assert done.code == 1
    assert "fancy" in done.err
    assert "Traceback" not in done.err


def test_tasks_are_found_by_state(project: Project, as_carol: None, run: Run) -> None:
    imported(project, task_row("a"), task_row("b"))
    assert [task["id"] for task in run("tasks", "talk", "--state", "open", "--json").data] == ["a", "b"]
    assert len(run("tasks", "talk", "--limit", "1", "--json").data) == 1
    assert "There are none." in run("tasks", "talk", "--state", "retired").out


# Runs, models, scores, releases ------------------------------------------------------------------------------
def test_a_run_that_cannot_start_says_why(as_carol: None, run: Run) -> None:
    done = run("runs", "start", "talk", "--set", "epochs=3")
    assert done.code == 1
    assert done.err.startswith("rewardloop: ")
    assert run("runs", "list", "talk").out.strip() == "There are none."
    assert run("models", "list", "talk", "--json").out == ""


def of_run(state: str, **fields: Any) -> httpx.Response:
    return httpx.Response(200, json={"id": 3, "state": state, **fields})


def test_a_run_is_started_and_followed_to_its_end(run: Run, scripted: Callable[..., Script]) -> None:
    script = scripted(of_run("queued"), of_run("queued"), of_run("training"), of_run("promoted", reward_model=7))
    done = run("runs", "start", "talk", "--set", "epochs=3", "--set", "base=small", "--wait")
    assert done.code == 0
    assert done.out.splitlines() == [
        "Run 3 is queued.",
        "Run 3 is training.",
        "Run 3 is promoted.",
        "Its model is 7.",
    ]
    assert json.loads(script.bodies[0]) == {"config": {"epochs": 3, "base": "small"}}


def test_a_run_that_failed_is_no_success(run: Run, scripted: Callable[..., Script]) -> None:
    scripted(of_run("failed", error="Out of memory."))
    done = run("runs", "wait", "3")
    assert (done.code, "Out of memory." in done.out) == (1, True)


def test_a_decision_that_is_wanted_is_said(run: Run, scripted: Callable[..., Script]) -> None:
    scripted(of_run("awaiting_promotion", reward_model=7))
    assert "rewardloop models promote 7" in run("runs", "wait", "3").out
    scripted(httpx.Response(200, json={"id": 7, "version": 2, "project": "talk", "is_champion": True}))
    assert "version 2 of talk" in run("models", "promote", "7").out


def test_items_are_scored_line_by_line(run: Run, scripted: Callable[..., Script]) -> None:
    result = {"reward": 1.5, "scores": {"tone": 2.0}, "uncertainty": None, "truncated": False}
    scripted(httpx.Response(200, json={"model": 7, "results": [result]}))
    item = json.dumps({"id": "kept out", "conversation": [], "response": "x"})
    assert run("score", "--json", typed=[item, ""]).data == [{"model": 7, **result}]
    assert run("score", typed=[item]).out == "1.5000  (tone 2.00)\n"


def test_what_is_wrong_in_several_fields_is_said_of_each(run: Run, scripted: Callable[..., Script]) -> None:
    errors = {"slug": ["Too long."], "name": ["Is missing."]}
    scripted(httpx.Response(400, json={"detail": "slug: Too long.", "code": "invalid", "errors": errors}))
    done = run("projects", "create", "x", "X")
    assert (done.code, done.err) == (1, "rewardloop: slug: Too long.; name: Is missing.\n")


def test_an_error_of_a_hostile_server_controls_nothing(run: Run, scripted: Callable[..., Script]) -> None:
    scripted(httpx.Response(400, json={"detail": "no\x1b[2J\nway", "code": "x", "errors": {}}))
    assert run("projects", "list").err == "rewardloop: no way\n"


def test_items_have_to_be_items(as_carol: None, run: Run) -> None:
    done = run("score", "--project", "talk", typed=['{"conversation": []}'])
    assert (done.code, "Line 1 is no item" in done.err) == (1, True)
    assert run("score", "--project", "talk", typed=["{"]).code == 1


@pytest.mark.django_db(transaction=True)
def test_a_release_goes_from_a_command_to_a_file(
    project: Project, cast: Cast, as_carol: None, run: Run, tmp_path: Path
) -> None:
    imported(project, task_row("a"), task_row("b"))
    for user in cast.annotators:
        rate(project, user)
    (made,) = run("release", "create", "talk", "--title", "Answers", "--wait", "--json").data
    assert (made["state"], made["title"]) == ("done", "Answers")
    file = tmp_path / "release.tar"
    assert run("release", "download", "talk", str(made["number"]), "-o", str(file)).code == 0
    assert file.stat().st_size == made["archive_size"]
    assert "Answers" in run("release", "list", "talk").out


# Words -------------------------------------------------------------------------------------------------------
def test_a_wrong_word_is_answered_with_usage_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["fly"], ["runs"], ["runs", "start", "talk", "--set", "epochs"]):
        with pytest.raises(SystemExit, match="2"):
            main(words)
        assert "usage: rewardloop" in capsys.readouterr().err


def test_json_holds_no_control_character(project: Project, as_carol: None, run: Run) -> None:
    imported(project, task_row("a", prompt="\x1b[31mred\u202e"))
    done = run("tasks", "talk", "--json")
    assert done.out.isascii()
    assert "\x1b" not in done.out


def test_a_reader_that_has_seen_enough_is_no_error(
    as_carol: None, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def closed(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("rewardloop.command_line.terminal.Terminal.rows", closed)
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    monkeypatch.setattr("rewardloop.command_line.door.sys.stdout.fileno", lambda: 1, raising=False)
    done = run("projects", "list")
    assert (done.code, done.err) == (1, "")


@pytest.mark.usefixtures("hub")
def test_a_data_set_of_the_hub_is_imported_file_by_file(as_carol: None, run: Run) -> None:
    done = run("import", "talk", "hub:ours/rows")
    assert (done.code, Task.objects.count()) == (0, 2)
    assert "/edit/train.jsonl: 1 new, 0 known, 0 refused" in done.out
    (one, other) = run("import", "talk", "hub:ours/rows", "--json").data
    assert (one["existing"], other["existing"]) == (1, 1)
    refused = run("import", "talk", "hub:rows")
    assert refused.code == 1
    assert "names no data set" in refused.err

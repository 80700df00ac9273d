"""What manage.py offers for the human half."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from knox.auth import TokenAuthentication

from annotator.models import Project, Task
from tests.builders import json_lines, label_row, make_task, rate, task_row
from tests.conftest import Cast


def run(*words: str, **options: Any) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    try:
        call_command(*words, stdout=out, stderr=err, **options)
    except SystemExit as ended:
        return out.getvalue(), f"{err.getvalue()}exit {ended.code}"
    return out.getvalue(), err.getvalue()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(json_lines(task_row("one"), b"{broken\n", task_row("two")).read())
    return path


def test_import_tasks_reports_each_bad_line(project: Project, file: Path) -> None:
    out, err = run("import_tasks", "talk", str(file))
    assert out.strip() == "2 tasks created, 0 existing, 1 rows rejected"
    assert err.startswith("line 2: not JSON")
    assert err.endswith("exit 1")


def test_import_tasks_takes_the_files_of_rows_in_a_folder(project: Project, tmp_path: Path) -> None:
    for number in range(2):
        shard = tmp_path / "data" / f"train-{number:05}-of-00002.jsonl"
        shard.parent.mkdir(exist_ok=True)
        shard.write_bytes(json_lines(task_row(f"t-{number}")).getvalue())
    (tmp_path / "dataset_info.json").write_text("{}")
    (tmp_path / "README.md").write_text("# Rows")
    out, _ = run("import_tasks", "talk", str(tmp_path))
    assert out.splitlines()[-1] == "2 tasks created, 0 existing, 0 rows rejected"
    with pytest.raises(CommandError, match="holds no file of rows"):
        call_command("import_tasks", "talk", str(Path(__file__).parent))


@pytest.mark.parametrize(("reported", "more"), [(0, "... and 3 more\n"), (2, "... and 1 more\n"), (3, "")])
def test_import_tasks_counts_what_it_does_not_show(
    project: Project, tmp_path: Path, settings: LazySettings, reported: int, more: str
) -> None:
    settings.IMPORT_ERRORS_REPORTED = reported
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(b"{broken\n" * 3)
    out, err = run("import_tasks", "talk", str(path))
    assert err.count("not JSON") == reported
    assert err.endswith(f"{more}exit 1")
    assert "3 rows rejected" in out


def test_a_dry_run_writes_nothing(project: Project, file: Path) -> None:
    out, _ = run("import_tasks", "talk", str(file), dry_run=True)
    assert out.strip() == "Dry run, nothing is written: 2 tasks would be created, 0 existing, 1 rows rejected"
    assert not Task.objects.exists()


@pytest.mark.parametrize("words", [("import_tasks", "nowhere", "-"), ("agreement", "nowhere"), ("recount", "nowhere")])
def test_an_unknown_project_is_named_with_those_that_exist(project: Project, words: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match=r"There is no project 'nowhere'\. Projects: talk"):
        call_command(*words)


def test_a_missing_file_is_one_sentence(project: Project) -> None:
    with pytest.raises(CommandError, match=r"/nowhere/at/all.jsonl cannot be read: No such file"):
        call_command("import_tasks", "talk", "/nowhere/at/all.jsonl")


def test_export_labels_writes_a_file(project: Project, tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(json_lines(label_row("Why?", "Because."), label_row("Why?", "No idea.", helpfulness=0)).read())
    run("import_tasks", "talk", str(source))
    run("export_labels", "talk", output=str(target))
    assert [json.loads(line)["helpfulness"] for line in target.read_text().splitlines()] == [3, 0]


def test_an_unknown_layout_lists_those_that_exist(project: Project) -> None:
    with pytest.raises(CommandError, match="Layouts: helpsteer2, labels, disagreements"):
        call_command("export_labels", "talk", layout="sheets")


def test_agreement_prints_a_table(project: Project, cast: Cast) -> None:
    for name, levels in (("one", (1, 2, 2)), ("two", (4, 4, 3))):
        make_task(project, name)
        for user, level in zip(cast.annotators, levels, strict=True):
            rate(project, user, level)
    out, _ = run("agreement", "talk")
    assert "first_three" in out
    assert out.splitlines()[2].split()[0] == "helpfulness"


def test_agreement_is_told_as_json_and_counted_anew(project: Project, cast: Cast) -> None:
    make_task(project)
    for user in cast.annotators:
        rate(project, user, [1, 3])
    out, err = run("agreement", "talk", json=True, rebuild=True)
    assert err.strip() == "1 tasks counted"
    assert json.loads(out)["all"]["helpfulness"]["kappa"] == 1
    assert {annotator["annotator"] for annotator in json.loads(out)["annotators"]} == {"alice", "bob", "erin"}


def test_a_token_lets_its_owner_in(project: Project, cast: Cast) -> None:
    out, _ = run("issue_token", "alice")
    user, _ = TokenAuthentication().authenticate_credentials(out.strip().encode())
    assert user == cast.alice


def test_a_token_for_nobody_is_refused(project: Project) -> None:
    with pytest.raises(CommandError, match="There is no account 'nobody'"):
        call_command("issue_token", "nobody")


def test_recounting_changes_nothing_that_was_right(project: Project, cast: Cast) -> None:
    task = make_task(project)
    rate(project, cast.alice)
    before = Task.objects.values_list("state", "open_slots", "slots_wanted").get(pk=task.pk)
    run("recount", "talk")
    assert Task.objects.values_list("state", "open_slots", "slots_wanted").get(pk=task.pk) == before

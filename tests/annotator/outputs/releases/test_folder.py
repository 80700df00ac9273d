"""The folder of a release: rows by configuration and split, the card, the manifest, and the same bytes each time."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import yaml

from annotator.analysis.agreement.reports import report
from annotator.infrastructure.db.clock import database_now
from annotator.models import Project, Release, Task
from annotator.models import rubric as rubric_module
from annotator.models.splits import is_held_out
from annotator.outputs.releases import folder, release_jobs
from annotator.statistics.pair_counts import Selection
from tests.annotator.outputs.releases.conftest import Made, elsewhere
from tests.builders import ATTRIBUTES, NOW, imported, label_row, make_task, pseudonym
from tests.conftest import Cast

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_writing_process")]


def rows(release: Release, name: str) -> list[dict[str, Any]]:
    return list(pyarrow.parquet.read_table(release.folder() / f"{name}-00000-of-00001.parquet").to_pylist())


def card(release: Release) -> tuple[dict[str, Any], str]:
    """The front matter of README.md, and its text."""
    _, front, body = (release.folder() / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(front), body


def content(release: Release) -> dict[str, bytes]:
    top = release.folder()
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def test_the_labels_lie_on_the_side_of_their_prompts(project: Project, rated: list[Task], made: Made) -> None:
    release = made()
    assert (release.state, release.error) == ("done", "")
    held_out = {task.external_id for task in rated if is_held_out(task.prompt_hash, project.validation_share)}
    train, validation = rows(release, "data/train"), rows(release, "data/validation")
    assert {row["task"] for row in validation} == held_out
    assert {row["task"] for row in train} == {task.external_id for task in rated} - held_out
    assert len(train) + len(validation) == 12
    assert train[0] == {
        "prompt": f"What is {train[0]['task']}?",
        "response": f"Answer 0 to {train[0]['task']}.",
        **dict.fromkeys(ATTRIBUTES, int(train[0]["task"][-1]) % 4),
        "task": train[0]["task"],
        "response_id": "1",
        "label_source": "consensus",
        "rubric_version": 1,
    }


@pytest.mark.usefixtures("rated")
def test_a_rubric_that_is_read_anew_at_any_moment_stops_no_release(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rubric_module, "RUBRIC_SECONDS", 1e-9)
    assert made().state == "done"


@pytest.mark.usefixtures("rated")
def test_ratings_and_preferences_are_configurations_of_their_own(made: Made) -> None:
    release = made()
    (preference, *_), (ratings, *_) = rows(release, "preference/train"), rows(release, "disagreements/train")
    assert "split" not in preference
    assert (preference["preference_strength"], preference["preference_elaboration"]) == (2, "Reason 0.")
    assert [one["strength"] for one in preference["all_preferences_unprocessed"]] == [2, 1, 2]
    assert ratings["verbosity"] == [int(ratings["task"][-1]) % 4] * 3
    assert {preference["task"], ratings["task"]} <= {f"t-{number}" for number in range(6)}


@pytest.mark.usefixtures("rated")
def test_the_front_matter_is_what_the_hub_reads(made: Made) -> None:
    front, _ = card(made(title='Answers: "two" each', license="cc-by-4.0"))
    assert front["pretty_name"] == 'Answers: "two" each'
    assert (front["license"], front["language"]) == ("cc-by-4.0", ["en"])
    assert front["size_categories"] == ["n<1K"]
    assert front["task_categories"] == ["text-generation", "text-classification"]
    assert [one["config_name"] for one in front["configs"]] == ["default", "preference", "disagreements"]
    assert front["configs"][0]["data_files"] == [
        {"split": "train", "path": "data/train-*.parquet"},
        {"split": "validation", "path": "data/validation-*.parquet"},
    ]


def test_the_card_says_how_far_annotators_agree(project: Project, cast: Cast, rated: list[Task], made: Made) -> None:
    _, body = card(made(notes="Collected in spring.", limits="English only."))
    kappa = report(project, now=database_now()).selections[Selection.KEPT]["helpfulness"]
    assert (kappa.kappa, kappa.interval) == (1, None)  # as nobody differs from anybody
    assert "| 1.000 | 12 | 0.465, 0.706, 0.791 |" in body
    assert f"`{pseudonym(cast.alice, project)}` (6)" in body
    assert "No demographic information was collected." in body
    assert "| 4 | Extremely helpful: it fully matches the intent |" in body
    assert "Collected in spring." in body
    assert "## Known limits\n\nEnglish only." in body
    assert "## Intended use\n\nTraining and judging reward models" in body
    assert not any(user.username in body for user in cast.annotators)


@pytest.mark.usefixtures("rated")
def test_the_card_says_what_annotators_were_asked(made: Made) -> None:
    Project.objects.update(ask_feedback=True, ask_language=True, domains=["General", "STEM"])
    _, body = card(made())
    for asked in ("what is good and bad about each response", "the domain of the task", "the language of the task"):
        assert asked in body


def test_the_statistics_stand_beside_the_published_ones(project: Project, made: Made) -> None:
    imported(project, *(label_row(f"Prompt {n}", "So.", helpfulness=n, verbosity=4 - n) for n in range(5)))
    _, body = card(made())
    assert "| `helpfulness` | 5 | 2.000 | 1.414 | 1.000 | 2.87 / 1.27 / 1.000 |" in body
    assert "| `verbosity` | 5 | 2.000 | 1.414 | -1.000 | 2.00 / 0.76 / 0.060 |" in body
    assert "| mean characters of a prompt | 8 | 713 |" in body
    assert "| mean characters of a response | 3 | 1,493 |" in body


@pytest.mark.usefixtures("rated")
def test_the_manifest_has_the_hash_of_every_file(made: Made) -> None:
    release = made()
    files = content(release)
    manifest = json.loads(files.pop("manifest.json"))
    assert manifest["files"] == {
        path: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for path, data in files.items()
    }
    assert manifest["content_hash"] == release.content_hash
    assert {file["path"] for file in release.files} == {*files, "manifest.json"}
    assert manifest["counts"]["tasks"] == release.counts["tasks"] == 6


@pytest.mark.usefixtures("rated")
def test_the_same_release_has_the_same_bytes(made: Made) -> None:
    release = made(title="Once")
    first = content(release)
    Release.objects.update(state="waiting", finished_at=None, archive_sha256="")
    release.frozen.all().delete()
    release_jobs.run_waiting()
    assert content(release) == first


@pytest.mark.usefixtures("rated")
def test_two_releases_of_one_state_differ_in_their_number_alone(made: Made) -> None:
    first, second = made(), made()
    assert (first.number, second.number) == (1, 2)
    assert first.content_hash == second.content_hash
    before, after = content(first), content(second)
    assert {path for path in before if before[path] != after[path]} == {"README.md", "manifest.json"}
    assert before["README.md"].replace(b"Release 1", b"Release 2") == after["README.md"]


def test_a_new_label_gives_another_hash(project: Project, rated: list[Task], made: Made) -> None:
    first = made()
    imported(project, label_row("One more?", "Yes."))
    assert made().content_hash != first.content_hash


def test_only_what_is_there_is_a_configuration(project: Project, made: Made) -> None:
    Project.objects.update(validation_share=0.01)
    project.refresh_from_db()
    imported(project, label_row("Alone?", "Yes."))
    release = made()
    front, _ = card(release)
    assert [(one["config_name"], len(one["data_files"])) for one in front["configs"]] == [("default", 1)]
    assert set(content(release)) == {"README.md", "manifest.json", "data/train-00000-of-00001.parquet"}
    assert not (release.folder() / "preference").exists()


def test_nothing_is_no_release(project: Project, made: Made) -> None:
    make_task(project)
    release = made()
    assert (release.state, release.files) == ("failed", [])
    assert release.error == "There are no labels, preferences or ratings to release yet."


def test_retired_tasks_stay_behind(rated: list[Task], made: Made) -> None:
    Task.objects.filter(pk=rated[0].pk).update(state=Task.State.RETIRED)
    release = made()
    assert release.counts["tasks"] == 5
    assert b"t-0" not in b"".join(content(release).values())


def test_what_comes_while_the_files_are_written_is_not_in_them(
    project: Project, rated: list[Task], made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = folder._Data.write

    def after_an_import(data: Any, pulse: Any) -> None:
        elsewhere(lambda: imported(project, label_row("Late?", "Very.")))
        start(data, pulse)

    monkeypatch.setattr(folder._Data, "write", after_an_import)
    release = made()
    assert Task.objects.filter(project=project).count() == 7
    assert release.counts["tasks"] == 6


def bytes_in(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


@pytest.mark.usefixtures("rated")
def test_the_row_counts_the_bytes_and_rows_that_were_written(made: Made) -> None:
    release = made()
    assert release.bytes_done == bytes_in(release.folder())
    assert release.rows_done == sum(sum(splits.values()) for splits in release.counts["rows"].values())
    assert release.finished_at is not None
    assert release.finished_at >= NOW

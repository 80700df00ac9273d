"""What fails in one project in the background is a row that people see, and nobody else's trouble."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from annotator import tasks
from annotator.analysis.agreement import totals
from annotator.analysis.quality import assessment
from annotator.infrastructure.background import failures, heartbeats, messages
from annotator.managing import archive, deletion
from annotator.models import (
    AgreementState,
    BackgroundFailure,
    Exclusion,
    Project,
    RaterQuality,
    RecountWanted,
    Rubric,
    Task,
)
from annotator.stages import assignment
from annotator.stages.pii import scans
from annotator.stages.review import exclusions
from rewards import tasks as machine_tasks
from rewards.runs import runs
from tests.builders import NOW, claimed, make_member, make_project, make_task, make_user, rate
from tests.conftest import Cast

BROKEN, FINE = "a-broken-one", "b-fine-one"


@pytest.fixture
def projects(db: None, cast: Cast) -> dict[str, Project]:
    """Two projects in which somebody has rated."""
    made = {slug: make_project(slug) for slug in (BROKEN, FINE)}
    for project in made.values():
        make_task(project)
        for user in cast.annotators:
            make_member(project, user)
            rate(project, user)
    return made


def failing(stage: Callable[..., int]) -> Callable[..., int]:
    def fail(project: Project, *args: Any, **kwargs: Any) -> int:
        if project.slug == BROKEN:
            raise KeyError("tone")
        return stage(project, *args, **kwargs)

    return fail


def failure_rows() -> list[tuple[str, str, int, str]]:
    return [(row.task, row.project.slug if row.project else "", row.times, row.error)
            for row in BackgroundFailure.objects.select_related("project").order_by("pk")]  # fmt: skip


def test_a_project_that_cannot_be_assessed_does_not_keep_the_next_from_it(
    projects: dict[str, Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assessment, "assess_apart", failing(assessment.assess))
    assert tasks.assess_annotators() == 3
    assert {row.project.slug for row in RaterQuality.objects.all()} == {FINE}
    assert failure_rows() == [("assess_annotators", BROKEN, 1, "KeyError: 'tone'")]


def test_a_rubric_that_asks_for_no_scores_of_responses_is_no_failure(projects: dict[str, Project]) -> None:
    rubrics_of_segments = Rubric.objects.get(key="helpsteer2d")
    rubrics_of_segments.attributes.filter(scope="response").delete()
    project = projects[BROKEN]
    project.rubric = rubrics_of_segments
    assert assessment.assess(project, now=NOW) == 3


@pytest.mark.parametrize("first", ["expire", "agreement", "pii", "exclusion", "recount", "due runs"])
def test_each_periodic_task_goes_on_in_the_other_projects(
    projects: dict[str, Project], cast: Cast, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    later = timezone.now() + timedelta(days=1)
    for project in projects.values():
        make_task(project)
        claimed(project, cast.alice)
        RecountWanted.objects.create(project=project)
        Exclusion.objects.create(project=project, annotator=cast.bob, reason="Clicks.", by=cast.carol, made_at=NOW)
    Project.objects.update(retrain_after_labels=1)
    broken: dict[str, tuple[Any, str, Callable[[], object]]] = {
        "expire": (assignment.leases, "_expire_some", lambda: assignment.expire_all(now=later)),
        "agreement": (totals, "_count_batch", lambda: totals.refresh_all(now=NOW)),
        "recount": (assignment.counters, "recount", lambda: assignment.recount_all_wanted(now=NOW)),
        "due runs": (runs, "due", machine_tasks.start_due_runs),
    }
    if first == "pii":
        monkeypatch.setattr(scans, "_findings", _broken_scan(scans._findings))
        scans.scan_all(now=NOW)
        assert not Task.objects.unscanned().filter(project__slug=FINE).exists()
    elif first == "exclusion":
        monkeypatch.setattr(exclusions, "_take_out", _broken_taking_out(exclusions._take_out))
        assert exclusions.enforce_all(now=NOW) == 1
    else:
        module, name, run = broken[first]
        monkeypatch.setattr(module, name, failing(getattr(module, name)))
        run()
    assert [where for _, where, *_ in failure_rows()] == [BROKEN]


def _broken_scan(stage: Callable[..., Any]) -> Callable[..., Any]:
    def look(batch: Any, find: Any) -> Any:
        if batch[0].project.slug == BROKEN:
            raise RuntimeError("the recognisers ended")
        return stage(batch, find)

    return look


def _broken_taking_out(stage: Callable[..., int]) -> Callable[..., int]:
    def take(exclusion: Exclusion, *args: Any, **kwargs: Any) -> int:
        if exclusion.project.slug == BROKEN:
            raise RuntimeError("the tasks cannot be settled")
        return stage(exclusion, *args, **kwargs)

    return take


def test_a_failure_counts_up_and_goes_when_it_works_again(projects: dict[str, Project]) -> None:
    def fail(project: Project) -> int:
        raise RuntimeError("no luck")

    for _ in range(3):
        failures.each_project("a_task", projects.values(), failing(lambda _: 1))
    row = BackgroundFailure.objects.get()
    assert (row.project, row.times) == (projects[BROKEN], 3)
    assert row.first_at < row.last_at
    assert failures.each_project("a_task", projects.values(), lambda _: 1) == 2
    assert failure_rows() == []


def test_what_fails_as_a_whole_is_kept_and_raised(db: None) -> None:
    with pytest.raises(RuntimeError), failures.as_whole("a_task"):
        raise RuntimeError("no luck")
    assert failure_rows() == [("a_task", "", 1, "RuntimeError: no luck")]
    with failures.as_whole("a_task"):
        pass
    assert failure_rows() == []


def test_an_error_is_told_without_secrets_or_rows(settings: Any) -> None:
    error = RuntimeError(
        f"cannot reach postgresql://me:geheim@db/x, password=geheim, from {settings.BASE_DIR}/manage.py\n"
        "DETAIL:  Failing row contains (42, a text that somebody wrote)"
    )
    assert failures.safe_text(error) == "RuntimeError: cannot reach postgresql:...db/x, ... from manage.py"


def test_an_error_is_told_without_any_folder_of_the_machine(settings: Any) -> None:
    settings.ARTIFACTS = "/srv/My Files/artifacts"
    error = OSError("cannot read /opt/models/x/model.bin, nor /srv/My Files/artifacts/runs/3/expected.jsonl")
    assert failures.safe_text(error) == "OSError: cannot read .../model.bin, nor artifacts/runs/3/expected.jsonl"


def test_the_overview_shows_what_fails_to_who_may_see_it(projects: dict[str, Project], client: Client) -> None:
    failures.note("find_pii", projects[BROKEN], RuntimeError("no luck"))
    failures.note("recover_lost_runs", None, RuntimeError("bad luck"))
    manager = make_user("manager", is_staff=True)
    make_member(projects[FINE], manager, role="manager")
    client.force_login(manager)
    assert "luck" not in client.get("/admin/").content.decode()
    make_member(projects[BROKEN], manager, role="manager")
    page = client.get("/admin/").content.decode()
    assert "no luck" in page
    assert "bad luck" not in page
    client.force_login(make_user("root", is_staff=True, is_superuser=True))
    assert "bad luck" in client.get("/admin/").content.decode()


def test_a_recount_whose_message_was_lost_is_found_again(
    project: Project, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    monkeypatch.setattr(messages, "send", lambda *_: False)
    task = make_task(project)
    with django_capture_on_commit_callbacks(execute=True):
        Project.objects.filter(pk=project.pk).update(base_annotators=2)
        assignment.recount_later(project)
    tasks.recount_changed()
    task.refresh_from_db()
    assert task.slots_wanted == 2
    assert not RecountWanted.objects.exists()


def test_a_readmission_whose_message_was_lost_is_finished(
    project: Project, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_task(project)
    rate(project, cast.bob)
    exclusions.exclude(project, cast.bob, reason="Clicks.", by=cast.carol, now=NOW)
    monkeypatch.setattr(exclusions, "SYNC_LIMIT", 0)
    monkeypatch.setattr(heartbeats, "require", lambda _: None)
    assert exclusions.readmit(project, cast.bob, now=NOW) is not None
    tasks.enforce_exclusions()
    assert not Exclusion.objects.exists()
    assert project.tasks.get().assignments.get().counts


# A project that goes meanwhile -----------------------------------------------------------------------------


def delete_elsewhere(project: Project) -> None:
    """Deletes the project over another connection, as the web does while a worker is at work."""

    def delete() -> None:
        try:
            archive.archive(project, now=NOW)
            deletion.delete(project, confirm=project.slug, now=NOW)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as other:
        other.submit(delete).result()


def write_into(project: Project) -> int:
    AgreementState.objects.create(project_id=project.pk, attributes=[], refreshed_at=NOW)
    return 1


@pytest.mark.django_db(transaction=True)
def test_work_for_a_project_that_is_deleted_meanwhile_has_not_failed() -> None:
    goes, stays = make_project("goes"), make_project("stays")

    def work(project: Project) -> int:
        if project == goes:
            delete_elsewhere(project)
        return write_into(project)

    assert failures.each_project("refresh_agreement", [goes, stays], work) == 1
    with failures.as_whole("count_figures", goes):
        write_into(goes)
    assert not BackgroundFailure.objects.exists()

"""Whoever asks for much is served by turns with the others."""

from datetime import timedelta

from annotator.background.turns import by_turns
from annotator.models import ImportJob, Project
from tests.builders import NOW, make_project
from tests.conftest import Cast


def test_one_person_s_many_jobs_leave_others_their_turn(project: Project, cast: Cast) -> None:
    asks = [(cast.carol, project), (cast.carol, make_project("two")), (cast.carol, project), (cast.dave, project)]
    for who, where in [*asks, (cast.erin, project)]:
        ImportJob.objects.create(project=where, requested_by=who, state="waiting", file_hash="0", created_at=NOW)
    served = []
    while job := by_turns(ImportJob.objects.filter(state="waiting")).first():
        served.append(str(job.requested_by))
        beat = NOW + timedelta(seconds=len(served))
        ImportJob.objects.filter(pk=job.pk).update(state="done", heartbeat_at=beat, finished_at=beat)
    assert served == ["carol", "dave", "erin", "carol", "carol"]

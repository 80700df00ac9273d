"""A project whose responses are rated segment by segment, for tests."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from annotator.models import Project, Rubric, Task, User
from annotator.stages import annotation, assignment
from annotator.stages.annotation import ResponseRating, Submission, Submitted
from tests.builders import NOW, imported, make_project, task_row

TEXT = "It rains. It pours. It ends."
ASPECTS = ("helpfulness", "correctness", "safety", "completeness", "clarity")


def make_segmented_project(slug: str = "talk", **fields: Any) -> Project:
    project = make_project(slug, **{"max_annotators": 3} | fields)
    project.rubric = Rubric.objects.get(key="helpsteer2d", project=None)
    project.save()
    return project


def make_segmented_task(project: Project, name: str, *texts: str, prompt: str = "") -> Task:
    row: dict[str, Any] = task_row(name, prompt=prompt)
    row["responses"] = [{"id": f"{name}-{number}", "text": text} for number, text in enumerate(texts or (TEXT, "One."))]
    assert imported(project, row).created == 1
    return Task.objects.get(project=project, external_id=name)


def rate_segments(
    project: Project, user: User, levels: Sequence[int | None], *, now: datetime = NOW, **fields: Any
) -> Submitted:
    """Rates the user's next task: the nth segment of each response gets the nth level in every aspect."""
    claimed = assignment.claim(project, user, now=now)
    assert claimed.assignment is not None
    cuts = annotation.cuts_of(project, claimed.assignment.task, claimed.responses)
    ratings = {
        pk: ResponseRating({}, segments=tuple(dict.fromkeys(ASPECTS, levels[index]) for index in range(len(cut))))
        for pk, cut in cuts.items()
    }
    return annotation.submit(claimed.assignment.pk, Submission(ratings, **fields), now=now)

"""The segments by which a task's responses are rated. They are cut when they are first needed, and stored.

A stored cut stays, so that all annotators rate the same segments, whatever a later version of a library would cut.
"""

from collections.abc import Mapping, Sequence

from annotator.assignment import responses_in_order
from annotator.models import Assignment, Project, Response, Task
from annotator.segmenting import Range, Unit, cut, ranges

Cuts = Mapping[int, Sequence[Range]]
"""The segments of responses, by their ids."""


def cuts_of(project: Project, task: Task, responses: Sequence[Response]) -> dict[int, tuple[Range, ...]]:
    """Returns the segments of each response, or nothing if the project rates no segments."""
    if not project.aspects():
        return {}
    for response in responses:
        if response.segments is None:
            _cut_once(response, Unit(project.segment_unit), task.language)
    return {response.pk: ranges(response.segments) for response in responses}


def responses_to_rate(assignment: Assignment) -> list[Response]:
    """Returns the task's responses in the order in which the assignment's annotator sees them, with their segments."""
    return with_segments(assignment, responses_in_order(assignment))


def with_segments(assignment: Assignment, responses: list[Response]) -> list[Response]:
    """Returns the responses of the assignment's task, and sees to it that they have segments if these are rated."""
    cuts_of(assignment.task.project, assignment.task, responses)
    return responses


def _cut_once(response: Response, unit: Unit, language: str) -> None:
    """Stores a cut, or takes over the one that somebody else has stored meanwhile."""
    while response.segments is None:
        pairs = [list(segment) for segment in cut(response.text, unit, language=language)]
        # Of this text only: it may have been redacted since it was read, and the ranges would be wrong.
        same = Response.objects.filter(pk=response.pk, text=response.text, segments__isnull=True)
        if same.update(segments=pairs):
            response.segments = pairs
        else:
            response.refresh_from_db(fields=["text", "segments"])

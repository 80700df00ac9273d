"""The segments by which a task's responses are rated. They are cut when they are first needed, and stored.

A stored cut stays, so that all annotators rate the same segments, whatever a later version of a library would cut.
"""

import re
from collections.abc import Mapping, Sequence

from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.db.retries import in_transaction
from annotator.infrastructure.limits import MOST_SEGMENTS
from annotator.infrastructure.refusals import Refusal
from annotator.models import Assignment, ExpertRating, Label, Project, Response, Task
from annotator.stages.assignment import responses_in_order
from annotator.stages.segmenting import NotAPartition, Range, Unit, cut, partition, partition_by_texts, ranges

Cuts = Mapping[int, Sequence[Range]]
"""The segments of responses, by their ids."""


def cuts_of(project: Project, task: Task, responses: Sequence[Response]) -> dict[int, tuple[Range, ...]]:
    """Returns the segments of each response, or nothing if the project rates no segments."""
    return stored_cuts(project, task, responses) if project.aspects() else {}


def stored_cuts(project: Project, task: Task, responses: Sequence[Response]) -> dict[int, tuple[Range, ...]]:
    """Returns the segments of each response; one that nobody has cut is cut, and the cut stored."""
    if uncut := [response for response in responses if response.segments is None]:
        # All are rated on one page: those that are cut here share what the others leave of its room.
        room = MOST_SEGMENTS - sum(len(response.segments or ()) for response in responses)
        for response in uncut:
            # Stores a cut, or takes over the one that somebody else has stored meanwhile.
            while response.segments is None:
                unit, most = Unit(project.segment_unit), max(1, room // len(uncut))
                pairs = [list(segment) for segment in cut(response.text, unit, language=task.language, most=most)]
                if not response.store_first_segments(pairs):
                    response.refresh_from_db(fields=["text", "segments"])
    return {response.pk: ranges(response.segments) for response in responses}


def responses_to_rate(assignment: Assignment) -> list[Response]:
    """Returns the task's responses in the order in which the assignment's annotator sees them, with their segments."""
    return with_segments(assignment, responses_in_order(assignment))


def with_segments(assignment: Assignment, responses: list[Response]) -> list[Response]:
    """Returns the responses of the assignment's task, and sees to it that they have segments if these are rated."""
    cuts_of(assignment.task.project, assignment.task, responses)
    return responses


def require_room(counts: Sequence[int]) -> None:
    """Checks the numbers of segments of a task's responses. Raises NotAPartition if they are too many together."""
    if sum(counts) > MOST_SEGMENTS:
        raise NotAPartition(
            _("The responses have %(count)s segments together, and at most %(most)s are accepted. Join some of them.")
            % {"count": sum(counts), "most": MOST_SEGMENTS}
        )


# A manager's cut -------------------------------------------------------------------------------------------

IN_PARTS = "-----"
"""Stands on a line of its own between two segments where a manager edits them as a text."""


class RecutMeanwhile(Refusal):
    """Somebody else has changed the segments since the caller read them."""

    code = "recut_meanwhile"


@in_transaction
def change_cuts(
    task_id: int,
    cuts: Mapping[int, Sequence[Sequence[int]] | Sequence[str]],
    *,
    seen: Mapping[int, str | Sequence[Sequence[int]]] | None = None,
) -> Task:
    """Gives responses of a task that nobody has rated other segments, by response id, as ranges or as texts.

    `seen` holds the segments of responses as the caller has read them: as ranges, or as `as_parts` writes them.

    Raises:
        RecutMeanwhile: a response's segments are no longer those.
        NotAPartition: segments do not divide a response's text, or the task has too many of them.
        Refusal: the task has ratings or labels of its segments, or somebody holds it, or it is a gold task.
        Response.DoesNotExist: a response is another task's.
    """
    task = Task.objects.select_for_update().select_related("project").get(pk=task_id)
    # By its experts: a quarantined gold task has another state.
    if ExpertRating.objects.filter(response__task=task).exists():
        raise Refusal(
            _("This is a gold task, whose segments experts have rated, so these can no longer be changed."),
            code="in_use",
        )
    taken = [Assignment.State.LEASED, Assignment.State.SUBMITTED]
    if task.assignments.filter(state__in=taken).exists():
        raise Refusal(
            _("Somebody has rated this task or is rating it, so its segments can no longer be changed."), code="in_use"
        )
    if Label.objects.filter(response__task=task).exclude(segment_scores=None).exists():
        raise Refusal(
            _("This task has imported labels of its segments, so these can no longer be changed."), code="in_use"
        )
    for number, given in cuts.items():
        response = task.responses.get(pk=number)
        if seen and number in seen and seen[number] not in (response.segments, as_parts(response)):
            raise RecutMeanwhile(
                _("Somebody else has changed these segments meanwhile. Compare both, then save again.")
            )
        by_texts = all(isinstance(one, str) for one in given)
        read = partition_by_texts if by_texts else partition
        response.segments = [list(one) for one in read(response.text, given)]  # type: ignore[arg-type]
        response.save(update_fields=["segments"])
        # What a model has said of the former segments is about none of these; the next pass scores them.
        response.model_scores.exclude(segment_scores=None).update(segment_scores=None)
    require_room([len(response.segments or ()) for response in task.responses.all()])
    audit.record("task.recut", f"task {task.external_id}", project=task.project, responses=len(cuts))
    return task


def as_parts(response: Response) -> str:
    """Returns a response's text with IN_PARTS between its segments."""
    return f"\n{IN_PARTS}\n".join(one.of(response.text).strip("\n") for one in ranges(response.segments))


def from_parts(text: str) -> list[str]:
    """Returns the segments of a text as `as_parts` writes it."""
    parts = re.split(rf"(?m)^[ \t]*{IN_PARTS}[ \t]*\r?$", text.replace("\r\n", "\n"))
    return [part.strip("\n") for part in parts if part.strip()]

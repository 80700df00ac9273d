"""Shows found tasks in a list: in an order of choice, a page after a key, and a count that stops early."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from string import ascii_uppercase
from typing import Any

from django.db.models import Count, F, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Coalesce, Left

from annotator.models import Assignment, Label, Project, Response, Task
from annotator.models.in_force import preferences_stated
from annotator.reading.search.criteria import Matches, champion_scores

PAGE = 25
MOST_COUNTED = 1_000
EXCERPT = 160
BEGINNING = 400
"""Characters of the prompt that a list reads: whole prompts may be megabytes."""


class Order(StrEnum):
    """What stands first in the list."""

    NEWEST = "newest"
    OLDEST = "oldest"
    SPREAD = "spread"
    MOST_RATED = "most_rated"
    LEAST_RATED = "least_rated"
    PRIORITY = "priority"


_BY = {
    Order.NEWEST: "-pk",
    Order.OLDEST: "pk",
    Order.SPREAD: "-review_spread",
    Order.MOST_RATED: "-done",
    Order.LEAST_RATED: "done",
    Order.PRIORITY: "-priority",
}


@dataclass(frozen=True)
class ListedResponse:
    """A response of a listed task: its label's level on the deciding attribute, its model and the champion's reward."""

    letter: str
    model: str
    score: float | None
    reward: float | None


@dataclass(frozen=True)
class Listed:
    """A task with what a list says about it."""

    task: Any
    answers: Sequence[ListedResponse]
    preference: int | None
    dropped: bool

    def models(self) -> list[str]:
        return list(dict.fromkeys(answer.model for answer in self.answers if answer.model))

    def scored(self) -> list[ListedResponse]:
        return [answer for answer in self.answers if answer.score is not None]

    def rewarded(self) -> list[ListedResponse]:
        return [answer for answer in self.answers if answer.reward is not None]


@dataclass(frozen=True)
class Page:
    """A part of the list: `further` is the id after which the next one begins, `count` stops at MOST_COUNTED + 1."""

    rows: Sequence[Listed]
    further: int | None
    count: int


def page(
    found: Matches, project: Project, *, order: Order = Order.NEWEST, after: int | None = None, rewards: bool
) -> Page:
    """Reads a page of the tasks in this order, the newest of equal ones first, after the task with the id `after`."""
    ordered = found.tasks.order_by(_BY[order], "-pk").values_list("pk", flat=True)
    rest = _after(ordered, project, _BY[order], after)
    # One more says whether there is a further page. The first page is counted by the same look.
    if found.at_least > MOST_COUNTED:
        ids = list(rest[: PAGE + 1])
        count = MOST_COUNTED + 1
    elif after is None:
        ids = list(ordered[: MOST_COUNTED + 1])
        count = len(ids)
    else:
        ids = list(rest[: PAGE + 1])
        count = ordered[: MOST_COUNTED + 1].count()
    return Page(listed(ids[:PAGE], project, rewards=rewards), ids[PAGE - 1] if len(ids) > PAGE else None, count)


def _after(ordered: QuerySet[Any, int], project: Project, by: str, after: int | None) -> QuerySet[Any, int]:
    """Selects what stands behind the task with the id `after`, wherever that stands by now."""
    if after is None:
        return ordered
    field, further = by.removeprefix("-"), "lt" if by.startswith("-") else "gt"
    if field == "pk":
        return ordered.filter(**{f"pk__{further}": after})
    value = project.tasks.filter(pk=after).values_list(field, flat=True).first()
    if value is None:  # the task is gone
        return ordered.none()
    return ordered.filter(Q(**{f"{field}__{further}": value}) | Q(**{field: value}, pk__lt=after))


def listed(ids: Sequence[int], project: Project, *, rewards: bool) -> list[Listed]:
    """Reads what the list shows of these tasks, in their order."""
    rows = with_beginnings(Task.objects.filter(pk__in=ids)).annotate(drop_reason=F("consensus__drop_reason"))
    tasks = {task.pk: task for task in rows}
    answers = _answers(ids, project, rewards=rewards)
    stated = preferences_stated(ids)
    return [
        Listed(
            task=task,
            answers=answers[pk],
            preference=stated.get(pk),
            dropped=bool(task.drop_reason) and not task.adjudicated,
        )
        for pk in ids
        if (task := tasks.get(pk))
    ]


def _answers(ids: Sequence[int], project: Project, *, rewards: bool) -> Mapping[int, list[ListedResponse]]:
    in_force = Label.objects.in_force().filter(response__task__in=ids)
    scores = dict(in_force.values_list("response", "means"))
    given = champion_scores().rewards_of(project, list(ids)) if rewards else {}
    by_task: dict[int, list[ListedResponse]] = defaultdict(list)
    responses = Response.objects.filter(task__in=ids).order_by("task", "position")
    for pk, task, model in responses.values_list("pk", "task", "model"):
        place = len(by_task[task])
        letter = ascii_uppercase[place] if place < len(ascii_uppercase) else str(place + 1)
        score = scores.get(pk, {}).get(project.spread_attribute)
        by_task[task].append(ListedResponse(letter, model, score, given.get(pk)))
    return by_task


def with_beginnings(tasks: QuerySet[Task]) -> QuerySet[Any]:
    """Adds `beginning`, of the turn that was answered, and `raters`, how many count; leaves the long texts out."""
    counting = Assignment.objects.submitted().filter(task=OuterRef("pk"), counts=True).order_by().values("task")
    raters = Subquery(counting.annotate(n=Count("pk")).values("n"), output_field=IntegerField())
    turn = KeyTextTransform("content", KeyTransform("-1", "conversation"))
    listed = tasks.defer("conversation", "metadata")
    return listed.annotate(beginning=Left(turn, BEGINNING), raters=Coalesce(raters, 0))


def excerpt(text: str | None) -> str:
    """Returns the beginning of a text on one line, as lists show it."""
    # Cut before white space is collapsed: a turn may be a million characters long.
    words = " ".join((text or "")[:BEGINNING].split())
    return words if len(words) <= EXCERPT else words[:EXCERPT] + "…"

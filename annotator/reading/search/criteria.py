"""Selects a project's tasks by their words and by what became of them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import Any, Protocol, cast

from django.conf import settings
from django.contrib.postgres.search import SearchQuery
from django.db import OperationalError
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _
from psycopg.errors import QueryCanceled

from annotator.infrastructure.db.planning import by_indexes
from annotator.infrastructure.db.statements import Statement
from annotator.infrastructure.refusals import Refusal
from annotator.models import Consensus, Import, Label, Project, Task, User
from annotator.models.public_ids import task_of
from annotator.reading.blindness import tasks_held_by

LABELLED, DROPPED, UNLABELLED = "labelled", "dropped", "none"
LONGEST_TEXT = 200
PATIENCE_SECONDS = 4
FEW = 2_000
"""Tasks that are looked at one by one if the index of words names no more."""


class NothingToFind(Refusal):
    """The text holds no word that could be looked up."""

    status = 400
    code = "nothing_to_find"


@dataclass(frozen=True)
class Difference:
    """One stored value that differs from its recomputation."""

    subject: str
    name: str
    stored: Any
    recomputed: Any

    def __str__(self) -> str:
        return f"{self.subject}: {self.name} is {self.stored!r}, recomputed {self.recomputed!r}"


@dataclass(frozen=True)
class GivenReward:
    """A reward that one version of the project's models gave a response, and when.

    `segments` are its scores of the response's segments by aspect; a segment that it could not read has none.
    """

    response: int
    reward: float
    version: int
    by_champion: bool
    at: datetime
    segments: Sequence[Sequence[float | None]] = ()


class ChampionScores(Protocol):
    """What the machine half says about tasks and knows of its scores; settings.CHAMPION_SCORES names its module.

    The human half must not import it.
    """

    def with_rewards(
        self, tasks: QuerySet[Task], project: Project, *, least: float | None, most: float | None
    ) -> QuerySet[Task]:
        """Selects tasks of which the champion gives a response a reward from `least` to `most`."""

    def rewards_of(self, project: Project, tasks: list[int]) -> dict[int, float]:
        """Returns the champion's rewards by response."""

    def by_champion(self, project: Project) -> QuerySet[Any]:
        """Returns the champion's scores: `response`, `reward`, `scores`, `created_at`, `reward_model__version`."""

    def scores_of(self, task: Task) -> list[GivenReward]:
        """Returns every reward that a model of the project gave one of the task's responses, the earliest first."""

    def score_count_differences(self, project: Project) -> list[Difference]:
        """Returns the models whose stored number of scores is not what counting them gives."""

    def recount_scores(self, project: Project) -> None:
        """Stores how many responses each model of the project has scored."""


def champion_scores() -> ChampionScores:
    return cast(ChampionScores, import_module(settings.CHAMPION_SCORES))


@dataclass(frozen=True)
class Criteria:
    """What the tasks have in common; what is empty or None does not matter.

    `text` is words, "quoted phrases" and -words that are to be missing. `spread` is the least spread. `model` and the
    rewards are for managers only.
    """

    text: str = ""
    state: str = ""
    language: str = ""
    label: str = ""
    spread: int | None = None
    model: str = ""
    source: int | None = None
    least_reward: float | None = None
    most_reward: float | None = None

    def asks_for_words_alone(self) -> bool:
        """Returns whether the index of words decides everything."""
        rewards = (self.least_reward, self.most_reward)
        return not (self.state or self.label or self.spread or self.source) and rewards == (None, None)

    def facets(self) -> list[str]:
        """Returns which of a task's facets are asked for (annotator/reading/search/word_index.py)."""
        chosen = {"language": self.language, "model": self.model}
        return [f"{name} {str(value).lower()}" for name, value in chosen.items() if value]


@dataclass(frozen=True)
class Matches:
    """The tasks that meet the criteria. The index of words has named `at_least` so many, without counting them."""

    tasks: QuerySet[Task]
    at_least: int = 0


class TooBroad(Refusal):
    """The search takes longer than somebody would wait for a page."""

    status = 422
    code = "too_broad"


@contextmanager
def searching() -> Iterator[None]:
    """Has PostgreSQL search by its indexes, and limits how long it works for each statement. Raises TooBroad.

    A list shows the first few tasks: reading or joining whole tables, which PostgreSQL may expect to be quicker for all
    of them, takes seconds.
    """
    try:
        with by_indexes(seconds=PATIENCE_SECONDS):
            yield
    except OperationalError as failed:
        if not isinstance(failed.__cause__, QueryCanceled):
            raise
        raise TooBroad(_("This search takes too long. Add a rarer word, or another filter.")) from failed


def matching(project: Project, criteria: Criteria, *, reader: User) -> Matches:
    """Returns the tasks that meet the criteria. Called, and its result read, within `searching`.

    Gold tasks, and tasks that the reader is rating at the moment, are never among them.

    Raises:
        NothingToFind: the text has no word.
    """
    listed = Task.objects.filter(project=project).exclude(state=Task.State.GOLD)
    found = Matches(listed.exclude(pk__in=tasks_held_by(reader)))
    if criteria.text or criteria.facets():
        found = _with_words(found.tasks, project, criteria)
    tasks = found.tasks
    if criteria.source:
        tasks = tasks.filter(of_import(project, criteria.source))
    if criteria.state:
        tasks = tasks.filter(state=criteria.state)
    if criteria.spread:
        tasks = tasks.filter(review_spread__gte=criteria.spread)
    if criteria.label:
        tasks = _with_label(tasks, criteria.label)
    if criteria.least_reward is not None or criteria.most_reward is not None:
        tasks = champion_scores().with_rewards(tasks, project, least=criteria.least_reward, most=criteria.most_reward)
    return Matches(tasks, found.at_least if criteria.asks_for_words_alone() else 0)


def of_import(project: Project, number: int, path: str = "") -> Q:
    """Returns the condition for the tasks of an import; `path` leads from a row to its task."""
    # The import itself has no index on the tasks: the range of their ids finds them, in their order.
    row = Import.objects.filter(project=project, pk=number).first()
    ids = (row.first_task or 0, row.last_task or 0) if row else (0, 0)
    return Q(**{f"{path}id__range": ids, f"{path}from_import": number})


# PostgreSQL has no statistics of rare words, and would read the tasks one by one, from the newest, to find them. So the
# index of words is asked first (`searching` rules out that the table is read); if it names few tasks, only these are
# looked at.
_NAMED = """
SELECT task_id FROM annotator_taskwords
WHERE facets @> %(facets)s::text[] {words} LIMIT %(most)s
"""
_WITH_FACETS = Statement(_NAMED.format(words=""), prepared=False)
_WITH_WORDS = Statement(_NAMED.format(words="AND words @@ websearch_to_tsquery('simple', %(text)s)"), prepared=False)


def _with_words(tasks: QuerySet[Task], project: Project, criteria: Criteria) -> Matches:
    facets = [f"project {project.pk}", *criteria.facets()]
    if criteria.text and (_INDEXABLE.row(text=criteria.text) or ("",))[0] in ("", "T"):
        raise NothingToFind(_("Write at least one word that the texts contain."))
    statement = _WITH_WORDS if criteria.text else _WITH_FACETS
    rows = statement.rows(facets=facets, text=criteria.text, most=FEW + 1)
    if len(rows) <= FEW:
        return Matches(only(tasks, [task for (task,) in rows]))
    if criteria.text:
        query = SearchQuery(criteria.text, config="simple", search_type="websearch")
        tasks = tasks.filter(words__words=query)
    # From the project's newest task on: a list begins with it, and those of other projects may be newer.
    newest = project.tasks.order_by("-pk").values_list("pk", flat=True).first() or 0  # if all are gone meanwhile
    tasks = tasks.filter(words__task__lte=newest)
    # The index names gold tasks too, which no list shows.
    gold = project.tasks.filter(state=Task.State.GOLD)[:FEW].count()
    return Matches(tasks.filter(words__facets__contains=facets), at_least=len(rows) - gold)


def only(tasks: QuerySet[Task], ids: Sequence[int]) -> QuerySet[Task]:
    """Selects those of the tasks that have one of these ids, which may be thousands: they are one parameter."""
    return tasks.filter(pk__in=RawSQL("SELECT unnest(%s::bigint[])", [list(ids)]))


# A text of excluded words alone would select nearly everything, and no index helps with that.
_INDEXABLE = Statement("SELECT querytree(websearch_to_tsquery('simple', %(text)s))", prepared=False)


def _with_label(tasks: QuerySet[Task], label: str) -> QuerySet[Task]:
    # What Label.objects.in_force says of single labels, for tasks: a dropped task has only its reviewer's labels.
    dropped = Exists(Consensus.objects.filter(task=OuterRef("pk")).exclude(drop_reason=""))
    labels = Exists(Label.objects.filter(response__task=OuterRef("pk")))
    in_use = Q(state__in=[Task.State.OPEN, Task.State.COMPLETE])
    if label == DROPPED:
        return tasks.filter(in_use & dropped, adjudicated=False)
    if label == LABELLED:
        return tasks.filter(in_use & labels & (Q(adjudicated=True) | ~dropped))
    # Not as ~Exists(): PostgreSQL would expect hardly any such task, and prepare to read them all.
    first = Label.objects.filter(response__task=OuterRef("pk")).values(has=Value(True))[:1]
    return tasks.alias(has_label=Coalesce(Subquery(first), False)).filter(in_use & ~dropped, has_label=False)


MOST_TASKS = 100_000
"""Tasks that can be changed at once."""


def named(project: Project, numbers: Iterable[int], *, reader: User) -> Sequence[int]:
    """Returns the ids of the project's tasks with these public numbers, without those that `matching` leaves out."""
    ids = [task for number in numbers if (task := task_of(number)) is not None]
    tasks = Task.objects.filter(project=project, pk__in=ids).exclude(state=Task.State.GOLD)
    return list(tasks.exclude(pk__in=tasks_held_by(reader)).order_by("pk").values_list("pk", flat=True))


def found(project: Project, criteria: Criteria, *, reader: User) -> Sequence[int]:
    """Returns the ids of the tasks that meet the criteria; one more than can be changed at once if there are more.

    Raises:
        NothingToFind, TooBroad: as the search does.
    """
    with searching():
        return list(matching(project, criteria, reader=reader).tasks.values_list("pk", flat=True)[: MOST_TASKS + 1])

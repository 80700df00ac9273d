"""Reads what people and the champion think of the models whose responses were rated, and has them ranked.

A page waits for this, so it reads the newest tasks and as many complete ones, not every task of a large project.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, groupby
from typing import Any, NamedTuple

import numpy as np

from annotator.infrastructure.db.statements import Statement
from annotator.models import Project
from annotator.models.in_force import DECISIONS, LABEL_IN_FORCE, PAIRS_IN_FORCE, PREFERENCE_IN_FORCE
from annotator.stages.consensus.rankings import ranks_of
from rewards.leaderboard.model_ranking import Estimate, Pairs, Ranking, mean_of, ranking, sums_of
from rewards.learning.metrics import spearman
from rewards.models import RewardModel

MOST_TASKS = 1_500
"""The most tasks of each of the two kinds that are read."""
MOST_MODELS = 30
"""The models with the most responses that are ranked; a table of more could not be read."""


@dataclass(frozen=True)
class RatedModels:
    """What is known of each model. `means` holds an estimate by attribute for each name, on the labels' scale from 0.

    `people` ranks by preferences, `champion` by the rewards of the model in use. `partial`: the project has more tasks
    than were read. `left_out` models had too few responses for the list.
    """

    names: Sequence[str]
    means: Mapping[str, Mapping[str, Estimate]]
    people: Ranking
    champion: Ranking
    version: int | None
    tasks: int
    partial: bool
    left_out: int


class _Row(NamedTuple):
    """A response with what is known of its task. JSON values are texts."""

    task: int
    prompt_hash: str
    preference: int | None
    pairs: str | None
    ranking: str | None
    response: int
    model: str
    length: int
    means: str | None
    reward: float | None


_ROWS = Statement(
    f"""
WITH t AS (
    (SELECT * FROM (
        SELECT id, prompt_hash, imported_preference, state FROM annotator_task
        WHERE project_id = %(project)s ORDER BY project_id DESC, id DESC LIMIT %(most)s
    ) newest WHERE state IN ('open', 'complete'))
    UNION
    (SELECT id, prompt_hash, imported_preference, state FROM annotator_task
     WHERE project_id = %(project)s AND state = 'complete' LIMIT %(most)s)
)
SELECT t.id, t.prompt_hash,
       {PREFERENCE_IN_FORCE}, nullif({PAIRS_IN_FORCE}, '[]')::text, a.ranking::text,
       r.id, r.model, length(r.text), l.means::text, s.reward
FROM t
{DECISIONS}
JOIN annotator_response r ON r.task_id = t.id
LEFT JOIN LATERAL ({LABEL_IN_FORCE}) l ON true
LEFT JOIN rewards_score s ON s.response_id = r.id AND s.reward_model_id = %(champion)s
WHERE r.model <> ''
ORDER BY t.id, r.position
""",
    prepared=False,
)


def rated_models(project: Project) -> RatedModels:
    """Returns what is known of the models whose responses are in the project."""
    champion = RewardModel.objects.filter(project=project, is_champion=True).only("version").first()
    read = [
        _Row._make(row)
        for row in _ROWS.rows(project=project.pk, most=MOST_TASKS, champion=champion.pk if champion else 0)
    ]
    counts = Counter(row.model for row in read)
    names = sorted(name for name, _count in counts.most_common(MOST_MODELS))
    numbers = {name: number for number, name in enumerate(names)}
    rows = [row for row in read if row.model in numbers]
    prompts = {prompt: number for number, prompt in enumerate(dict.fromkeys(row.prompt_hash for row in rows))}
    tasks = [list(group) for _task, group in groupby(rows, key=lambda row: row.task)]
    return RatedModels(
        names=names,
        means=_means(rows, names, prompts, project.attribute_keys()),
        people=ranking(_pairs(tasks, numbers, prompts, _by_people), models=len(names)),
        champion=ranking(_pairs(tasks, numbers, prompts, _by_reward), models=len(names)),
        version=champion.version if champion else None,
        tasks=len(tasks),
        partial=project.tasks.order_by("pk")[MOST_TASKS : MOST_TASKS + 1].exists(),
        left_out=len(counts) - len(names),
    )


def _means(
    rows: Sequence[_Row], names: Sequence[str], prompts: Mapping[str, int], attributes: Sequence[str]
) -> dict[str, dict[str, Estimate]]:
    """Returns the mean label of each attribute for each model that has one."""
    values: dict[tuple[str, str], tuple[list[float], list[int]]] = {}
    for row in rows:
        for key, value in _scores(row.means).items() if row.means else ():
            of_model, of_prompt = values.setdefault((row.model, key), ([], []))
            of_model.append(value)
            of_prompt.append(prompts[row.prompt_hash])
    return {
        name: {
            key: mean_of(sums_of(np.array(values[name, key][0]), np.array(values[name, key][1])))
            for key in attributes
            if (name, key) in values
        }
        for name in names
    }


@lru_cache(maxsize=10_000)
def _scores(means: str) -> dict[str, float]:
    scores: dict[str, float] = json.loads(means)
    return scores


# Comparisons -----------------------------------------------------------------------------------------------


def _pairs(
    tasks: Sequence[Sequence[_Row]], numbers: Mapping[str, int], prompts: Mapping[str, int], judge: Any
) -> Pairs:
    """Returns the comparisons of two different models that the judge makes."""
    first, second, outcome, longer, of_prompt = [], [], [], [], []
    for task in tasks:
        for one, other, result in judge(task):
            if one.model != other.model:
                first.append(numbers[one.model])
                second.append(numbers[other.model])
                outcome.append(result)
                longer.append(one.length - other.length)
                of_prompt.append(prompts[one.prompt_hash])
    # Numbered anew: prompts without a comparison are none of the observations.
    known = {prompt: number for number, prompt in enumerate(dict.fromkeys(of_prompt))}
    return Pairs(
        np.array(first, dtype=np.int64),
        np.array(second, dtype=np.int64),
        np.array(outcome, dtype=np.float64),
        np.array(longer, dtype=np.float64),
        np.array([known[prompt] for prompt in of_prompt], dtype=np.int64),
    )


Compared = Iterator[tuple[_Row, _Row, float]]


def _by_people(task: Sequence[_Row]) -> Compared:
    """Yields what people think of each two responses: the reviewer's word, else the annotators', else the import's."""
    about = task[0]
    if about.ranking:
        yield from _by_ranks(task, ranks_of(json.loads(about.ranking)))
    elif about.pairs:
        by_id = {row.response: row for row in task}
        for better, worse in json.loads(about.pairs):
            if better in by_id and worse in by_id:
                yield by_id[better], by_id[worse], 1.0
    elif len(task) == 2 and about.preference is not None:
        # A preference is positive where the second response is better.
        yield task[0], task[1], 0.5 if about.preference == 0 else float(about.preference < 0)


def _by_reward(task: Sequence[_Row]) -> Compared:
    return _by_ranks(task, {row.response: -row.reward for row in task if row.reward is not None})


def _by_ranks(task: Sequence[_Row], ranks: Mapping[int, float]) -> Compared:
    """Yields which of each two responses with a rank has the lower one."""
    for one, other in combinations((row for row in task if row.response in ranks), 2):
        ahead = ranks[other.response] - ranks[one.response]
        yield one, other, 0.5 if ahead == 0 else float(ahead > 0)


# Both orders -----------------------------------------------------------------------------------------------

AGREEING = 0.5
"""Below this rank correlation the two orders disagree, whichever model is first."""


@dataclass(frozen=True)
class Place:
    """A model's place in one order, from 1, and the win rate at equal lengths that it stands by."""

    rank: int
    fair: Estimate


@dataclass(frozen=True)
class BothOrders:
    """The models in the order of people, then those that only the champion has compared.

    `correlation` is Spearman's over the `common` models that both have ranked; None for fewer than two. `disagree` says
    that the first model of one is not that of the other, or that the correlation is below AGREEING.
    """

    rows: Sequence[tuple[str, Place | None, Place | None]]
    correlation: float | None
    common: int
    disagree: bool


def both_orders(rated: RatedModels) -> BothOrders:
    """Returns the order by people beside that by the champion."""
    people, champion = (
        {one.model: Place(rank, one.fair) for rank, one in enumerate(ranked.standings, start=1)}
        for ranked in (rated.people, rated.champion)
    )
    rows = [(rated.names[model], people.get(model), champion.get(model)) for model in {**people, **champion}]
    both = [model for model in people if model in champion]
    if len(both) < 2:
        return BothOrders(rows, None, len(both), disagree=False)
    values = (np.array([places[model].fair.value for model in both]) for places in (people, champion))
    correlation = spearman(*values)
    first = (min(both, key=lambda model: places[model].rank) for places in (people, champion))
    disagree = len(set(first)) > 1 or (correlation is not None and correlation < AGREEING)
    return BothOrders(rows, correlation, len(both), disagree=disagree)


# Rows for downloads ----------------------------------------------------------------------------------------

COLUMNS = ("model", "by", "measure", "value", "low", "high", "n", "prompts")
PEOPLE, CHAMPION = "people", "reward model"


def rows_of(rated: RatedModels) -> Iterator[dict[str, Any]]:
    """Yields a row per model and measure: means on the scale from 0, shares of 1, strengths in logits."""
    for name in rated.names:
        for key, estimate in rated.means[name].items():
            yield _row(name, PEOPLE, f"mean {key}", estimate)
    for by, ranked in ((PEOPLE, rated.people), (CHAMPION, rated.champion)):
        for standing in ranked.standings:
            name = rated.names[standing.model]
            yield _row(name, by, "win rate", standing.wins)
            yield _row(name, by, "length-controlled win rate", standing.fair)
            yield _row(name, by, "Bradley-Terry strength", standing.strength)


def _row(model: str, by: str, measure: str, estimate: Estimate) -> dict[str, Any]:
    numbers = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {"model": model, "by": by, "measure": measure, **numbers, "n": estimate.n, "prompts": estimate.prompts}

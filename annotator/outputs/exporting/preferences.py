"""The layouts of preferences: the rows of HelpSteer2, and what TRL and NeMo RL train on."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from django.db.models import QuerySet

from annotator.models import Project
from annotator.models.annotation import PREFERENCE_STATEMENTS
from annotator.models.splits import is_held_out
from annotator.outputs.exporting.answered_tasks import (
    COUNTED,
    AnsweredTask,
    Compared,
    Depth,
    answered_tasks,
    comparisons,
)
from annotator.outputs.exporting.columns import INTEGER, MESSAGES, NUMBER, TEXT, Row, Type
from annotator.outputs.exporting.filters import Filters
from annotator.outputs.exporting.selections import RowSelection, compared_tasks, preferred_tasks
from annotator.stages.consensus.rankings import ranking_of
from annotator.stages.consensus.rules import Rules, most_similar
from annotator.stages.importing.conversations import as_they_came, prompt_from_messages

_VOTED, _COMPARED = Depth(votes=True), Depth(labels=True)


def preference_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each task of two responses with a preference, in HelpSteer2-Preference's fields.

    The elaboration is the first justification of a rater whose strength is the task's, if there is one.
    """
    for task, row in tasks_with_preferences(project, filters, unseen):
        yield {"split": "validation" if is_held_out(task.prompt_hash, project.validation_share) else "train", **row}


def tasks_with_preferences(
    project: Project, filters: Filters, unseen: QuerySet[Any]
) -> Iterator[tuple[AnsweredTask, Row]]:
    """Yields the tasks of `preference_rows`, each with its row without the split."""
    rules = Rules.of(project)
    for task, preference in _with_preference(preferred_tasks(project, filters).without(unseen), _VOTED):
        nearest = most_similar([vote.strength for vote in task.votes], rules) if task.votes else ()
        similar = [task.votes[place] for place in nearest]
        reasons = [vote.justification for vote in similar if vote.strength == preference and vote.justification]
        yield (
            task,
            {
                "prompt": prompt_from_messages(task.conversation),
                "response_1": task.responses[0].text,
                "response_2": task.responses[1].text,
                "preference_strength": preference,
                "preference_statement": PREFERENCE_STATEMENTS[preference],
                "preference_elaboration": reasons[0] if reasons else "",
                "three_most_similar_preferences": [
                    {
                        "statement": PREFERENCE_STATEMENTS[vote.strength],
                        "elaboration": vote.justification,
                        "strength": vote.strength,
                    }
                    for vote in similar
                ],
                "all_preferences_unprocessed": [
                    {"strength": vote.strength, "justification": vote.justification} for vote in task.votes
                ],
            },
        )


def preference_columns(_project: Project, _filters: Filters) -> Mapping[str, Type]:
    texts = dict.fromkeys(("split", "prompt", "response_1", "response_2"), TEXT)
    return {
        **texts,
        "preference_strength": INTEGER,
        "preference_statement": TEXT,
        "preference_elaboration": TEXT,
        "three_most_similar_preferences": [{"statement": TEXT, "elaboration": TEXT, "strength": INTEGER}],
        "all_preferences_unprocessed": [{"strength": INTEGER, "justification": TEXT}],
    }


def count_preferred(project: Project, filters: Filters) -> int:
    return sum(1 for _ in _with_preference(preferred_tasks(project, filters), COUNTED))


def dpo_rows(project: Project, filters: Filters, _unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each two responses that are told apart, in TRL's conversational form, with a `margin`.

    `by` says what tells them apart: a ranking (the margin is in tiers), a preference (its strength), or labels (levels
    of the deciding attribute).
    """
    for task, pairs in _compared(project, filters):
        for pair in pairs:
            yield {
                "task": task.name,
                "prompt": as_they_came(task.conversation),
                "chosen": _turn(pair.chosen.text),
                "rejected": _turn(pair.rejected.text),
                "margin": pair.margin,
                "by": pair.by,
            }


def dpo_columns(_project: Project, _filters: Filters) -> Mapping[str, Type]:
    messages = dict.fromkeys(("prompt", "chosen", "rejected"), MESSAGES)
    return {"task": TEXT, **messages, "margin": NUMBER, "by": TEXT}


def count_compared(project: Project, filters: Filters) -> int:
    return sum(len(pairs) for _, pairs in _compared(project, filters, replace(_COMPARED, texts=False)))


def nemo_rows(project: Project, filters: Filters, _unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each task whose responses are told apart, in NeMo RL's form: completions with ranks from 0."""
    for task, pairs in _compared(project, filters):
        by_id = {answer.pk: answer for pair in pairs for answer in (pair.chosen, pair.rejected)}
        tiers = ranking_of([(pair.chosen.pk, pair.rejected.pk) for pair in pairs], list(by_id))
        yield {
            "context": as_they_came(task.conversation),
            "completions": [
                {"rank": rank, "completion": _turn(by_id[response].text)}
                for rank, tier in enumerate(tiers)
                for response in tier
            ],
        }


def nemo_columns(_project: Project, _filters: Filters) -> Mapping[str, Type]:
    return {"context": MESSAGES, "completions": [{"rank": INTEGER, "completion": MESSAGES}]}


def count_told_apart(project: Project, filters: Filters) -> int:
    return sum(1 for _ in _compared(project, filters, replace(_COMPARED, texts=False)))


def _with_preference(tasks: RowSelection, depth: Depth) -> Iterator[tuple[AnsweredTask, int]]:
    for task in answered_tasks(tasks, depth):
        if task.preference is not None and len(task.responses) == 2:
            yield task, task.preference


def _compared(
    project: Project, filters: Filters, depth: Depth = _COMPARED
) -> Iterator[tuple[AnsweredTask, list[Compared]]]:
    keys = sorted(filters.keys(project), key=lambda key: key != project.spread_attribute)
    for task in answered_tasks(compared_tasks(project, filters), depth):
        if pairs := comparisons(task, keys):
            yield task, pairs


def _turn(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]

"""Settled tasks that reviewers have marked as examples, by attribute and level, for those who read the guidelines."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from annotator.models import Adjudication, Project, Task, User
from annotator.reading.blindness import tasks_held_by

MOST = 2
"""Examples of a level, the newest ones."""
LOOKED_AT = 20
"""Tasks among which they are looked for: each may be thousands of characters long."""


@dataclass(frozen=True)
class SettledExample:
    """A response that has the level in question, its prompt, and what the reviewer said."""

    prompt: str
    text: str
    comment: str


Examples = Mapping[str, Mapping[int, Sequence[SettledExample]]]
"""By the key of an attribute, then by score, which counts from 0."""


def settled_examples(project: Project, *, reader: User) -> Examples:
    """Returns up to MOST examples of each level; none from a task that the reader holds and has still to rate.

    Nor is there one of an earlier version of the rubric, whose levels may have been others.
    """
    marked = Adjudication.objects.filter(is_current=True, is_example=True, task__project=project)
    if project.rubric.previous_id:
        marked = marked.filter(made_at__gte=project.rubric.made_at)
    complete = marked.filter(task__state=Task.State.COMPLETE).exclude(task__in=tasks_held_by(reader))
    found: dict[str, dict[int, list[SettledExample]]] = defaultdict(lambda: defaultdict(list))
    for one in complete.select_related("task").prefetch_related("task__responses").order_by("-pk")[:LOOKED_AT]:
        prompt = one.task.conversation[-1]["content"]
        for response in one.task.responses.all():
            for attribute, score in one.scores.get(str(response.pk), {}).items():
                if len(examples := found[attribute][score]) < MOST:
                    examples.append(SettledExample(prompt, response.text, one.comment))
    return found

"""Plain builders: the least that makes a row valid, everything else by keyword."""

import json
from datetime import UTC, datetime
from io import BytesIO
from itertools import count
from typing import Any

from django.apps import apps

from annotator.infrastructure.db.statements import Columns, Statement
from annotator.managing.preset_rubrics import add_rubrics
from annotator.models import Assignment, Membership, Project, Role, Rubric, Task, User
from annotator.reading import pseudonyms
from annotator.stages import annotation, assignment
from annotator.stages.annotation import ResponseRating, Submission, Submitted
from annotator.stages.importing import ImportResult, import_rows

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
ATTRIBUTES = ("helpfulness", "correctness", "coherence", "complexity", "verbosity")
_number = count(1)


# What nearly every test asks for; Django would put the same queries together again each time.
_RUBRIC, _TASK = Columns(Rubric, "r"), Columns(Task, "t")
_OFFERED = Statement(
    f"SELECT {_RUBRIC} FROM annotator_rubric r WHERE key = 'helpsteer2' AND project_id IS NULL", prepared=False
)
_BY_NAME = Statement(
    f"SELECT {_TASK} FROM annotator_task t WHERE project_id = %(project)s AND external_id = %(name)s", prepared=False
)
_IN_ORDER = Statement("UPDATE annotator_task SET shuffle = id WHERE project_id = %(project)s", prepared=False)


def make_user(name: str, **fields: Any) -> User:
    return User.objects.create(username=name, password="!", **fields)


def make_rubrics() -> None:
    """Makes the rubrics of an installation without projects, where they are not there."""
    if not Rubric.objects.exists():
        # An account of PostgreSQL's that is no superuser's leaves nothing of them after a test with real transactions.
        add_rubrics(apps, None)


def make_project(slug: str = "talk", **fields: Any) -> Project:
    row = _OFFERED.row()
    if row is None:
        make_rubrics()
        row = _OFFERED.row() or ()
    return Project.objects.create(slug=slug, name=slug.capitalize(), rubric=_RUBRIC.instance(row), **fields)


def make_member(project: Project, user: User, role: str = Role.ANNOTATOR) -> Membership:
    return Membership.objects.create(project=project, user=user, role=role)


def pseudonym(user: User, project: Project) -> str:
    """What the project calls the user where no name may stand."""
    return pseudonyms.pseudonym(user.pk, project.pk)


def task_row(name: str = "", *, prompt: str = "", responses: int = 2, **fields: Any) -> dict[str, Any]:
    name = name or f"task-{next(_number)}"
    return {
        "id": name,
        "messages": [{"role": "user", "content": prompt or f"What is {name}?"}],
        "responses": [
            {"text": f"Answer {number} to {name}.", "model": f"model-{number}"} for number in range(responses)
        ],
        **fields,
    }


def label_row(prompt: str, response: str, **scores: Any) -> dict[str, Any]:
    return {"prompt": prompt, "response": response, **(dict.fromkeys(ATTRIBUTES, 3) | scores)}


def ratings_row(prompt: str, response: str, levels: list[Any], **lists: Any) -> dict[str, Any]:
    """A row of several raters: every attribute at the same levels, unless it is given."""
    return {"prompt": prompt, "response": response, **{key: list(levels) for key in ATTRIBUTES}, **lists}


def gold_row(name: str = "", *, use: str = "stream", levels: tuple[int, ...] = (3, 1), **fields: Any) -> dict[str, Any]:
    """A gold task whose response n the experts give levels[n] on every attribute."""
    row = task_row(name, responses=len(levels), gold=use, **fields)
    for response, level in zip(row["responses"], levels, strict=True):
        response["expert"] = {"scores": dict.fromkeys(ATTRIBUTES, level), "explanation": f"Level {level} it is."}
    return row


def json_lines(*rows: Any) -> BytesIO:
    return BytesIO(b"".join(row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows))


def imported(project: Project, *rows: Any, dry_run: bool = False) -> ImportResult:
    """Untouched tasks of one priority are handed out in the order of their import, as tests/conftest.py sees to."""
    result = import_rows(project, json_lines(*rows), now=NOW, dry_run=dry_run)
    _IN_ORDER.run(project=project.pk)
    return result


def make_import(project: Project, *rows: Any) -> int:
    """The number of an import of the rows, or of one of a task."""
    number = imported(project, *(rows or [task_row()])).import_id
    assert number is not None
    return number


def make_task(project: Project, name: str = "", **fields: Any) -> Task:
    row = task_row(name, **fields)
    imported(project, row)
    return the_task(project, row["id"])


def the_task(project: Project, name: str) -> Task:
    return _TASK.instance(_BY_NAME.row(project=project.pk, name=name) or ())


def make_gold(project: Project, name: str = "", **fields: Any) -> Task:
    row = gold_row(name, **fields)
    assert imported(project, row).rejected == []
    return the_task(project, row["id"])


def claimed(project: Project, user: User, now: datetime = NOW) -> Assignment:
    held = assignment.claim(project, user, now=now).assignment
    assert held is not None
    return held


def submission(task: Task, level: int | list[int] = 3, **fields: Any) -> Submission:
    """Every attribute of every response at one level, or a level per response."""
    responses = list(task.responses.all())
    levels = level if isinstance(level, list) else [level] * len(responses)
    ratings = {
        response.pk: ResponseRating(dict.fromkeys(ATTRIBUTES, scores))
        for response, scores in zip(responses, levels, strict=True)
    }
    return Submission(ratings, **fields)


def rate(project: Project, user: User, level: int | list[int] = 3, now: datetime = NOW, **fields: Any) -> Submitted:
    """The user claims the next task and rates it."""
    held = claimed(project, user, now)
    return annotation.submit(held.pk, submission(held.task, level, **fields), now=now)

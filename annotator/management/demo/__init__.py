"""The demo project: tasks of our own, four accounts, and simulated annotations that are marked as such."""

import json
import os
import random
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import BytesIO
from itertools import count, islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from annotator.infrastructure import audit
from annotator.managing import members, project_settings
from annotator.models import Assignment, Import, Membership, Origin, Project, Role, Task, User
from annotator.stages import annotation, assignment
from annotator.stages.annotation import ResponseRating, Submission
from annotator.stages.importing import import_rows

SLUG = "demo"
ACCOUNTS = ("manager", "alice", "bob", "erin")
LEFT_ALONE = "The demo does not change accounts that it did not create:"
"""Comes before their names in the output of `seed_demo`, where `make run` looks for it."""
SIMULATED_RATERS = 5
BEGAN_BEFORE = timedelta(days=4)
"""How long before the seeding the demo's tasks seem to have been imported: a day before the first annotations."""
NOT_SIMULATED = ("pii", "unsafe")
_FOLDER = Path(__file__).parent
_RESPONSE_FIELDS = ("id", "model", "text")


@dataclass(frozen=True)
class Seeded:
    """What seeding did: whether the project is new, the demo's own accounts and their password.

    `left_alone` are accounts of the same names that people made.
    """

    created: bool
    password: str
    accounts: tuple[str, ...]
    left_alone: tuple[str, ...]


# One transaction: half a demo would stay half for good, as a project that exists is left as it is.
@transaction.atomic
def seed(*, now: datetime) -> Seeded:
    """Makes accounts, project, tasks and simulated annotations; what is there already stays as it is.

    An account of the same name that somebody else made is neither changed nor put into the project.
    """
    password = _password()
    users = {name: _account(name, password) for name in ACCOUNTS}
    people = {name: user for name, user in users.items() if user.made_by_demo}
    accounts, left_alone = tuple(people), tuple(name for name in ACCOUNTS if name not in people)
    if Project.objects.filter(slug=SLUG).exists():
        return Seeded(False, password, accounts, left_alone)
    project = _project(people)
    tasks = [json.loads(line) for line in (_FOLDER / "tasks.jsonl").read_text().splitlines()]
    import_rows(project, BytesIO(b"".join(_task_lines(tasks))), now=now)
    import_rows(project, BytesIO((_FOLDER / "gold.jsonl").read_bytes()), now=now)
    _simulate(project, tasks, now=now)
    # Its tasks came before their annotations, and its three annotators are enough for whatever is still open.
    project.tasks.update(created_at=now - BEGAN_BEFORE)
    Import.objects.filter(project=project).update(made_at=now - BEGAN_BEFORE)
    Project.objects.filter(pk=project.pk).update(max_annotators=project.base_annotators)
    project.refresh_from_db()
    assignment.recount_wanted(project, now=now)
    return Seeded(True, password, accounts, left_alone)


def _password() -> str:
    """Returns DEMO_PASSWORD, or a password that is drawn once and kept in VAR_DIR, readable by its owner only."""
    if password := os.environ.get("DEMO_PASSWORD"):
        return password
    file = settings.VAR_DIR / "demo-password"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)  # before anything is in it, so that nobody else reads it even for a moment
        file.write_text(secrets.token_urlsafe(9))
    return str(file.read_text().strip())


def _account(name: str, password: str) -> User:
    user, created = User.objects.get_or_create(
        username=name, defaults={"is_staff": name == "manager", "made_by_demo": True}
    )
    if created:
        audit.record("account.created", f"account {name}")
    # DEMO_PASSWORD may be another one than at the last start. An account that somebody else made keeps its own.
    if created or (user.made_by_demo and not user.check_password(password)):
        user.set_password(password)
        user.save(update_fields=["password"])
    return user


def _project(people: dict[str, User]) -> Project:
    fields = {
        "slug": SLUG,
        "name": "Demo",
        "description": "Invented conversations with two responses each, to try everything on.",
        "ask_preference": True,
        "ask_confidence": True,
        "ask_safety": True,
        "retrain_after_labels": 40,
        "validation_share": 0.25,
    }
    guidelines = (_FOLDER / "guidelines.md").read_text()
    project = project_settings.create(fields, by=people.get("manager"), guidelines=guidelines)
    for name in people.keys() - {"manager"}:
        members.admit(project, username=name)
    return project


def _task_lines(tasks: list[dict[str, Any]]) -> Iterator[bytes]:
    for task in tasks:
        responses = [{key: response[key] for key in _RESPONSE_FIELDS} for response in task["responses"]]
        row = {
            "id": task["id"],
            "messages": task["messages"],
            "responses": responses,
            "priority": task.get("priority", 0),
            "metadata": {"topic": task["topic"]},
        }
        yield json.dumps(row).encode() + b"\n"


# Simulated annotations -------------------------------------------------------------------------------------


def _simulate(project: Project, tasks: list[dict[str, Any]], *, now: datetime) -> None:
    """Has simulated raters work through the queue by the same stages as people do.

    They see the author's judgement with noise.
    """
    dice = random.Random(2406)  # seeded: every demo gets the same annotations
    quality = {response["id"]: response["quality"] for task in tasks for response in task["responses"]}
    raters = [_simulated_rater(project, name) for name in _names_for_raters()]
    untouched = list(_left_to_rate(tasks))
    # For the moment, so that no simulated rater is given one of them.
    project.tasks.filter(external_id__in=untouched).update(state=Task.State.RETIRED)
    for number, rater in enumerate(raters):
        moment = now - timedelta(days=3, hours=number)
        while (claimed := assignment.claim(project, rater, now=moment)).assignment:
            lease = claimed.assignment
            moment += timedelta(seconds=dice.randint(60, 240))
            judgement = _judgement(lease, quality, dice)
            with audit.acting(via="command", actor=rater.username):
                # A rater's minutes may add up past `now`, and no annotation may lie in the future.
                annotation.submit(lease.pk, judgement, now=min(moment, now), origin=Origin.SIMULATED)
    project.tasks.filter(external_id__in=untouched).update(state=Task.State.OPEN)


def _left_to_rate(tasks: list[dict[str, Any]]) -> Iterator[str]:
    """Yields the ids of one task of each topic, so that a visitor finds something of every kind to rate.

    Tasks that are to be skipped are left too.
    """
    topics: set[str] = set()
    for task in tasks:
        if task["topic"] not in topics or task["topic"] in NOT_SIMULATED:
            yield task["id"]
        topics.add(task["topic"])


def _names_for_raters() -> list[str]:
    """Returns `simulated-1` and so on, without names that somebody else has taken."""
    accounts = User.objects.filter(username__startswith="simulated-", made_by_demo=False)
    taken = set(accounts.values_list("username", flat=True))
    names = (f"simulated-{number}" for number in count(1))
    return list(islice((name for name in names if name not in taken), SIMULATED_RATERS))


def _simulated_rater(project: Project, name: str) -> User:
    """Returns a member of the project that nobody can log in as: "!" is no hash, so that no password fits it."""
    rater, _ = User.objects.get_or_create(
        username=name, defaults={"is_active": False, "password": "!", "made_by_demo": True}
    )
    Membership.objects.get_or_create(project=project, user=rater, defaults={"role": Role.ANNOTATOR})
    return rater


def _judgement(lease: Assignment, quality: dict[str, dict[str, int]], dice: random.Random) -> Submission:
    """Returns scores around the author's, and the preference that follows from them in the order shown."""
    responses = assignment.responses_in_order(lease)
    scores = [_noisy(quality[response.external_id], dice) for response in responses]
    lead = scores[1]["helpfulness"] - scores[0]["helpfulness"]
    ratings = {
        response.pk: ResponseRating(levels, confidence=dice.choices((2, 1, 0), (70, 25, 5))[0], safe=True)
        for response, levels in zip(responses, scores, strict=True)
    }
    return Submission(
        ratings,
        preference=max(-3, min(3, lead)) or dice.choice((-1, 1)),
        active_seconds=dice.randint(50, 220),
    )


def _noisy(quality: dict[str, int], dice: random.Random) -> dict[str, int]:
    """Returns mostly the author's level, often one off, now and then far off: enough to escalate some tasks."""
    return {
        key: min(4, max(0, level + dice.choices((0, 1, -1, 2, -2, 3, -3), (60, 15, 15, 3, 3, 2, 2))[0]))
        for key, level in quality.items()
    }

"""Fills a database with a project that has a million annotations, and something on every page of the workspace.

SQL writes the rows in minutes (`workspace_rows`). What the light worker counts is counted at the end by its functions.
"""

import random
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from benchmarks.filling import settle, with_levels
from benchmarks.product import PASSWORD
from benchmarks.workspace_rows import AUDIT, FILL, SCORES, SNAPSHOT_TASKS, TASKS

if TYPE_CHECKING:
    from django.db.backends.utils import CursorWrapper

    from annotator.models import Project, User
    from rewards.models import RewardModel, Snapshot

SLUG = "bench"
CREW = 15
"""Annotators who share the work evenly."""
SENTENCES = 4096
ROWS = 200
"""The length of lists that do not grow with the annotations: idle members, invitations; a fifth of it are imports."""
FEWEST_COMPLETE = 120
"""Complete tasks among which there is one of every kind."""
HELD_OUT = 2_000
"""Labels on which each version was judged."""


def fill(annotations: int) -> None:
    """Makes the project, and does what the light worker and PostgreSQL's own housekeeping would do in time."""
    project = write(annotations)
    settle()
    count(project)
    settle()


def write(annotations: int, *, rows: int = ROWS) -> "Project":
    """Writes the project with about so many annotations, three of most tasks; returns it."""
    from django.db import connection, transaction
    from django.db.models import F
    from django.utils import timezone

    from annotator.models import Import

    now = timezone.now()
    project, crew, manager = _people(now, idle=rows)
    keys = project.attribute_keys()
    complete = max(annotations // 3, FEWEST_COMPLETE)
    numbers = {"complete": complete, "open": complete // 20 + rows, "quarantined": complete // 500 + rows // 5}
    numbers |= {"retired": complete // 300 + rows // 5, "gold": 60, "untouched": 50}
    values: dict[str, Any] = {"project": project.pk, "slug": SLUG, "tasks": sum(numbers.values()), **numbers}
    values |= {"crew": [user.pk for user in crew[:CREW]], "excluded": crew[CREW].pk, "manager": manager.pk}
    with transaction.atomic(), connection.cursor() as cursor:
        # Without triggers: checking references and counting row by row would take longer than writing the rows.
        cursor.execute("SET LOCAL session_replication_role = replica")
        _write_sentences(cursor)
        values |= _imports(project, manager, values, number=rows // 5, now=now)
        cursor.execute(TASKS, values)
        cursor.execute("SELECT min(id) FROM annotator_task WHERE project_id = %(project)s", values)
        values["first"] = cursor.fetchone()[0]
        Import.objects.update(
            first_task=F("first_task") + values["first"] - 1, last_task=F("last_task") + values["first"] - 1
        )
        for statement in FILL:
            cursor.execute(with_levels(statement, keys), values)
        models = _models(project, manager, keys, number=rows // 10)
        values |= {"models": [model.pk for model in models[:2]], "snapshot": models[0].run.snapshot_id}
        values["entries"] = annotations // 5
        for statement in (SCORES, SNAPSHOT_TASKS, AUDIT):
            cursor.execute(with_levels(statement, keys), values)
        cursor.execute("SET LOCAL session_replication_role = origin")
        # PostgreSQL would plan for as many rows as there were before.
        cursor.execute("ANALYZE")
    _invitations(project, manager, crew, number=rows, now=now)
    _webhooks(project, manager, number=rows, now=now)
    _bulk_changes(project, manager, number=rows, now=now)
    return project


def _bulk_changes(project: "Project", manager: "User", *, number: int, now: datetime) -> None:
    """Makes changes of many tasks, as their list shows them."""
    from annotator.models import BulkChange

    kind = {"action": BulkChange.Action.RETIRE, "by": manager, "made_at": now, "finished_at": now}
    BulkChange.objects.bulk_create(
        BulkChange(project=project, chosen=size, changed=size, **kind) for size in range(1, number + 1)
    )


def _people(now: datetime, *, idle: int) -> "tuple[Project, Sequence[User], User]":
    """Makes the accounts and the project; returns it with its annotators, the last of them excluded, and a manager."""
    from django.contrib.auth.hashers import make_password

    from annotator.models import Exclusion, Membership, Project, Role, Rubric, User

    secret = make_password(PASSWORD)  # once: it is slow on purpose
    names = [f"annotator-{number}" for number in range(1, CREW + 2)]
    names += ["manager", "reviewer", *(f"idle-{number}" for number in range(1, idle + 1))]
    users = User.objects.bulk_create(User(username=name, password=secret) for name in names)
    crew, (manager, reviewer), others = users[: CREW + 1], users[CREW + 1 : CREW + 3], users[CREW + 3 :]
    asked = {"ask_preference": True, "ask_safety": True, "gold_every": 20, "qualification_required": True}
    rubric = Rubric.objects.get(key="helpsteer2")
    project = Project.objects.create(slug=SLUG, name="Bench", rubric=rubric, **asked)
    known = {"project": project, "acknowledged_version": 12}
    Membership.objects.bulk_create(Membership(user=user, qualified_at=now, **known) for user in crew)
    Membership.objects.bulk_create(Membership(user=user, **known) for user in others)
    Membership.objects.create(user=manager, role=Role.MANAGER, **known)
    Membership.objects.create(user=reviewer, role=Role.REVIEWER, **known)
    for version in range(1, 13):
        project.guidelines.create(version=version, text=f"# Version {version}\n\n" + 60 * "- Read both answers.\n")
    Exclusion.objects.create(project=project, annotator=crew[CREW], reason="Hasty.", by=manager, made_at=now)
    return project, crew, manager


def _write_sentences(cursor: "CursorWrapper") -> None:
    """Makes the sentences of which all texts consist. Their words are as unevenly frequent as those of a language."""
    dice = random.Random(1)
    syllables = [one + other for one in "bdfgklmnprstvw" for other in ("a", "e", "i", "o", "u", "an", "er", "ol")]
    words = ["the", "of", "and", "to", *("".join(dice.choices(syllables, k=dice.randint(2, 4))) for _ in range(20_000))]
    weights = [1 / (place + 3) for place in range(len(words))]
    sentences = [" ".join(dice.choices(words, weights, k=24)).capitalize() + "." for _ in range(SENTENCES)]
    cursor.execute("CREATE TEMPORARY TABLE sentence (id int PRIMARY KEY, text text) ON COMMIT DROP")
    numbered = "SELECT n - 1, t FROM unnest(%s::text[]) WITH ORDINALITY AS x (t, n)"
    cursor.execute(f"INSERT INTO sentence {numbered}", [sentences])
    cursor.execute("ANALYZE sentence")


# Where tasks come from, and where people do ----------------------------------------------------------------


def _imports(
    project: "Project", manager: "User", values: Mapping[str, Any], *, number: int, now: datetime
) -> dict[str, list[int]]:
    """Divides the tasks among imports, the newest of which has those that nobody has touched; each has its job.

    Returns the ids of the imports, and the number of the first task of each.
    """
    from annotator.models import ExportJob, Import, ImportJob, ImportJobError, ImportMapping, Release

    tasks, last = values["tasks"], values["tasks"] - values["untouched"] + 1
    starts = [*(1 + part * (last - 1) // (number - 1) for part in range(number - 1)), last]
    files = {"file_bytes": 40_000_000, "layouts": ["own"], "rejected": 3}
    rows = [
        Import(
            project=project,
            by=manager,
            made_at=now - timedelta(days=9 * (number - place)),
            file_name=f"part-{place}.jsonl",
            created=stop - start,
            first_task=start,
            last_task=stop - 1,
            **files,
        )
        for place, (start, stop) in enumerate(pairwise([*starts, tasks + 1]), start=1)
    ]
    Import.objects.bulk_create(rows)
    done = {"state": "done", "file_hash": "0" * 64, "requested_by": manager, **files}
    jobs = ImportJob.objects.bulk_create(
        ImportJob(
            project=project,
            file_name=row.file_name,
            created=row.created,
            rows_done=row.created,
            import_row=row,
            created_at=row.made_at,
            finished_at=row.made_at,
            **done,
        )
        for row in rows
    )
    errors = (ImportJobError(job=jobs[-1], line=line, error="There is no prompt.") for line in range(1, 1_001))
    ImportJobError.objects.bulk_create(errors)
    # None that waits: a worker would write its file, and slow the pages down.
    files = {"project": project, "requested_by": manager, "created_at": now, "finished_at": now}
    ExportJob.objects.create(**files, layout="annotations", state="failed", error="The disk is nearly full.")
    ExportJob.objects.bulk_create(
        ExportJob(
            **files,
            layout=layout,
            format="jsonl",
            state="done",
            rows_done=100_000,
            bytes_done=40_000_000,
            sha256="0" * 64,
        )
        for layout in 2 * ("helpsteer2", "wide", "dpo")
    )
    paths = [f"{folder}/{split}.parquet" for folder in ("data", "preference") for split in ("train", "validation")]
    Release.objects.bulk_create(
        Release(
            project=project,
            requested_by=manager,
            number=place,
            title="Answers of last week",
            license="cc-by-4.0",
            created_at=now,
            finished_at=now,
            **(
                {"state": "failed", "error": "The disk is nearly full."}
                if place == 1
                else {
                    "state": "done",
                    "content_hash": "0" * 64,
                    "archive_sha256": "0" * 64,
                    "archive_size": 400_000_000,
                    "counts": {"tasks": 100_000, "left_out": 3},
                    "files": [{"path": path, "size": 100_000_000, "sha256": "0" * 64} for path in paths],
                }
            ),
        )
        for place in range(1, 7)
    )
    for place in range(10):
        ImportMapping.objects.create(project=project, name=f"mapping {place}", columns={}, by=manager)
    return {"imports": [row.pk for row in rows], "starts": starts}


def _webhooks(project: "Project", manager: "User", *, number: int, now: datetime) -> None:
    """As many as a project may have, one with a log. Nothing waits: a worker would send it."""
    from annotator.models import Webhook, WebhookDelivery

    made = Webhook.objects.bulk_create(
        Webhook(project=project, url="https://example.org/hook", secret="whsec_AAAA", made_by=manager, created_at=now)
        for _ in range(10)
    )
    facts: dict[str, Any] = {"attempts": 10, "status": 500, "seconds": 0.25, "error": "HTTP 500: Out of order."}
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(
            webhook=made[0],
            event="task.completed",
            data={"project": project.slug, "task": 1, "external_id": f"task-{place}"},
            state="failed" if place % 2 else "delivered",
            **facts,
        )
        for place in range(number)
    )


def _invitations(project: "Project", manager: "User", crew: Sequence["User"], *, number: int, now: datetime) -> None:
    from annotator.models import Invitation, InvitationUse

    dates = {"created_at": now, "expires_at": now + timedelta(days=7)}
    made = Invitation.objects.bulk_create(
        Invitation(project=project, digest=f"{place:064}", places=2, taken=1, made_by=manager, **dates)
        for place in range(number)
    )
    uses = (
        InvitationUse(invitation=invitation, user=crew[place % CREW], joined_at=now)
        for place, invitation in enumerate(made)
    )
    InvitationUse.objects.bulk_create(uses)


# Models ----------------------------------------------------------------------------------------------------


def _models(project: "Project", manager: "User", keys: Sequence[str], *, number: int) -> "list[RewardModel]":
    """Makes versions judged on held-out labels, and twice as many failed runs; returns them, the champion first."""
    from rewards.models import RewardModel, RunState, TrainingRun

    metrics = _metrics(keys)
    log = "".join(f"step {step} loss {1 / step:.4f}\n" for step in range(1, 2_001))
    losses = [{"event": "step", "step": step, "steps": 200, "loss": 1 / step, "time": step} for step in range(1, 201)]
    common = {"project": project, "requested_by": manager, "reason": "requested in the workspace", "log": log}
    TrainingRun.objects.bulk_create(
        TrainingRun(state=RunState.FAILED, error="CUDA ran out of memory.", **common) for _ in range(2 * number)
    )
    models: list[RewardModel] = []
    for version in range(1, number + 1):
        snapshot = _snapshot(project, version)
        ended = {"state": RunState.PROMOTED, "snapshot": snapshot, "losses": losses, "metrics": {"candidate": metrics}}
        run = TrainingRun.objects.create(**ended, **common, finished_at=snapshot.created_at)
        model = RewardModel.objects.create(
            project=project,
            run=run,
            parent=models[-1] if models else None,
            version=version,
            path="models/none",
            attributes=list(keys),
            attribute_weights=dict.fromkeys(keys, 0.2),
            manifest={},
            is_champion=version == number,
            promoted_at=snapshot.created_at,
        )
        _judge(model, metrics)
        models.append(model)
    _policies(project, models[-1], number=number)
    return models[::-1]


def _policies(project: "Project", judge: "RewardModel", *, number: int) -> None:
    """Writes as many policies as there are reward models, each with its run."""
    from rewards.models import Policy, RunKind, RunState, TrainingRun

    config = {"policy": "small", "method": "dpo"}
    judgement = {
        "prompts": 200,
        "win_rate": 0.6,
        "win_rate_interval": [0.53, 0.67],
        "length_controlled": 0.58,
        "kl_per_token": 0.05,
        "reward": {"policy": 2.1, "base": 1.9},
        "tokens": {"policy": 90.0, "base": 80.0},
    }
    for version in range(1, number + 1):
        run = TrainingRun.objects.create(
            project=project,
            kind=RunKind.POLICY,
            state=RunState.DONE,
            reason="made for a benchmark",
            config=config,
            snapshot=judge.run.snapshot,
        )
        Policy.objects.create(
            project=project,
            run=run,
            version=version,
            base="small",
            method="dpo",
            path="policies/none",
            artifact_hash="c0ffee",
            manifest={},
            state=Policy.State.REFUSED,
            reason="made for a benchmark",
            judge=judge,
            judgement=judgement,
        )


def _snapshot(project: "Project", version: int) -> "Snapshot":
    from rewards.models import Snapshot

    counts = {"train_tasks": 15_000 * version, "validation_tasks": 1_500 * version, "labels": 33_000 * version}
    manifest = {"counts": {"train_preferences": 15_000 * version, "validation_preferences": 1_500 * version}}
    digest = f"{version:064}"
    return Snapshot.objects.create(project=project, content_hash=digest, path="none", manifest=manifest, **counts)


def _judge(model: "RewardModel", metrics: dict[str, Any]) -> None:
    """Has the version judged on its own held-out labels, and with all others on one benchmark."""
    from rewards.models import Evaluation, EvaluationJob

    Evaluation.objects.create(
        reward_model=model, name="validation", data_hash=f"{model.version // 3:064}", metrics=metrics
    )
    parts = {name: {"accuracy": 0.7, "n": 100, "ties": 0} for name in ("Factuality", "Math", "Safety", "Focus")}
    judged = {"overall": {"accuracy": 0.7, "n": 400}, "domains": parts, "all": {"accuracy": 0.7, "n": 400}}
    benchmark = Evaluation.objects.create(reward_model=model, name="rewardbench2", data_hash="1" * 64, metrics=judged)
    done = {"state": EvaluationJob.State.DONE, "name": "rewardbench2", "file_name": "rewardbench2.parquet"}
    EvaluationJob.objects.create(reward_model=model, evaluation=benchmark, finished_at=model.promoted_at, **done)


def _metrics(keys: Sequence[str]) -> dict[str, Any]:
    """Returns metrics as the learning core leaves them for a model whose predictions are a level off."""
    import numpy as np

    from rewards.learning.intervals import pairwise_calibration
    from rewards.learning.metrics import attribute_measures

    dice = np.random.default_rng(1)
    labels = dice.integers(0, 5, HELD_OUT).astype(float)
    prompts = [str(number // 2) for number in range(HELD_OUT)]
    measures = {
        key: attribute_measures(labels + dice.normal(0, 1, HELD_OUT), labels, mean=2.0, prompts=prompts) for key in keys
    }
    pairs = {"pairs": HELD_OUT // 2, "ties": 0, "accuracy": 0.75, "intervals": {"accuracy": [0.7, 0.8]}}
    calibrated = {"longer_wins": 0.5, "calibration": pairwise_calibration(dice.normal(1, 1, HELD_OUT))}
    strengths = {"by_strength": {f"preference {strength}": pairs for strength in (1, 2, 3)}}
    return {
        "rmse": 1.0,
        "n": HELD_OUT * len(keys),
        "intervals": {"rmse": [0.95, 1.05]},
        "attributes": measures,
        "pairwise": {**pairs, **calibrated, **strengths},
        "human": {key: {"n": HELD_OUT, "rmse": 0.5} for key in keys},
        "slices": {"turns": {"single": {"n": HELD_OUT, "labels": HELD_OUT, "rmse": 1.0, "pairwise": pairs}}},
    }


# What the light worker counts ------------------------------------------------------------------------------


def count(project: "Project") -> None:
    """Counts agreement, quality and figures, and takes the words of the texts."""
    from django.db import connection
    from django.utils import timezone

    from annotator.analysis.agreement import totals
    from annotator.analysis.quality import assessment
    from annotator.reading.search import word_index as words

    totals.rebuild(project, now=timezone.now())
    assessment.assess(project, now=timezone.now())
    count_figures(project)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO annotator_stalewords (task_id) SELECT id FROM annotator_task ORDER BY id")
    words.take_words()


def count_figures(project: "Project") -> None:
    """Counts the figures of the overview; fresh ones keep the light worker from counting during a measurement."""
    from django.utils import timezone

    from annotator.analysis import figures

    figures.refresh(project, now=timezone.now())

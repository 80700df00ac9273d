"""Keeps aligned policies: stores the row of a new one, says where it comes from, and verifies its files."""

import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from annotator.storage.hidden_paths import value_without_places
from rewards import registry
from rewards.learning.data import file_sha256
from rewards.models import Policy, RewardModel, TrainingRun
from rewards.policies.offers import Decision

MANIFEST = "alignment.json"


def register(
    run: TrainingRun, *, judge: RewardModel | None, judgement: Mapping[str, Any], decision: Decision, now: datetime
) -> Policy:
    """Stores the policy in the run's folder as the project's next version. Call it in a transaction of its own."""
    latest = Policy.objects.filter(project=run.project).order_by("-version").first()
    policy = Policy(
        project=run.project,
        run=run,
        version=latest.version + 1 if latest else 1,
        base=run.config["policy"],
        method=run.config["method"],
        path=f"runs/{run.pk}/policy",
        state=decision.state,
        reason=decision.reason,
        judge=judge,
        judgement=_storable(judgement),
        offered_at=now if decision.state == Policy.State.OFFERED else None,
    )
    policy.manifest = json.loads((policy.directory() / MANIFEST).read_text())
    policy.artifact_hash = file_sha256(policy.directory() / MANIFEST)
    policy.save(force_insert=True)
    return policy


def _storable(value: Any) -> Any:
    """Returns a JSON value with None for NaN and infinity, which PostgreSQL refuses in JSON."""
    if isinstance(value, Mapping):
        return {name: _storable(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_storable(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def lineage(policy: Policy) -> dict[str, Any]:
    """Returns what the policy was made from and by; equal hashes mean equal contents."""
    run, manifest = policy.run, policy.manifest
    return {
        "snapshot": run.snapshot.content_hash if run.snapshot else "",
        "run": run.pk,
        "base": policy.base,
        "base_hash": manifest.get("policy_hash", ""),
        "method": policy.method,
        "settings": value_without_places(run.config),
        "config_hash": run.config_hash,
        "code_version": run.code_version,
        "seed": run.seed,
        "data_hash": manifest.get("data_hash", ""),
        "artifact_hash": policy.artifact_hash,
    }


def verify(policy: Policy) -> list[str]:
    """Hashes the policy's files again; returns what is wrong, an empty list if nothing is."""
    if policy.is_erased():
        return [_("The files were erased, because the policy learnt from texts that had to be erased.")]
    files = {**policy.manifest.get("files", {}), MANIFEST: policy.artifact_hash}
    return list(registry.changed_files(policy.directory(), files))

"""Keeps aligned policies: stores a new one, offers it or not, says where it comes from, and verifies its files.

Whether it is offered is a pure rule over its judgement, or decided by a manager by hand, which is audited.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage.hidden_paths import value_without_places
from rewards.learning.data import file_sha256
from rewards.models import Policy, RewardModel, TrainingRun
from rewards.reasons import Reason, coded, in_english, in_words
from rewards.registry import registry

MANIFEST = "alignment.json"


FEWEST_PROMPTS = 10
"""Held-out prompts below which no policy is judged."""
EVEN = 0.5


@dataclass(frozen=True)
class Decision:
    """What the rule says of a policy, and why."""

    state: Policy.State
    reason: Reason


def decide(judgement: Mapping[str, Any]) -> Decision:
    """Offers a policy whose win rate's interval lies above 50 %, and refuses every other one that was judged."""
    rate, interval = judgement["win_rate"], judgement["win_rate_interval"]
    if not all(math.isfinite(value) for value in judgement["reward"].values()):
        return Decision(Policy.State.REFUSED, coded("rewards_not_numbers"))
    if judgement["ties"] == judgement["prompts"]:
        return Decision(Policy.State.REFUSED, coded("same_answers", prompts=judgement["prompts"]))
    low = interval[0] if interval else 0.0
    shares = {"rate": 100 * rate, "low": 100 * low}
    if low > EVEN:
        return Decision(Policy.State.OFFERED, coded("better_answers", prompts=judgement["prompts"], **shares))
    if rate > EVEN:
        return Decision(Policy.State.REFUSED, coded("may_be_chance", prompts=judgement["prompts"], **shares))
    return Decision(Policy.State.REFUSED, coded("worse_answers", prompts=judgement["prompts"], rate=100 * rate))


def unjudged(*, prompts: int | None = None) -> Decision:
    """Returns what is said of a policy that nobody could judge: for lack of a champion, or of so many prompts."""
    if prompts is None:
        return Decision(Policy.State.CANDIDATE, coded("no_champion"))
    return Decision(Policy.State.CANDIDATE, coded("no_prompts", prompts=prompts, fewest=FEWEST_PROMPTS))


@transaction.atomic
def offer(policy: Policy, *, confirmed: bool, now: datetime) -> Policy:
    """Offers a policy that the rule has refused, or that nobody has judged.

    Raises:
        Refusal: it is offered.
        Refusal: there is nothing left to offer.
        Refusal: nobody has confirmed that it is wanted against the rule.
    """
    policy = Policy.objects.select_for_update(of=["self"]).select_related("project").get(pk=policy.pk)
    if policy.state == Policy.State.OFFERED:
        raise Refusal(_("Policy %(version)s is offered already.") % {"version": policy.version}, code="offered_already")
    if policy.is_erased():
        text = _("Policy %(version)s has been erased with the snapshot that it learnt from.")
        raise Refusal(text % {"version": policy.version}, code="files_erased")
    if not confirmed:
        text = _("Policy %(version)s is not offered. %(reason)s Confirm to offer it anyway.")
        words = {"version": policy.version, "reason": in_words(policy.reason)}
        raise Refusal(text % words, code="confirmation_needed")
    overruled = policy.reason
    policy.state, policy.offered_at = Policy.State.OFFERED, now
    policy.reason = coded("by_hand", before=overruled)
    policy.save(update_fields=["state", "offered_at", "reason"])
    audit.record("policy.offered", f"policy {policy.version}", project=policy.project, overruled=in_english(overruled))
    return policy


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

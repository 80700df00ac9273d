"""Stage 2: who rates what next. `picking` finds a task, `claiming` leases it, `holding` is what becomes of a lease."""

from annotator.assignment.claiming import REASONS, Claim, claim, next_task, one_claim_at_a_time, why_nothing
from annotator.assignment.holding import (
    NotLeased,
    expire_all,
    free_slot,
    heartbeat,
    in_order,
    locked,
    locked_own,
    locked_to_claim,
    own,
    reclaim_expired,
    release,
    response_order,
    responses_in_order,
)
from annotator.assignment.recounting import (
    Difference,
    differences,
    recount,
    recount_all_wanted,
    recount_later,
    recount_wanted,
)

__all__ = [
    "REASONS",
    "Claim",
    "Difference",
    "NotLeased",
    "claim",
    "differences",
    "expire_all",
    "free_slot",
    "heartbeat",
    "in_order",
    "locked",
    "locked_own",
    "locked_to_claim",
    "next_task",
    "one_claim_at_a_time",
    "own",
    "reclaim_expired",
    "recount",
    "recount_all_wanted",
    "recount_later",
    "recount_wanted",
    "release",
    "response_order",
    "responses_in_order",
    "why_nothing",
]

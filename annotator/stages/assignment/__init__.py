"""Stage 2, who rates what next: `task_choice` finds a task, `claims` leases it, `leases` renews and ends leases.

`ahead` leases the tasks that a browser keeps ready, `entitlement` decides who may still act, `remaining` counts what is
left, `counters` recomputes what is stored.
"""

from annotator.stages.assignment.ahead import claims_of, let_go, stock_up
from annotator.stages.assignment.claims import Claim, claim, next_task, one_claim_at_a_time, why_nothing
from annotator.stages.assignment.counters import differences, recount, recount_all_wanted, recount_later, recount_wanted
from annotator.stages.assignment.entitlement import ENTITLEMENT, REASONS, Entitlement, require_holding_or_at_work
from annotator.stages.assignment.leases import (
    TooManyGivenBack,
    expire_all,
    expiry,
    free_slot,
    give_back,
    heartbeat,
    in_order,
    passed_lately,
    reclaim_expired,
    release,
    response_order,
    responses_in_order,
    responses_of,
)
from annotator.stages.assignment.task_choice import tasks_left

"""Random work by four annotators and a manager, against a plain Python model of the rules."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from annotator import annotation, assignment, review
from annotator.models import Annotation, Assignment, Task
from annotator.refusals import Refusal
from tests.builders import NOW, make_member, make_project, make_task, make_user, submission

BASE, MOST, LEASE = 2, 3, timedelta(minutes=30)
NAMES = ("alice", "bob", "erin", "frank")
people = st.sampled_from(NAMES)
levels = st.sampled_from([0, 2, 3])
"""Two levels apart is near enough, three is not."""
places = st.integers(0, 1)


@dataclass
class Hold:
    """What one annotator has to do with one task."""

    state: str = "leased"
    slot: bool = True
    counts: bool = True
    expires: datetime = NOW
    level: int | None = None
    revisions: int = 0


@dataclass
class Sheet:
    """One task as the rules have it."""

    state: str = "open"
    holds: dict[str, Hold] = field(default_factory=dict)

    def held(self) -> int:
        return sum(hold.slot for hold in self.holds.values())

    def done(self) -> int:
        return sum(hold.slot and hold.state == "submitted" for hold in self.holds.values())

    def wanted(self) -> int:
        """More annotators where those who count lie more than two levels apart."""
        given = [hold.level for hold in self.holds.values() if hold.level is not None and hold.counts]
        wide = len(given) > 1 and max(given) - min(given) > 2
        return max(self.done(), MOST if wide and self.done() >= BASE else BASE)

    def open_slots(self) -> int:
        return max(self.kept_wanted - self.held(), 0)

    kept_wanted: int = BASE
    """As it was at the last change of ratings: a lease that comes or goes decides nothing."""

    def settle(self) -> None:
        self.kept_wanted = self.wanted()
        if self.state in ("open", "complete"):
            self.state = "complete" if self.done() >= self.kept_wanted else "open"

    def settle_and_seat(self) -> None:
        """Who counts beside the slots takes a free one, the earliest first."""
        self.settle()
        beside = [hold for hold in self.holds.values() if hold.state == "submitted" and hold.counts and not hold.slot]
        for hold in beside[: self.open_slots()]:
            hold.slot = True
            self.settle()


class Work(RuleBasedStateMachine):
    """Each rule does one thing to the database and to the sheets; both have to agree on whether it may be done."""

    @initialize()
    def begin(self) -> None:
        self.transaction = transaction.atomic()
        self.transaction.__enter__()
        self.now = NOW
        self.project = make_project("model", base_annotators=BASE, max_annotators=MOST)
        self.users = {name: make_user(f"{name}-{id(self)}") for name in NAMES}
        self.carol = make_user(f"carol-{id(self)}")
        for user in self.users.values():
            make_member(self.project, user)
        make_member(self.project, self.carol, role="manager")
        self.tasks = [make_task(self.project) for _ in range(2)]
        self.sheets = {task.pk: Sheet() for task in self.tasks}

    def teardown(self) -> None:
        assert list(assignment.differences(self.project, now=self.now)) == []
        transaction.set_rollback(True)
        self.transaction.__exit__(None, None, None)

    def pick(self, name: str, place: int) -> tuple[Assignment, Sheet, Hold] | None:
        """Something that the annotator has had."""
        task = self.tasks[place]
        sheet = self.sheets[task.pk]
        if name not in sheet.holds:
            return None
        found = Assignment.objects.get(task=task, annotator=self.users[name])
        return found, sheet, sheet.holds[name]

    def may(self, allowed: bool, action: Any) -> bool:
        """Does it, and compares whether it was refused."""
        try:
            action()
            done = True
        except Refusal:
            done = False
        assert done == allowed
        return done

    def reclaim(self) -> None:
        for sheet in self.sheets.values():
            for hold in sheet.holds.values():
                if hold.state == "leased" and hold.expires < self.now:
                    hold.state, hold.slot = "expired", False

    @rule(name=people)
    def claim(self, name: str) -> None:
        own = [
            sheet
            for sheet in self.sheets.values()
            if name in sheet.holds and sheet.holds[name].state == "leased" and sheet.state == "open"
        ]
        claimed = assignment.claim(self.project, self.users[name], now=self.now)
        if not own:
            self.reclaim()
        if claimed.assignment is None:
            assert claimed.reason in ("all_done", "you_did_all", "leased_by_others")
            for sheet in self.sheets.values():
                had = name in sheet.holds and sheet.holds[name].state in ("leased", "submitted", "skipped")
                assert sheet.state != "open" or sheet.open_slots() == 0 or had
            return
        sheet = self.sheets[claimed.assignment.task_id]
        assert own == [] or sheet in own
        assert own or (sheet.state == "open" and sheet.open_slots() > 0)
        hold = sheet.holds.setdefault(name, Hold(slot=False))
        assert own or hold.state not in ("submitted", "skipped")
        hold.state, hold.slot, hold.expires = "leased", True, self.now + LEASE

    @rule(name=people, level=levels)
    def rate(self, name: str, level: int) -> None:
        """What most people do most of the time."""
        self.claim(name)
        for place, task in enumerate(self.tasks):
            hold = self.sheets[task.pk].holds.get(name)
            if hold and hold.state == "leased":
                self.submit(name, place, level)

    @rule(names=st.permutations(NAMES), given=st.lists(levels, min_size=2, max_size=4))
    def rate_by_turns(self, names: list[str], given: list[int]) -> None:
        for name, level in zip(names, given, strict=False):
            self.rate(name, level)

    @rule(name=people, place=places, level=levels)
    def submit(self, name: str, place: int, level: int) -> None:
        if not (found := self.pick(name, place)):
            return
        held, sheet, hold = found
        same = hold.level == level
        first = hold.level is None
        allowed = same or (hold.state != "skipped" if first else hold.counts and sheet.state in ("open", "quarantined"))
        sent = submission(held.task, level)
        if not self.may(allowed, lambda: annotation.submit(held.pk, sent, now=self.now)) or same:
            return
        if first:
            hold.slot = hold.slot or (hold.counts and sheet.held() < sheet.kept_wanted)
        hold.state, hold.level, hold.revisions = "submitted", level, hold.revisions + 1
        sheet.settle()

    @rule(name=people, place=places)
    def release(self, name: str, place: int) -> None:
        if found := self.pick(name, place):
            held, _, hold = found
            if self.may(hold.state in ("leased", "released"), lambda: assignment.release(held.pk)):
                hold.state, hold.slot = "released", False

    @rule(name=people, place=places)
    def heartbeat(self, name: str, place: int) -> None:
        if found := self.pick(name, place):
            held, _, hold = found
            if self.may(hold.state == "leased", lambda: assignment.heartbeat(held.pk, now=self.now)):
                hold.expires = self.now + LEASE

    @rule(name=people, place=places, personal=st.booleans())
    def skip(self, name: str, place: int, personal: bool) -> None:
        if not (found := self.pick(name, place)):
            return
        held, sheet, hold = found
        twice, reason = hold.state == "skipped", "pii" if personal else "other"
        allowed = hold.state != "submitted"
        if self.may(allowed, lambda: annotation.skip(held.pk, reason=reason, now=self.now)) and not twice:
            hold.state, hold.slot = "skipped", False
            if personal:
                sheet.state = "quarantined"
            sheet.settle()

    @rule(name=people, place=places)
    def report(self, name: str, place: int) -> None:
        if found := self.pick(name, place):
            held, sheet, hold = found
            annotation.report(held.pk, category="harmful", now=self.now)
            if hold.state == "leased":
                hold.state, hold.slot = "released", False
            sheet.state = "quarantined"
            sheet.settle()

    @rule(place=places)
    def put_back(self, place: int) -> None:
        task, sheet = self.tasks[place], self.sheets[self.tasks[place].pk]
        allowed = sheet.state == "quarantined"
        if self.may(allowed, lambda: annotation.decide_quarantine(task.pk, safe_to_use=True, now=self.now)):
            sheet.state = "open"
            sheet.settle()

    @rule(name=people, place=places, reject=st.booleans())
    def judge(self, name: str, place: int, reject: bool) -> None:
        if not (found := self.pick(name, place)) or found[2].level is None:
            return
        held, sheet, hold = found
        decision = "rejected" if reject else "accepted"
        review.judge(held.pk, decision=decision, comment="no", by=self.carol, now=self.now)
        if hold.counts == reject:
            hold.counts, hold.slot = not reject, False
            sheet.settle_and_seat()

    @rule(minutes=st.sampled_from([1, 20, 45]))
    def wait(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule()
    def expire(self) -> None:
        assignment.expire_all(now=self.now)
        self.reclaim()

    @invariant()
    def rows_are_as_the_sheets_have_them(self) -> None:
        if not hasattr(self, "sheets"):
            return
        for task in Task.objects.filter(pk__in=self.sheets):
            sheet = self.sheets[task.pk]
            assert (task.state, task.slots_wanted, task.done) == (sheet.state, sheet.kept_wanted, sheet.done())
            assert task.open_slots == sheet.open_slots()
            rows = task.assignments.values_list("annotator__username", "state", "slot", "counts")
            found = {name.split("-")[0]: (state, slot is not None, counts) for name, state, slot, counts in rows}
            assert found == {name: (hold.state, hold.slot, hold.counts) for name, hold in sheet.holds.items()}

    @invariant()
    def every_revision_is_there_and_one_is_current(self) -> None:
        for sheet_task, sheet in getattr(self, "sheets", {}).items():
            rows = Annotation.objects.filter(assignment__task=sheet_task)
            assert rows.count() == sum(hold.revisions for hold in sheet.holds.values())
            assert rows.current().count() == sum(hold.level is not None for hold in sheet.holds.values())


@pytest.mark.slow
def test_whatever_people_do_the_rows_follow_the_rules(db: None) -> None:
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    run_state_machine_as_test(
        Work, settings=settings(max_examples=30, stateful_step_count=15, deadline=None, suppress_health_check=quiet)
    )

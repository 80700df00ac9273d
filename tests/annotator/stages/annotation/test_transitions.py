"""Random work by four annotators and a manager, against a plain Python model of the rules."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from annotator.infrastructure.refusals import Refusal
from annotator.models import Adjudication, Annotation, Assignment, Project, Task
from annotator.stages import annotation, assignment, review
from tests.builders import ATTRIBUTES, NOW, make_member, make_project, make_task, make_user, submission

BASE, MOST, LEASE = 2, 3, timedelta(minutes=30)
NAMES = ("alice", "bob", "erin", "frank")
people = st.sampled_from(NAMES)
levels = st.sampled_from([0, 2, 3])
"""Two levels apart is near enough, three is not."""
places = st.integers(0, 1)


@dataclass
class Protocol:
    """The project's numbers, which a manager changes in the middle of the work."""

    base: int = BASE
    most: int = MOST


@dataclass
class Hold:
    """What one annotator has to do with one task. `skips` holds the reasons given, `skipped` when the last one was."""

    state: str = "leased"
    slot: bool = True
    counts: bool = True
    extra: bool = False
    rejected: bool = False
    expires: datetime = NOW
    level: int | None = None
    revisions: int = 0
    skips: list[str] = field(default_factory=list)
    skipped: datetime = NOW
    reported: bool = False
    withdrawn: bool = False


@dataclass
class Sheet:
    """One task as the rules have it. `kept_wanted` is as it was at the last change of ratings: no lease decides it."""

    protocol: Protocol
    state: str = "open"
    adjudicated: bool = False
    kept_wanted: int = BASE
    holds: dict[str, Hold] = field(default_factory=dict)

    def held(self) -> int:
        return sum(hold.slot for hold in self.holds.values())

    def done(self) -> int:
        return sum(hold.slot and hold.state == "submitted" for hold in self.holds.values())

    def wanted(self) -> int:
        """More annotators where those who count lie more than two levels apart; a settled task wants nobody else."""
        given = [hold.level for hold in self.holds.values() if hold.level is not None and hold.counts]
        wide = len(given) > 1 and max(given) - min(given) > 2
        asked = self.protocol.most if wide and self.done() >= self.protocol.base else self.protocol.base
        return max(self.done(), 0 if self.adjudicated else asked)

    def open_slots(self) -> int:
        return max(self.kept_wanted - self.held(), 0)

    def settle(self) -> None:
        self.kept_wanted = self.wanted()
        if self.state in ("open", "complete"):
            self.state = "complete" if self.done() >= self.kept_wanted else "open"

    def set_aside_by_others(self, name: str) -> bool:
        others = (hold for other, hold in self.holds.items() if other != name)
        return any("pii" in hold.skips for hold in others) or any(hold.reported for hold in self.holds.values())


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
        self.protocol, self.excluded = Protocol(), set[str]()
        self.sheets = {task.pk: Sheet(self.protocol) for task in self.tasks}

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
        assignment_row = Assignment.objects.get(task=task, annotator=self.users[name])
        return assignment_row, sheet, sheet.holds[name]

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
        if name in self.excluded:
            assert claimed.reason == "excluded"
            return
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
        if not (choice := self.pick(name, place)):
            return
        held, sheet, hold = choice
        same = hold.level == level
        first = hold.level is None
        allowed = same or (self.may_hand_in(name, hold) if first else self.may_revise(name, sheet, hold))
        sent = submission(held.task, level)
        if not self.may(allowed, lambda: annotation.submit(held.pk, sent, now=self.now)) or same:
            return
        if first and hold.counts and not hold.slot:
            hold.slot = hold.counts = sheet.held() < sheet.kept_wanted
            hold.extra = not hold.slot
        hold.state, hold.level, hold.revisions = "submitted", level, hold.revisions + 1
        sheet.settle()

    def may_hand_in(self, name: str, hold: Hold) -> bool:
        """Excluded people only while their lease would still run."""
        return hold.state != "skipped" and (name not in self.excluded or hold.expires >= self.now)

    def may_revise(self, name: str, sheet: Sheet, hold: Hold) -> bool:
        return name not in self.excluded and not hold.rejected and sheet.state in ("open", "quarantined")

    @rule(name=people, place=places)
    def release(self, name: str, place: int) -> None:
        if choice := self.pick(name, place):
            held, _, hold = choice
            if self.may(hold.state in ("leased", "released"), lambda: assignment.release(held.pk)):
                hold.state, hold.slot = "released", False

    @rule(name=people, place=places)
    def heartbeat(self, name: str, place: int) -> None:
        if choice := self.pick(name, place):
            held, _, hold = choice
            if self.may(hold.state == "leased", lambda: assignment.heartbeat(held.pk, now=self.now)):
                hold.expires = self.now + LEASE

    @rule(name=people, place=places, personal=st.booleans())
    def skip(self, name: str, place: int, personal: bool) -> None:
        """Whoever finds something personal says so, after another reason too; after rating, it withdraws the rating."""
        if not (choice := self.pick(name, place)):
            return
        held, sheet, hold = choice
        reason = "pii" if personal else "other"
        again = bool(hold.skips) and (not personal or "pii" in hold.skips)
        barred = name in self.excluded and hold.state != "leased"
        allowed = not (hold.state == "submitted" and not personal) and (again or not barred)
        if self.may(allowed, lambda: annotation.skip(held.pk, reason=reason, now=self.now)) and not again:
            if hold.state == "submitted":
                hold.level, hold.withdrawn = None, True
            hold.state, hold.slot = "skipped", False
            hold.skips.append(reason)
            hold.skipped = self.now
            if personal:
                sheet.state = "quarantined"
            sheet.settle()

    @rule(name=people, place=places, level=levels)
    def withdraw_a_rating(self, name: str, place: int, level: int) -> None:
        """What was just submitted turns out to be personal."""
        self.submit(name, place, level)
        choice = self.pick(name, place)
        if choice and choice[2].state == "submitted":
            self.skip(name, place, True)

    @rule(name=people, place=places)
    def undo(self, name: str, place: int) -> None:
        if not (choice := self.pick(name, place)):
            return
        held, sheet, hold = choice
        lifted = sheet.state == "quarantined" and not sheet.set_aside_by_others(name)
        room = (lifted or sheet.state == "open") and sheet.open_slots() > 0
        fresh = hold.state == "skipped" and self.now <= hold.skipped + timedelta(seconds=15)
        allowed = fresh and room and name not in self.excluded and not hold.withdrawn
        if self.may(allowed, lambda: annotation.undo_skip(held.pk, now=self.now)):
            hold.state, hold.slot, hold.expires, hold.skips = "leased", True, self.now + LEASE, []
            sheet.state = "open"
            sheet.settle()

    @rule(name=people, place=places)
    def report(self, name: str, place: int) -> None:
        if not (choice := self.pick(name, place)):
            return
        held, sheet, hold = choice
        allowed = name not in self.excluded or hold.state == "leased"
        if self.may(allowed, lambda: annotation.report(held.pk, category="harmful", now=self.now)):
            if hold.state == "leased":
                hold.state, hold.slot = "released", False
            hold.reported = True
            sheet.state = "quarantined"
            sheet.settle()

    @rule(place=places)
    def put_back(self, place: int) -> None:
        task, sheet = self.tasks[place], self.sheets[self.tasks[place].pk]
        allowed = sheet.state == "quarantined"
        if self.may(allowed, lambda: annotation.decide_quarantine(task.pk, safe_to_use=True, now=self.now)):
            sheet.state = "open"
            for hold in sheet.holds.values():
                hold.reported = False
            sheet.settle()

    @rule(name=people, place=places, reject=st.booleans())
    def judge(self, name: str, place: int, reject: bool) -> None:
        """An extra that is accepted counts from then on, in a slot of its own."""
        if not (choice := self.pick(name, place)) or choice[2].level is None:
            return
        held, sheet, hold = choice
        decision = "rejected" if reject else "accepted"
        review.judge(held.pk, decision=decision, comment="no", by=self.carol, now=self.now)
        hold.rejected = reject
        counts = not reject and name not in self.excluded
        if hold.counts != counts:
            hold.counts = hold.slot = counts
            hold.extra = hold.extra and not counts
            sheet.settle()

    @rule(name=people)
    def exclude(self, name: str) -> None:
        review.exclude(self.project, self.users[name], reason="no", by=self.carol, now=self.now)
        self.excluded.add(name)
        for sheet in self.sheets.values():
            hold = sheet.holds.get(name)
            if hold and hold.counts:
                hold.state = "released" if hold.state == "leased" else hold.state
                hold.counts = hold.slot = False
                sheet.settle()

    @rule(name=people)
    def readmit(self, name: str) -> None:
        review.readmit(self.project, self.users[name], now=self.now)
        if name not in self.excluded:
            return
        self.excluded.remove(name)
        for sheet in self.sheets.values():
            hold = sheet.holds.get(name)
            if hold and not hold.counts and not hold.extra and not hold.rejected:
                hold.counts, hold.slot = True, hold.state == "submitted"
                sheet.settle()

    @rule(place=places)
    def adjudicate(self, place: int) -> None:
        task, sheet = self.tasks[place], self.sheets[self.tasks[place].pk]
        scores = {response.pk: dict.fromkeys(ATTRIBUTES, 1) for response in task.responses.all()}
        made: Any = {"scores": scores, "reason": Adjudication.Reason.OTHER, "by": self.carol, "now": self.now}
        if self.may(sheet.state == "complete", lambda: review.adjudicate(task.pk, **made)):
            sheet.adjudicated = True
            sheet.settle()

    @rule(place=places)
    def withdraw(self, place: int) -> None:
        task, sheet = self.tasks[place], self.sheets[self.tasks[place].pk]
        review.withdraw(task.pk, by=self.carol, now=self.now)
        if sheet.adjudicated:
            sheet.adjudicated = False
            sheet.settle()

    @rule(base=st.integers(1, 3), more=st.integers(0, 2))
    def change_the_protocol(self, base: int, more: int) -> None:
        self.protocol.base, self.protocol.most = base, base + more
        Project.objects.filter(pk=self.project.pk).update(base_annotators=base, max_annotators=base + more)
        self.project.refresh_from_db()
        assignment.recount(self.project, now=self.now)
        for sheet in self.sheets.values():
            sheet.settle()

    @rule(seconds=st.sampled_from([1, 60, 1200, 2700]))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

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
            rows = task.assignments.values_list("annotator__username", "state", "slot", "counts", "extra")
            states = {name.split("-")[0]: (state, slot is not None, *rest) for name, state, slot, *rest in rows}
            expected = {n: (hold.state, hold.slot, hold.counts, hold.extra) for n, hold in sheet.holds.items()}
            assert states == expected

    @invariant()
    def no_task_counts_more_than_it_wants(self) -> None:
        """As a plain count has it, and as the trigger that waits for the end of the transaction."""
        for task in Task.objects.filter(pk__in=getattr(self, "sheets", {})):
            assert task.assignments.submitted().filter(counts=True).count() <= task.slots_wanted
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")

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
        Work, settings=settings(max_examples=40, stateful_step_count=20, deadline=None, suppress_health_check=quiet)
    )

"""32 annotators and 500 tasks while whatever serves them is killed: nothing is lost, doubled or asked too often.

Two web servers and a light worker over a PostgreSQL that keeps its promises to the disk. Web workers are killed all the
time, a whole web server and the light worker once, PostgreSQL is restarted once, one of its processes killed once, and
the disk is full until it ends (where we may mount a small one); leases run out, tasks are given back and rated all the
same, one annotator is excluded for a while, the manager changes the protocol twice, while Redis hangs. Afterwards plain
SQL and an oracle of the protocol's rules say whether everything is as it must be.
"""

import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.storm import faults, oracle, stored_rows
from tests.storm.journal import Journal
from tests.storm.servers import Product, product, small_disk, tokens
from tests.storm.simulated_annotators import EXCLUDED, FANS, LAST_WORDS, LEAVERS, UNLOVED, Crew

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("storm")]
ANNOTATORS, TASKS = 32, 500
STAYED = range(1, ANNOTATORS - LEAVERS + 1)


@dataclass(frozen=True)
class Aftermath:
    product: Product
    journal: Journal
    books: stored_rows.Books


@pytest.fixture(scope="module")
def after() -> Iterator[Aftermath]:
    with tempfile.TemporaryDirectory(prefix="rewardloop-storm-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # ours: PostgreSQL's account has to pass through
        with small_disk(folder) as disk, product(folder, disk) as made:
            *theirs, made.manager = tokens(made, annotators=ANNOTATORS, tasks=TASKS)
            crew = Crew([web.port for web in made.webs], theirs, TASKS)
            for server in made.servers:
                server.launch()
            for web in made.webs:
                web.wait()
            faults.storm(made, crew)
            for server in made.servers:
                server.kill()
            yield Aftermath(made, crew.journal, stored_rows.read(made))


def test_it_was_a_storm(after: Aftermath) -> None:
    happened = Counter(outage.what for outage in after.journal.outages)
    assert happened["worker"] >= 10
    assert [happened[what] for what in ("server", "light worker", "PostgreSQL", "PostgreSQL's process")] == [1] * 4
    assert happened["disk"] == bool(after.product.small_disk)
    assert after.journal.failures()
    assert sum(call.name == "ahead" and call.status == 200 for call in after.journal.calls) >= 200
    assert len(after.product.rows("SELECT FROM storm_ran_out")) >= 20
    assert any(task.late() for task in after.books.tasks.values())


# Overlap ---------------------------------------------------------------------------------------------------


def test_every_task_has_exactly_the_annotators_that_it_wants(after: Aftermath) -> None:
    """More than the rules ask for only where the manager asked for more in between, or let work count anew."""
    held = Counter(len(task.holders()) for task in after.books.complete())
    # On a busy machine the manager's protocol of four stays until every task has that many.
    assert len(held) > 1
    assert held.keys() <= set(range(oracle.BASE, oracle.MOST + 2))
    for task in after.books.complete():
        assert len(task.holders()) == task.slots_wanted == max(oracle.wanted(task.given()), len(task.given()))


def test_no_task_counts_more_than_it_wants(after: Aftermath) -> None:
    too_many = """
        SELECT t.id FROM annotator_task t JOIN annotator_assignment s ON s.task_id = t.id
        WHERE s.state = 'submitted' AND s.counts GROUP BY t.id HAVING count(*) > t.slots_wanted
    """
    without_a_slot = "SELECT FROM annotator_assignment WHERE state = 'submitted' AND counts AND slot IS NULL"
    assert after.product.rows(too_many) == after.product.rows(without_a_slot) == []


def test_what_came_without_room_is_there_and_does_not_count(after: Aftermath) -> None:
    kept = "SELECT counts FROM annotator_assignment WHERE extra AND state = 'submitted'"
    assert set(after.product.rows(kept)) == {(False,)}


def test_only_what_everybody_else_skipped_is_incomplete(after: Aftermath) -> None:
    assert len(after.books.complete()) == TASKS - UNLOVED
    had = """
        SELECT t.state, t.done, count(*) FILTER (WHERE s.state = 'skipped')
        FROM annotator_task t JOIN annotator_assignment s ON s.task_id = t.id WHERE t.state <> 'complete' GROUP BY t.id
    """
    assert [(state, done) for state, done, _ in after.product.rows(had)] == [("open", FANS)] * UNLOVED
    assert min(skipped for *_, skipped in after.product.rows(had)) >= len(STAYED) - FANS


def test_nobody_has_a_task_twice(after: Aftermath) -> None:
    twice = "SELECT FROM annotator_assignment GROUP BY task_id, annotator_id HAVING count(*) > 1"
    assert after.product.rows(twice) == []


def test_no_slot_has_two_holders(after: Aftermath) -> None:
    shared = "SELECT FROM annotator_assignment WHERE slot IS NOT NULL GROUP BY task_id, slot HAVING count(*) > 1"
    assert after.product.rows(shared) == []


def test_nobody_holds_two_tasks_at_once(after: Aftermath) -> None:
    assert after.product.rows("SELECT FROM storm_two_at_once") == []


def test_no_lease_is_left(after: Aftermath) -> None:
    """But on tasks that were complete all of a sudden, as fewer annotators were asked for."""
    left = "SELECT FROM annotator_assignment s JOIN annotator_task t ON t.id = task_id WHERE s.state = 'leased'"
    assert after.product.rows(f"{left} AND t.state = 'open'") == []


# Nothing lost, nothing doubled -----------------------------------------------------------------------------


def test_every_acknowledged_rating_is_stored_as_it_was_sent(after: Aftermath) -> None:
    stored = {
        annotation.text: (annotation.assignment, annotation.task, annotation.annotator, annotation.ratings)
        for annotation in after.books.annotations
    }
    for sent in (entry for entry in after.journal.sent if entry.acknowledged):
        assert stored[sent.text] == (sent.assignment, sent.task, sent.annotator, sent.ratings)


def test_nothing_is_stored_that_nobody_sent(after: Aftermath) -> None:
    sent = {(entry.text, entry.assignment, entry.task, entry.annotator): entry.ratings for entry in after.journal.sent}
    for annotation in after.books.annotations:
        assert sent[annotation.text, annotation.assignment, annotation.task, annotation.annotator] == annotation.ratings


def test_what_was_sent_twice_is_stored_once(after: Aftermath) -> None:
    assert max(Counter(annotation.text for annotation in after.books.annotations).values()) == 1
    assert max(sent.statuses.count(201) for sent in after.journal.sent) == 1
    assert any(len(sent.statuses) > 1 for sent in after.journal.sent)


def test_only_revisions_are_refused_and_only_because_the_task_is_complete(after: Aftermath) -> None:
    """Or because who sends them is excluded just then."""
    refused = [sent for sent in after.journal.sent if {*sent.refusals} - {"not_at_work"}]
    assert {code for sent in refused for code in sent.refusals} == {"refused"}
    assert all(sent.revises for sent in refused)
    barred = [sent for sent in after.journal.sent if "not_at_work" in sent.refusals]
    assert {sent.annotator for sent in barred} <= {EXCLUDED}


def test_revisions_count_from_one_and_the_last_is_current(after: Aftermath) -> None:
    revisions = """
        SELECT FROM annotator_assignment s LEFT JOIN annotator_annotation a ON a.assignment_id = s.id GROUP BY s.id
        HAVING (s.state = 'submitted') <> (count(a.id) > 0) OR coalesce(max(a.revision), 0) <> count(a.id)
            OR array_remove(array_agg(CASE WHEN a.is_current THEN a.revision END), NULL)
                <> array_remove(ARRAY[max(a.revision)], NULL)
    """
    assert after.product.rows(revisions) == []
    assert any(annotation.revision == 2 for annotation in after.books.annotations)


def test_every_acknowledged_skip_is_stored_once(after: Aftermath) -> None:
    stored = """
        SELECT s.id, s.state, count(*) FROM annotator_skip k JOIN annotator_assignment s ON s.id = k.assignment_id
        GROUP BY s.id
    """
    assert set(after.product.rows(stored)) == {(skipped, "skipped", 1) for skipped in after.journal.skipped}


# Counters, labels ------------------------------------------------------------------------------------------


def test_the_counters_of_tasks_are_right(after: Aftermath) -> None:
    wrong = """
        SELECT t.id FROM annotator_task t, LATERAL (
            SELECT count(s.slot) AS held, count(s.slot) FILTER (WHERE s.state = 'submitted') AS done
            FROM annotator_assignment s WHERE s.task_id = t.id
        ) c
        WHERE t.done <> c.done OR t.open_slots <> greatest(t.slots_wanted - c.held, 0) OR t.begun <> (c.held > 0)
            OR (t.state = 'complete') <> (c.done = t.slots_wanted)
    """
    assert after.product.rows(wrong) == []


def test_the_tallies_of_annotators_are_right(after: Aftermath) -> None:
    done = dict(after.product.rows("SELECT annotator_id, done FROM annotator_tally"))
    rated = "SELECT annotator_id, count(*) FROM annotator_assignment WHERE state = 'submitted' GROUP BY 1"
    assert done == dict(after.product.rows(rated))


def test_the_consensus_is_what_the_protocol_gives(after: Aftermath) -> None:
    for task in after.books.complete():
        given = task.given()
        kept = oracle.kept(given)
        assert task.consensus == {
            "kept": [rating.number for rating in kept],
            "annotators": len(given),
            "spread": oracle.apart(kept),
            "spread_of_all": oracle.apart(given),
            "drop_reason": "too far apart" if oracle.apart(kept) > oracle.TOO_FAR else "",
        }


def test_the_labels_are_what_the_protocol_gives(after: Aftermath) -> None:
    for task in after.books.complete():
        means = oracle.means(oracle.kept(task.given()))
        assert task.labels == {
            response: (
                {key: oracle.rounded(mean) for key, mean in of_response.items()},
                {key: float(mean) for key, mean in of_response.items()},
            )
            for response, of_response in means.items()
        }


def test_incomplete_tasks_have_no_labels(after: Aftermath) -> None:
    left = [task for task in after.books.tasks.values() if task.state != "complete"]
    assert [task for task in left if task.consensus or task.labels] == []


def test_the_products_own_recount_finds_no_difference(after: Aftermath) -> None:
    done = after.product.run("manage.py", "recount", "storm", "--check")
    assert (done.returncode, done.stdout) == (0, "no differences\n"), done.stderr


# Answers ---------------------------------------------------------------------------------------------------


def test_everybody_is_told_why_nothing_is_left(after: Aftermath) -> None:
    last = dict(after.journal.reasons)
    assert {number: last[number] for number in STAYED} == dict.fromkeys(STAYED, "you_did_all")
    assert {reason for number, reason in after.journal.reasons if number != EXCLUDED} <= {
        *LAST_WORDS,
        "leased_by_others",
    }
    assert "excluded" in {reason for number, reason in after.journal.reasons if number == EXCLUDED}


def test_the_manager_is_answered_at_once_even_while_redis_hangs(after: Aftermath) -> None:
    said = [(decision.what, decision.status) for decision in after.journal.decisions]
    assert said == [("exclude", 201), *[("protocol", 200)] * 2, ("readmit", 204), *[("protocol", 200)] * 2]
    assert max(decision.seconds for decision in after.journal.decisions if decision.what == "protocol") < 3


def test_nobody_gets_an_answer_out_of_place(after: Aftermath) -> None:
    """Heartbeats and releases may find the lease gone; claims and skips always get what they ask for."""
    assert after.journal.surprises == []


def test_nothing_fails_while_everything_is_up(after: Aftermath) -> None:
    assert after.journal.unexplained() == []


def test_only_while_postgresql_is_away_does_the_server_ask_for_patience(after: Aftermath) -> None:
    broken = [call for call in after.journal.calls if call.status >= 500]
    assert {(call.status, call.code) for call in broken} <= {(503, "database_away")}
    down = [outage for outage in after.journal.outages if outage.what.startswith(("PostgreSQL", "disk"))]
    assert [call for call in broken if not any(outage.explains(call) for outage in down)] == []


def test_postgresql_refuses_nothing(after: Aftermath) -> None:
    """No constraint had to stop the code, and nobody fell into a deadlock; but for room on the disk."""
    errors = [line for line in after.product.log().splitlines() if "ERROR:" in line]
    # A backend that is killed while it writes its line leaves half of it.
    assert [line for line in errors if not re.search("No space left on device|could not extend file", line)] == []

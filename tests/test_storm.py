"""32 annotators and 500 tasks while whatever serves them is killed: nothing is lost, doubled or asked too often.

Two web servers and a light worker over a PostgreSQL that keeps its promises to the disk. Web workers are killed all the
time, a whole web server and the light worker once, PostgreSQL is restarted once and one of its processes killed once;
leases run out. Afterwards plain SQL and an oracle of the protocol's rules say whether everything is as it must be.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.storm import books, oracle, weather
from tests.storm.crew import FANS, LAST_WORDS, LEAVERS, UNLOVED, Crew
from tests.storm.journal import Journal
from tests.storm.servers import Product, product, tokens

pytestmark = pytest.mark.slow
ANNOTATORS, TASKS = 32, 500
STAYED = range(1, ANNOTATORS - LEAVERS + 1)


@dataclass(frozen=True)
class Aftermath:
    product: Product
    journal: Journal
    books: books.Books


@pytest.fixture(scope="module")
def after() -> Iterator[Aftermath]:
    with tempfile.TemporaryDirectory(prefix="rewardloop-storm-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # ours: PostgreSQL's account has to pass through
        with product(folder) as made:
            for web in made.webs:
                web.launch()
            crew = Crew([web.port for web in made.webs], tokens(made, annotators=ANNOTATORS, tasks=TASKS), TASKS)
            made.light.launch()
            for web in made.webs:
                web.wait()
            weather.storm(made, crew)
            for server in made.servers:
                server.kill()
            yield Aftermath(made, crew.journal, books.read(made))


def test_it_was_a_storm(after: Aftermath) -> None:
    happened = Counter(outage.what for outage in after.journal.outages)
    assert happened["worker"] >= 10
    assert [happened[what] for what in ("server", "light worker", "PostgreSQL", "PostgreSQL's process")] == [1] * 4
    assert after.journal.failures()
    assert len(after.product.rows("SELECT FROM storm_ran_out")) >= 20
    assert any(task.late() for task in after.books.tasks.values())


# Overlap ---------------------------------------------------------------------------------------------------


def test_every_task_has_exactly_the_annotators_that_it_wants(after: Aftermath) -> None:
    held = Counter(len(task.holders()) for task in after.books.complete())
    assert held.keys() == {oracle.BASE, oracle.MOST}
    assert all(len(task.holders()) == task.slots_wanted for task in after.books.complete())


def test_a_task_goes_to_five_exactly_where_the_ratings_lie_too_far_apart(after: Aftermath) -> None:
    for task in after.books.complete():
        assert task.slots_wanted == oracle.wanted(task.given())


def test_without_late_ratings_the_first_three_decide(after: Aftermath) -> None:
    for task in (each for each in after.books.complete() if not each.late()):
        first = [oracle.Given(each.number, each.ratings) for each in task.holders()[: oracle.BASE]]
        assert task.slots_wanted == oracle.wanted(first)


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
    beyond = "SELECT FROM annotator_assignment s JOIN annotator_task t ON t.id = task_id WHERE slot > slots_wanted"
    assert after.product.rows(shared) == after.product.rows(beyond) == []


def test_nobody_holds_two_tasks_at_once(after: Aftermath) -> None:
    assert after.product.rows("SELECT FROM storm_two_at_once") == []


def test_no_lease_is_left(after: Aftermath) -> None:
    assert after.product.rows("SELECT FROM annotator_assignment WHERE state = 'leased'") == []


# Nothing lost, nothing doubled -----------------------------------------------------------------------------


def test_every_acknowledged_rating_is_stored_as_it_was_sent(after: Aftermath) -> None:
    stored = {(each.text, each.assignment, each.task, each.annotator): each.ratings for each in after.books.annotations}
    for sent in (each for each in after.journal.sent if each.acknowledged):
        assert stored[sent.text, sent.assignment, sent.task, sent.annotator] == sent.ratings


def test_nothing_is_stored_that_nobody_sent(after: Aftermath) -> None:
    sent = {(each.text, each.assignment, each.task, each.annotator): each.ratings for each in after.journal.sent}
    for each in after.books.annotations:
        assert sent[each.text, each.assignment, each.task, each.annotator] == each.ratings


def test_what_was_sent_twice_is_stored_once(after: Aftermath) -> None:
    assert max(Counter(each.text for each in after.books.annotations).values()) == 1
    assert max(sent.statuses.count(201) for sent in after.journal.sent) == 1
    assert any(len(sent.statuses) > 1 for sent in after.journal.sent)


def test_only_revisions_are_refused_and_only_because_the_task_is_complete(after: Aftermath) -> None:
    refused = [sent for sent in after.journal.sent if sent.refusals]
    assert {code for sent in refused for code in sent.refusals} == {"refused"}
    assert all(sent.revises for sent in refused)


def test_revisions_count_from_one_and_the_last_is_current(after: Aftermath) -> None:
    revisions = """
        SELECT FROM annotator_assignment s LEFT JOIN annotator_annotation a ON a.assignment_id = s.id GROUP BY s.id
        HAVING (s.state = 'submitted') <> (count(a.id) > 0) OR coalesce(max(a.revision), 0) <> count(a.id)
            OR array_remove(array_agg(CASE WHEN a.is_current THEN a.revision END), NULL)
                <> array_remove(ARRAY[max(a.revision)], NULL)
    """
    assert after.product.rows(revisions) == []
    assert any(each.revision == 2 for each in after.books.annotations)


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
        WHERE t.done <> c.done OR t.open_slots <> t.slots_wanted - c.held OR t.begun <> (c.held > 0)
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
            "kept": [each.number for each in kept],
            "annotators": len(given),
            "spread": oracle.apart(kept),
            "spread_of_all": oracle.apart(given),
            "dropped_because": "too far apart" if oracle.apart(kept) > oracle.TOO_FAR else "",
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
    assert {reason for _, reason in after.journal.reasons} <= {*LAST_WORDS, "leased_by_others"}


def test_nobody_gets_an_answer_out_of_place(after: Aftermath) -> None:
    """Heartbeats and releases may find the lease gone; claims and skips always get what they ask for."""
    assert after.journal.surprises == []


def test_nothing_fails_while_everything_is_up(after: Aftermath) -> None:
    assert after.journal.unexplained() == []


def test_only_while_postgresql_is_away_does_the_server_ask_for_patience(after: Aftermath) -> None:
    broken = [call for call in after.journal.calls if call.status >= 500]
    assert {(call.status, call.code) for call in broken} <= {(503, "database_away")}
    down = [outage for outage in after.journal.outages if outage.what.startswith("PostgreSQL")]
    assert [call for call in broken if not any(outage.explains(call) for outage in down)] == []


def test_postgresql_refuses_nothing(after: Aftermath) -> None:
    """No constraint had to stop the code, and nobody fell into a deadlock."""
    assert [line for line in after.product.log().splitlines() if "ERROR:" in line] == []

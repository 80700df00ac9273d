"""What happens while the crew works.

Leases run out, workers are killed, PostgreSQL restarts, the disk is full, Redis hangs, and the manager excludes
somebody, readmits them, and changes the protocol twice.
"""

import asyncio
import random
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from operator import itemgetter

from tests.celery_workers import wait_for
from tests.rest import Rest
from tests.storm.journal import Decision, Journal
from tests.storm.preparing import SLUG
from tests.storm.servers import Product
from tests.storm.simulated_annotators import EXCLUDED, Crew

TICK_SECONDS = 0.3
KILLED_WORKERS = 20
LIMIT_SECONDS = 240
RUN_OUT_BY_CHANCE = 1

Disaster = Callable[[Product, Journal], None]

# As time passing would do to the leases of those who sit on them, and to some others.
_RUN_OUT = """
UPDATE annotator_assignment SET lease_expires_at = now() - interval '1 second'
WHERE state = 'leased' AND lease_expires_at > now() AND id IN (
    SELECT id FROM annotator_assignment WHERE state = 'leased' AND id = ANY(%s)
    UNION ALL (SELECT id FROM annotator_assignment WHERE state = 'leased' ORDER BY random() LIMIT %s)
)
RETURNING id
"""


def storm(product: Product, crew: Crew) -> None:
    """Returns when the crew has nothing left to do."""
    with ThreadPoolExecutor(1) as thread:
        working = thread.submit(asyncio.run, crew.work())
        try:
            rage(product, crew, working)
        finally:
            crew.stop.set()
        working.result()


def rage(product: Product, crew: Crew, working: "Future[None]") -> None:
    disasters = sorted(DISASTERS, key=itemgetter(0))
    deadline = time.monotonic() + LIMIT_SECONDS
    while not working.done():
        if time.monotonic() > deadline:
            crew.journal.surprises.append(f"{crew.progress():.0%} done after {LIMIT_SECONDS} s")
            return
        let_leases_run_out(product, crew)
        if disasters and crew.progress() >= disasters[0][0]:
            disasters.pop(0)[1](product, crew.journal)
            crew.acts += 1
        elif not disasters:
            crew.calm.set()
        time.sleep(TICK_SECONDS)


def let_leases_run_out(product: Product, crew: Crew) -> None:
    product.rows(_RUN_OUT, list(crew.sitting), RUN_OUT_BY_CHANCE)


def kill_a_worker(product: Product, journal: Journal) -> None:
    web = random.choice(product.webs)
    with journal.outage("worker", web.port):
        web.kill_a_worker()


def kill_a_server(product: Product, journal: Journal) -> None:
    web = random.choice(product.webs)
    with journal.outage("server", web.port):
        web.kill()
        web.start()


def kill_the_light_worker(product: Product, journal: Journal) -> None:
    with journal.outage("light worker", -1):
        product.light.kill()
        product.light.start()


def restart_postgres(product: Product, journal: Journal) -> None:
    with journal.outage("PostgreSQL"):
        product.restart_postgres()


def crash_postgres(product: Product, journal: Journal) -> None:
    with journal.outage("PostgreSQL's process"):
        product.kill_a_backend()


def fill_the_disk(product: Product, journal: Journal) -> None:
    if product.small_disk:
        with journal.outage("disk"):
            product.fill_the_disk()


# What the manager does -------------------------------------------------------------------------------------


def decide(product: Product, journal: Journal, what: str, *, method: str, path: str, body: object = None) -> None:
    began = time.monotonic()
    answer = Rest(f"http://127.0.0.1:{product.webs[0].port}", product.manager).call(
        method, f"projects/{SLUG}/{path}", body
    )
    journal.decisions.append(Decision(what, answer.status, time.monotonic() - began))


def exclude(product: Product, journal: Journal) -> None:
    sent = {"annotator": f"annotator-{EXCLUDED}", "reason": "Clicks without reading."}
    decide(product, journal, "exclude", method="POST", path="exclusions/", body=sent)


def readmit(product: Product, journal: Journal) -> None:
    decide(product, journal, "readmit", method="DELETE", path=f"exclusions/?annotator=annotator-{EXCLUDED}")


def ask_for(annotators: int) -> Disaster:
    """A protocol of so many annotators a task, and of three again; the light worker recounts, message or not."""

    def change(product: Product, journal: Journal) -> None:
        for number in (annotators, 3):
            with product.redis_hung():
                decide(product, journal, "protocol", method="PATCH", path="", body={"base_annotators": number})
            wait_for(lambda: not product.rows("SELECT FROM annotator_recountwanted"), what="the recount")

    return change


DISASTERS: tuple[tuple[float, Disaster], ...] = (
    *((number / KILLED_WORKERS, kill_a_worker) for number in range(KILLED_WORKERS)),
    (0.15, kill_the_light_worker),
    (0.3, kill_a_server),
    (0.5, restart_postgres),
    (0.75, crash_postgres),
    (0.85, fill_the_disk),
    (0.2, exclude),
    (0.4, ask_for(4)),
    (0.6, readmit),
    (0.65, ask_for(2)),
)
"""By how much of the work is done."""

"""Measures requests to the rating page with 10,000 tasks from the client's side, and the size of a first visit.

`python -m benchmarks.bench_pages [TASKS]`. Texts are about as long as HelpSteer2's: prompts of 713 characters,
responses of 1,493.
"""

import gzip
import http.client
import json
import random
import re
import statistics
import sys
import time
from dataclasses import dataclass, field
from io import BytesIO
from urllib.parse import urlencode, urlsplit

from benchmarks import product

REQUESTS = 300
WORDS = ("water", "light", "time", "question", "answer", "because", "small", "the", "a", "of", "and", "with", "is")
PASSWORD = "correct horse battery"


@dataclass
class Visitor:
    """One logged-in annotator over one connection."""

    address: str
    cookies: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(self.address).netloc)
        page = self.request("GET", "/login/")[1]
        self.request("POST", "/login/", {"username": "alice", "password": PASSWORD, **self.token(page)})

    def request(self, method: str, path: str, form: dict[str, str] | None = None) -> tuple[int, str]:
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        headers |= {"HX-Request": "true"} if form and "active_seconds" in form else {}
        headers |= {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
        self.connection.request(method, path, urlencode(form) if form else None, headers)
        answer = self.connection.getresponse()
        text = answer.read().decode()
        for cookie in answer.headers.get_all("Set-Cookie", []):
            name, value = cookie.split(";")[0].split("=", 1)
            self.cookies[name] = value
        return answer.status, text

    @staticmethod
    def token(page: str) -> dict[str, str]:
        match = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        return {"csrfmiddlewaretoken": match.group(1)} if match else {}


def fill(tasks: int) -> None:
    """Makes a project with so many tasks and with alice in it."""
    from django.utils import timezone

    from annotator.importing import import_rows
    from annotator.models import Membership, Project, Rubric, User

    user = User.objects.create_user("alice", password=PASSWORD)
    project = Project.objects.create(slug="bench", name="Bench", rubric=Rubric.objects.get(key="helpsteer2"))
    Membership.objects.create(user=user, project=project)
    dice = random.Random(1)
    lines = (json.dumps(task(number, dice)).encode() + b"\n" for number in range(tasks))
    result = import_rows(project, BytesIO(b"".join(lines)), now=timezone.now())
    assert result.created == tasks, result.rejected[:1]


def task(number: int, dice: random.Random) -> dict[str, object]:
    prompt = f"Question {number}: {text(dice, 700)}"
    return {
        "id": f"t-{number}",
        "messages": [{"role": "user", "content": prompt}],
        "responses": [{"text": text(dice, 1493)} for _ in range(2)],
    }


def text(dice: random.Random, characters: int) -> str:
    """Returns paragraphs and a list in markdown, as rendering them is part of what a page costs."""
    words = " ".join(dice.choices(WORDS, k=characters // 4))[:characters]
    first, strong, second, rest = words[:400], words[400:440], words[440:600], words[600:]
    return f"{first}\n\n- **{strong}**\n- {second}\n\n{rest}"


def timed(action: str, seconds: list[float]) -> str:
    ordered = sorted(1000 * second for second in seconds)
    p95 = ordered[int(0.95 * len(ordered))]
    return f"| {action} | {statistics.median(ordered):.1f} | {p95:.1f} | {ordered[-1]:.1f} |"


def reading(visitor: Visitor) -> list[float]:
    seconds = []
    for _ in range(REQUESTS):
        start = time.perf_counter()
        status, _ = visitor.request("GET", "/projects/bench/annotate/")
        seconds.append(time.perf_counter() - start)
        assert status == 200
    return seconds


def rating(visitor: Visitor) -> list[float]:
    """Returns the seconds of submissions, each of which is answered with the next task."""
    seconds = []
    page = visitor.request("GET", "/projects/bench/annotate/")[1]
    for _ in range(REQUESTS):
        form = filled(page)
        path = re.findall(r'action="(/assignments/\d+/submit/)"', page)[0]
        start = time.perf_counter()
        status, page = visitor.request("POST", path, form)
        seconds.append(time.perf_counter() - start)
        assert status == 200
        assert path not in page
    return seconds


def filled(page: str) -> dict[str, str]:
    names = set(re.findall(r'type="radio" name="([^"]+)"', page)) - {"reason", "category"}
    assert len(names) == 10, names
    return dict.fromkeys(names, "3") | {"active_seconds": "60"} | Visitor.token(page)


def weight(visitor: Visitor) -> tuple[int, int]:
    """Returns the compressed bytes of the page and of everything that it loads at once, and the number of files."""
    page = visitor.request("GET", "/projects/bench/annotate/")[1]
    files = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page))
    sizes = [len(gzip.compress(visitor.request("GET", name)[1].encode())) for name in files]
    return len(gzip.compress(page.encode())) + sum(sizes), len(files) + 1


def main(tasks: int) -> None:
    with product.database():
        fill(tasks)
        with product.running() as address:
            visitor = Visitor(address)
            reading(visitor)  # warms the server up
            print(f"{tasks:,} tasks, {REQUESTS} requests each, milliseconds\n")
            print("| request | median | p95 | longest |\n|---|---|---|---|")
            print(timed("the rating page", reading(visitor)))
            print(timed("a submission, answered with the next task", rating(visitor)))
            total, files = weight(visitor)
            print(f"\nA first visit to the rating page: {total / 1000:.1f} kB compressed in {files} files.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)

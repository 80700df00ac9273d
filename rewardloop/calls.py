"""Each REST call once: what is sent, whether it may be sent again, and what its answer becomes.

Nothing here sends anything; the two clients do, as `exchanges.py` has them.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx

from rewardloop import answers
from rewardloop.answers import Page, read, read_list, read_next
from rewardloop.errors import UnexpectedAnswer

T = TypeVar("T")
Json = Mapping[str, Any]
PAGE_SIZE = 200


@dataclass(frozen=True)
class Call(Generic[T]):
    """One call below `/api/v1/`.

    `repeatable` ones do no harm when they arrive twice; `keyed` ones make something, and carry an Idempotency-Key by
    which the server knows them again.
    """

    method: str
    path: str
    parse: Callable[[httpx.Response], T]
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    stream: "httpx.SyncByteStream | None" = None
    """A body that is read while it is sent, in place of `body`; it is an `httpx.AsyncByteStream` as well."""
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True
    keyed: bool = False


@dataclass(frozen=True, kw_only=True)
class Rating:
    """The rating of one response: a score for each attribute, counted from 0, and what else the project asks for.

    `feedback` says what is good and bad about the response, `edit` is a better version of it, and `edit_summary` what
    that changes.
    """

    response: int
    scores: Mapping[str, int]
    checks: Sequence[str] = ()
    confidence: int | None = None
    safe: bool | None = None
    unsafe_category: str = ""
    feedback: str = ""
    edit: str = ""
    edit_summary: str = ""


# What answers become -----------------------------------------------------------------------------------------
def body_of(response: httpx.Response) -> Any:
    """Returns the JSON of an answer. Raises UnexpectedAnswer for one that is none."""
    try:
        return response.json()
    except ValueError as other:
        raise UnexpectedAnswer(f"{response.request.url} answered no JSON. Is it Rewardloop's address?") from other


def one(kind: type[T]) -> Callable[[httpx.Response], T]:
    return lambda response: read(kind, body_of(response))


def listed(kind: type[T]) -> Callable[[httpx.Response], tuple[T, ...]]:
    return lambda response: read_list(kind, body_of(response))


def page(kind: type[Any]) -> Callable[[httpx.Response], Page]:
    return lambda response: _page(kind, body_of(response))


def nothing(_response: httpx.Response) -> None:
    return None


def untouched(response: httpx.Response) -> httpx.Response:
    return response


def _page(kind: type[Any], body: Any) -> Page:
    if not isinstance(body, dict):
        raise UnexpectedAnswer("The server answered no page of a list. Is it a Rewardloop of this version?")
    # The query alone: wherever the address leads, the token goes to the server that was named.
    following = httpx.URL(body.get("next") or "").query.decode()
    return Page(read_list(kind, body.get("results")), following)


def _asked(**values: Any) -> dict[str, str]:
    """Returns the parameters that are set, as texts; lists are joined by commas."""
    given = {name: value for name, value in values.items() if value is not None and value is not False and value != ""}
    return {name: _text(value) for name, value in given.items()}


def _text(value: Any) -> str:
    if value is True:
        return "true"
    if isinstance(value, datetime):
        return value.isoformat()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _in(project: str) -> str:
    return f"projects/{quote(project, safe='')}"


# Accounts and projects ---------------------------------------------------------------------------------------
def log_in(username: str, password: str, **wishes: Any) -> Call[answers.Token]:
    body = {"username": username, "password": password} | {name: value for name, value in wishes.items() if value}
    return Call("POST", "token/", one(answers.Token), body=body, repeatable=False)


def tokens() -> Call[Page]:
    return Call("GET", "tokens/", page(answers.StoredToken), query=_asked(page_size=PAGE_SIZE))


def revoke(number: int) -> Call[None]:
    return Call("DELETE", f"tokens/{number}/", nothing, repeatable=False)


def me() -> Call[answers.Me]:
    return Call("GET", "me/", one(answers.Me))


def projects(*, archived: bool) -> Call[Page]:
    return Call("GET", "projects/", page(answers.Project), query=_asked(archived=archived, page_size=PAGE_SIZE))


def project(slug: str) -> Call[answers.Project]:
    return Call("GET", f"{_in(slug)}/", one(answers.Project))


def create_project(slug: str, name: str, *, settings: Json) -> Call[answers.Project]:
    body = {"slug": slug, "name": name, **settings}
    return Call("POST", "projects/", one(answers.Project), body=body, keyed=True)


def add_member(slug: str, username: str, *, role: str) -> Call[None]:
    return Call("POST", f"{_in(slug)}/members/", nothing, body={"username": username, "role": role})


def tasks(slug: str, filters: Json) -> Call[Page]:
    return Call("GET", f"{_in(slug)}/tasks/", page(answers.Task), query=_asked(**filters, page_size=PAGE_SIZE))


# Files in and out --------------------------------------------------------------------------------------------
def start_import(slug: str, form: "httpx.SyncByteStream", *, query: Json, headers: Json) -> Call[answers.ImportJob]:
    # Sent twice, its rows are found to be there already.
    return Call(
        "POST",
        f"{_in(slug)}/import-jobs/",
        one(answers.ImportJob),
        query=_asked(**query),
        stream=form,
        headers=headers,
    )


def start_import_of_hub(slug: str, name: str, *, query: Json) -> Call[answers.ImportJob]:
    return Call(
        "POST", f"{_in(slug)}/import-jobs/", one(answers.ImportJob), query=_asked(hub=name, **query), keyed=True
    )


def import_jobs(slug: str, *, since: datetime) -> Call[Page]:
    query = _asked(since=since, page_size=PAGE_SIZE)
    return Call("GET", f"{_in(slug)}/import-jobs/", page(answers.ImportJob), query=query)


def import_job(slug: str, number: int) -> Call[answers.ImportJob]:
    return Call("GET", f"{_in(slug)}/import-jobs/{number}/", one(answers.ImportJob))


def refused_rows(slug: str, number: int) -> Call[tuple[answers.RefusedRow, ...]]:
    return Call("GET", f"{_in(slug)}/import-jobs/{number}/errors/", listed(answers.RefusedRow))


def exported_rows(slug: str, layout: str, *, filters: Json) -> Call[httpx.Response]:
    query = _asked(layout=layout, format="jsonl", **filters)
    return Call("GET", f"{_in(slug)}/export/", untouched, query=query)


def start_export(slug: str, wanted: Json) -> Call[answers.ExportJob]:
    body = {name: value if isinstance(value, bool) else _text(value) for name, value in wanted.items() if value}
    return Call("POST", f"{_in(slug)}/export-jobs/", one(answers.ExportJob), body=body, keyed=True)


def export_job(slug: str, number: int) -> Call[answers.ExportJob]:
    return Call("GET", f"{_in(slug)}/export-jobs/{number}/", one(answers.ExportJob))


def export_file(slug: str, number: int) -> Call[httpx.Response]:
    return Call("GET", f"{_in(slug)}/export-jobs/{number}/file/", untouched)


# Rating ------------------------------------------------------------------------------------------------------
def _next_task(response: httpx.Response) -> answers.NextTask:
    return read_next(body_of(response))


def next_task(slug: str) -> Call[answers.NextTask]:
    # Who holds a task gets the same again.
    return Call("POST", f"{_in(slug)}/next/", _next_task)


def submit(
    assignment: int, ratings: Iterable[Rating | Json], *, answered: Json, and_next: bool
) -> Call[answers.StoredRating]:
    rows = [_without_none(asdict(rating)) if isinstance(rating, Rating) else dict(rating) for rating in ratings]
    body = {"ratings": rows, **_without_none(answered)}
    query = {"next": "1"} if and_next else {}
    return Call("PUT", f"assignments/{assignment}/annotation/", one(answers.StoredRating), query=query, body=body)


def _without_none(values: Json) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, (), "")}


def skip(assignment: int, reason: str, *, note: str, quotes: Sequence[str]) -> Call[None]:
    body = {"reason": reason, "note": note} | ({"quotes": list(quotes)} if quotes else {})
    return Call("POST", f"assignments/{assignment}/skip/", nothing, body=body, repeatable=False)


def report(assignment: int, category: str, *, note: str) -> Call[None]:
    body = {"category": category, "note": note}
    return Call("POST", f"assignments/{assignment}/report/", nothing, body=body, repeatable=False)


def renew(assignment: int) -> Call[None]:
    return Call("POST", f"assignments/{assignment}/heartbeat/", nothing)


def give_back(assignment: int) -> Call[None]:
    return Call("DELETE", f"assignments/{assignment}/", nothing, repeatable=False)


# Training and models -----------------------------------------------------------------------------------------
def runs(slug: str) -> Call[Page]:
    return Call("GET", f"{_in(slug)}/training-runs/", page(answers.Run), query=_asked(page_size=PAGE_SIZE))


def run(number: int) -> Call[answers.Run]:
    return Call("GET", f"training-runs/{number}/", one(answers.Run))


def start_run(slug: str, config: Json, *, reason: str) -> Call[answers.Run]:
    body = {"config": dict(config)} | ({"reason": reason} if reason else {})
    return Call("POST", f"{_in(slug)}/training-runs/", one(answers.Run), body=body, keyed=True)


def retry_run(number: int) -> Call[answers.Run]:
    return Call("POST", f"training-runs/{number}/retry/", one(answers.Run), keyed=True)


def end_run(number: int, change: str) -> Call[answers.Run]:
    """`change` is *cancel* or *reject*."""
    return Call("POST", f"training-runs/{number}/{change}/", one(answers.Run), repeatable=False)


def models(slug: str) -> Call[Page]:
    return Call("GET", "reward-models/", page(answers.Model), query=_asked(project=slug, page_size=PAGE_SIZE))


def model(number: int) -> Call[answers.Model]:
    return Call("GET", f"reward-models/{number}/", one(answers.Model))


def promote(number: int, *, confirm: bool) -> Call[answers.Model]:
    body = {"confirm": confirm}
    return Call("POST", f"reward-models/{number}/promote/", one(answers.Model), body=body, repeatable=False)


def model_files(number: int) -> Call[tuple[answers.StoredFile, ...]]:
    return Call("GET", f"reward-models/{number}/files/", listed(answers.StoredFile))


def model_archive(number: int, *, part: str) -> Call[httpx.Response]:
    return Call("GET", f"reward-models/{number}/archive/", untouched, query=_asked(part=part))


def score(items: Sequence[Json], *, project: str, model: int | None) -> Call[answers.Scores]:
    body = {"items": list(items)} | ({"project": project} if project else {})
    return Call("POST", "score/", one(answers.Scores), body=body | ({} if model is None else {"model": model}))


def scoring_job(number: int) -> Call[answers.Scores]:
    return Call("GET", f"scoring-jobs/{number}/", one(answers.Scores))


# Releases ----------------------------------------------------------------------------------------------------
def releases(slug: str) -> Call[Page]:
    return Call("GET", f"{_in(slug)}/releases/", page(answers.Release), query=_asked(page_size=PAGE_SIZE))


def release(slug: str, number: int) -> Call[answers.Release]:
    return Call("GET", f"{_in(slug)}/releases/{number}/", one(answers.Release))


def create_release(slug: str, particulars: Json) -> Call[answers.Release]:
    return Call("POST", f"{_in(slug)}/releases/", one(answers.Release), body=_without_none(particulars), keyed=True)


def delete_release(slug: str, number: int) -> Call[None]:
    return Call("DELETE", f"{_in(slug)}/releases/{number}/", nothing, repeatable=False)


def release_archive(slug: str, number: int) -> Call[httpx.Response]:
    return Call("GET", f"{_in(slug)}/releases/{number}/archive/", untouched)


def json_bytes(value: Any) -> bytes:
    """Returns a value as JSON, as it stands in a body or in a line of a file."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")

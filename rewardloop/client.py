"""The client: a method for each call of REST, and for what takes several of them."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

import httpx

from rewardloop.answers import (
    ImportResult,
    Me,
    Model,
    NextTask,
    Project,
    Release,
    Run,
    Scores,
    StoredFile,
    StoredRating,
    StoredToken,
    Task,
    Token,
)
from rewardloop.connection import WRITTEN, Call, Connection, read_next, require_done, text_of
from rewardloop.downloads import check_members, exported, saved
from rewardloop.errors import NotSetUp
from rewardloop.imports import HUB, Source, imported, imported_from_hub
from rewardloop.progress import OnProgress
from rewardloop.scoring import scored

if TYPE_CHECKING:
    import datasets
    import pandas

Json = Mapping[str, Any]
RUN_ENDED = ("promoted", "rejected", "failed", "cancelled", "awaiting_promotion")


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


class Client:
    """A connection to a Rewardloop, for as long as it is open: `with Client(url, token) as client`.

    Without `url` and `token`, the environment's REWARDLOOP_URL and REWARDLOOP_TOKEN say where it is and who asks.
    `timeout` is in seconds. `retries` are further tries of a call that may be repeated, when the connection is lost or
    the server asks for patience. `transport` is httpx's, for proxies, certificates and tests.

    All methods raise RewardloopError; `rewardloop.errors` has the tree.
    """

    def __init__(
        self,
        url: str = "",
        token: str = "",
        *,
        timeout: float = 60.0,
        retries: int = 4,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.connection = Connection(url, token, timeout=timeout, retries=retries, transport=transport)

    def close(self) -> None:
        """Closes the connections."""
        self.connection.http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Accounts and projects ---------------------------------------------------------------------------------

    def log_in(
        self, username: str, password: str, *, name: str = "", scopes: Sequence[str] = (), days: int | None = None
    ) -> Token:
        """Makes a token for an account; by default it has every scope. This client goes on with its own token."""
        wishes = _without_empty({"name": name, "scopes": tuple(scopes), "days": days})
        body = {"username": username, "password": password, **wishes}
        return self.connection.one(Token, Call("POST", "token/", body=body, repeatable=False))

    def log_out(self) -> bool:
        """Revokes this client's own token. Returns False for one that is not on the account's list."""
        mine = self.connection.token.startswith
        own = [token for token in self.connection.pages(StoredToken, Call("GET", "tokens/")) if mine(token.begins)]
        if len(own) == 1:
            self.connection.answer(Call("DELETE", f"tokens/{own[0].id}/", repeatable=False))
        return len(own) == 1

    def me(self) -> Me:
        """Returns the token's account and its roles."""
        return self.connection.one(Me, Call("GET", "me/"))

    def projects(self, *, archived: bool = False) -> Iterator[Project]:
        """Yields the account's projects, or the archived ones."""
        return self.connection.pages(Project, Call("GET", "projects/", {"archived": archived}))

    def project(self, slug: str) -> Project:
        """Returns one project."""
        return self.connection.one(Project, Call("GET", _in(slug)))

    def create_project(self, slug: str, name: str, **settings: Any) -> Project:
        """Makes a project with HelpSteer2's rubric and protocol, as far as `settings` say nothing else."""
        body = {"slug": slug, "name": name, **settings}
        return self.connection.one(Project, Call("POST", "projects/", body=body))

    def add_member(self, project: str, username: str, *, role: str = "annotator") -> None:
        """Makes an existing account a member of a project."""
        self.connection.answer(Call("POST", f"{_in(project)}members/", body={"username": username, "role": role}))

    def tasks(self, project: str, **filters: Any) -> Iterator[Task]:
        """Yields a project's tasks. `filters` are those of REST, such as `state` or `q`."""
        return self.connection.pages(Task, Call("GET", f"{_in(project)}tasks/", filters))

    # Files in and out --------------------------------------------------------------------------------------

    def import_tasks(
        self,
        project: str,
        source: Source,
        *,
        mapping: str | Json = "",
        dry_run: bool = False,
        on_progress: OnProgress = None,
        timeout: float | None = None,
    ) -> ImportResult:
        """Imports a file (a path, or an open file) or rows, and waits until they are tasks.

        The text `hub:OWNER/NAME` has the server fetch a public data set of the Hugging Face Hub; `@REVISION` behind the
        name takes a branch, tag or commit, and `/FOLDER` or `/FILE` a part.
        `mapping` names a mapping that the project keeps, or is one. `dry_run` only checks. Bad rows are in `refused`
        of the result; they raise nothing. `timeout` are the seconds after which TookTooLong is raised.
        """
        named = mapping if isinstance(mapping, str) else json.dumps(mapping)
        query = {"dry_run": dry_run, "mapping": named}
        jobs = f"{_in(project)}import-jobs/"
        if isinstance(source, str) and source.startswith(HUB):
            data_set = source.removeprefix(HUB)
            return imported_from_hub(
                self.connection, jobs, data_set, query=query, on_progress=on_progress, timeout=timeout
            )
        return imported(self.connection, jobs, source, query=query, on_progress=on_progress, timeout=timeout)

    def export(
        self,
        project: str,
        to: str | Path,
        *,
        layout: str = "helpsteer2",
        format: str = "jsonl",
        gzip: bool = False,
        on_progress: OnProgress = None,
        timeout: float | None = None,
        **filters: Any,
    ) -> Path:
        """Has the server write a file, downloads it to `to` and compares its SHA-256.

        A download that breaks off goes on where it stopped. `filters` are those of REST, such as `state` or `fields`.
        """
        wanted = {"layout": layout, "format": format, "gzip": gzip, **filters}
        body = {name: value if isinstance(value, bool) else text_of(value) for name, value in wanted.items() if value}
        call = Call("POST", f"{_in(project)}export-jobs/", body=body | _request_id())
        return exported(self.connection, call, to=Path(to), on_progress=on_progress, timeout=timeout)

    def rows(self, project: str, layout: str = "helpsteer2", **filters: Any) -> Iterator[dict[str, Any]]:
        """Yields the rows of an export as they arrive."""
        query = {"layout": layout, "format": "jsonl", **filters}
        return self.connection.rows(Call("GET", f"{_in(project)}export/", query))

    def to_pandas(self, project: str, layout: str = "helpsteer2", **filters: Any) -> "pandas.DataFrame":
        """Returns an export as a pandas.DataFrame. Needs the package pandas."""
        return _package("pandas").DataFrame(list(self.rows(project, layout, **filters)))

    def to_datasets(self, project: str, layout: str = "helpsteer2", **filters: Any) -> "datasets.Dataset":
        """Returns an export as a datasets.Dataset of Hugging Face. Needs the package datasets."""
        return _package("datasets").Dataset.from_list(list(self.rows(project, layout, **filters)))

    # Rating ------------------------------------------------------------------------------------------------

    def next_task(self, project: str) -> NextTask:
        """Takes the next task to rate; what comes instead where there is none is false and says why."""
        # Who holds a task gets the same again.
        return read_next(self.connection.json(Call("POST", f"{_in(project)}next/")))

    def submit(
        self,
        assignment: int,
        ratings: Iterable[Rating | Json],
        *,
        preference: int | None = None,
        ranking: Sequence[Sequence[int]] | None = None,
        justification: str = "",
        domain: str = "",
        language: str = "",
        active_seconds: float | None = None,
        and_next: bool = False,
    ) -> StoredRating:
        """Hands in the ratings of all responses of a task. With `and_next` the answer's `next` is the next task."""
        rows = [_without_empty(asdict(rating)) if isinstance(rating, Rating) else dict(rating) for rating in ratings]
        answered = {
            "preference": preference,
            "ranking": ranking,
            "justification": justification,
            "domain": domain,
            "language": language,
            "active_seconds": active_seconds,
        }
        body = {"ratings": rows, **_without_empty(answered)}
        query = {"next": "1"} if and_next else {}
        return self.connection.one(StoredRating, Call("PUT", f"assignments/{assignment}/annotation/", query, body))

    def skip(self, assignment: int, reason: str, *, note: str = "", quotes: Sequence[str] = ()) -> None:
        """Skips a task: *pii, non_english, needs_coding, about_assistant* or *other*. `quotes` are personal texts."""
        body = {"reason": reason, "note": note} | ({"quotes": list(quotes)} if quotes else {})
        self.connection.answer(Call("POST", f"assignments/{assignment}/skip/", body=body, repeatable=False))

    def report(self, assignment: int, category: str, *, note: str = "") -> None:
        """Reports unsafe content: *harmful, illegal, profanity, bias* or *other*."""
        body = {"category": category, "note": note}
        self.connection.answer(Call("POST", f"assignments/{assignment}/report/", body=body, repeatable=False))

    def renew(self, assignment: int) -> None:
        """Renews the lease on a task."""
        self.connection.answer(Call("POST", f"assignments/{assignment}/heartbeat/"))

    def give_back(self, assignment: int) -> None:
        """Gives a task back unrated."""
        self.connection.answer(Call("DELETE", f"assignments/{assignment}/", repeatable=False))

    # Training and models -----------------------------------------------------------------------------------

    def runs(self, project: str) -> Iterator[Run]:
        """Yields a project's training runs."""
        return self.connection.pages(Run, Call("GET", f"{_in(project)}training-runs/"))

    def run(self, number: int) -> Run:
        """Returns one training run."""
        return self.connection.one(Run, Call("GET", f"training-runs/{number}/"))

    def start_run(self, project: str, *, reason: str = "", **config: Any) -> Run:
        """Starts a training run. `config` are settings for the trainer, such as `epochs=3`."""
        body = {"config": config} | ({"reason": reason} if reason else {})
        return self.connection.one(Run, Call("POST", f"{_in(project)}training-runs/", body=body))

    def wait_for_run(
        self, number: int, *, on_progress: Callable[[Run], object] | None = None, timeout: float | None = None
    ) -> Run:
        """Returns a run once it has ended or awaits a decision; `on_progress` hears of it every few seconds."""
        return self.connection.finished(
            Run,
            Call("GET", f"training-runs/{number}/"),
            is_done=lambda now: now.state in RUN_ENDED,
            on_progress=on_progress,
            timeout=timeout,
        )

    def cancel_run(self, number: int) -> Run:
        """Ends a run."""
        return self.connection.one(Run, Call("POST", f"training-runs/{number}/cancel/", repeatable=False))

    def retry_run(self, number: int) -> Run:
        """Starts a run like one that failed or was cancelled."""
        return self.connection.one(Run, Call("POST", f"training-runs/{number}/retry/"))

    def reject_run(self, number: int) -> Run:
        """Turns down the model of a run that awaits a decision; `promote` accepts it."""
        return self.connection.one(Run, Call("POST", f"training-runs/{number}/reject/", repeatable=False))

    def models(self, project: str = "") -> Iterator[Model]:
        """Yields the reward models of a project, or of all projects that one may review."""
        return self.connection.pages(Model, Call("GET", "reward-models/", {"project": project}))

    def model(self, number: int) -> Model:
        """Returns one reward model."""
        return self.connection.one(Model, Call("GET", f"reward-models/{number}/"))

    def promote(self, number: int, *, confirm: bool = False) -> Model:
        """Makes a model the champion. One that was turned down needs `confirm`, else it raises Conflict."""
        call = Call("POST", f"reward-models/{number}/promote/", body={"confirm": confirm}, repeatable=False)
        return self.connection.one(Model, call)

    def download_model(self, number: int, to: str | Path, *, part: str = "", on_progress: OnProgress = None) -> Path:
        """Downloads a model's files, or its part *reward* or *model*, as a tar file, and checks each of them."""
        files = self.connection.listed(StoredFile, Call("GET", f"reward-models/{number}/files/"))
        call = Call("GET", f"reward-models/{number}/archive/", {"part": part})
        archive = saved(self.connection, call, to=Path(to), on_progress=on_progress)
        check_members(archive, files)
        return archive

    def score(
        self,
        items: Iterable[Json],
        *,
        project: str = "",
        model: int | None = None,
        on_progress: OnProgress = None,
        timeout: float | None = None,
    ) -> Scores:
        """Scores items, {conversation, response}, by a model or by the champion of a project, as many as there are.

        One model scores all of them, even if another is promoted meanwhile.
        """
        return scored(self.connection, items, project=project, model=model, on_progress=on_progress, timeout=timeout)

    # Releases ----------------------------------------------------------------------------------------------

    def releases(self, project: str) -> Iterator[Release]:
        """Yields a project's releases."""
        return self.connection.pages(Release, Call("GET", f"{_in(project)}releases/"))

    def release(self, project: str, number: int) -> Release:
        """Returns one release."""
        return self.connection.one(Release, Call("GET", f"{_in(project)}releases/{number}/"))

    def create_release(self, project: str, **particulars: Any) -> Release:
        """Asks for a release. `particulars` are `title`, `license`, `notes` and the others of REST."""
        call = Call("POST", f"{_in(project)}releases/", body=_without_empty(particulars) | _request_id())
        return self.connection.one(Release, call)

    def wait_for_release(
        self,
        project: str,
        number: int,
        *,
        on_progress: Callable[[Release], object] | None = None,
        timeout: float | None = None,
    ) -> Release:
        """Returns a release once it is done. Raises WorkFailed for one that failed."""
        release = self.connection.finished(
            Release,
            Call("GET", f"{_in(project)}releases/{number}/"),
            is_done=lambda now: now.state in WRITTEN,
            on_progress=on_progress,
            timeout=timeout,
        )
        require_done(release, f"Release {number}")
        return release

    def download_release(self, project: str, number: int, *, to: str | Path, on_progress: OnProgress = None) -> Path:
        """Downloads a release as a tar file and compares its SHA-256."""
        release = self.release(project, number)
        require_done(release, f"Release {number}")
        call = Call("GET", f"{_in(project)}releases/{number}/archive/")
        return saved(self.connection, call, to=Path(to), on_progress=on_progress, sha256=release.archive_sha256)

    def delete_release(self, project: str, number: int) -> None:
        """Cancels a release, or deletes its files."""
        self.connection.answer(Call("DELETE", f"{_in(project)}releases/{number}/", repeatable=False))


def _in(project: str) -> str:
    return f"projects/{quote(project, safe='')}/"


def _request_id() -> dict[str, str]:
    """Returns the field by which the server knows a call again."""
    return {"request_id": str(uuid4())}


def _without_empty(values: Json) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, (), "")}


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as missing:
        raise NotSetUp(f"This needs the package {name}: pip install {name}") from missing

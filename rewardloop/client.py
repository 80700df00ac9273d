"""The client.

What it says to the server is in `calls.py`, `exchanges.py` and `work.py`; here the steps are taken.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import httpx

from rewardloop import calls
from rewardloop.answers import (
    ImportResult,
    Me,
    Model,
    NextTask,
    Page,
    Project,
    Release,
    Run,
    Scores,
    StoredRating,
    Task,
    Token,
)
from rewardloop.calls import Call, Rating
from rewardloop.exchanges import Pause, Save, Send, Server, Step, Talk, answered, breaks_off, result, server_from
from rewardloop.progress import Told, nobody
from rewardloop.tables import dataset_of, frame_of
from rewardloop.uploads import Source, hub_name, opened
from rewardloop.work import (
    Lines,
    exported,
    imported,
    imported_from_hub,
    model_saved,
    release_made,
    release_saved,
    run_ended,
    scored,
    token_revoked,
)

if TYPE_CHECKING:
    import datasets
    import pandas

T = TypeVar("T")
Json = Mapping[str, Any]


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
        self.server: Server = server_from(url, token, timeout=timeout, retries=retries)
        self._http = httpx.Client(transport=transport)

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

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
        call = calls.log_in(username, password, name=name, scopes=list(scopes), days=days)
        return self._do(result(self.server, call))

    def log_out(self) -> bool:
        """Revokes this client's own token. Returns False for one that is not on the account's list."""
        return self._do(token_revoked(self.server))

    def me(self) -> Me:
        """Returns the token's account and its roles."""
        return self._do(result(self.server, calls.me()))

    def projects(self, *, archived: bool = False) -> Iterator[Project]:
        """Yields the account's projects, or the archived ones."""
        return self._pages(calls.projects(archived=archived))

    def project(self, slug: str) -> Project:
        """Returns one project."""
        return self._do(result(self.server, calls.project(slug)))

    def create_project(self, slug: str, name: str, **settings: Any) -> Project:
        """Makes a project with HelpSteer2's rubric and protocol, as far as `settings` say nothing else."""
        return self._do(result(self.server, calls.create_project(slug, name, settings=settings)))

    def add_member(self, project: str, username: str, *, role: str = "annotator") -> None:
        """Makes an existing account a member of a project."""
        self._do(result(self.server, calls.add_member(project, username, role=role)))

    def tasks(self, project: str, **filters: Any) -> Iterator[Task]:
        """Yields a project's tasks. `filters` are those of REST, such as `state` or `q`."""
        return self._pages(calls.tasks(project, filters))

    # Files in and out --------------------------------------------------------------------------------------

    def import_tasks(
        self,
        project: str,
        source: Source,
        *,
        mapping: str | Json = "",
        dry_run: bool = False,
        told: Told = nobody,
        within: float | None = None,
    ) -> ImportResult:
        """Imports a file (a path, or an open file) or rows, and waits until they are tasks.

        The text `hub:OWNER/NAME` has the server fetch a public data set of the Hugging Face Hub; `@REVISION` behind the
        name takes a branch, tag or commit, and `/FOLDER` or `/FILE` a part.
        `mapping` names a mapping that the project keeps, or is one. `dry_run` only checks. Bad rows are in `refused`
        of the result; they raise nothing. `within` are the seconds after which TookTooLong is raised.
        """
        named = mapping if isinstance(mapping, str) else json.dumps(mapping)
        query = {"dry_run": dry_run, "mapping": named}
        if data_set := hub_name(source):
            talk = imported_from_hub(self.server, project, name=data_set, query=query, told=told, within=within)
            return self._do(talk)
        with opened(source) as (file, name):
            talk = imported(self.server, project, file=file, name=name, query=query, told=told, within=within)
            return self._do(talk)

    def export(
        self,
        project: str,
        to: str | Path,
        *,
        layout: str = "helpsteer2",
        format: str = "jsonl",
        gzip: bool = False,
        told: Told = nobody,
        within: float | None = None,
        **filters: Any,
    ) -> Path:
        """Has the server write a file, downloads it to `to` and compares its SHA-256.

        A download that breaks off goes on where it stopped. `filters` are those of REST, such as `state` or `fields`.
        """
        wanted = {"layout": layout, "format": format, "gzip": gzip, **filters}
        return self._do(exported(self.server, project, to=Path(to), wanted=wanted, told=told, within=within))

    def rows(self, project: str, layout: str = "helpsteer2", **filters: Any) -> Iterator[dict[str, Any]]:
        """Yields the rows of an export as they arrive."""
        return self._rows(calls.exported_rows(project, layout, filters=filters))

    def to_pandas(self, project: str, layout: str = "helpsteer2", **filters: Any) -> "pandas.DataFrame":
        """Returns an export as a pandas.DataFrame. Needs the package pandas."""
        return frame_of(list(self.rows(project, layout, **filters)))

    def to_datasets(self, project: str, layout: str = "helpsteer2", **filters: Any) -> "datasets.Dataset":
        """Returns an export as a datasets.Dataset of Hugging Face. Needs the package datasets."""
        return dataset_of(list(self.rows(project, layout, **filters)))

    # Rating ------------------------------------------------------------------------------------------------

    def next_task(self, project: str) -> NextTask:
        """Takes the next task to rate; what comes instead where there is none is false and says why."""
        return self._do(result(self.server, calls.next_task(project)))

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
        answered = {
            "preference": preference,
            "ranking": ranking,
            "justification": justification,
            "domain": domain,
            "language": language,
            "active_seconds": active_seconds,
        }
        return self._do(result(self.server, calls.submit(assignment, ratings, answered=answered, and_next=and_next)))

    def skip(self, assignment: int, reason: str, *, note: str = "", quotes: Sequence[str] = ()) -> None:
        """Skips a task: *pii, non_english, needs_coding, about_assistant* or *other*. `quotes` are personal texts."""
        self._do(result(self.server, calls.skip(assignment, reason, note=note, quotes=quotes)))

    def report(self, assignment: int, category: str, *, note: str = "") -> None:
        """Reports unsafe content: *harmful, illegal, profanity, bias* or *other*."""
        self._do(result(self.server, calls.report(assignment, category, note=note)))

    def renew(self, assignment: int) -> None:
        """Renews the lease on a task."""
        self._do(result(self.server, calls.renew(assignment)))

    def give_back(self, assignment: int) -> None:
        """Gives a task back unrated."""
        self._do(result(self.server, calls.give_back(assignment)))

    # Training and models -----------------------------------------------------------------------------------

    def runs(self, project: str) -> Iterator[Run]:
        """Yields a project's training runs."""
        return self._pages(calls.runs(project))

    def run(self, number: int) -> Run:
        """Returns one training run."""
        return self._do(result(self.server, calls.run(number)))

    def start_run(self, project: str, *, reason: str = "", **config: Any) -> Run:
        """Starts a training run. `config` are settings for the trainer, such as `epochs=3`."""
        return self._do(result(self.server, calls.start_run(project, config, reason=reason)))

    def wait_for_run(
        self, number: int, *, told: Callable[[Run], object] | None = None, within: float | None = None
    ) -> Run:
        """Returns a run once it has ended or awaits a decision; `told` hears of it every few seconds until then."""
        return self._do(run_ended(self.server, number, told=told, within=within))

    def cancel_run(self, number: int) -> Run:
        """Ends a run."""
        return self._do(result(self.server, calls.end_run(number, "cancel")))

    def retry_run(self, number: int) -> Run:
        """Starts a run like one that failed or was cancelled."""
        return self._do(result(self.server, calls.retry_run(number)))

    def reject_run(self, number: int) -> Run:
        """Turns down the model of a run that awaits a decision; `promote` accepts it."""
        return self._do(result(self.server, calls.end_run(number, "reject")))

    def models(self, project: str = "") -> Iterator[Model]:
        """Yields the reward models of a project, or of all projects that one may review."""
        return self._pages(calls.models(project))

    def model(self, number: int) -> Model:
        """Returns one reward model."""
        return self._do(result(self.server, calls.model(number)))

    def promote(self, number: int, *, confirm: bool = False) -> Model:
        """Makes a model the champion. One that was turned down needs `confirm`, else it raises Conflict."""
        return self._do(result(self.server, calls.promote(number, confirm=confirm)))

    def download_model(self, number: int, to: str | Path, *, part: str = "", told: Told = nobody) -> Path:
        """Downloads a model's files, or its part *reward* or *model*, as a tar file, and checks each of them."""
        return self._do(model_saved(self.server, number, to=Path(to), part=part, told=told))

    def score(
        self,
        items: Iterable[Json],
        *,
        project: str = "",
        model: int | None = None,
        told: Told = nobody,
        within: float | None = None,
    ) -> Scores:
        """Scores items, {conversation, response}, by a model or by the champion of a project, as many as there are."""
        return self._do(scored(self.server, items, project=project, model=model, told=told, within=within))

    # Releases ----------------------------------------------------------------------------------------------

    def releases(self, project: str) -> Iterator[Release]:
        """Yields a project's releases."""
        return self._pages(calls.releases(project))

    def release(self, project: str, number: int) -> Release:
        """Returns one release."""
        return self._do(result(self.server, calls.release(project, number)))

    def create_release(self, project: str, **particulars: Any) -> Release:
        """Asks for a release. `particulars` are `title`, `license`, `notes` and the others of REST."""
        return self._do(result(self.server, calls.create_release(project, particulars)))

    def wait_for_release(
        self, project: str, number: int, *, told: Callable[[Release], object] | None = None, within: float | None = None
    ) -> Release:
        """Returns a release once it is done. Raises WorkFailed for one that failed."""
        return self._do(release_made(self.server, project, number=number, told=told, within=within))

    def download_release(self, project: str, number: int, *, to: str | Path, told: Told = nobody) -> Path:
        """Downloads a release as a tar file and compares its SHA-256."""
        return self._do(release_saved(self.server, project, number=number, to=Path(to), told=told))

    def delete_release(self, project: str, number: int) -> None:
        """Cancels a release, or deletes its files."""
        self._do(result(self.server, calls.delete_release(project, number)))

    # The network -------------------------------------------------------------------------------------------

    def _do(self, talk: Talk[T]) -> T:
        """Takes the steps of a talk and returns what comes of it."""
        try:
            step = next(talk)
            while True:
                try:
                    heard = self._take(step)
                except httpx.TransportError as lost:
                    step = talk.throw(lost)
                else:
                    step = talk.send(heard)
        except StopIteration as end:
            return cast("T", end.value)

    def _take(self, step: Step) -> httpx.Response | None:
        match step:
            case Send(request, opens):
                response = self._http.send(request, stream=opens)
                if opens and not response.is_success:
                    response.read()
                return response
            case Save(response, file, told):
                with closing(response):
                    for piece in response.iter_bytes():
                        file.write(piece)
                        told(len(piece))
            case Pause(seconds):
                time.sleep(seconds)
        return None

    def _pages(self, call: Call[Page]) -> Iterator[Any]:
        query = ""
        while True:
            page = call.parse(self._do(answered(self.server, call, query=query)))
            yield from page.results
            if not (query := page.next):
                return

    def _rows(self, call: Call[httpx.Response]) -> Iterator[dict[str, Any]]:
        lines = Lines()
        with closing(self._do(answered(self.server, call, opens=True))) as response, breaks_off():
            for piece in response.iter_bytes():
                yield from lines.rows(piece)
            yield from lines.last()

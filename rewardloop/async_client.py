"""The client for programs with asyncio. It has the methods of `client.py`, and tests hold them to that.

Files are read and written between two steps, not while others run.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
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


class AsyncClient:
    """A connection to a Rewardloop for programs with asyncio: `async with AsyncClient(url, token) as client`.

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
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.server: Server = server_from(url, token, timeout=timeout, retries=retries)
        self._http = httpx.AsyncClient(transport=transport)

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Accounts and projects ---------------------------------------------------------------------------------

    async def log_in(
        self, username: str, password: str, *, name: str = "", scopes: Sequence[str] = (), days: int | None = None
    ) -> Token:
        """Makes a token for an account; by default it has every scope. This client goes on with its own token."""
        call = calls.log_in(username, password, name=name, scopes=list(scopes), days=days)
        return await self._do(result(self.server, call))

    async def log_out(self) -> bool:
        """Revokes this client's own token. Returns False for one that is not on the account's list."""
        return await self._do(token_revoked(self.server))

    async def me(self) -> Me:
        """Returns the token's account and its roles."""
        return await self._do(result(self.server, calls.me()))

    def projects(self, *, archived: bool = False) -> AsyncIterator[Project]:
        """Yields the account's projects, or the archived ones."""
        return self._pages(calls.projects(archived=archived))

    async def project(self, slug: str) -> Project:
        """Returns one project."""
        return await self._do(result(self.server, calls.project(slug)))

    async def create_project(self, slug: str, name: str, **settings: Any) -> Project:
        """Makes a project with HelpSteer2's rubric and protocol, as far as `settings` say nothing else."""
        return await self._do(result(self.server, calls.create_project(slug, name, settings=settings)))

    async def add_member(self, project: str, username: str, *, role: str = "annotator") -> None:
        """Makes an existing account a member of a project."""
        await self._do(result(self.server, calls.add_member(project, username, role=role)))

    def tasks(self, project: str, **filters: Any) -> AsyncIterator[Task]:
        """Yields a project's tasks. `filters` are those of REST, such as `state` or `q`."""
        return self._pages(calls.tasks(project, filters))

    # Files in and out --------------------------------------------------------------------------------------

    async def import_tasks(
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
            return await self._do(talk)
        with opened(source) as (file, name):
            talk = imported(self.server, project, file=file, name=name, query=query, told=told, within=within)
            return await self._do(talk)

    async def export(
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
        return await self._do(exported(self.server, project, to=Path(to), wanted=wanted, told=told, within=within))

    def rows(self, project: str, layout: str = "helpsteer2", **filters: Any) -> AsyncIterator[dict[str, Any]]:
        """Yields the rows of an export as they arrive."""
        return self._rows(calls.exported_rows(project, layout, filters=filters))

    async def to_pandas(self, project: str, layout: str = "helpsteer2", **filters: Any) -> "pandas.DataFrame":
        """Returns an export as a pandas.DataFrame. Needs the package pandas."""
        return frame_of([row async for row in self.rows(project, layout, **filters)])

    async def to_datasets(self, project: str, layout: str = "helpsteer2", **filters: Any) -> "datasets.Dataset":
        """Returns an export as a datasets.Dataset of Hugging Face. Needs the package datasets."""
        return dataset_of([row async for row in self.rows(project, layout, **filters)])

    # Rating ------------------------------------------------------------------------------------------------

    async def next_task(self, project: str) -> NextTask:
        """Takes the next task to rate; what comes instead where there is none is false and says why."""
        return await self._do(result(self.server, calls.next_task(project)))

    async def submit(
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
        return await self._do(
            result(self.server, calls.submit(assignment, ratings, answered=answered, and_next=and_next))
        )

    async def skip(self, assignment: int, reason: str, *, note: str = "", quotes: Sequence[str] = ()) -> None:
        """Skips a task: *pii, non_english, needs_coding, about_assistant* or *other*. `quotes` are personal texts."""
        await self._do(result(self.server, calls.skip(assignment, reason, note=note, quotes=quotes)))

    async def report(self, assignment: int, category: str, *, note: str = "") -> None:
        """Reports unsafe content: *harmful, illegal, profanity, bias* or *other*."""
        await self._do(result(self.server, calls.report(assignment, category, note=note)))

    async def renew(self, assignment: int) -> None:
        """Renews the lease on a task."""
        await self._do(result(self.server, calls.renew(assignment)))

    async def give_back(self, assignment: int) -> None:
        """Gives a task back unrated."""
        await self._do(result(self.server, calls.give_back(assignment)))

    # Training and models -----------------------------------------------------------------------------------

    def runs(self, project: str) -> AsyncIterator[Run]:
        """Yields a project's training runs."""
        return self._pages(calls.runs(project))

    async def run(self, number: int) -> Run:
        """Returns one training run."""
        return await self._do(result(self.server, calls.run(number)))

    async def start_run(self, project: str, *, reason: str = "", **config: Any) -> Run:
        """Starts a training run. `config` are settings for the trainer, such as `epochs=3`."""
        return await self._do(result(self.server, calls.start_run(project, config, reason=reason)))

    async def wait_for_run(
        self, number: int, *, told: Callable[[Run], object] | None = None, within: float | None = None
    ) -> Run:
        """Returns a run once it has ended or awaits a decision; `told` hears of it every few seconds until then."""
        return await self._do(run_ended(self.server, number, told=told, within=within))

    async def cancel_run(self, number: int) -> Run:
        """Ends a run."""
        return await self._do(result(self.server, calls.end_run(number, "cancel")))

    async def retry_run(self, number: int) -> Run:
        """Starts a run like one that failed or was cancelled."""
        return await self._do(result(self.server, calls.retry_run(number)))

    async def reject_run(self, number: int) -> Run:
        """Turns down the model of a run that awaits a decision; `promote` accepts it."""
        return await self._do(result(self.server, calls.end_run(number, "reject")))

    def models(self, project: str = "") -> AsyncIterator[Model]:
        """Yields the reward models of a project, or of all projects that one may review."""
        return self._pages(calls.models(project))

    async def model(self, number: int) -> Model:
        """Returns one reward model."""
        return await self._do(result(self.server, calls.model(number)))

    async def promote(self, number: int, *, confirm: bool = False) -> Model:
        """Makes a model the champion. One that was turned down needs `confirm`, else it raises Conflict."""
        return await self._do(result(self.server, calls.promote(number, confirm=confirm)))

    async def download_model(self, number: int, to: str | Path, *, part: str = "", told: Told = nobody) -> Path:
        """Downloads a model's files, or its part *reward* or *model*, as a tar file, and checks each of them."""
        return await self._do(model_saved(self.server, number, to=Path(to), part=part, told=told))

    async def score(
        self,
        items: Iterable[Json],
        *,
        project: str = "",
        model: int | None = None,
        told: Told = nobody,
        within: float | None = None,
    ) -> Scores:
        """Scores items, {conversation, response}, by a model or by the champion of a project, as many as there are."""
        return await self._do(scored(self.server, items, project=project, model=model, told=told, within=within))

    # Releases ----------------------------------------------------------------------------------------------

    def releases(self, project: str) -> AsyncIterator[Release]:
        """Yields a project's releases."""
        return self._pages(calls.releases(project))

    async def release(self, project: str, number: int) -> Release:
        """Returns one release."""
        return await self._do(result(self.server, calls.release(project, number)))

    async def create_release(self, project: str, **particulars: Any) -> Release:
        """Asks for a release. `particulars` are `title`, `license`, `notes` and the others of REST."""
        return await self._do(result(self.server, calls.create_release(project, particulars)))

    async def wait_for_release(
        self, project: str, number: int, *, told: Callable[[Release], object] | None = None, within: float | None = None
    ) -> Release:
        """Returns a release once it is done. Raises WorkFailed for one that failed."""
        return await self._do(release_made(self.server, project, number=number, told=told, within=within))

    async def download_release(self, project: str, number: int, *, to: str | Path, told: Told = nobody) -> Path:
        """Downloads a release as a tar file and compares its SHA-256."""
        return await self._do(release_saved(self.server, project, number=number, to=Path(to), told=told))

    async def delete_release(self, project: str, number: int) -> None:
        """Cancels a release, or deletes its files."""
        await self._do(result(self.server, calls.delete_release(project, number)))

    # The network -------------------------------------------------------------------------------------------

    async def _do(self, talk: Talk[T]) -> T:
        """Takes the steps of a talk and returns what comes of it."""
        try:
            step = next(talk)
            while True:
                try:
                    heard = await self._take(step)
                except httpx.TransportError as lost:
                    step = talk.throw(lost)
                else:
                    step = talk.send(heard)
        except StopIteration as end:
            return cast("T", end.value)

    async def _take(self, step: Step) -> httpx.Response | None:
        match step:
            case Send(request, opens):
                response = await self._http.send(request, stream=opens)
                if opens and not response.is_success:
                    await response.aread()
                return response
            case Save(response, file, told):
                async with aclosing(response):
                    async for piece in response.aiter_bytes():
                        file.write(piece)
                        told(len(piece))
            case Pause(seconds):
                await asyncio.sleep(seconds)
        return None

    async def _pages(self, call: Call[Page]) -> AsyncIterator[Any]:
        query = ""
        while True:
            page = call.parse(await self._do(answered(self.server, call, query=query)))
            for one in page.results:
                yield one
            if not (query := page.next):
                return

    async def _rows(self, call: Call[httpx.Response]) -> AsyncIterator[dict[str, Any]]:
        lines = Lines()
        async with aclosing(await self._do(answered(self.server, call, opens=True))) as response:
            with breaks_off():
                async for piece in response.aiter_bytes():
                    for row in lines.rows(piece):
                        yield row
                for row in lines.last():
                    yield row

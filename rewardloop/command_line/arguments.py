"""The words that `rewardloop` understands."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from rewardloop.command_line import files, login_verbs, machine, project_verbs, releasing
from rewardloop.command_line.server_programs import PROGRAMS
from rewardloop.command_line.terminal import Terminal
from rewardloop.version import VERSION

Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Verb = Callable[[argparse.Namespace, Terminal], int]
EXIT_CODES = "exit codes: 0 done, 1 refused or failed, 2 not understood, 3 imported but for some rows, 130 interrupted"


def parser() -> argparse.ArgumentParser:
    programs = "\n".join(f"  {name:<10}{program.summary}" for name, program in PROGRAMS.items())
    made = argparse.ArgumentParser(
        prog="rewardloop",
        description="Works with a Rewardloop server over REST.",
        epilog=f"programs of the server itself:\n{programs}\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--version", action="version", version=f"rewardloop {VERSION}")
    verbs = made.add_subparsers(dest="verb", required=True, metavar="COMMAND", title="commands")
    _login(verbs)
    _projects(verbs)
    _files(verbs)
    _machine(verbs)
    _releases(verbs)
    return made


def _verb(verbs: Verbs, name: str, *, summary: str, does: Verb) -> argparse.ArgumentParser:
    made = verbs.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
    made.set_defaults(does=does)
    made.add_argument("--json", action="store_true", help="write JSON for scripts, an object on each line")
    made.add_argument("--url", default="", help="the server, if it is not the one that you are logged in to")
    return made


def _group(verbs: Verbs, name: str, *, summary: str) -> Verbs:
    made = verbs.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
    return made.add_subparsers(dest="action", required=True, metavar="ACTION")


def _login(verbs: Verbs) -> None:
    verb = _verb(verbs, "login", summary="keep a server's address and a token for it", does=login_verbs.login)
    verb.add_argument("server", nargs="?", default="", metavar="URL", help="such as https://rate.example.org")
    verb.add_argument("--username", default="", help="asked for if it is not given; the password always is")
    verb.add_argument("--name", default="rewardloop", help="of the token, in your list of tokens")
    verb.add_argument("--scope", action="append", default=[], help="read, annotate, score or manage; all by default")
    verb.add_argument("--days", type=int, help="how long the token lasts")
    verb.add_argument("--with-token", action="store_true", help="ask for a token, or read it from a pipe")
    _verb(verbs, "logout", summary="forget the server and the token", does=login_verbs.logout)


def _projects(verbs: Verbs) -> None:
    group = _group(verbs, "projects", summary="list, show and create projects")
    verb = _verb(group, "list", summary="list your projects", does=project_verbs.list_projects)
    verb.add_argument("--archived", action="store_true", help="the archived ones instead")
    verb = _verb(group, "show", summary="show one project", does=project_verbs.show)
    verb.add_argument("project")
    verb = _verb(group, "create", summary="create a project, which you manage", does=project_verbs.create)
    verb.add_argument("project", metavar="SLUG")
    verb.add_argument("name")
    _settings(verb, "a setting, such as base_annotators=5")
    verb = _verb(verbs, "tasks", summary="list a project's tasks", does=project_verbs.tasks)
    verb.add_argument("project")
    verb.add_argument("--state", default="", help="open, complete, quarantined or retired")
    verb.add_argument("--search", default="", metavar="WORDS", help="words of their texts")
    verb.add_argument("--limit", type=int, default=50, help="how many at most; 0: all")


def _settings(verb: argparse.ArgumentParser, meaning: str) -> None:
    verb.add_argument("--set", action="append", default=[], type=machine.setting, metavar="NAME=VALUE", help=meaning)


def _files(verbs: Verbs) -> None:
    verb = _verb(verbs, "import", summary="import tasks from files", does=files.import_files)
    verb.add_argument("project")
    verb.add_argument(
        "files", nargs="+", metavar="FILE", help="- is standard input, hub:OWNER/NAME a data set of the Hub"
    )
    verb.add_argument("--dry-run", action="store_true", help="check and count, write nothing")
    verb.add_argument("--mapping", default="", help="the name of a mapping of the project, or a file that holds one")
    verb = _verb(verbs, "export", summary="export labels, ratings, preferences or scores to a file", does=files.export)
    verb.add_argument("project")
    verb.add_argument("--layout", default="helpsteer2")
    verb.add_argument("--format", default="jsonl", help="jsonl, json, csv, parquet or zip")
    verb.add_argument("--gzip", action="store_true", help="pack the file")
    verb.add_argument("--filter", action="append", default=[], type=machine.setting, metavar="NAME=VALUE")
    verb.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")


def _machine(verbs: Verbs) -> None:
    group = _group(verbs, "runs", summary="list, start and follow training runs")
    verb = _verb(group, "list", summary="list a project's runs", does=machine.list_runs)
    verb.add_argument("project")
    verb = _verb(group, "start", summary="start a run", does=machine.start)
    verb.add_argument("project")
    verb.add_argument("--reason", default="")
    verb.add_argument("--wait", action="store_true", help="until it has ended")
    _settings(verb, "a setting of the trainer, such as epochs=3")
    for name, summary, does in (
        ("wait", "wait until a run has ended", machine.wait),
        ("cancel", "end a run", machine.cancel),
    ):
        _verb(group, name, summary=summary, does=does).add_argument("run", type=int)
    group = _group(verbs, "models", summary="list, promote and download reward models")
    verb = _verb(group, "list", summary="list reward models", does=machine.list_models)
    verb.add_argument("project", nargs="?", default="")
    verb = _verb(group, "promote", summary="make a model the champion", does=machine.promote)
    verb.add_argument("model", type=int)
    verb.add_argument("--confirm", action="store_true", help="even though it was turned down")
    verb = _verb(group, "download", summary="download a model's files as a tar file", does=machine.download)
    verb.add_argument("model", type=int)
    verb.add_argument("--part", default="", choices=["", "reward", "model"], help="of both folders only this one")
    verb.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    verb = _verb(verbs, "score", summary="score responses: JSON lines of {conversation, response}", does=machine.score)
    verb.add_argument("file", nargs="?", default="-", metavar="FILE", help="standard input by default")
    verb.add_argument("--project", default="", help="by its champion")
    verb.add_argument("--model", type=int, help="by this model")


def _releases(verbs: Verbs) -> None:
    group = _group(verbs, "release", summary="make, list and download releases")
    verb = _verb(group, "list", summary="list a project's releases", does=releasing.list_releases)
    verb.add_argument("project")
    verb = _verb(group, "create", summary="freeze a project's data", does=releasing.create)
    verb.add_argument("project")
    for name in ("title", "license", "license-text", "intended-use", "limits", "notes"):
        verb.add_argument(f"--{name}", default="")
    verb.add_argument("--leave-out-failing", action="store_true", help="leave out tasks that fail a check")
    verb.add_argument("--wait", action="store_true", help="until it is done")
    for name, summary, does in (
        ("wait", "wait until a release is done", releasing.wait),
        ("download", "download a release as a tar file", releasing.download),
    ):
        verb = _verb(group, name, summary=summary, does=does)
        verb.add_argument("project")
        verb.add_argument("number", type=int)
    verb.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")

"""The words that `rewardloop` understands; has their verb done, and makes of every error a line and an exit code."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from rewardloop.client import Client
from rewardloop.command_line import logins, verbs
from rewardloop.command_line.server_programs import PROGRAMS, start
from rewardloop.command_line.terminal import Terminal
from rewardloop.errors import Refused, RewardloopError, Unauthorized
from rewardloop.version import VERSION

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Verb = Callable[[Client, argparse.Namespace, Terminal], int | None]
LoginVerb = Callable[[argparse.Namespace, Terminal], None]
EXIT_CODES = "exit codes: 0 done, 1 refused or failed, 2 not understood, 3 imported but for some rows, 130 interrupted"
INTERRUPTED = 130
LISTED = ("projects", "models")
"""Words that list by themselves."""
MOST_FIELDS = 5


def main(words: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if words is None else words) or ["--help"]
    if given[0] in PROGRAMS:
        return start(given[0], given[1:])
    for stream in (sys.stdout, sys.stderr):
        # A text that the terminal's encoding lacks must not end the command.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    if given[0] in LISTED and (len(given) == 1 or given[1] in {"--json", "--archived"}):
        given.insert(1, "list")
    options = parser().parse_args(given)
    terminal = Terminal(as_json=options.json)
    try:
        if options.verb in {"login", "logout"}:
            code = options.does(options, terminal)
        else:
            with logins.client(options.url) as client:
                code = options.does(client, options, terminal)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Who reads has seen enough; Python would complain about it once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except RewardloopError as error:
        way_in = " Log in: rewardloop login" if isinstance(error, Unauthorized) and options.verb != "login" else ""
        terminal.note(f"rewardloop: {sentence(error)}{way_in}")
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        terminal.note(f"rewardloop: {where}{error.strerror or error}")
        return 1
    return code or 0


def sentence(error: RewardloopError) -> str:
    """Returns what is wrong: with all fields, where there are several."""
    if isinstance(error, Refused) and len(error.errors) > 1:
        fields = [f"{place}: {' '.join(texts)}" for place, texts in list(error.errors.items())[:MOST_FIELDS]]
        return "; ".join(fields)
    return str(error)


def parser() -> argparse.ArgumentParser:
    programs = "\n".join(f"  {name:<10}{program.summary}" for name, program in PROGRAMS.items())
    made = argparse.ArgumentParser(
        prog="rewardloop",
        description="Works with a Rewardloop server over REST.",
        epilog=f"programs of the server itself:\n{programs}\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--version", action="version", version=f"rewardloop {VERSION}")
    commands = made.add_subparsers(dest="verb", required=True, metavar="COMMAND", title="commands")
    _login(commands)
    _projects(commands)
    _files(commands)
    _machine(commands)
    _releases(commands)
    return made


def _verb(commands: Commands, name: str, *, summary: str, does: Verb | LoginVerb) -> argparse.ArgumentParser:
    made = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
    made.set_defaults(does=does)
    made.add_argument("--json", action="store_true", help="write JSON for scripts, an object on each line")
    made.add_argument("--url", default="", help="the server, if it is not the one that you are logged in to")
    return made


def _group(commands: Commands, name: str, *, summary: str) -> Commands:
    made = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
    return made.add_subparsers(dest="action", required=True, metavar="ACTION")


def _login(commands: Commands) -> None:
    verb = _verb(commands, "login", summary="keep a server's address and a token for it", does=logins.login)
    verb.add_argument("server", nargs="?", default="", metavar="URL", help="such as https://rate.example.org")
    verb.add_argument("--username", default="", help="asked for if it is not given; the password always is")
    verb.add_argument("--name", default="rewardloop", help="of the token, in your list of tokens")
    verb.add_argument("--scope", action="append", default=[], help="read, annotate, score or manage; all by default")
    verb.add_argument("--days", type=int, help="how long the token lasts")
    verb.add_argument("--with-token", action="store_true", help="ask for a token, or read it from a pipe")
    _verb(commands, "logout", summary="forget the server and the token", does=logins.logout)


def _projects(commands: Commands) -> None:
    group = _group(commands, "projects", summary="list, show and create projects")
    verb = _verb(group, "list", summary="list your projects", does=verbs.list_projects)
    verb.add_argument("--archived", action="store_true", help="the archived ones instead")
    verb = _verb(group, "show", summary="show one project", does=verbs.show_project)
    verb.add_argument("project")
    verb = _verb(group, "create", summary="create a project, which you manage", does=verbs.create_project)
    verb.add_argument("project", metavar="SLUG")
    verb.add_argument("name")
    _settings(verb, "a setting, such as base_annotators=5")
    verb = _verb(commands, "tasks", summary="list a project's tasks", does=verbs.list_tasks)
    verb.add_argument("project")
    verb.add_argument("--state", default="", help="open, complete, quarantined or retired")
    verb.add_argument("--search", default="", metavar="WORDS", help="words of their texts")
    verb.add_argument("--limit", type=int, default=50, help="how many at most; 0: all")


def _settings(verb: argparse.ArgumentParser, meaning: str) -> None:
    verb.add_argument("--set", action="append", default=[], type=verbs.setting, metavar="NAME=VALUE", help=meaning)


def _files(commands: Commands) -> None:
    verb = _verb(commands, "import", summary="import tasks from files", does=verbs.import_files)
    verb.add_argument("project")
    verb.add_argument(
        "files", nargs="+", metavar="FILE", help="- is standard input, hub:OWNER/NAME a data set of the Hub"
    )
    verb.add_argument("--dry-run", action="store_true", help="check and count, write nothing")
    verb.add_argument("--mapping", default="", help="the name of a mapping of the project, or a file that holds one")
    verb = _verb(
        commands, "export", summary="export labels, ratings, preferences or scores to a file", does=verbs.export
    )
    verb.add_argument("project")
    verb.add_argument("--layout", default="helpsteer2")
    verb.add_argument("--format", default="jsonl", help="jsonl, json, csv, parquet or zip")
    verb.add_argument("--gzip", action="store_true", help="pack the file")
    verb.add_argument("--filter", action="append", default=[], type=verbs.setting, metavar="NAME=VALUE")
    verb.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")


def _machine(commands: Commands) -> None:
    group = _group(commands, "runs", summary="list, start and follow training runs")
    verb = _verb(group, "list", summary="list a project's runs", does=verbs.list_runs)
    verb.add_argument("project")
    verb = _verb(group, "start", summary="start a run", does=verbs.start_run)
    verb.add_argument("project")
    verb.add_argument("--reason", default="")
    verb.add_argument("--wait", action="store_true", help="until it has ended")
    _settings(verb, "a setting of the trainer, such as epochs=3")
    for name, summary, does in (
        ("wait", "wait until a run has ended", verbs.wait_for_run),
        ("cancel", "end a run", verbs.cancel_run),
    ):
        _verb(group, name, summary=summary, does=does).add_argument("run", type=int)
    group = _group(commands, "models", summary="list, promote and download reward models")
    verb = _verb(group, "list", summary="list reward models", does=verbs.list_models)
    verb.add_argument("project", nargs="?", default="")
    verb = _verb(group, "promote", summary="make a model the champion", does=verbs.promote)
    verb.add_argument("model", type=int)
    verb.add_argument("--confirm", action="store_true", help="even though it was turned down")
    verb = _verb(group, "download", summary="download a model's files as a tar file", does=verbs.download_model)
    verb.add_argument("model", type=int)
    verb.add_argument("--part", default="", choices=["", "reward", "model"], help="of both folders only this one")
    verb.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    verb = _verb(commands, "score", summary="score responses: JSON lines of {conversation, response}", does=verbs.score)
    verb.add_argument("file", nargs="?", default="-", metavar="FILE", help="standard input by default")
    verb.add_argument("--project", default="", help="by its champion")
    verb.add_argument("--model", type=int, help="by this model")


def _releases(commands: Commands) -> None:
    group = _group(commands, "release", summary="make, list and download releases")
    verb = _verb(group, "list", summary="list a project's releases", does=verbs.list_releases)
    verb.add_argument("project")
    verb = _verb(group, "create", summary="freeze a project's data", does=verbs.create_release)
    verb.add_argument("project")
    for name in ("title", "license", "license-text", "intended-use", "limits", "notes"):
        verb.add_argument(f"--{name}", default="")
    verb.add_argument("--leave-out-failing", action="store_true", help="leave out tasks that fail a check")
    verb.add_argument("--wait", action="store_true", help="until it is done")
    for name, summary, does in (
        ("wait", "wait until a release is done", verbs.wait_for_release),
        ("download", "download a release as a tar file", verbs.download_release),
    ):
        verb = _verb(group, name, summary=summary, does=does)
        verb.add_argument("project")
        verb.add_argument("number", type=int)
    verb.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")

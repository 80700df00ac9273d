"""`rewardloop release`."""

from argparse import Namespace

from rewardloop.answers import Release
from rewardloop.client import Client
from rewardloop.command_line import logins
from rewardloop.command_line.terminal import Terminal
from rewardloop.progress import Advance


def list_releases(options: Namespace, terminal: Terminal) -> int:
    with logins.client(options.url) as client:
        columns = ("release", "state", "licence", "made", "title")
        terminal.rows(
            columns,
            (
                (release, [release.number, release.state, release.license, release.created_at, release.title])
                for release in client.releases(options.project)
            ),
        )
    return 0


def create(options: Namespace, terminal: Terminal) -> int:
    names = ("title", "license", "license_text", "intended_use", "limits", "notes", "leave_out_failing")
    particulars = {name: value for name in names if (value := getattr(options, name))}
    with logins.client(options.url) as client:
        release = client.create_release(options.project, **particulars)
        if options.wait:
            release = _made(client, options.project, number=release.number, terminal=terminal)
    _show(options.project, release, terminal=terminal)
    return 0


def wait(options: Namespace, terminal: Terminal) -> int:
    with logins.client(options.url) as client:
        release = _made(client, options.project, number=options.number, terminal=terminal)
    _show(options.project, release, terminal=terminal)
    return 0


def _made(client: Client, project: str, *, number: int, terminal: Terminal) -> Release:
    with terminal.bar() as told:
        return client.wait_for_release(
            project, number, told=lambda now: told(Advance("writing", now.rows_done, now.rows_expected or 0))
        )


def _show(project: str, release: Release, *, terminal: Terminal) -> None:
    terminal.data(release)
    verb = "download" if release.state == "done" else "wait"
    terminal.say(f"Release {release.number} is {release.state}: rewardloop release {verb} {project} {release.number}")


def download(options: Namespace, terminal: Terminal) -> int:
    with logins.client(options.url) as client, terminal.bar() as told:
        file = client.download_release(options.project, options.number, to=options.output, told=told)
    terminal.data({"file": str(file), "bytes": file.stat().st_size})
    terminal.say(f"{file}: {file.stat().st_size:,} bytes, its SHA-256 is the server's")
    return 0

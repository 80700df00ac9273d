"""The server that one is logged in to: its address and a token, in a file that only its owner can read."""

import getpass
import ipaddress
import json
import os
import stat
import sys
from argparse import Namespace
from dataclasses import asdict, dataclass, field
from pathlib import Path

import httpx

from rewardloop.client import Client
from rewardloop.command_line.terminal import BadInput, Terminal
from rewardloop.connection import TOKEN, URL, same_place
from rewardloop.errors import NotSetUp, RewardloopError


@dataclass(frozen=True)
class Login:
    """A server's address and a token for it."""

    url: str
    token: str = field(repr=False)


def place() -> Path:
    """Returns the file in which the login is."""
    folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "rewardloop" / "login.json"


def store(login: Login) -> Path:
    """Writes the login in place of the one that was there, and returns its file."""
    file = place()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_suffix(f".{os.getpid()}")
    new.unlink(missing_ok=True)
    # Nobody else may read it, not even while it is written.
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        json.dump(asdict(login), opened)
    new.replace(file)
    return file


def stored() -> Login | None:
    """Returns the login, None if there is none. Raises NotSetUp for a file that others can read or that is broken."""
    file = place()
    try:
        text = file.read_text()
    except FileNotFoundError:
        return None
    if os.name == "posix" and file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise NotSetUp(f"Others can read the token in {file}: log in again, or run chmod 600 on it.")
    try:
        values = json.loads(text)
        return Login(str(values["url"]), str(values["token"]))
    except (ValueError, TypeError, KeyError) as broken:
        raise NotSetUp(f"{file} is broken: log in again.") from broken


def forget() -> None:
    """Deletes the login."""
    place().unlink(missing_ok=True)


def client(url: str = "") -> Client:
    """Returns a client for the address, the one of the environment, or the one that one is logged in to.

    Raises:
        NotSetUp: none of them is there.
    """
    known = os.environ.get(URL, "")
    # A token goes to no server that it was not meant for.
    token = os.environ.get(TOKEN, "") if not (url and known) or same_place(url, known) else ""
    url = url or known
    login = None if url and token else stored()
    if login and (not url or same_place(url, login.url)):
        url, token = url or login.url, token or login.token
    if not url:
        raise NotSetUp("You are not logged in to a server: run rewardloop login URL")
    return Client(url, token)


# Verbs ----------------------------------------------------------------------------------------------------
def login(options: Namespace, terminal: Terminal) -> None:
    url = options.server or options.url or os.environ.get(URL, "") or _asked("Address of the server: ")
    Client(url).close()  # refuses what is no address before anybody types a password
    if _is_readable_on_the_way(url):
        terminal.note("Warning: without https, everybody on the way can read the password and the token.")
    if options.with_token:
        token = getpass.getpass("Token: ") if sys.stdin.isatty() else sys.stdin.readline().strip()
    else:
        username = options.username or _asked("Username: ")
        password = getpass.getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
        with Client(url) as client:
            made = client.log_in(username, password, name=options.name, scopes=options.scope, days=options.days)
        token = made.token
    with Client(url, token) as client:
        me = client.me()
    file = store(Login(client.connection.url, token))
    terminal.data({"url": client.connection.url, "username": me.username})
    terminal.say(f"You are logged in to {client.connection.url} as {me.username}. The token is in {file}.")


def logout(_options: Namespace, terminal: Terminal) -> None:
    known = stored()
    if known is None:
        terminal.say("You were not logged in.")
        return
    forget()
    try:
        with Client(known.url, known.token) as client:
            revoked = client.log_out()
    except RewardloopError as refused:
        terminal.note(f"The token is forgotten here, but not revoked: {refused} Revoke it under Settings.")
        revoked = False
    terminal.data({"revoked": revoked})
    terminal.say(f"You are logged out of {known.url}.")


def _asked(question: str) -> str:
    if not sys.stdin.isatty():
        raise BadInput("Nobody can be asked here: give the address and --username.")
    return input(question).strip()


def _is_readable_on_the_way(url: str) -> bool:
    parsed = httpx.URL(url)
    if parsed.scheme == "https" or parsed.host == "localhost":
        return False
    try:
        return not ipaddress.ip_address(parsed.host).is_loopback
    except ValueError:
        return True

"""The server that one is logged in to: its address and a token, in a file that only its owner can read."""

import json
import os
import stat
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rewardloop.client import Client
from rewardloop.errors import NotSetUp
from rewardloop.exchanges import TOKEN, URL, same_place


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

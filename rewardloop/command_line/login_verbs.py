"""`rewardloop login` and `logout`."""

import getpass
import ipaddress
import os
import sys
from argparse import Namespace

import httpx

from rewardloop.client import Client
from rewardloop.command_line import logins
from rewardloop.command_line.logins import Login
from rewardloop.command_line.terminal import BadInput, Terminal
from rewardloop.errors import RewardloopError
from rewardloop.exchanges import URL, server_from


def login(options: Namespace, terminal: Terminal) -> int:
    url = options.server or options.url or os.environ.get(URL, "") or _asked("Address of the server: ")
    server_from(url, "", timeout=0, retries=0)  # before anybody types a password
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
    file = logins.store(Login(client.server.url, token))
    terminal.data({"url": client.server.url, "username": me.username})
    terminal.say(f"You are logged in to {client.server.url} as {me.username}. The token is in {file}.")
    return 0


def logout(_options: Namespace, terminal: Terminal) -> int:
    login = logins.stored()
    if login is None:
        terminal.say("You were not logged in.")
        return 0
    logins.forget()
    try:
        with Client(login.url, login.token) as client:
            revoked = client.log_out()
    except RewardloopError as refused:
        terminal.note(f"The token is forgotten here, but not revoked: {refused} Revoke it under Settings.")
        revoked = False
    terminal.data({"revoked": revoked})
    terminal.say(f"You are logged out of {login.url}.")
    return 0


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

"""Follows the links of pages as one reader, and notes what is wrong with the pages behind them."""

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import urlsplit

from django.test import Client
from django.urls import Resolver404, resolve

_LINK = re.compile(r'\s(?:href|hx-get)="([^"#]*)"')
_FIGURE = re.compile(r"<(td|dd|strong|b|figcaption|text)(\s[^>]*)?>\s*(None|nan|NaN|inf|\[\]|\{\})?\s*</\1>")
_WORDS = re.compile(r">\s*(None|nan|NaN|Infinity)\s*[<%]|\b(nan|NaN|None)\s?%|\bNone\b(?= of| out of)")
_ALLOWED_EMPTY = re.compile(r"<(td|dd|strong|b|figcaption|text)(\s[^>]*)?>\s*</\1>")
_LEFT_OUT = {"logout", "set_language", "invitation", "admin:jsi18n", "javascript-catalog"}


class Crawl:
    """What one reader sees; `faults` fills as pages are opened.

    Of addresses of one view with parameters of the same names the first one is opened.
    """

    def __init__(self, client: Client, start: str, *, language: str) -> None:
        self.client, self.language = client, language
        self.waiting, self.seen, self.opened, self.faults = [start], {start}, set[str](), list[str]()

    def go(self) -> list[str]:
        """Opens every page within reach and returns what is wrong."""
        while self.waiting:
            address = self.waiting.pop(0)
            page = self._opened(address)
            if page is not None:
                self.faults += [f"{address}: {fault}" for fault in _faults(page)]
                self._note_links(address, page)
        return self.faults

    def _opened(self, address: str) -> str | None:
        try:
            answer = self.client.get(address, headers={"accept-language": self.language})
        except Exception as error:  # noqa: BLE001  whatever a page raises is what is looked for
            self.faults.append(f"{address}: {type(error).__name__}: {error}")
            return None
        if answer.status_code >= 500 or answer.status_code in (400, 404):
            self.faults.append(f"{address}: {answer.status_code}")
        if answer.status_code == 302:
            self._note(answer["location"])
        is_page = answer.status_code == 200 and answer.get("content-type", "").startswith("text/html")
        if answer.streaming:
            b"".join(answer)
            return None
        return answer.content.decode() if is_page else None

    def _note_links(self, address: str, page: str) -> None:
        for link in _LINK.findall(page):
            target = unescape(link)
            self._note(target if not target.startswith("?") else urlsplit(address).path + target)

    def _note(self, target: str) -> None:
        parts = urlsplit(target)
        if parts.netloc or not parts.path.startswith("/") or target in self.seen:
            return
        self.seen.add(target)
        try:
            view = resolve(parts.path).view_name
        except Resolver404:
            if not parts.path.startswith(("/static/", "/admin/")):
                self.faults.append(f"{target}: nothing is there")
            return
        kind = f"{view} {sorted(part.partition('=')[0] for part in parts.query.split('&'))}"
        if view in _LEFT_OUT or view.startswith("admin:") or kind in self.opened:
            return
        self.opened.add(kind)
        self.waiting.append(target)


def _faults(page: str) -> Iterator[str]:
    for found in _FIGURE.finditer(page):
        if not _ALLOWED_EMPTY.fullmatch(found.group()):
            yield f"an empty figure: {found.group()}"
    for found in _WORDS.finditer(page):
        yield f"no figure: {page[max(found.start() - 60, 0) : found.end() + 20]!r}"

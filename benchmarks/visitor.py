"""Somebody's browser, as far as measuring needs one: a login, cookies, and one connection that stays open."""

import http.client
import re
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

PASSWORD = "correct horse battery"


@dataclass
class Visitor:
    """Somebody who has logged in, over one connection."""

    address: str
    name: str
    cookies: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(self.address).netloc)
        page = self.request("GET", "/login/")[1]
        self.request("POST", "/login/", {"username": self.name, "password": PASSWORD, **self.token(page)})

    def request(self, method: str, path: str, form: dict[str, str] | None = None) -> tuple[int, str]:
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        headers |= {"HX-Request": "true"} if form and "active_seconds" in form else {}
        headers |= {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
        try:
            self.connection.request(method, path, urlencode(form) if form else None, headers)
            answer = self.connection.getresponse()
        except ConnectionError:
            # The server closes a connection that nobody has used for a while; the next request opens another one.
            self.connection.close()
            self.connection.request(method, path, urlencode(form) if form else None, headers)
            answer = self.connection.getresponse()
        text = answer.read().decode()
        for cookie in answer.headers.get_all("Set-Cookie", []):
            name, value = cookie.split(";")[0].split("=", 1)
            self.cookies[name] = value
        return answer.status, text

    @staticmethod
    def token(page: str) -> dict[str, str]:
        match = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        return {"csrfmiddlewaretoken": match.group(1)} if match else {}

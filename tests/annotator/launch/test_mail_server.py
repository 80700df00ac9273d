"""EMAIL_URL: read as a whole, or refused at the start without repeating its password."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from annotator.launch.environment import MailServer, mail_server


def read(monkeypatch: pytest.MonkeyPatch, url: str) -> MailServer:
    monkeypatch.setenv("EMAIL_URL", url)
    return mail_server("EMAIL_URL")


def test_without_one_no_mails_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, " ").host == ""


def test_all_parts_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    server = read(monkeypatch, "smtp://rate%40example.org:a%2Fb@mail.example.org:2525?tls=1&from=talk@example.org")
    assert server == MailServer("mail.example.org", 2525, "rate@example.org", "a/b", True, False, "talk@example.org")


@pytest.mark.parametrize(
    ("url", "port", "begun", "at_once"),
    [
        ("smtp://mail.example.org?from=a@example.org", 25, False, False),
        ("smtp://mail.example.org?from=a@example.org&tls=1", 587, True, False),
        ("smtps://mail.example.org?from=a@example.org", 465, False, True),
    ],
)
def test_ports_follow_from_tls(
    monkeypatch: pytest.MonkeyPatch, url: str, port: int, begun: bool, at_once: bool
) -> None:
    server = read(monkeypatch, url)
    assert (server.port, server.starts_tls, server.tls_from_the_start) == (port, begun, at_once)


def test_the_sender_is_the_user_unless_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, "smtp://a%40example.org:b@mail.example.org").sender == "a@example.org"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mail.example.org", "is no address of a mail server"),
        ("http://mail.example.org?from=a@example.org", "is no address of a mail server"),
        ("smtp://?from=a@example.org", "is no address of a mail server"),
        ("smtp://mail.example.org/path?from=a@example.org", "is no address of a mail server"),
        ("smtp://u:topsecret@mail.example.org:port?from=a@example.org", "no valid port"),
        ("smtp://u:topsecret@mail.example.org:99999?from=a@example.org", "no valid port"),
        ("smtp://u:topsecret@mail.example.org?from=a@example.org&ssl=1", "the option 'ssl'"),
        ("smtp://u:topsecret@mail.example.org?from=a@example.org&tls=yes", "tls='yes'"),
        ("smtps://u:topsecret@mail.example.org?from=a@example.org&tls=1", "smtps:// and has tls="),
        ("smtp://u:topsecret@mail.example.org", "add from="),
        ("smtp://u:topsecret@mail.example.org?from=a%0d%0ab@example.org", "add from="),
    ],
)
def test_a_malformed_one_stops_the_start(monkeypatch: pytest.MonkeyPatch, url: str, said: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        read(monkeypatch, url)
    assert said in str(refused.value)
    assert str(refused.value).startswith("EMAIL_URL")
    assert "topsecret" not in str(refused.value)

"""Where is posted to: URLs, public addresses, and names that change what they mean."""

import socket
import ssl
import threading
from ipaddress import ip_address
from typing import Any

import pytest
from django.conf import LazySettings

from annotator.infrastructure import outbound_http
from annotator.infrastructure.outbound_http import Target, UnusableAddress, addresses_of, is_public, target_of
from tests.annotator.infrastructure.webhooks.receiver import CERTIFICATE, Receiver, listening

PUBLIC = ["8.8.8.8", "93.184.215.14", "2606:4700::1111", "64:ff9b::808:808"]
PRIVATE = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.9.9.9",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:808:808::1",
    "3fff::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_it_knows_a_public_address(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("address", PRIVATE)
def test_it_knows_an_address_that_is_not(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://example.org", Target(True, "example.org", 443, "/")),
        ("HTTPS://Example.org:8443/a/b?c=d", Target(True, "example.org", 8443, "/a/b?c=d")),
        ("https://[2606:4700::1111]/hook", Target(True, "2606:4700::1111", 443, "/hook")),
        ("https://xn--bcher-kva.example/", Target(True, "xn--bcher-kva.example", 443, "/")),
    ],
)
def test_it_takes_a_url_apart(url: str, target: Target) -> None:
    assert target_of(url) == target


@pytest.mark.parametrize(
    ("url", "because"),
    [
        ("http://example.org/", "https://example.org/hook"),
        ("ftp://example.org/", "posted to"),
        ("https:///hook", "posted to"),
        ("example.org", "posted to"),
        ("https://name:word@example.org/", "password"),
        ("https://@example.org/", "password"),
        ("https://example.org/#part", "#"),
        ("https://example.org:0/", "1 to 65535"),
        ("https://example.org:65536/", "no URL"),
        ("https://example.org:port/", "no URL"),
        ("https://[::1/", "no URL"),
        ("https://bücher.example/", "beyond ASCII"),
        ("https://ｌｏｃａｌｈｏｓｔ/", "beyond ASCII"),
        ("https://example.org/ü", "beyond ASCII"),
        ("https://example.org/a b", "a space"),
        ("https://example.org/\r\nhost: other", "a space"),
        ("https://example.org\\@127.0.0.1/", "backslash"),
        ("https://exa mple.org/", "a space"),
        ("https://exa$mple.org/", "no host"),
        ("https://a..b/", "no host"),
        (f"https://{'a' * 64}.org/", "no host"),
        (f"https://example.org/{'a' * 500}", "too long"),
        ("https://localhost/", "public internet"),
        ("https://127.0.0.1/", "public internet"),
        ("https://[::ffff:7f00:1]/", "public internet"),
        ("https://[fe80::1%25eth0]/", "public internet"),
        ("", "a space"),
    ],
)
def test_it_refuses_a_url(url: str, because: str) -> None:
    with pytest.raises(UnusableAddress, match=because) as refused:
        target_of(url)
    assert list(refused.value.errors) == ["url"]


def test_private_addresses_and_plain_http_can_be_allowed(settings: LazySettings) -> None:
    settings.WEBHOOK_PRIVATE_ADDRESSES = "allow"
    assert target_of("http://127.0.0.1:8080/") == Target(False, "127.0.0.1", 8080, "/")
    assert addresses_of(target_of("http://127.0.0.1/"), seconds=5) == ["127.0.0.1"]


def resolves_to(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """The names that are asked for; each answer is given once, the last one from then on."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        rows = answers[min(len(asked), len(answers)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in rows]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "127.1", "inside.example"])
def test_it_is_the_resolved_address_that_counts(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if host == "inside.example":
        resolves_to(monkeypatch, ["127.0.0.1"])
    with pytest.raises(UnusableAddress, match="public internet"):
        addresses_of(target_of(f"https://{host}/"), seconds=5)


def test_one_private_address_among_others_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    resolves_to(monkeypatch, ["93.184.215.14", "10.0.0.1"])
    with pytest.raises(UnusableAddress):
        addresses_of(target_of("https://both.example/"), seconds=5)


def test_the_connection_goes_to_the_address_that_was_checked(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that means another address a moment later is not asked again."""
    asked = resolves_to(monkeypatch, ["127.0.0.1"], ["127.0.0.2"])
    outcome = outbound_http.post(f"http://rebinding.example:{receiver.port}/", b"{}", {})
    assert (outcome.status, asked) == (200, ["rebinding.example"])
    assert receiver.received[0][0]["host"] == f"rebinding.example:{receiver.port}"


def test_a_rebound_name_is_refused_before_anything_is_sent(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    settings.WEBHOOK_PRIVATE_ADDRESSES = "refuse"
    resolves_to(monkeypatch, ["127.0.0.1"])
    outcome = outbound_http.post(f"https://rebinding.example:{receiver.port}/", b"{}", {})
    assert (outcome.status, receiver.received) == (None, [])
    assert "not of the public internet" in outcome.error


def test_another_address_is_tried_where_one_does_not_answer(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolves_to(monkeypatch, ["127.0.0.2", "127.0.0.1"])  # the receiver listens to the second alone
    assert outbound_http.post(f"http://two.example:{receiver.port}/", b"{}", {}).status == 200


def test_a_resolver_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    settings.WEBHOOK_PRIVATE_ADDRESSES = "allow"
    hung = threading.Event()

    def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        hung.wait(20)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(outbound_http, "SECONDS", 0.2)
    outcome = outbound_http.post("http://slow.example/", b"{}", {})
    hung.set()
    assert outcome.seconds < 5
    assert "not resolved in time" in outcome.error


def test_the_certificate_has_to_be_the_host_s(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name counts, although the connection goes to a number."""
    settings.WEBHOOK_PRIVATE_ADDRESSES = "allow"
    resolves_to(monkeypatch, ["127.0.0.1"])
    monkeypatch.setattr(outbound_http, "_tls", lambda: ssl.create_default_context(cadata=CERTIFICATE))
    with listening(tls=True) as receiver:
        fine = outbound_http.post(f"https://hooks.example:{receiver.port}/", b"{}", {})
        wrong = outbound_http.post(f"https://other.example:{receiver.port}/", b"{}", {})
    assert (fine.status, fine.error) == (200, "")
    assert (wrong.status, len(receiver.received)) == (None, 1)
    assert "Hostname mismatch" in wrong.error


def test_an_unknown_authority_is_refused(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.WEBHOOK_PRIVATE_ADDRESSES = "allow"
    resolves_to(monkeypatch, ["127.0.0.1"])
    with listening(tls=True) as receiver:
        outcome = outbound_http.post(f"https://hooks.example:{receiver.port}/", b"{}", {})
    assert (outcome.status, receiver.received) == (None, [])
    assert "certificate is not valid" in outcome.error


def test_what_answers_without_tls_is_an_error(receiver: Receiver) -> None:
    outcome = outbound_http.post(f"https://127.0.0.1:{receiver.port}/", b"{}", {})
    assert outcome.status is None
    assert "SSL" in outcome.error

"""What the recognisers find in texts of our own. How well they do on a corpus is in BENCHMARKS.md."""

import resource
from collections.abc import Iterator

import pytest

from annotator.stages.pii.recognisers import OVERLAP, WINDOW, Found
from annotator.stages.pii.scans import Scanner


@pytest.fixture(scope="module")
def scanner() -> Iterator[Scanner]:
    with Scanner() as started:
        yield started


def kinds(scanner: Scanner, text: str) -> list[tuple[str, str]]:
    return [(finding.kind, text[finding.start : finding.end]) for finding in scanner.find([text])[0]]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("Mail to ola.nord+home@post.example.org, please.", "email", "ola.nord+home@post.example.org"),
        ("https://shop.example.com/?mail=ola@example.com&x=1", "email", "ola@example.com"),
        ("My number is +49 30 901820, ring me.", "phone", "+49 30 901820"),
        ("Call 555-0142 after six.", "phone", "555-0142"),
        ("It's (212) 555-0187.", "phone", "(212) 555-0187"),
        ("SSN: 412-55-0983", "ssn", "412-55-0983"),
        ("her social security number 000-12-3456", "ssn", "000-12-3456"),
        ("Pay with 4111 1111 1111 1111 today", "card", "4111 1111 1111 1111"),
        ("the card 676222165679 is blocked", "card", "676222165679"),
        ("IBAN DE89 3704 0044 0532 0130 00", "iban", "DE89 3704 0044 0532 0130 00"),
        ("They logged in from 203.0.113.77.", "ip", "203.0.113.77"),
        ("from 2001:db8:85a3::8a2e:370:7334 again", "ip", "2001:db8:85a3::8a2e:370:7334"),
        ("I live at 221 Baker Street, Apt 4.", "address", "221 Baker Street, Apt 4"),
        ("Sie wohnt in der Lindenstraße 12.", "address", "Lindenstraße 12"),
        ("Send it to P.O. Box 1209 then", "address", "P.O. Box 1209"),
        ("Date of birth: 12/06/1984", "birth", "12/06/1984"),
        ("I was born on 3 March 1990 in Lund.", "birth", "3 March 1990"),
        ("Geburtsdatum: 12.06.1984", "birth", "12.06.1984"),
        ("my account is GB29NWBK60161331926819 OK", "iban", "GB29NWBK60161331926819"),
        ("from ::ffff:203.0.113.77 again", "ip", "::ffff:203.0.113.77"),
    ],
)
def test_it_is_found(scanner: Scanner, text: str, kind: str, expected: str) -> None:
    assert kinds(scanner, text) == [(kind, expected)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Version 1.2.3.4 came out on 12 June 2021 and costs $1,299.99.",
        "Open http://127.0.0.1:8000/ or 0.0.0.0, mask 255.255.255.0.",
        "std::abc::def and a[1:2:3] at 12:30:45",
        "Order 4111111111111112 has a wrong check digit.",
        "The answer is 3.14159265358979 or 1,000,000 or 2^64 = 18446744073709551616.",
        "It costs $ 1234 567 890, phone orders welcome",
        "Two  spaces, then version 10.20.30.40 of it",
        "He walked from Monday to Friday, 40 hours, the corner of the room and the door.",
        "pip install numpy==1.26.4 && cd ~/src@main",
        "npm install left-pad@1.3.0 and use icon@2x.png",
        "DE88370400440532013000 has wrong check digits",
        "Ada Lovelace was born on 10 December 1815.",
        "the number 078-05-1120 of a sample card",
    ],
)
def test_it_is_left_alone(scanner: Scanner, text: str) -> None:
    assert kinds(scanner, text) == []


def test_kinds_do_not_overlap(scanner: Scanner) -> None:
    text = "Phone or SSN 412-55-0983, card 4111 1111 1111 1111, call 412-555-0983."
    assert [kind for kind, _ in kinds(scanner, text)] == ["ssn", "card", "phone"]


@pytest.mark.parametrize("before", range(WINDOW - 30, WINDOW + 30, 7))
def test_nothing_is_cut_where_two_windows_meet(scanner: Scanner, before: int) -> None:
    text = "x " * (before // 2) + "ola.nord@example.com and more"
    assert kinds(scanner, text) == [("email", "ola.nord@example.com")]


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["a.", "1 ", "1-", "A ", "(", "a@", "::", "12 Ab ", "+1 ", "ÄÖ'", ".", "\n"])
def test_a_hostile_text_takes_no_more_than_seconds(piece: str) -> None:
    """Of processor time: the child is nice, and other work on the machine is no fault of the text."""
    before = seconds_of_children()
    with Scanner() as scanner:
        scanner.find([piece * (50_000 // len(piece))])
    assert seconds_of_children() - before < 20


def seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_places_are_characters_not_bytes(scanner: Scanner) -> None:
    assert scanner.find(["🙂 日本 ola@example.com"]) == [[Found(5, 20, "email")]]


def test_windows_overlap_by_more_than_any_find_is_long() -> None:
    assert 0 < OVERLAP < WINDOW

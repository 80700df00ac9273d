"""Presidio's pattern recognisers over texts, with looser ones of our own; no model, no request to another host.

Runs as a program of its own (`scanning.py` starts it) until its input ends: a line of JSON [text, ...] in, a line
[[[start, end, kind], ...], ...] out. It imports nothing of ours, and its hundred megabytes go back when it is done.
"""

import ipaddress
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

WINDOW, OVERLAP = 4_000, 300
"""Characters. Some patterns take quadratic time on hostile text; in windows they cannot take long."""

THRESHOLD = 0.5
CONTEXT_BEFORE, CONTEXT_AFTER, CONTEXT_BOOST = 60, 20, 0.35
"""A word like "phone" so many characters before or after raises the score, as Presidio's enhancer does by lemmas."""

ORDER = ("email", "iban", "card", "ssn", "ip", "address", "phone")
"""Where two kinds overlap, the earlier one stands."""


@dataclass(frozen=True)
class Found:
    """Characters start..end of a text look like one kind of personal information."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Recogniser:
    """One of Presidio's recognisers, the kind it finds, and what its finds must satisfy besides.

    Where `hint` is nowhere in a text the recogniser is not asked: most texts hold no seven digits near each other.
    """

    kind: str
    recogniser: Any
    accept: Callable[[str, str], bool] = lambda found, around: True
    hint: str = ""

    def found_in(self, text: str) -> Iterator[Found]:
        if not re.search(self.hint, text):
            return
        for each in self.recogniser.analyze(text, self.recogniser.supported_entities):
            around = text[max(0, each.start - CONTEXT_BEFORE) : each.start] + " " + text[each.end :][:CONTEXT_AFTER]
            boost = CONTEXT_BOOST if _mentions(around, self.recogniser.context) else 0
            if each.score + boost >= THRESHOLD and self.accept(text[each.start : each.end], around):
                yield Found(each.start, each.start + len(text[each.start : each.end].rstrip(" .,\n\t")), self.kind)


def find(text: str) -> list[Found]:
    """What a text holds, in its order; no two overlap."""
    found = {each for start in range(0, max(len(text), 1), WINDOW) for each in _in_window(text, start)}
    chosen: list[Found] = []
    taken = bytearray(len(text))
    for each in sorted(found, key=lambda each: (ORDER.index(each.kind), each.start - each.end, each.start)):
        if not any(taken[each.start : each.end]):
            taken[each.start : each.end] = b"\1" * (each.end - each.start)
            chosen.append(each)
    return sorted(chosen, key=lambda each: each.start)


def _in_window(text: str, start: int) -> Iterator[Found]:
    """What begins in the window; the overlap lets it end after it."""
    window = text[max(0, start - OVERLAP) : start + WINDOW + OVERLAP]
    shift = max(0, start - OVERLAP)
    for recogniser in recognisers():
        for each in recogniser.found_in(window):
            if start <= each.start + shift < start + WINDOW:
                yield Found(each.start + shift, each.end + shift, each.kind)


# The recognisers -------------------------------------------------------------------------------------------


@cache
def recognisers() -> tuple[Recogniser, ...]:
    from presidio_analyzer import Pattern
    from presidio_analyzer import predefined_recognizers as given

    _keep_tldextract_at_home()
    return (
        Recogniser("email", given.EmailRecognizer(patterns=[Pattern("e-mail", EMAIL, 0.5)])),
        Recogniser("iban", given.IbanRecognizer()),
        Recogniser("card", given.CreditCardRecognizer()),
        Recogniser("card", _patterns(CARDS, CARD_WORDS), _is_card),
        Recogniser("ssn", given.UsSsnRecognizer()),
        Recogniser("ssn", _patterns(SSNS, SSN_WORDS)),
        Recogniser("ip", given.IpRecognizer(), _tells_a_machine, hint=r"\d\.\d+\.\d|::|:[0-9A-Fa-f]{1,4}:"),
        Recogniser("address", _patterns(ADDRESSES, ADDRESS_WORDS), hint=r"\d|corner of"),
        Recogniser(
            "phone",
            given.PhoneRecognizer(context=PHONE_WORDS, supported_regions=REGIONS),
            _looks_dialled,
            hint=r"\d(?:\D{0,25}\d){6}",
        ),
        Recogniser("phone", _patterns(PHONES, PHONE_WORDS), _looks_dialled),
    )


def _patterns(patterns: Sequence[tuple[str, float]], context: Sequence[str]) -> Any:
    from presidio_analyzer import Pattern, PatternRecognizer

    made = [Pattern(f"pattern {number}", regex, score) for number, (regex, score) in enumerate(patterns)]
    # Upper case counts: a street's name begins with it. Patterns that do not care say so themselves.
    return PatternRecognizer("OURS", patterns=made, context=list(context), global_regex_flags=re.MULTILINE)


def _keep_tldextract_at_home() -> None:
    """The e-mail recogniser asks tldextract for top-level domains, which would fetch a newer list from the net."""
    import tldextract.tldextract

    tldextract.tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)


def _mentions(around: str, words: Sequence[str]) -> bool:
    lowered = around.lower()
    return any(re.search(rf"\b{re.escape(word.strip())}\b", lowered) for word in words)


# Presidio's own pattern takes the URL before the address along, and quadratic time.
EMAIL = r"(?<![\w.+%'-])[\w+%'-][\w.+%'-]{0,63}@\w[\w-]{0,62}(?:\.\w[\w-]{0,62}){1,8}\b"

# Cards: 12 to 19 digits whose check digit is right, beside a word that says card.
CARDS = [(r"\b\d(?:[ -]?\d){11,18}\b", 0.2)]
CARD_WORDS = ["card", "cards", "cc", "credit", "debit", "visa", "mastercard", "amex", "maestro", "jcb", "diners"]


def _is_card(found: str, around: str) -> bool:
    digits = [int(each) for each in found if each.isdigit()]
    doubled = (digit if place % 2 == 0 else sum(divmod(digit * 2, 10)) for place, digit in enumerate(reversed(digits)))
    return sum(doubled) % 10 == 0


# Social security numbers as people mistype or invent them: any nine digits after the words.
SSNS = [(r"\b\d{3}[- .]\d{2}[- .]\d{4}\b", 0.2), (r"\b\d{9}\b", 0.15)]
SSN_WORDS = ["ssn", "ssns", "ss#", "social security", "social security number", "social"]


def _tells_a_machine(found: str, around: str) -> bool:
    """Not a version number, a mask, or an address that every machine has."""
    address = ipaddress.ip_interface(found).ip
    if re.search(r"\b(?:version|release|section|v)\s*:?\s*v?$", around.split("  ", maxsplit=1)[0].lower()):
        return False
    if address.version == 6 and found.count(":") < 3:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_multicast or found.startswith("255."))


# Phones: what the library holds for a number, and loose groups of digits beside a word that says phone.
REGIONS = ("US", "GB", "DE", "FR", "IN", "BR", "AU", "SE")
PHONE_WORDS = [
    "phone", "phones", "telephone", "tel", "cell", "cellphone", "mobile", "call", "fax", "desk", "office", "dial",
    "text me", "reach", "answering at", "messages to", "sms", "whatsapp", "telefon", "handy",
]  # fmt: skip
PHONES = [
    (r"(?<![\w.+-])(?:\+|00)[1-9]\d{0,2}(?:[ .-]?\(?\d{1,5}\)?){2,6}(?![\w-])", 0.6),
    (r"(?<![\w.+/-])(?:\(\d{3}\) ?|\d{3}[-.])\d{3}[-.]\d{4}(?:x\d{1,5})?(?![\w-])", 0.6),
    (r"(?<![\w.+/-])\(\d{2,5}\)[ .-]?\d{2,5}(?:[ .-]\d{2,5}){0,3}(?:x\d{1,5})?(?![\w-])", 0.3),
    (r"(?<![\w.+/-])\d{2,5}(?:[ .-]\d{2,8}){1,4}(?:x\d{1,5})?(?![\w-])", 0.2),
]


def _looks_dialled(found: str, around: str) -> bool:
    """Seven digits or more, no price and no decimal number; groups, unless a word says phone."""
    if sum(each.isdigit() for each in found) < 7 or re.fullmatch(r"\d+\.\d+", found) or _is_priced(around):
        return False
    return bool(re.search(r"[+() .-]", found.strip())) or _mentions(around, PHONE_WORDS)


def _is_priced(around: str) -> bool:
    return around[:CONTEXT_BEFORE].rstrip().endswith(("$", "€", "£"))


# Addresses: a number with a word that means street; loose ones only beside a word that says address.
_NAME = r"\p{Lu}[\w'’.-]*"
_LINK = r"(?:de la|de los|del|dei|della|de|da|do|dos|das|la|le|du|des|e|the)"
_NAMES = rf"(?:(?:{_LINK} )?{_NAME} ){{0,3}}(?:{_LINK} )?{_NAME}"
_NUMBER = r"\d{1,5}[A-Za-z]?"
_FIRST = r"(?:\b\d{1,6}\s+(?=\d))?"
_UNIT = r"(?:apt|apartment|suite|ste|unit|flat|room)\.?\s*#?\d{1,5}[a-z]?"
_NOT_PLACE = r"(?!(?:Phone|Tel|Fax|Mobile|Office|Desk|E-?mail|SSN|Website|Name|Call|Order|Card)\b)"
_PLACE = rf"(?:[,\s>?]+{_NOT_PLACE}(?:\(?{_NAME}\)?|nan)){{0,6}}?[,\s>?]+(?:[A-Z]{{2}}\s)?\d{{4,6}}(?![\w.-])"
_TAIL = rf"\.?(?:[,\s>?]+(?i:{_UNIT})\b)?(?:{_PLACE})?"
_STREET = (
    r"(?:Street|St|Avenue|Ave|Av|Road|Rd|Lane|Ln|Drive|Dr|Court|Ct|Boulevard|Blvd|Place|Pl|Square|Squares|Terrace|Way|"
    r"Crescent|Close|Parkway|Pkwy|Highway|Hwy|Circle|Trail|Row|Mews|Loop|Union|Pass|Point|Flat|Hills)"
)
_STREET_ENDING = (
    r"(?:gatan|gata|vägen|vegen|veien|vej|gade|stien|straße|strasse|str\.|gasse|weg|allee|platz|laan|straat|plein|"
    r"katu|kuja|kaari|tie|braut|stræti|terrasse|utca|ulica)"
)
_STREET_AHEAD = (
    r"(?:Via|(?i:rua|rue|avenida|avenue|av\.?|calle|c/|viale|piazza|paseo|plaza|ul\.|ulica|praça|chemin|boulevard|largo|"
    r"λεωφόρος|οδός))"
)
_HUNGARIAN = r"(?:utca|útja|út|u\.|rkp\.|tér|kapu)"
_MONTH = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
ADDRESSES = [
    (r"(?i)\b(?:PSC|CMR|Unit|USNV|USNS|USS|USCGC)\s+[\w-]+,?\s+(?:Box\s+\d+\s*,?\s*)?[AFD]PO\s+A[AEP]\s+\d{5}\b", 0.9),
    (rf"(?:\b\d{{1,6}} )?\b(?i:p\.?\s?o\.?\s?box)\s+\d+{_TAIL}", 0.6),
    (rf"{_FIRST}\b\d{{1,6}}\s+{_NAMES} {_STREET}\b{_TAIL}", 0.6),
    (rf"(?:\b\d{{1,6}}\s+)?\b(?:{_NAME} )?\p{{Lu}}\w*{_STREET_ENDING}\s+{_NUMBER}\b{_TAIL}", 0.6),
    (rf"(?:\b\d{{1,6}}\s+)?\b\p{{Lu}}\w* {_STREET_ENDING}\s+{_NUMBER}\b{_TAIL}", 0.6),
    (rf"(?:\b\d{{1,6}}\s+)?\b{_STREET_AHEAD} ?{_NAMES},?\s+{_NUMBER}\b{_TAIL}", 0.6),
    (rf"{_FIRST}\b\d{{1,5}},?\s+{_STREET_AHEAD} {_NAMES}\b{_TAIL}", 0.6),
    (rf"(?:\b\d{{1,6}}\s+)?{_NAMES}(?: \w+)? {_HUNGARIAN}\s+\d{{1,4}}\b{_TAIL}", 0.6),
    (rf"\b(?!\d{{1,2}} {_MONTH})\d{{1,6}} {_NAMES} {_NUMBER}[,\s>?]+(?i:{_UNIT})\b(?:{_PLACE})?", 0.6),
    (rf"\b(?!\d{{1,2}} {_MONTH})\d{{2,6}} {_NAMES} {_NUMBER}\b{_TAIL}", 0.2),
    (rf"\b(?i:{_UNIT})\b(?:{_PLACE})?", 0.2),
    (rf"\bthe corner of (?:\d+ )?{_NAMES}[\w .]{{0,20}}? and {_NAMES}", 0.6),
]
ADDRESS_WORDS = [
    "address", "addresses", "lives at", "lives on", "live at", "located at", "stop at", "enter on", "meet me at",
    "meet you at", "return to", "refers to", "send it to", "sent to", "new one to",
]  # fmt: skip


# The program -----------------------------------------------------------------------------------------------


def main() -> None:
    for line in sys.stdin:
        answer = [[(each.start, each.end, each.kind) for each in find(text)] for text in json.loads(line)]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    # Presidio imports these where it finds them, for models that we do not use: 300 megabytes and four seconds.
    sys.modules["torch"] = sys.modules["transformers"] = None  # type: ignore[assignment]
    os.environ.setdefault("REGEX_TIMEOUT_SECONDS", "2")
    os.nice(10)  # behind the web, the database and the import
    main()

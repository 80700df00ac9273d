"""Finds personal information in texts by patterns, check digits and numbering plans; uses no model and no network.

`scans.py` runs it as a separate program until its input ends: it reads lines of JSON [text, ...] and answers each with
a line [[[start, end, kind], ...], ...]. It imports nothing of ours. As it is not part of the light worker, it can run
at a low priority, and be killed over a hostile text.
"""

import ipaddress
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

import regex

WINDOW, OVERLAP = 4_000, 300
"""Characters. Some patterns take quadratic time on hostile text; in windows they cannot take long."""

PATTERN_SECONDS = 2
"""The time limit of a pattern for one window. A pattern that takes longer finds nothing more in that window."""

WORDS_BEFORE, WORDS_AFTER = 60, 20
"""A word such as "phone" makes digits a phone number if it is within so many characters before or after them."""

ORDER = ("email", "iban", "card", "ssn", "ip", "birth", "address", "phone")
"""Of two kinds that overlap, the one that is earlier in this list counts."""


@dataclass(frozen=True)
class Found:
    """A range of characters, without `end`, that looks like one kind of personal information."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Around:
    """The text next to a place: up to WORDS_BEFORE characters before it, up to WORDS_AFTER after it."""

    before: str
    after: str

    def mentions(self, words: Sequence[str]) -> bool:
        lowered = f"{self.before} {self.after}".lower()
        return any(regex.search(rf"\b{regex.escape(word)}\b", lowered) for word in words)


Places = Callable[[str], Iterator[tuple[int, int]]]
Accept = Callable[[str, Around], bool]


@dataclass(frozen=True)
class Recogniser:
    """One way to find a kind of personal information: places that look like it, and further conditions.

    If there are `words`, one of them must be near the place. `accept` decides by the text in the place and the text
    around it. `hint` is a quick pattern: a text without it is skipped at once.
    """

    kind: str
    places: Places
    words: Sequence[str] = ()
    accept: Accept = lambda inside, around: True
    hint: str = ""

    def found_in(self, text: str) -> Iterator[Found]:
        if not regex.search(self.hint, text):
            return
        for start, end in self.places(text):
            inside = text[start:end]
            around = Around(text[max(0, start - WORDS_BEFORE) : start], text[end : end + WORDS_AFTER])
            if (not self.words or around.mentions(self.words)) and self.accept(inside, around):
                yield Found(start, start + len(inside.rstrip(" .,\n\t")), self.kind)


def find(text: str) -> list[Found]:
    """Returns the personal information in a text, in the order of the text, without overlaps."""
    candidates = {span for start in range(0, max(len(text), 1), WINDOW) for span in _in_window(text, start)}
    chosen: list[Found] = []
    taken = bytearray(len(text))
    for span in sorted(candidates, key=lambda span: (ORDER.index(span.kind), span.start - span.end, span.start)):
        if not any(taken[span.start : span.end]):
            taken[span.start : span.end] = b"\1" * (span.end - span.start)
            chosen.append(span)
    return sorted(chosen, key=lambda span: span.start)


def _in_window(text: str, start: int) -> Iterator[Found]:
    """Yields what begins in the window. It may end behind it, within the overlap."""
    window = text[max(0, start - OVERLAP) : start + WINDOW + OVERLAP]
    shift = max(0, start - OVERLAP)
    for recogniser in recognisers():
        for span in recogniser.found_in(window):
            if start <= span.start + shift < start + WINDOW:
                yield Found(span.start + shift, span.end + shift, span.kind)


# The recognisers -------------------------------------------------------------------------------------------


@cache
def recognisers() -> tuple[Recogniser, ...]:
    return (
        Recogniser("email", _by((EMAIL,)), accept=_has_domain, hint="@"),
        Recogniser("iban", _ibans),
        Recogniser("card", _by((CARD,)), accept=_has_check_digit),
        Recogniser("card", _by((CARD_BESIDE_A_WORD,)), CARD_WORDS, _has_check_digit),
        Recogniser("ssn", _by((SSN,)), accept=_is_issued),
        Recogniser("ssn", _by(SSNS_BESIDE_A_WORD), SSN_WORDS),
        Recogniser("ip", _by(IPS), accept=_tells_a_machine, hint=r"\d\.\d+\.\d|::|:[0-9A-Fa-f]{1,4}:"),
        Recogniser("birth", _by(BIRTH_DATES), hint=r"(?i)b[io]r|d\.?o\.?b|geb"),
        Recogniser("address", _by(ADDRESSES), hint=r"\d|corner of"),
        Recogniser("address", _by(ADDRESSES_BESIDE_A_WORD), ADDRESS_WORDS, hint=r"\d"),
        Recogniser("phone", _dialled, PHONE_WORDS, _looks_dialled, hint=r"\d(?:\D{0,25}\d){6}"),
        Recogniser("phone", _by(PHONES), accept=_looks_dialled),
        Recogniser("phone", _by(PHONES_BESIDE_A_WORD), PHONE_WORDS, _looks_dialled),
    )


def _by(patterns: Iterable[str]) -> Places:
    return partial(_matches, [regex.compile(pattern, regex.MULTILINE) for pattern in patterns])


def _matches(patterns: Sequence["regex.Pattern[str]"], text: str) -> Iterator[tuple[int, int]]:
    for pattern in patterns:
        try:
            yield from (match.span() for match in pattern.finditer(text, timeout=PATTERN_SECONDS))
        except TimeoutError:
            continue


EMAIL = r"(?<![\w.+%'-])[\w+%'-][\w.+%'-]{0,63}@\w[\w-]{0,62}(?:\.\w[\w-]{0,62}){1,8}\b"
# The last part of a package@1.2.3 or an icon@2x.png, and of names that lead nowhere.
NO_DOMAIN = (
    r"\d.*|png|jpe?g|gif|svg|webp|ico|pdf|txt|html?|css|jsx?|tsx?|json|ya?ml|xml|csv|local(?:host|domain)?|internal"
)


def _has_domain(address: str, around: Around) -> bool:
    last = address.rpartition(".")[2].lower()
    return len(last) > 1 and not regex.fullmatch(NO_DOMAIN, last)


# The longest that an IBAN may be, in groups or not. `_ibans` tries shorter ends, as words in capitals may follow.
IBAN = regex.compile(r"(?<![A-Z0-9])[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?![A-Z0-9])")


def _ibans(text: str) -> Iterator[tuple[int, int]]:
    from stdnum import iban

    for match in IBAN.finditer(text, timeout=PATTERN_SECONDS):
        start, end = match.span()
        ends = [end, *(place for place in range(end - 1, start, -1) if text[place] in " -")]
        for end in ends:
            # Without the country's own rules: people mistype and invent account numbers, and those rules change.
            if iban.is_valid(text[start:end], check_country=False):
                yield start, end
                break


# Cards: digits in the ranges of the card networks whose check digit is right, but not 13 digits that begin with 1,
# which are a time in milliseconds; or any 12 to 19 digits with a right check digit near a word that means card.
CARD = r"\b(?!1\d{12}(?!\d))(?:[1346]\d|5[0-5])\d{2}(?:[- ]?\d{3,4}){2}[- ]?\d{3,5}\b"
CARD_BESIDE_A_WORD = r"\b\d(?:[ -]?\d){11,18}\b"
CARD_WORDS = ("card", "cards", "cc", "credit", "debit", "visa", "mastercard", "amex", "maestro", "jcb", "diners")


def _has_check_digit(digits: str, around: Around) -> bool:
    from stdnum import luhn

    return bool(luhn.is_valid(regex.sub(r"\D", "", digits)))


# Social security numbers in ranges that are issued. Near one of the words any nine digits count, as people mistype or
# invent numbers.
SSN = r"\b\d{3}([- .])\d{2}\1\d{4}\b"
SSNS_BESIDE_A_WORD = (r"\b\d{3}[- .]\d{2}[- .]\d{4}\b", r"\b\d{9}\b")
SSN_WORDS = ("ssn", "ssns", "ss#", "social security", "social security number", "social")
SSNS_OF_EXAMPLES = ("123456789", "987654320", "078051120")


def _is_issued(number: str, around: Around) -> bool:
    digits = regex.sub(r"\D", "", number)
    if len(set(digits)) == 1 or digits in SSNS_OF_EXAMPLES:
        return False
    return digits[:3] not in {"000", "666"} and digits[3:5] != "00" and digits[5:] != "0000"


_IP_4 = r"\b\d{1,3}(?:\.\d{1,3}){3}(?:/(?:3[0-2]|[0-2]?\d))?\b"
_IP_6 = (
    r"(?<![\w:])(?:[0-9A-Fa-f]{0,4}:){2,8}(?:(?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f]{1,4})?"
    r"(?:%[0-9A-Za-z]+)?(?:/\d{1,3})?(?![\w:]|\.\d)"
)
IPS = (_IP_4, _IP_6)


def _tells_a_machine(address: str, around: Around) -> bool:
    """Returns whether it is an address of one machine: no version number, no mask, none that all machines have."""
    try:
        ip = ipaddress.ip_interface(address).ip
    except ValueError:
        return False
    if regex.search(r"\b(?:version|release|section|v)\s*:?\s*v?$", around.before.lower()):
        return False
    if ip.version == 6 and address.count(":") < 3:
        return False
    return not (ip.is_loopback or ip.is_unspecified or ip.is_multicast or address.startswith("255."))


# Dates of birth: only where a form or the person says so, as biographies are full of other people's dates.
_MONTHS = (
    "(?i:jan(?:uary|uar)?|feb(?:ruary|ruar)?|mar(?:ch)?|märz|apr(?:il)?|may|mai|june?|juni|july?|juli|aug(?:ust)?|"
    r"sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)\.?"
)
_DATE = (
    rf"(?:\d{{1,2}}[./-]\d{{1,2}}[./-](?:\d{{4}}|\d{{2}})|\d{{4}}[./-]\d{{1,2}}[./-]\d{{1,2}}|"
    rf"\d{{1,2}}(?:st|nd|rd|th|\.)?(?: of)? {_MONTHS},? \d{{4}}|{_MONTHS} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}})\b"
)
_BIRTH = (
    r"(?i:\bdate of birth|\bbirth ?date|\bd\.?o\.?b\b\.?|\bi was born|\bmy birthday|\bgeburtsdatum|\bgeburtstag)"
    r"[^\n\d]{0,20}?"
)
BIRTH_DATES = (rf"{_BIRTH}\K{_DATE}",)


# Phones: numbers that are valid in a numbering plan, and loose groups of digits, if a word that means phone is near.
# Without such a word only numbers with a country's code, or in the groups of North America.
REGIONS = ("US", "GB", "DE", "FR", "IN", "BR", "AU", "SE")
PHONE_WORDS = (
    "phone", "phones", "telephone", "tel", "cell", "cellphone", "mobile", "call", "fax", "desk", "office", "dial",
    "text me", "reach", "answering at", "messages to", "sms", "whatsapp", "telefon", "handy",
)  # fmt: skip
PHONES = (
    r"(?<![\w.+-])(?:\+|00)[1-9]\d{0,2}(?:[ .-]?\(?\d{1,5}\)?){2,6}(?![\w-])",
    r"(?<![\w.+/-])(?:\(\d{3}\) ?|\d{3}[-.])\d{3}[-.]\d{4}(?:x\d{1,5})?(?![\w-])",
)
PHONES_BESIDE_A_WORD = (
    r"(?<![\w.+/-])\(\d{2,5}\)[ .-]?\d{2,5}(?:[ .-]\d{2,5}){0,3}(?:x\d{1,5})?(?![\w-])",
    r"(?<![\w.+/-])\d{2,5}(?:[ .-]\d{2,8}){1,4}(?:x\d{1,5})?(?![\w-])",
)


def _dialled(text: str) -> Iterator[tuple[int, int]]:
    import phonenumbers

    for region in REGIONS:
        for match in phonenumbers.PhoneNumberMatcher(text, region, leniency=phonenumbers.Leniency.VALID):
            yield match.start, match.end


def _looks_dialled(number: str, around: Around) -> bool:
    """Returns whether it has seven digits or more, and is neither a price nor a decimal number.

    The digits must be in groups unless a word that means phone is near.
    """
    is_priced = around.before.rstrip().endswith(("$", "€", "£"))
    if sum(sign.isdigit() for sign in number) < 7 or regex.fullmatch(r"\d+\.\d+", number) or is_priced:
        return False
    return bool(regex.search(r"[+() .-]", number.strip())) or around.mentions(PHONE_WORDS)


# Addresses: a number with a word that means street; looser patterns only near a word that means address.
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
ADDRESSES = (
    r"(?i)\b(?:PSC|CMR|Unit|USNV|USNS|USS|USCGC)\s+[\w-]+,?\s+(?:Box\s+\d+\s*,?\s*)?[AFD]PO\s+A[AEP]\s+\d{5}\b",
    rf"(?:\b\d{{1,6}} )?\b(?i:p\.?\s?o\.?\s?box)\s+\d+{_TAIL}",
    rf"{_FIRST}\b\d{{1,6}}\s+{_NAMES} {_STREET}\b{_TAIL}",
    rf"(?:\b\d{{1,6}}\s+)?\b(?:{_NAME} )?\p{{Lu}}\w*{_STREET_ENDING}\s+{_NUMBER}\b{_TAIL}",
    rf"(?:\b\d{{1,6}}\s+)?\b\p{{Lu}}\w* {_STREET_ENDING}\s+{_NUMBER}\b{_TAIL}",
    rf"(?:\b\d{{1,6}}\s+)?\b{_STREET_AHEAD} ?{_NAMES},?\s+{_NUMBER}\b{_TAIL}",
    rf"{_FIRST}\b\d{{1,5}},?\s+{_STREET_AHEAD} {_NAMES}\b{_TAIL}",
    rf"(?:\b\d{{1,6}}\s+)?{_NAMES}(?: \w+)? {_HUNGARIAN}\s+\d{{1,4}}\b{_TAIL}",
    rf"\b(?!\d{{1,2}} {_MONTH})\d{{1,6}} {_NAMES} {_NUMBER}[,\s>?]+(?i:{_UNIT})\b(?:{_PLACE})?",
    rf"\bthe corner of (?:\d+ )?{_NAMES}[\w .]{{0,20}}? and {_NAMES}",
)
ADDRESSES_BESIDE_A_WORD = (
    rf"\b(?!\d{{1,2}} {_MONTH})\d{{2,6}} {_NAMES} {_NUMBER}\b{_TAIL}",
    rf"\b(?i:{_UNIT})\b(?:{_PLACE})?",
)
ADDRESS_WORDS = (
    "address", "addresses", "lives at", "lives on", "live at", "located at", "stop at", "enter on", "meet me at",
    "meet you at", "return to", "refers to", "send it to", "sent to", "new one to",
)  # fmt: skip


# The program -----------------------------------------------------------------------------------------------


def main() -> None:
    for line in sys.stdin:
        answer = [[(span.start, span.end, span.kind) for span in find(text)] for text in json.loads(line)]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    os.nice(10)  # behind the web, the database and the import
    main()

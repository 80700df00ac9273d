"""Refuses names of new accounts that look like another account's, or like those that the product gives itself.

Two names look alike if they differ only in case, in the form of a character, or in letters of another script that are
drawn like Latin ones. All letters of a name must be of one script, so the tables below need not be complete.
"""

import unicodedata

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from annotator.infrastructure.db import locks

ADDRESSABLE = "^[^-._@+]"
"""The same for the database: a regular expression for letters would depend on its locale, one for the rest does not."""


def require_addressable(name: str) -> None:
    """Raises ValidationError unless the name begins with a letter or a digit."""
    if not name[:1].isalnum():
        raise ValidationError(_("Begin the name with a letter or a digit."))


RESERVED = ("imported", "simulated-")
"""The names of raters that came with a file, or that the demo makes up, begin with one of these."""

LOCK = "account name"
"""Whoever makes an account holds this lock until the transaction ends."""

_DRAWN_LIKE_LATIN = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеѕіјорсухԁһԛԝӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧαγικνορυօոսհյᎪᏴᏟᎠᎬᏀᎻᎫᏦᏞᎷᏢᏚᎢᏙᎳᏃıɑɡ",
    "ABESIJKMHOPCTYXaesijopcyxdhqwlABEZHIKMNOPTYXayiknopuonuhjABCDEGHJKLMPSTVWZiag",
)
_DIGITS_AND_CAPITALS = str.maketrans("01I", "oll")
_EASTERN = {"CJK", "HIRAGANA", "KATAKANA", "HANGUL"}


def require_unmistakable(name: str) -> None:
    """Raises ValidationError unless a new account may have this name; the name of an account that exists passes."""
    accounts = get_user_model().objects
    # Field validators also run when an existing account is edited: its name need not be chosen again.
    if accounts.filter(username=name).exists():
        return
    if unicodedata.normalize("NFKC", name) != name:
        raise ValidationError(
            _("Write the name in ordinary letters. Some of its characters are variants of other characters.")
        )
    # A letter's Unicode name begins with its script, such as LATIN or CYRILLIC; those that Chinese, Japanese and Korean
    # mix count as one.
    scripts = {unicodedata.name(letter, "?").split(maxsplit=1)[0] for letter in name if letter.isalpha()}
    if len(scripts - _EASTERN) + bool(scripts & _EASTERN) > 1:
        raise ValidationError(_("Write the name in letters of one script. This one mixes several."))
    for beginning in RESERVED:
        if any(drawn.startswith(beginning) for drawn in _drawn(name)):
            text = _("Names that begin with '%(beginning)s' are reserved for raters that are not people.")
            raise ValidationError(text % {"beginning": beginning})
    # Held until the transaction ends: without it, two look-alikes created at once would not see each other.
    locks.waiting_transaction_lock(LOCK)
    drawn = set(_drawn(name))
    # Imported raters, who may be many, are left out: a name that looks like one of theirs was refused above.
    usernames = accounts.exclude(username__startswith=RESERVED[0]).values_list("username", flat=True)
    if any(drawn & set(_drawn(username)) for username in usernames.iterator()):
        raise ValidationError(
            _("The name looks like that of another account. Choose one that cannot be mistaken for it.")
        )


def _drawn(name: str) -> tuple[str, str]:
    """Returns how the name looks, once with a capital I read as the small l that it resembles, once as an i."""
    latin = unicodedata.normalize("NFKC", name).translate(_DRAWN_LIKE_LATIN)
    return _joined(latin.translate(_DIGITS_AND_CAPITALS)), _joined(latin.translate({ord("0"): "o"}))


def _joined(name: str) -> str:
    # Set closely, rn looks like m and vv like w.
    return name.casefold().replace("rn", "m").replace("vv", "w")

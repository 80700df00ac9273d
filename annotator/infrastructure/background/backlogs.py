"""Says how much work waits for the light worker, which does it in slices while others need the machine."""

from dataclasses import dataclass

from django.contrib.humanize.templatetags.humanize import intcomma
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotator.infrastructure.db.statements import Statement

MANY = 10_000
"""What waits is counted up to one more than this, so that looking costs the same however much it is."""


@dataclass(frozen=True)
class Backlogs:
    """Tasks to be searched for personal information, changed texts whose words are to be taken, and changed ratings to
    be counted for agreement. Each stops at MANY + 1.
    """

    scans: int
    words: int
    agreement: int

    def in_words(self) -> list[str]:
        """Returns a sentence for each kind of work of which some waits."""
        scans = ngettext(
            "%(number)s task is still to be searched for personal information.",
            "%(number)s tasks are still to be searched for personal information.",
            self.scans,
        )
        words = ngettext(
            "%(number)s new or changed text cannot be found by its words yet.",
            "%(number)s new or changed texts cannot be found by their words yet.",
            self.words,
        )
        agreement = ngettext(
            "%(number)s changed rating is not counted for agreement yet.",
            "%(number)s changed ratings are not counted for agreement yet.",
            self.agreement,
        )
        numbers = {scans: self.scans, words: self.words, agreement: self.agreement}
        many = _("more than %(number)s") % {"number": intcomma(MANY)}
        return [text % {"number": many if n > MANY else intcomma(n)} for text, n in numbers.items() if n]


COUNTS = """
    (SELECT count(*) FROM (SELECT FROM annotator_task WHERE pii_scanned_at IS NULL LIMIT %(most)s) s),
    (SELECT count(*) FROM (SELECT FROM annotator_stalewords LIMIT %(most)s) w),
    (SELECT count(*) FROM (SELECT FROM annotator_staleagreement LIMIT %(most)s) a)
"""
"""The columns of a Backlogs, for a statement that asks for more besides; `most` is MANY + 1."""
_WAITING = Statement(f"SELECT {COUNTS}")


def backlogs() -> Backlogs:
    row = _WAITING.row(most=MANY + 1)
    assert row is not None
    return Backlogs(*row)

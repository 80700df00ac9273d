"""What a manager writes about a release: its title, the licence, what it is for, and what it is not."""

from dataclasses import dataclass, fields

from django.utils.translation import gettext as _

from annotator.infrastructure.refusals import Refusal
from annotator.outputs.releases.checks import Checker

OTHER, UNKNOWN = "other", "unknown"
LICENSES = (
    "cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0", "cc-by-nd-4.0", "cc-by-nc-nd-4.0",
    "cdla-permissive-2.0", "cdla-sharing-1.0", "c-uda", "odc-by", "odbl", "pddl", "apache-2.0", "mit", "unlicense",
    OTHER, UNKNOWN,
)  # fmt: skip
"""Identifiers that the Hugging Face Hub knows, those that suit data."""
LONGEST_TITLE, LONGEST_TEXT = 120, 10_000


class UnusableParticulars(Refusal):
    """A field cannot stand in a card; `errors` says which one and why."""

    status = 400
    code = "invalid"

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")
        self.errors = {field: [text]}


@dataclass(frozen=True)
class Particulars:
    """What a card says in a manager's words. Where a text is empty, the card has a plain sentence of its own.

    `rubric_version` is the one that labels and ratings were made under; None for those of every version.
    """

    title: str = ""
    license: str = UNKNOWN
    license_text: str = ""
    intended_use: str = ""
    limits: str = ""
    notes: str = ""
    leave_out_failing: bool = False
    rubric_version: int | None = None

    def require_usable(self) -> None:
        """Raises UnusableParticulars for an unknown licence, a text that is too long, or one that fails the checks."""
        if self.license not in LICENSES:
            known = ", ".join(LICENSES)
            raise UnusableParticulars("license", _("Choose one of these licences: %(known)s.") % {"known": known})
        if self.license == OTHER and not self.license_text.strip():
            raise UnusableParticulars("license_text", _("Write which licence it is, and where its text is found."))
        checker = Checker()
        for name, text in ((field.name, getattr(self, field.name)) for field in fields(self) if field.type is str):
            most = LONGEST_TITLE if name == "title" else LONGEST_TEXT
            if len(text) > most:
                raise UnusableParticulars(name, _("At most %(most)d characters.") % {"most": most})
            if finding := next(checker.findings(text), None):
                refusal = _("This text must not be published: it contains %(what)s.")
                raise UnusableParticulars(name, refusal % {"what": _(finding.what)})

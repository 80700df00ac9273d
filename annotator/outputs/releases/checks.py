"""Looks for what must not leave with a release: what is left of a redaction, secrets, and paths of this server.

A finding says what was found and in which field, but never quotes it: errors are stored and shown.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_noop

from annotator.infrastructure.storage.hidden_paths import own_folders
from annotator.stages.pii.redaction import PLACEHOLDERS

REDACTED, SECRETS, PATHS = CHECKS = ("no redacted text", "no secrets", "no file paths of the server")
SHORTEST_SECRET = 8
"""Characters from which on a secret of this installation is looked for: a shorter one occurs in any text."""


@dataclass(frozen=True)
class Pattern:
    """Something that must not be in a text. Texts without one of the `hints` are passed over at once.

    `what` it is, is said in English; doors that show it to a person translate it.
    """

    check: str
    what: str
    regex: re.Pattern[str]
    hints: Sequence[str]


@dataclass(frozen=True)
class CheckFinding:
    """What was found in a field of a row, such as `response` or `all_preferences_unprocessed.justification`."""

    check: str
    what: str
    field: str

    def __str__(self) -> str:
        return f"{self.field}: {self.what}"


class Checker:
    """Looks through texts with the patterns of all checks, this installation's own secrets and folders among them."""

    def __init__(self) -> None:
        self.texts = 0
        self._patterns = (*_marks(), *_paths(), *_secrets())

    def findings(self, value: Any, field: str = "") -> Iterator[CheckFinding]:
        """Yields what is wrong with a value: a text, or lists and objects of texts."""
        if isinstance(value, str):
            self.texts += 1
            for pattern in self._patterns:
                if any(hint in value for hint in pattern.hints) and pattern.regex.search(value):
                    yield CheckFinding(pattern.check, pattern.what, field)
        elif isinstance(value, Mapping):
            for name, part in value.items():
                yield from self.findings(part, f"{field}.{name}" if field else name)
        elif isinstance(value, list):
            for part in value:
                yield from self.findings(part, field)


def _marks() -> Iterator[Pattern]:
    what = gettext_noop("the mark of a redaction")
    yield Pattern(REDACTED, what, re.compile("|".join(map(re.escape, PLACEHOLDERS.values()))), [" removed]"])
    mark = re.compile(r"[\[<({*]{1,2}\s?redacted[^\]>)}*\n]{0,60}[\]>)}*]", re.IGNORECASE)
    yield Pattern(REDACTED, what, mark, ["edacted", "EDACTED"])


def _paths() -> Iterator[Pattern]:
    homes = re.compile(r"(?<![\w/.])(?:/home/[\w.-]+|/Users/[\w.-]+|/root|[A-Za-z]:\\Users\\[\w. -]+)[/\\]")
    yield Pattern(PATHS, gettext_noop("a path in a home folder"), homes, ["/home/", "/Users/", "/root/", "\\Users\\"])
    for folder in own_folders():
        yield Pattern(
            PATHS, gettext_noop("a folder of this server"), re.compile(rf"{re.escape(folder)}(?![\w-])"), [folder]
        )


# Keys have forms of their own, so that those who find one know whose it is.
_KEYS: Sequence[tuple[str, str, Sequence[str]]] = (
    (gettext_noop("a private key"), r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----", ["PRIVATE KEY"]),
    (gettext_noop("an AWS access key"), r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", ["AKIA", "ASIA"]),
    (gettext_noop("a GitHub token"), r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{40})", ["gh", "github_pat_"]),
    (gettext_noop("a GitLab token"), r"\bglpat-[\w-]{20}", ["glpat-"]),
    (gettext_noop("a Hugging Face token"), r"\bhf_[A-Za-z0-9]{30}", ["hf_"]),
    (gettext_noop("an API key"), r"\bsk-(?=[\w-]{0,200}\d)[\w-]{20}", ["sk-"]),
    (gettext_noop("a Stripe key"), r"\b[rs]k_live_[A-Za-z0-9]{16}", ["_live_"]),
    (gettext_noop("a Google API key"), r"\bAIza[\w-]{35}", ["AIza"]),
    (gettext_noop("a Slack token"), r"\bxox[abprs]-[\w-]{10}", ["xox"]),
    (gettext_noop("a signed token"), r"\beyJ[\w-]{10,4000}\.eyJ[\w-]{10,4000}\.[\w-]{10}", ["eyJ"]),
    (
        gettext_noop("a password in an address"),
        r"\b[a-z][a-z0-9+]{1,20}://[^\s/:@]{1,100}:[^\s/:@]{3,200}@[\w.-]",
        ["://"],
    ),
)


def _secrets() -> Iterator[Pattern]:
    yield from (Pattern(SECRETS, what, re.compile(regex), hints) for what, regex, hints in _KEYS)
    passwords = (settings.DATABASES["default"].get("PASSWORD"), settings.EMAIL_HOST_PASSWORD)
    for secret in map(str, (settings.SECRET_KEY, *passwords, settings.HF_TOKEN)):
        if len(secret) >= SHORTEST_SECRET:
            yield Pattern(
                SECRETS, gettext_noop("a secret of this installation"), re.compile(re.escape(secret)), [secret]
            )

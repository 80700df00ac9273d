"""Why a run was started. Its row keeps the reason in English, for the audit too, and pages say it to each reader."""

from django.utils.translation import gettext_noop

from annotator.web.stored_sentences import in_readers_language

IN_WORKSPACE = gettext_noop("requested in the workspace")
BY = gettext_noop("requested by %(name)s")
FAILED_BEFORE = gettext_noop("run %(run)s again, which failed")
CANCELLED_BEFORE = gettext_noop("run %(run)s again, which was cancelled")
ON_NEW_SNAPSHOT = gettext_noop("%(reason)s, on a new snapshot: tasks of the old one have been redacted or deleted")
ENOUGH_NEWS = gettext_noop("%(news)s, and the project retrains after %(number)s")
LONG_AGO = gettext_noop("the last run is %(hours)s hours old, and there are %(news)s")
BOTH = gettext_noop("%(labels)s new labels and %(preferences)s new preferences")
NEW_LABELS = gettext_noop("%(labels)s new labels")
NEW_PREFERENCES = gettext_noop("%(preferences)s new preferences")

# The longer ones first: the shorter ones are parts of them.
REASONS = (
    ON_NEW_SNAPSHOT,
    ENOUGH_NEWS,
    LONG_AGO,
    BOTH,
    NEW_LABELS,
    NEW_PREFERENCES,
    FAILED_BEFORE,
    CANCELLED_BEFORE,
    IN_WORKSPACE,
    BY,
)


def in_words(reason: str) -> str:
    """Returns the reason in the reader's language; what a person has written stays as it is."""
    return in_readers_language(reason, REASONS)

"""Why the gate promotes a model or not. A verdict keeps the reason in English, and pages say it to each reader."""

from django.utils.translation import gettext_noop

from annotator.web.stored_sentences import in_readers_language

NO_EVIDENCE = "No evidence that it is better"
"""How the reason begins where chance alone could have made the difference."""

TOO_FEW = gettext_noop("%(prompts)s held-out prompts are too few for a judgement. At least %(fewest)s are needed.")
NOT_NUMBERS = gettext_noop("Some of the scores are not numbers.")
ALL_THE_SAME = gettext_noop("It gives every response the same scores.")
AS_MANY_WRONG = gettext_noop("On every prompt, it puts as many pairs in the wrong order as %(rival)s does.")
SAME_PREDICTIONS = gettext_noop("It predicts the same as %(rival)s on every prompt.")
REACHES_ZERO = gettext_noop(
    "No evidence that it is better: the interval of the gain reaches 0 or below. "
    "These %(prompts)s prompts would show a gain of about %(gain)s or more."
)
BELOW_ZERO = gettext_noop(
    "No evidence that it is better: the interval of the gain lies below 0. "
    "These %(prompts)s prompts would show a gain of about %(gain)s or more."
)
NO_BETTER_THAN_LENGTH = gettext_noop(
    "It orders pairs no better than the rule that the longer response is the better one."
)
FIRST = gettext_noop("The first model, and better than predicting the mean on prompts that it has not learnt from.")
WORSE_AT = gettext_noop("Better overall, but clearly worse at %(attributes)s.")
WORSE_AT_SEGMENTS = gettext_noop("Better overall, but clearly worse at the %(aspects)s of segments.")
NO_SEGMENTS = gettext_noop("Better overall, but it scores no segments, as the champion does.")
SAME_ATTRIBUTES = gettext_noop("Better overall, but it gives every response the same %(attributes)s.")
FEWER_PAIRS = gettext_noop(
    "Better overall, but it puts fewer pairs in the right order: %(after)s instead of %(before)s."
)
BETTER = gettext_noop("Better on prompts that neither model has learnt from, and not clearly worse at anything.")
CHAMPION, MEAN = gettext_noop("the champion"), gettext_noop("the mean")

REASONS = (
    CHAMPION,
    MEAN,
    TOO_FEW,
    NOT_NUMBERS,
    ALL_THE_SAME,
    AS_MANY_WRONG,
    SAME_PREDICTIONS,
    REACHES_ZERO,
    BELOW_ZERO,
    NO_BETTER_THAN_LENGTH,
    FIRST,
    WORSE_AT,
    WORSE_AT_SEGMENTS,
    NO_SEGMENTS,
    SAME_ATTRIBUTES,
    FEWER_PAIRS,
    BETTER,
)


def in_words(reason: str) -> str:
    """Returns a verdict's reason in the reader's language; one that an earlier version worded stays as it is."""
    return in_readers_language(reason, REASONS)

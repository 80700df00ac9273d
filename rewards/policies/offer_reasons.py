"""Why a policy is offered or not. Its row keeps the reason in English, and pages say it to each reader."""

from django.utils.translation import gettext_noop

from annotator.web.stored_sentences import in_readers_language

NO_CHAMPION = gettext_noop("It is not judged: the project has no champion yet that could compare its answers.")
NO_PROMPTS = gettext_noop(
    "It is not judged: only %(prompts)s held-out prompts are new to the champion too, and at least %(fewest)s are "
    "needed."
)
NOT_NUMBERS = gettext_noop("Refused: some of the champion's rewards are not numbers.")
SAME = gettext_noop(
    "Refused: on all %(prompts)s prompts its answers are worth as much as those of its base. It has hardly learnt "
    "anything: give it more epochs, or a higher learning rate."
)
BETTER = gettext_noop(
    "Offered: on %(prompts)s prompts the champion prefers its answers to those of its base in %(rate)s per cent, and "
    "the interval begins at %(low)s per cent, above a draw at 50."
)
MAY_BE_CHANCE = gettext_noop(
    "Refused: on %(prompts)s prompts the champion prefers its answers to those of its base in %(rate)s per cent. That "
    "may be chance, as the interval begins at %(low)s per cent, not above a draw at 50."
)
WORSE = gettext_noop(
    "Refused: on %(prompts)s prompts the champion prefers its answers to those of its base in %(rate)s per cent only, "
    "where a draw has 50."
)
BY_HAND = gettext_noop("Offered by hand. %(before)s")

# The one that holds another comes first.
REASONS = (BY_HAND, NO_CHAMPION, NO_PROMPTS, NOT_NUMBERS, SAME, BETTER, MAY_BE_CHANCE, WORSE)


def in_words(reason: str) -> str:
    """Returns the reason in the reader's language; one that an earlier version worded stays as it is."""
    return in_readers_language(reason, REASONS)

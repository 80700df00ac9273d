"""The domains that a project's annotators choose from, such as General, STEM, Code and Multilingual in HelpSteer3."""

from collections.abc import Sequence

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

LONGEST_DOMAIN = 40
MOST_DOMAINS = 12
FEWEST_DOMAINS = 2


def names_of_domains(domains: Sequence[str]) -> None:
    """Raises ValidationError for domains that nobody could choose from: a single one, too many, or two of one name."""
    if not domains:
        return
    if not FEWEST_DOMAINS <= len(domains) <= MOST_DOMAINS:
        text = _("Write %(fewest)d to %(most)d domains, or none.")
        raise ValidationError(text % {"fewest": FEWEST_DOMAINS, "most": MOST_DOMAINS})
    if any(domain != domain.strip() or not domain.isprintable() for domain in domains):
        raise ValidationError(_("A domain must be a text of one line without space around it."))
    if len({domain.casefold() for domain in domains}) != len(domains):
        raise ValidationError(_("Two domains have the same name."))

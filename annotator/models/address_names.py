"""The rule for names of people's choice that stand in addresses: those of accounts and of projects.

A browser takes `.` and `..` in an address for folders: a page about an account of that name would be another page, and
a call about it would change something else.
"""

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

ADDRESSABLE = "^[^-._@+]"
"""The same for the database: a regular expression for letters would depend on its locale, one for the rest does not."""


def require_addressable(name: str) -> None:
    """Raises ValidationError unless the name begins with a letter or a digit."""
    if not name[:1].isalnum():
        raise ValidationError(_("Begin the name with a letter or a digit."))

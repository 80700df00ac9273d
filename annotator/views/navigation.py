"""The entries of every navigation, of a project and of the installation, with the same names in the same order.

The pages draw them as tabs and as a bar, the admin as its sidebar.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.urls import reverse
from django.utils.translation import gettext as _

from annotator.models import Project, User


@dataclass(frozen=True)
class Entry:
    """A link. `name` is the name of its address in the URLconf, `icon` the name of one of the Material Symbols."""

    title: str
    address: str
    name: str
    icon: str


def places_of(user: User | AnonymousUser) -> Iterator[Entry]:
    """Yields the links to where the user can go from anywhere, the admin only for those who may enter it."""
    if not isinstance(user, User):
        return
    yield Entry(_("Your projects"), reverse("home"), "home", "folder_open")
    yield Entry(_("Your work"), reverse("mine"), "mine", "edit_note")
    if user.is_staff:
        yield Entry(_("Admin"), reverse("admin:index"), "admin:index", "dashboard")
    yield Entry(_("Glossary"), reverse("glossary"), "glossary", "dictionary")
    yield Entry(_("Settings"), reverse("settings"), "settings", "settings")


def pages_of(project: Project) -> list[Entry]:
    """Returns the links to the pages of a project that are for its reviewers and managers."""
    titles = {
        "review": (_("Review"), "fact_check"),
        "agreement": (_("Agreement"), "handshake"),
        "annotators": (_("Annotators"), "groups"),
        "comparison": (_("Models"), "compare_arrows"),
    }
    return [Entry(title, reverse(name, args=[project.slug]), name, icon) for name, (title, icon) in titles.items()]

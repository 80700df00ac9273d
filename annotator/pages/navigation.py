"""The entries of every navigation, of a project and of the installation, with the same names in the same order.

The pages draw them as tabs and as a bar, the admin as its sidebar.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

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


@dataclass(frozen=True)
class _Page:
    """A page of the workspace. `name` is the name of its address, which takes the project's slug."""

    name: str
    title: str
    icon: str
    for_managers_only: bool = False


# In the order of the tabs.
_PAGES = (
    _Page("overview", gettext_noop("Overview"), "monitoring"),
    _Page("data", gettext_noop("Data"), "database"),
    _Page("people", gettext_noop("People"), "group", for_managers_only=True),
    _Page("edit-guidelines", gettext_noop("Guidelines and rubric"), "menu_book", for_managers_only=True),
    _Page("review", gettext_noop("Review"), "fact_check"),
    _Page("agreement", gettext_noop("Agreement"), "handshake"),
    _Page("annotators", gettext_noop("Annotators"), "groups"),
    _Page("models", gettext_noop("Models"), "compare_arrows"),
    _Page("project-settings", gettext_noop("Settings"), "tune", for_managers_only=True),
)


def pages_of(project: Project, *, manages: bool) -> list[Entry]:
    """Returns the links to the pages of a project's workspace: all for its managers, else those of its reviewers."""
    return [
        Entry(_(page.title), reverse(page.name, args=[project.slug]), page.name, page.icon)
        for page in _PAGES
        if manages or not page.for_managers_only
    ]

"""Names a project's people where no user name may be shown: by a random name, a different one in each project.

Triggers give one to every member and to everybody who has rated; a dump of the database contains all of them.
"""

from dataclasses import dataclass
from functools import cached_property

from django.db.models import OuterRef, Subquery

from annotator.models import Project, Pseudonym, User


class Pseudonyms(dict[int, str]):
    """A project's pseudonyms by the user's id, read in one query. A user without one gets it when it is asked for."""

    def __init__(self, project_id: int) -> None:
        super().__init__(Pseudonym.objects.filter(project=project_id).values_list("user", "name"))
        self._project_id = project_id

    def __missing__(self, user_id: int) -> str:
        name = self[user_id] = pseudonym(user_id, self._project_id)
        return name


def pseudonym(user_id: int, project_id: int) -> str:
    """Returns the project's pseudonym of this person, who gets one if they have none."""
    return Pseudonym.objects.get_or_create(user_id=user_id, project_id=project_id)[0].name


def name_of(user_field: str, project_field: str) -> Subquery:
    """Returns the pseudonym as a column for rows of another table, whose fields lead to the user and the project."""
    pseudonyms = Pseudonym.objects.filter(user=OuterRef(user_field), project=OuterRef(project_field))
    return Subquery(pseudonyms.values("name"))


@dataclass(frozen=True)
class Naming:
    """How a reader sees the people of a project: by user name or by pseudonym."""

    project: Project
    by_name: bool

    def __call__(self, user: User) -> str:
        return user.username if self.by_name else self._pseudonyms[user.pk]

    def person(self, name: str) -> User | None:
        """Finds the person of this name or pseudonym, whichever the reader sees."""
        # PostgreSQL refuses a NUL character in a query.
        if not name.isprintable():
            return None
        if self.by_name:
            return User.objects.filter(username=name).first()
        return User.objects.filter(pseudonyms__project=self.project, pseudonyms__name=name).first()

    @cached_property
    def _pseudonyms(self) -> Pseudonyms:
        return Pseudonyms(self.project.pk)

"""What a project calls its people where no name may stand: a random name in each project, the same in none.

Triggers give one to every member and to whoever has rated; a dump of the database carries all of them.
"""

from dataclasses import dataclass
from functools import cached_property

from django.db.models import OuterRef, Subquery

from annotator.models import Project, Pseudonym, User


class Pseudonyms(dict[int, str]):
    """A project's pseudonyms by the user's id, read at once. Whoever has none yet gets one."""

    def __init__(self, project_id: int) -> None:
        super().__init__(Pseudonym.objects.filter(project=project_id).values_list("user", "name"))
        self._project_id = project_id

    def __missing__(self, user_id: int) -> str:
        name = self[user_id] = pseudonym(user_id, self._project_id)
        return name


def pseudonym(user_id: int, project_id: int) -> str:
    """What the project calls this one person."""
    return Pseudonym.objects.get_or_create(user_id=user_id, project_id=project_id)[0].name


def name_of(user_field: str, project_field: str) -> Subquery:
    """The pseudonym as a column of another table's rows, whose fields lead to the user and the project."""
    called = Pseudonym.objects.filter(user=OuterRef(user_field), project=OuterRef(project_field))
    return Subquery(called.values("name"))


@dataclass(frozen=True)
class Naming:
    """How the people of a project are called to one of its readers: by name, or by pseudonym."""

    project: Project
    by_name: bool

    def __call__(self, user: User) -> str:
        return user.username if self.by_name else self._pseudonyms[user.pk]

    def person(self, name: str) -> User | None:
        """The person whom the project calls by this pseudonym."""
        if not name.isprintable():
            return None
        if self.by_name:
            return User.objects.filter(username=name).first()
        return User.objects.filter(pseudonyms__project=self.project, pseudonyms__name=name).first()

    @cached_property
    def _pseudonyms(self) -> Pseudonyms:
        return Pseudonyms(self.project.pk)

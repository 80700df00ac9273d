"""A migration of what people read about fields and models, which no table knows."""

from collections.abc import Sequence

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class Relabel(Operation):
    """Changes verbose names, help texts and choices, by the operations that Django writes for them.

    Django renders every related model again after each of those operations: a hundred of them take three seconds of
    each new database. Here nothing is rendered until they are all done.
    """

    reduces_to_sql = False

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        # While a state has no rendered models, it renders none; whoever needs them next has them all rendered once.
        vars(state).pop("apps", None)
        for operation in self.operations:
            operation.state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Does nothing: the tables stay as they are."""

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Does nothing: the tables stay as they are."""

    def describe(self) -> str:
        return f"Relabel fields and models ({len(self.operations)})"

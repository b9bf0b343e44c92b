"""A Django migration operation that runs a migration of rowq."""

from typing import Any

from django.db import router
from django.db.migrations.operations.base import Operation

from rowq.engines.connections import source_of
from rowq.tools.migrate import plain_steps


class RunRowqMigration(Operation):  # type: ignore[misc]
    """Operation that runs a migration of rowq for the connection's engine.

    It records the migration as `rowq migrate` does, and skips an installed one. Django's state
    does not change, because there are no models.
    """

    reduces_to_sql = True
    reversible = True

    def __init__(self, number: int) -> None:
        self.number = number

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Leave Django's state unchanged."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: Any,
        from_state: Any,  # noqa: ARG002 - name of the base class
        to_state: Any,  # noqa: ARG002
    ) -> None:
        """Install it; raises EngineUnknown for an unsupported connection."""
        self._run(app_label, schema_editor, forwards=True)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: Any,
        from_state: Any,  # noqa: ARG002
        to_state: Any,  # noqa: ARG002
    ) -> None:
        """Roll it back; refused (RQ805) if that would delete messages."""
        self._run(app_label, schema_editor, forwards=False)

    def describe(self) -> str:
        """Return the text for `migrate --plan`."""
        return f"Run migration {self.number} of rowq"

    def _run(self, app_label: str, schema_editor: Any, *, forwards: bool) -> None:
        connection = schema_editor.connection
        if not router.allow_migrate(connection.alias, app_label):
            return
        steps = plain_steps(source_of(connection).engine.name, self.number)
        for statement in steps.up if forwards else steps.down:
            schema_editor.execute(statement, None)

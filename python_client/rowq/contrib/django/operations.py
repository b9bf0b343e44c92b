"""An operation of a Django migration that runs one of rowq's own."""

from typing import Any

from django.db import router
from django.db.migrations.operations.base import Operation

from rowq.engines.connections import source_of
from rowq.tools.migrate import plain_steps


class RunRowqMigration(Operation):  # type: ignore[misc]
    """Runs the script of a migration of rowq that is packaged for the connection's engine.

    It keeps rowq's own bookkeeping, so `rowq status` and `rowq migrate` know of it, and what is
    installed already stays as it is. Django's state does not change: there are no models.
    """

    reduces_to_sql = True
    reversible = True

    def __init__(self, number: int) -> None:
        self.number = number

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Leave Django's state as it is."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: Any,
        from_state: Any,  # noqa: ARG002 - named by Django
        to_state: Any,  # noqa: ARG002
    ) -> None:
        """Install it; raises EngineUnknown for a connection that rowq does not know."""
        self._run(app_label, schema_editor, forwards=True)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: Any,
        from_state: Any,  # noqa: ARG002
        to_state: Any,  # noqa: ARG002
    ) -> None:
        """Take it back; refused (RQ805) where that would throw messages away."""
        self._run(app_label, schema_editor, forwards=False)

    def describe(self) -> str:
        """Return what `migrate --plan` says."""
        return f"Run migration {self.number} of rowq"

    def _run(self, app_label: str, schema_editor: Any, *, forwards: bool) -> None:
        connection = schema_editor.connection
        if not router.allow_migrate(connection.alias, app_label):
            return
        steps = plain_steps(source_of(connection).engine.name, self.number)
        for statement in steps.up if forwards else steps.down:
            schema_editor.execute(statement, None)

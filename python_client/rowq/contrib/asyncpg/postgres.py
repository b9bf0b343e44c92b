"""PostgreSQL through asyncpg, on the caller's connections; rowq's own use psycopg."""

# ruff: noqa: D102 - the methods are described in base.py

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from rowq.engines.base import Row
from rowq.engines.calls import Readers, read_json, read_rows, readers_of
from rowq.engines.postgres.calls import READERS, text_of, values_of
from rowq.engines.postgres.driver import quoted, savepoint_async
from rowq.engines.postgres.engine import PostgresEngine
from rowq.errors import EngineUnknown

_TEXT, _BYTES = "pg_catalog.text", "pg_catalog.bytea"


@dataclass(frozen=True, slots=True)
class AsyncpgCall:
    """Statement with placeholders $1 and so on, and conversion of its rows."""

    text: str
    readers: Readers


@cache
def call_of(routine: str) -> AsyncpgCall:
    """Return the call of a routine, such as dequeue_fast."""
    return AsyncpgCall(
        text_of(routine, _mark),
        readers_of("postgres", routine, {**READERS, "json": _read_json}),
    )


def _mark(position: int, _name: str, type_name: str) -> str:
    """Return the placeholder of a parameter that is sent as text or bytes.

    asyncpg accepts only Python values of the parameter's type. As text, the connection's codecs
    (`set_type_codec`) have no effect.
    """
    sent = "" if type_name == _BYTES else f"::{_TEXT}"
    return f"${position}{sent}::{type_name}"


def _read_json(value: Any) -> Any:
    """Return JSON, which in a procedure's result a codec may have decoded already."""
    return read_json(value) if isinstance(value, str | bytes) else value


class AsyncpgEngine(PostgresEngine):
    """PostgreSQL on an asyncpg.Connection, or on a connection of its pool."""

    driver_package = "asyncpg"
    other_drivers: ClassVar[Mapping[str, str]] = {}

    async def call_async(
        self, connection: Any, routine: str, arguments: Mapping[str, Any]
    ) -> list[Row]:
        import asyncpg

        call = call_of(routine)
        values = values_of(routine, arguments).values()
        try:
            records = await connection.fetch(call.text, *values)
        except asyncpg.PostgresError as error:
            if refusal := self.refusal(error):
                raise refusal from error
            raise
        return read_rows([tuple(record) for record in records], call.readers)

    def is_async(self, connection: Any) -> bool:
        if not hasattr(connection, "is_in_transaction"):
            raise EngineUnknown(
                f"expected an asyncpg connection, got {type(connection).__name__}; use"
                " `async with pool.acquire() as connection`"
            )
        return True

    def in_transaction(self, connection: Any) -> bool:
        return bool(connection.is_in_transaction())

    def watch(self, connection: Any, target: str) -> None:
        """Do nothing: asyncpg has transactions in blocks only, which end them."""

    def savepoint_async(self, connection: Any) -> AbstractAsyncContextManager[None]:
        import asyncpg

        if not self.in_transaction(connection):
            return nullcontext()
        return savepoint_async(connection, (asyncpg.PostgresError, asyncpg.InterfaceError))

    def grant(self, connection: Any, role: str, error: Exception) -> str:  # noqa: ARG002
        # asyncpg has no public attribute for the user.
        user = getattr(getattr(connection, "_params", None), "user", None)
        return f'"grant {role} to {quoted(user) if user else "the account"};"'


ENGINE = AsyncpgEngine()

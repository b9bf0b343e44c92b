"""PostgreSQL accepts every call on the routines' pages."""

from collections.abc import Callable

import psycopg
import pytest

from docs.calls import needed_on_postgres, on_postgres
from rowq.contract import Routine, load_contract


@pytest.mark.requires("psql")
@pytest.mark.parametrize("write", [on_postgres, needed_on_postgres])
def test_server_accepts_every_call(write: Callable[..., str], database_url: str) -> None:
    routines: list[Routine] = list(load_contract().of("postgres").values())
    with psycopg.connect(database_url, autocommit=True) as connection:
        for routine in routines:
            call = write(routine, lambda number, _name: f"${number}")
            prepared = connection.pgconn.prepare(b"", call.encode())
            assert not prepared.error_message, (call, prepared.error_message)

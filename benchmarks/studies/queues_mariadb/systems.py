"""The systems compared on MariaDB, each with its client and installer."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

import pymysql

from benchmarks.engines.mysql.wire import BARE
from benchmarks.studies.queues_mariadb.client import (
    Client,
    Rowq,
    SelectUpdate,
    SkipLocked,
    UpdateLimit,
)
from rowq.engines.mysql.url import connection_parameters
from rowq.tools.migrate import migrate


@dataclass(frozen=True, slots=True)
class System:
    """One system; origin: where it comes from, in words."""

    name: str
    version: str
    origin: str
    client: type[Client]
    install: Callable[[str], object]


def all_systems() -> list[System]:
    """Return rowq and the usual queue tables."""
    table = "one table with a status and an owner, written for this comparison"
    tables: dict[str, tuple[type[Client], str]] = {
        "select_update": (SelectUpdate, "select ... for update, then update"),
        "skip_locked": (SkipLocked, "select ... for update skip locked, then update"),
        "update_limit": (UpdateLimit, "update ... limit, then select its own rows"),
    }
    return [
        System("rowq", version("rowq"), "this checkout", Rowq, migrate),
        *(
            System(name, "", f"{table}: {words}", client, _make_database)
            for name, (client, words) in tables.items()
        ),
    ]


def _make_database(url: str) -> None:
    with pymysql.connect(**connection_parameters(url)) as connection:
        connection.cursor().execute(f"create database {BARE} character set utf8mb4")

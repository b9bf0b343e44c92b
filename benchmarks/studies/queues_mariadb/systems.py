"""The systems compared on MariaDB, each with its client and installer."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

import pymysql

from benchmarks.engines.mysql.wire import BARE
from benchmarks.studies.queues_mariadb.client import Client, Rowq, SelectUpdate, UpdateLimit
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
    """Return rowq and the two usual queue tables."""
    table = "one table with a status and an owner, written for this comparison"
    return [
        System("rowq", version("rowq"), "this checkout", Rowq, migrate),
        System(
            "select_update",
            "",
            f"{table}: select ... for update, then update",
            SelectUpdate,
            _make_database,
        ),
        System(
            "update_limit",
            "",
            f"{table}: update ... limit, then select its own rows",
            UpdateLimit,
            _make_database,
        ),
    ]


def _make_database(url: str) -> None:
    with pymysql.connect(**connection_parameters(url)) as connection:
        connection.cursor().execute(f"create database {BARE} character set utf8mb4")

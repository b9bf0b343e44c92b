"""plpgsql_check finds no error, dead code or injection in any function."""

import psycopg
import pytest

from tests.engines.base import Connection

pytestmark = pytest.mark.pitfall("postgres 18")

INSTALL = "apt-get install postgresql-15-plpgsql-check, then --engine postgres15"

ACCEPTED = (
    # Functions are volatile on purpose: a stable one has its caller's snapshot, and floors require
    # a new snapshot for each read.
    "routine is marked as VOLATILE, should be",
    # The cast value is a constant or a time, once per call and not per row.
    "target type is different type than source type",
)
"""Harmless performance findings, by the start of their message."""


@pytest.fixture
def checker(owner: Connection) -> Connection:
    """Return a session with the extension."""
    try:
        owner.execute("create extension plpgsql_check")
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile) as error:
        pytest.skip(f"{str(error).splitlines()[0]}; to run it: {INSTALL}")
    return owner


@pytest.mark.promise("P15", "P16")
def test_plpgsql_check_finds_nothing(checker: Connection) -> None:
    findings = checker.execute(
        """
        select p.oid::regprocedure::text, f.lineno, f.level, f.message, f.query
        from pg_proc p
        join pg_language l on l.oid = p.prolang and l.lanname = 'plpgsql'
        cross join lateral plpgsql_check_function_tb(
            p.oid,
            fatal_errors => false,
            other_warnings => true,
            extra_warnings => true,
            performance_warnings => true,
            security_warnings => true,
            compatibility_warnings => true
        ) f
        where p.pronamespace = 'rowq'::regnamespace
        """
    ).fetchall()
    real = [
        finding
        for finding in findings
        if finding[2] != "performance" or not finding[3].startswith(ACCEPTED)
    ]
    assert real == []


@pytest.mark.promise("P15")
def test_plpgsql_check_checks_every_function(checker: Connection) -> None:
    others = checker.execute(
        """
        select p.proname from pg_proc p join pg_language l on l.oid = p.prolang
        where p.pronamespace = 'rowq'::regnamespace and l.lanname <> 'plpgsql'
        """
    ).fetchall()
    names = {name for (name,) in others}
    assert names == {"internal_from_microseconds", "internal_is_listened"}

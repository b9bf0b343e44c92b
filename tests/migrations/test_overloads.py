"""Migrations add, keep and drop overloads of a routine."""

from pathlib import Path

import pytest

from rowq.tools import migrate
from rowq.tools.migrate.sources import sources_of
from tests.engines.base import Connection
from tests.helpers.releases import begin_next, copied_without_history, use_released
from tests.migrations.catalog import snapshot

FILES = ("overloads/enqueue_jsonb.sql", "overloads/enqueue_json.sql")


def forms(session: Connection) -> list[str]:
    """Return the body's type in each overload of enqueue."""
    rows = session.execute(
        "select format_type(proargtypes[1], null) from pg_proc"
        " where pronamespace = to_regnamespace('rowq') and proname = 'enqueue' order by 1"
    )
    return [type_ for (type_,) in rows]


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return releases with zero, two and one overload."""
    migrations = copied_without_history(tmp_path, "postgres")
    folder = sources_of(migrations)
    install = folder / "install.sql"
    whole = install.read_text(encoding="utf-8")

    def without(*files: str) -> None:
        lines = whole.splitlines(keepends=True)
        kept = [line for line in lines if not line.rstrip().endswith(files)]
        assert len(kept) == len(lines) - len(files)
        install.write_text("".join(kept), encoding="utf-8")

    without(*FILES)
    use_released(migrations, monkeypatch)
    install.write_text(whole, encoding="utf-8")
    begin_next(migrations, "second", "0.2.0")
    use_released(migrations, monkeypatch)
    without(FILES[0])
    begin_next(migrations, "third", "0.3.0")
    return migrations


@pytest.mark.usefixtures("later")
def test_upgrade_changes_overloads_and_rollback_undoes_it(
    empty_database: str, session: Connection
) -> None:
    expected = {1: ["text"], 2: ["json", "jsonb", "text"], 3: ["json", "text"]}
    seen = {}
    for number, types in expected.items():
        migrate.migrate(empty_database, to=number)
        assert forms(session) == types
        seen[number] = snapshot(session)
        assert migrate.status(empty_database).drift == ()
    for number in (2, 1):
        migrate.rollback(empty_database)
        assert snapshot(session) == seen[number]
        assert migrate.status(empty_database).drift == ()
    migrate.rollback(empty_database, force=True)
    assert forms(session) == []


OTHERS = (
    "bytea, text, jsonb, integer, double precision, timestamptz, text, integer, text, bigint[],"
    " text, double precision, text"
)
"""The types of enqueue's parameters after the body."""


# Overloads differ only in the body's type.
RETYPED = """
do $$
declare
    v_text text := pg_get_functiondef('rowq.enqueue(text, json, %s)'::regprocedure);
begin
    drop function rowq.enqueue(text, json, %s);
    execute replace(v_text, 'p_body json,', 'p_body xml,');
end;
$$
"""


@pytest.mark.parametrize(
    "change",
    [
        RETYPED % (OTHERS, OTHERS),
        f"drop function rowq.enqueue(text, jsonb, {OTHERS})",
        f"alter function rowq.enqueue(text, json, {OTHERS}) security invoker",
        "create function rowq.enqueue(boolean) returns boolean language sql as 'select $1'",
    ],
)
def test_missing_changed_or_added_overload_is_drift(
    empty_database: str, session: Connection, change: str
) -> None:
    migrate.migrate(empty_database)
    session.execute(change.encode())
    assert migrate.status(empty_database).drift == (migrate.Drift("enqueue", "changed"),)

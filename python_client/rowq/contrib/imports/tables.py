"""Queues in PostgreSQL tables; import this module only if psycopg is installed."""

from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from itertools import islice
from typing import Any, ClassVar

from psycopg import sql

from rowq.contrib.imports.source import Batch, Item, Source, origin_of
from rowq.engines import engine_for_connection
from rowq.tools.console.errors import BadInput
from rowq.tools.migrate.errors import MissingPrivilege

# Prevents the use of functions and operators from other schemas.
_SET_SEARCH_PATH = "select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false)"

# "set role" gives no protection, because a trigger can reset it. A role that can become a superuser
# counts as one. Built-in objects, and those of the first superuser, have no row in pg_shdepend.
_OTHERS_CODE = """
with recursive schema (oid) as (
    select n.oid from pg_catalog.pg_namespace n where n.nspname = %(schema)s
),
relation (oid) as (
    select c.oid from pg_catalog.pg_class c join schema s on c.relnamespace = s.oid
    union
    select i.inhrelid from relation r join pg_catalog.pg_inherits i on i.inhparent = r.oid
),
part (classid, objid) as (
    select 'pg_catalog.pg_namespace'::regclass, s.oid from schema s
    union all
    select d.classid, d.objid
    from schema s
    join pg_catalog.pg_depend d
        on d.refclassid = 'pg_catalog.pg_namespace'::regclass and d.refobjid = s.oid
    where d.classid not in (
        'pg_catalog.pg_extension'::regclass, 'pg_catalog.pg_default_acl'::regclass
    )
    union all
    select 'pg_catalog.pg_class'::regclass, r.oid from relation r
    union all
    select d.classid, d.objid
    from relation r
    join pg_catalog.pg_depend d
        on d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjid = r.oid
    where d.classid in (
        'pg_catalog.pg_attrdef'::regclass, 'pg_catalog.pg_constraint'::regclass,
        'pg_catalog.pg_trigger'::regclass, 'pg_catalog.pg_rewrite'::regclass,
        'pg_catalog.pg_policy'::regclass, 'pg_catalog.pg_statistic_ext'::regclass
    )
),
used (classid, objid) as (
    select p.classid, p.objid from part p
    union
    select d.refclassid, d.refobjid
    from part p
    join pg_catalog.pg_depend d on d.classid = p.classid and d.objid = p.objid
    where d.refclassid not in (
        'pg_catalog.pg_extension'::regclass, 'pg_catalog.pg_namespace'::regclass
    )
),
-- Schema public belongs to the database owner, through the role pg_database_owner.
account (oid, name, is_trusted) as (
    select r.oid, coalesce(o.rolname, r.rolname), coalesce(o.rolsuper, r.rolsuper)
    from pg_catalog.pg_roles r
    left join pg_catalog.pg_database b
        on b.datname = current_database() and r.rolname = 'pg_database_owner'
    left join pg_catalog.pg_roles o on o.oid = b.datdba
),
owned (classid, objid, owner) as (
    select u.classid, u.objid, coalesce(n.nspowner, c.relowner, p.proowner, d.refobjid)
    from used u
    left join pg_catalog.pg_namespace n
        on u.classid = 'pg_catalog.pg_namespace'::regclass and n.oid = u.objid
    left join pg_catalog.pg_class c
        on u.classid = 'pg_catalog.pg_class'::regclass and c.oid = u.objid
    left join pg_catalog.pg_proc p
        on u.classid = 'pg_catalog.pg_proc'::regclass and p.oid = u.objid
    left join pg_catalog.pg_shdepend d
        on d.classid = u.classid
        and d.objid = u.objid
        and d.dbid = (
            select b.oid from pg_catalog.pg_database b where b.datname = current_database()
        )
        and d.refclassid = 'pg_catalog.pg_authid'::regclass
        and d.deptype = 'o'
),
found (what, owner) as (
    select pg_describe_object(o.classid, o.objid, 0) || ' belongs to', o.owner
    from owned o
    where o.owner is not null
    union all
    select format('table %%s can get triggers of', c.oid::regclass), a.grantee
    from relation t
    join pg_catalog.pg_class c on c.oid = t.oid
    cross join lateral aclexplode(c.relacl) a
    where a.privilege_type = 'TRIGGER'
    union all
    select format('schema %%I can get objects of', n.nspname), a.grantee
    from schema s
    join pg_catalog.pg_namespace n on n.oid = s.oid
    cross join lateral aclexplode(n.nspacl) a
    where a.privilege_type = 'CREATE'
)
select f.what, coalesce(a.name, 'public')
from found f
left join account a on a.oid = f.owner
where not coalesce(a.is_trusted, false)
  and exists (
      select from pg_catalog.pg_roles s
      where s.rolsuper and pg_has_role(session_user, s.oid, 'member')
  )
order by 1, 2
limit 1
"""

_IDS_AT_A_TIME = 10_000
FOR_UPDATE = {True: sql.SQL(" for update"), False: sql.SQL("")}

_USUAL = 5


def require_trust(connection: Any, schema: str) -> None:
    """Raise MissingPrivilege if other roles' code would run with a superuser's rights.

    Set the session's search path, and read only the catalog, before any table of the other queue. A
    role with fewer rights than a superuser is not protected.
    """
    connection.execute(_SET_SEARCH_PATH)
    found = connection.execute(_OTHERS_CODE, {"schema": schema}).fetchone()
    if found is None:
        return
    what, role = found
    raise MissingPrivilege(
        f"{MissingPrivilege.number} missing_privilege: {what} {role}, whose code would run as a"
        " superuser",
        "Import as the owner of the other queue's tables, and grant it rowq_producer; or use"
        " --from-url.",
    )


class TableSource(Source):
    """A queue in PostgreSQL tables."""

    system: ClassVar[str]
    """Name of the other queue."""
    default_schema: ClassVar[str]
    columns: ClassVar[dict[str, tuple[str, ...]]]
    """Required columns by table."""

    def __init__(self, connection: Any, schema: str | None) -> None:
        """Check the tables; raises BadInput and MissingPrivilege."""
        self.connection = connection
        self.schema = schema or self.default_schema
        require_trust(connection, self.schema)
        self.origin = cache(self._find_origin)
        self._ids: Iterator[Any] = iter(())
        self._ahead: deque[Any] = deque()
        for table, needed in self.columns.items():
            self._require(table, needed)

    def choose(self, names: Sequence[str] | None) -> list[str]:
        """Return the queues, in the order of the command line, or by name."""
        known = self.queues()
        for name in names or ():
            if name not in known:
                existing = ", ".join(known) or "none"
                raise BadInput(f"{self.system} has no queue {name!r}; existing queues: {existing}")
        return list(dict.fromkeys(names)) if names else self.importable(known)

    @abstractmethod
    def queues(self) -> list[str]:
        """Return the names of all queues in order."""

    def importable(self, names: list[str]) -> list[str]:
        """Return the queues to import by default."""
        return names

    def transaction(self) -> AbstractContextManager[Any]:
        """Return a transaction of the connection."""
        return engine_for_connection(self.connection).transaction(self.connection)

    @abstractmethod
    def ids(self, cursor: Any, name: str) -> None:
        """Select the ids of waiting messages, in the order of import."""

    @abstractmethod
    def items(self, name: str, ids: Sequence[Any], *, lock: bool) -> list[Item]:
        """Return the messages of these ids that still wait, in any order."""

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """Sort the ids once for all batches; later messages are not included."""
        with self.connection.cursor(name="rowq_import", withhold=True) as cursor:
            cursor.itersize = _IDS_AT_A_TIME
            self.ids(cursor, name)
            self._ids = (row[0] for row in cursor)
            self._ahead.clear()
            yield

    def page(self, name: str, count: int, *, lock: bool) -> list[Item]:
        """Return the next messages; read twice as many each time, because they may be large."""
        batch = Batch(count)
        step = 1
        while ids := self._next_ids(min(step, batch.capacity)):
            items = {item.id: item for item in self.items(name, ids, lock=lock)}
            for number in ids:
                if number in items and not batch.add(items[number]):
                    return batch.items
                self._ahead.popleft()
            step *= 2
        return batch.items

    def _next_ids(self, count: int) -> list[Any]:
        self._ahead.extend(islice(self._ids, max(0, count - len(self._ahead))))
        return list(islice(self._ahead, count))

    def table(self, name: str) -> sql.Identifier:
        """Return the identifier of a table of the other queue."""
        return sql.Identifier(self.schema, name)

    def rows(
        self, statement: str, values: Sequence[Any] = (), **parts: sql.Composable
    ) -> list[tuple[Any, ...]]:
        """Run a statement with {parts}, and return its rows."""
        found: list[tuple[Any, ...]] = self._run(statement, values, parts).fetchall()
        return found

    def number(self, statement: str, values: Sequence[Any] = (), **parts: sql.Composable) -> int:
        """Run a statement and return its number."""
        return int(self.rows(statement, values, **parts)[0][0])

    def deleted(self, statement: str, values: Sequence[Any], **parts: sql.Composable) -> int:
        """Run a delete and return the number of rows; the transaction must end after it.

        Set the search path, because triggers may use the tables without their schema.
        """
        self._run("set local search_path to {schema}", (), {"schema": sql.Identifier(self.schema)})
        return int(self._run(statement, values, parts).rowcount)

    def _run(
        self, statement: str, values: Sequence[Any], parts: Mapping[str, sql.Composable]
    ) -> Any:
        return self.connection.execute(sql.SQL(statement).format(**parts), values)

    def columns_of(self, table: str) -> set[str]:
        """Return the columns of a table, which are none if it does not exist."""
        return {
            row[0]
            for row in self.rows(
                "select a.attname from pg_catalog.pg_attribute a"
                " join pg_catalog.pg_class c on c.oid = a.attrelid"
                " join pg_catalog.pg_namespace n on n.oid = c.relnamespace"
                " where n.nspname = %s and c.relname = %s and a.attnum > 0 and not a.attisdropped",
                (self.schema, table),
            )
        }

    def _find_origin(self, table: str) -> str:
        """Return a unique id of a table, across databases, and different after a drop."""
        (row,) = self.rows(
            "select s.system_identifier, d.oid, c.oid"
            " from pg_catalog.pg_control_system() s, pg_catalog.pg_database d,"
            " pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace"
            " where d.datname = pg_catalog.current_database()"
            " and n.nspname = %s and c.relname = %s",
            (self.schema, table),
        )
        return origin_of(*row)

    def _require(self, table: str, needed: Sequence[str]) -> None:
        columns = self.columns_of(table)
        if not columns:
            raise BadInput(f"{self.system} is not installed: no table {self.schema}.{table}")
        if missing := [name for name in needed if name not in columns]:
            raise BadInput(
                f"unsupported release of {self.system}: table {self.schema}.{table} has no column"
                f" {', '.join(missing)}"
            )


def ranks(priorities: Iterable[int]) -> dict[int, int]:
    """Map priorities to rowq's: 0 to 5, higher ones to 4 to 0, lower ones to 6 to 9, by rank.

    If there are too many, neighbours share one.
    """
    found = sorted(set(priorities))
    above = [priority for priority in found if priority > 0]
    below = [priority for priority in reversed(found) if priority < 0]
    return (
        {0: _USUAL}
        | {priority: _USUAL - step for priority, step in _steps(above, _USUAL)}
        | {priority: _USUAL + step for priority, step in _steps(below, 9 - _USUAL)}
    )


def rank_of(priority: int, known: Mapping[int, int]) -> int:
    """Return rowq's priority for another queue's, or for the nearest known one."""
    return known[min(known, key=lambda other: abs(other - priority))]


def _steps(priorities: list[int], most: int) -> Iterable[tuple[int, int]]:
    """Yield each priority with a step from 1, the nearest to 0 first."""
    shared = max(len(priorities), most)
    return ((priority, index * most // shared + 1) for index, priority in enumerate(priorities))

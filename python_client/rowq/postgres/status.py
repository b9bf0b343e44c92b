"""Look at a PostgreSQL database and change nothing."""

import re
from typing import Any

import psycopg

from rowq.migrate.engines import release_for
from rowq.migrate.errors import ForeignSchema, MissingPrivilege
from rowq.migrate.losses import Losses
from rowq.migrate.release import Release
from rowq.migrate.shared import refusals
from rowq.postgres.statements import TRUST, numbered_refusal

ROLES = ("rowq_owner", "rowq_producer", "rowq_consumer", "rowq_admin", "rowq_monitor")

_SCHEMA = """
    select
        pg_get_userbyid(n.nspowner),
        coalesce(obj_description(n.oid, 'pg_namespace'), '') like 'rowq message queue%'
            or (
                select count(*) = 3
                from pg_class c
                where c.relnamespace = n.oid
                  and c.relkind = 'r'
                  and c.relname in ('migration', 'migration_log', 'meta')
            ),
        pg_has_role(n.nspowner, 'usage')
    from pg_namespace n
    where n.nspname = 'rowq'
"""

# The path is the database's and belongs to its owner, who can put functions and operators into it
# that run as whoever looks. Nothing is committed: the transaction ends with the connection.
_BEGIN = "begin transaction read only; set local search_path = pg_catalog, pg_temp"

# How a routine runs, before its text, so that a caller never runs with his own rights what is not
# shipped. No text, and so a changed one, where a parameter could run what is not: a default by a
# function that does more than compute, or a type of somebody's, whose check runs as the caller.
# Two routines of one name are never rowq's, and together as good as changed.
_PINNED = "security definer set search_path = pg_catalog, pg_temp "
_ROUTINES = r"""
    select
        p.proname,
        string_agg(
            case
                when exists (
                    select
                    from pg_depend d
                    where d.classid = 'pg_proc'::regclass
                      and d.objid = p.oid
                      and d.refclassid not in ('pg_language'::regclass, 'pg_namespace'::regclass)
                      and not exists (
                          select
                          from pg_type t
                          left join pg_type e on t.typelem <> 0 and e.oid = t.typelem
                          where d.refclassid = 'pg_type'::regclass
                            and t.oid = d.refobjid
                            and t.typnamespace = p.pronamespace
                            and coalesce(e.typtype, t.typtype) = 'c'
                      )
                ) or exists (
                    select
                    from regexp_matches(
                        p.proargdefaults::text, ':(?:op)?funcid ([0-9]+)', 'g'
                    ) f (numbers)
                    join pg_proc called on called.oid = f.numbers[1]::oid
                    where called.provolatile <> 'i'
                      and called.oid <> 'pg_catalog.clock_timestamp()'::regprocedure
                ) then ''
                when p.prosecdef and 'search_path=pg_catalog, pg_temp' = any(p.proconfig)
                    then %(pinned)s || p.prosrc
                when p.prosecdef or p.proconfig::text ~ 'search_path='
                    then ''
                else p.prosrc
            end,
            ' and ' order by p.oid
        )
    from pg_proc p
    where p.pronamespace = to_regnamespace('rowq')
      and not exists (
          select 1 from pg_depend d
          where d.classid = p.tableoid and d.objid = p.oid and d.deptype = 'e'
      )
    group by p.proname
"""

# What grants.sql warns of, in its words.
_ROLES_OF_OTHERS = """
    select format('role %%I ', r.rolname) || case
        when r.rolsuper then 'is a superuser'
        when r.rolcreaterole then 'may create roles'
        when r.rolcanlogin then 'may log in'
        else format('can be granted by %%I', a.rolname)
    end || ': if that is not meant, a DBA can run "' || case
        when r.rolsuper or r.rolcreaterole or r.rolcanlogin
            then format('alter role %%I nologin nosuperuser nocreaterole;', r.rolname)
        else format('revoke admin option for %%I from %%I cascade;', r.rolname, a.rolname)
    end || '"'
    from pg_roles r
    left join lateral (
        select m.rolname
        from pg_auth_members g
        join pg_roles m on m.oid = g.member
        where g.roleid = r.oid
          and g.admin_option
          and not m.rolsuper
          and m.rolname <> session_user
          and m.oid not in (select n.nspowner from pg_namespace n where n.nspname = 'rowq')
        order by m.rolname
        limit 1
    ) a on true
    where r.rolname = any(%(callers)s)
      and (r.rolsuper or r.rolcreaterole or r.rolcanlogin or a.rolname is not null)
    order by r.rolname
"""
_RIGHTS_OF_OTHERS = """
    with object as (
        select 'schema rowq' as name, n.nspowner as owner, n.nspacl as acl
        from pg_namespace n
        where n.nspname = 'rowq'
        union all
        select p.proname, p.proowner, p.proacl
        from pg_proc p
        where p.pronamespace = to_regnamespace('rowq')
          and not exists (
              select 1 from pg_depend d
              where d.classid = p.tableoid and d.objid = p.oid and d.deptype = 'e'
          )
    )
    select format(
        'role %%I has rights of its own, on %%s: revoke them if they are not meant',
        r.rolname, string_agg(distinct o.name, ', '))
    from object o
    cross join aclexplode(o.acl) given
    join pg_roles r on r.oid = given.grantee
    where r.oid <> o.owner
      and r.rolname <> all(%(callers)s)
    group by r.rolname
    order by r.rolname
"""

_LOSSES = """
    select
        (select count(*) from only rowq.queue),
        (select count(*) from (select from only rowq.ready limit 100000) r)
            + (select count(*) from (select from only rowq.delayed limit 100000) d)
            + (select count(*) from (select from only rowq.dead limit 100000) d)
            + (
                select coalesce(sum(cardinality(c.message_ids)), 0)
                from (select message_ids from only rowq.claim limit 100000) c
            ),
        (select count(*) from (select from rowq.archive limit 100000) a)
            + (
                select coalesce(sum(cardinality(f.message_ids)), 0)
                from (select message_ids from only rowq.finished limit 100000) f
            )
"""

_BODY = re.compile(
    r"^create or replace (?:function|procedure) rowq\.(\w+)\((.*?)^as \$\$(.*)^\$\$;",
    re.MULTILINE | re.DOTALL,
)


class Look:
    """What there is to see through one connection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        connection.execute(_BEGIN)

    def server(self) -> str:
        """Return the server's name and version."""
        return f"PostgreSQL {self._value('show server_version')}"

    def owner(self) -> str | None:
        """Return the schema's owner, None where there is none.

        This reads the catalog only, and refuses where reading a table could run what is not ours.

        Raises:
            ForeignSchema: the schema is not ours, or not only ours.
            MissingPrivilege: this user may not see what is installed, or somebody else could have
                put something there that would run with this user's rights.
        """
        row = self._connection.execute(_SCHEMA).fetchone()
        if row is None:
            return None
        owner, is_ours, may_look = row
        if not is_ours:
            raise ForeignSchema(
                f"{ForeignSchema.number} foreign_schema: the database has a schema rowq that rowq"
                " did not make"
            )
        if not may_look:
            raise MissingPrivilege(
                f"{MissingPrivilege.number} missing_privilege: the schema rowq belongs to {owner}",
                f"Connect as {owner} or as a member of it.",
            )
        with refusals(psycopg.Error, numbered_refusal):
            self._connection.execute(release_for("postgres").text(TRUST))
        return str(owner)

    def orphans(self) -> dict[str, str]:
        """Return routines whose owner is gone: there is no such thing here."""
        return {}

    def installed_ids(self) -> list[str]:
        """Return the ids of the installed migrations, for who has asked for the owner before."""
        if self._value("select to_regclass('rowq.migration')") is None:
            return []
        rows = self._connection.execute("select migration_id from rowq.migration").fetchall()
        return [row[0] for row in rows]

    def roles(self) -> dict[str, bool]:
        """Return for each of rowq's roles whether the server has it."""
        rows = self._connection.execute(
            "select rolname from pg_roles where rolname = any(%s)", (list(ROLES),)
        ).fetchall()
        present = {row[0] for row in rows}
        return {role: role in present for role in ROLES}

    def rights_of_others(self) -> tuple[str, ...]:
        """Say who could give himself a role of rowq's, and who has rights without one."""
        callers = {"callers": [role for role in ROLES if role != "rowq_owner"]}
        return tuple(
            row[0]
            for query in (_ROLES_OF_OTHERS, _RIGHTS_OF_OTHERS)
            for row in self._connection.execute(query, callers)
        )

    def routines(self) -> dict[str, str]:
        """Return name and text of every routine in the schema, as shipped_routines has it."""
        return dict(self._connection.execute(_ROUTINES, {"pinned": _PINNED}).fetchall())

    def losses(self) -> Losses:
        """Return what is lost when the tables are, for who has asked for the owner before."""
        return losses(self._connection)

    def _value(self, query: str) -> Any:
        return self._connection.execute(query).fetchone()[0]


def losses(connection: Any) -> Losses:
    """Return what is lost when the tables are, for who knows them to be rowq's own."""
    return Losses(*connection.execute(_LOSSES).fetchone())


def shipped_routines(release: Release, number: int, server: str = "") -> dict[str, str]:
    """Return name and text of every routine as it is after the migration of this number."""
    del server  # the texts are the same for every version
    found: dict[str, str] = {}
    for text in release.files(number).values():
        for name, head, body in _BODY.findall(text):
            is_pinned = _PINNED in " ".join((*head.split(), ""))
            found[name] = _PINNED + body if is_pinned else body
    return found


def missing_roles(roles: dict[str, bool]) -> tuple[str, ...]:
    """Say what to do about missing roles; only a superuser's installation needs rowq_owner."""
    return tuple(
        f'role {role} is missing: a DBA can run "create role {role} nologin;", then migrate again'
        for role, present in roles.items()
        if not present and role != "rowq_owner"
    )

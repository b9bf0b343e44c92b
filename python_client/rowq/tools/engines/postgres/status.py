"""Read-only queries of a PostgreSQL database."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import psycopg
from psycopg.errors import (
    DeadlockDetected,
    DependentObjectsStillExist,
    FeatureNotSupported,
    InsufficientPrivilege,
    LockNotAvailable,
)

from rowq.tools.engines.postgres.script import TRUST
from rowq.tools.migrate.errors import (
    BY_NUMBER,
    ForeignSchema,
    MigrationError,
    MissingPrivilege,
    RoutedDatabase,
    SchemaInUse,
    refusals,
    tables_in_use,
)
from rowq.tools.migrate.frozen import GRANTS
from rowq.tools.migrate.inspection import BaseInspection, Losses
from rowq.tools.migrate.release import release_for

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

# The database's owner controls the search_path, and could put functions and operators into it that
# run with the reader's privileges. The transaction ends with the connection, without a commit.
_BEGIN = "begin transaction read only; set local search_path = pg_catalog, pg_temp"

# The Citus add-on has replaced the routines by wrappers. A schema of another owner is ignored.
WRAPPED = """
    select 1
    from pg_catalog.pg_namespace n
    join pg_catalog.pg_namespace r
        on r.nspname operator(pg_catalog.=) 'rowq'
        and r.nspowner operator(pg_catalog.=) n.nspowner
    where n.nspname operator(pg_catalog.=) 'rowq_node'
"""

# A text begins with the routine's security attributes, so that a caller never runs modified code
# with its own privileges. A routine counts as changed (its text is empty) if a parameter could run
# other code: by a default that is not immutable, or by a foreign type, whose check runs as the
# caller. Routines of one name are compared together.
_PINNED = "security definer set search_path = pg_catalog, pg_temp "
_ROUTINES = r"""
    select
        p.proname,
        array_agg(
            regexp_replace(pg_get_function_identity_arguments(p.oid), '\mIN |"', '', 'g')
            || ' ' || case
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
            end
        )
    from pg_proc p
    where p.pronamespace = any (%(schemas)s::regnamespace[])
      and not exists (
          select 1 from pg_depend d
          where d.classid = p.tableoid and d.objid = p.oid and d.deptype = 'e'
      )
    group by p.proname
"""

# grants.sql prints warnings in loops over these variables.
_ROLES_OF_OTHERS = "v_why, v_remedy"
_RIGHTS_OF_OTHERS = "v_grantee, v_names"

_LOSSES = """
    select
        (select count(*) from only rowq.queue),
        (select count(*) from (select from only rowq.ready limit 100000) r)
            + (select count(*) from (select from only rowq.delayed limit 100000) d)
            + (select count(*) from (select from only rowq.dead limit 100000) d)
            + (select count(*) from (select from only rowq.group_waiting limit 100000) g)
            + (select count(*) from (select from only rowq.blocked limit 100000) b)
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
_NEXT = r", (?=(?:\w+ )?\w+ [a-z])"


def numbered_refusal(error: psycopg.Error) -> MigrationError | None:
    """Turn an error with a refusal's number into the refusal; None for any other error."""
    kind = BY_NUMBER.get(error.diag.sqlstate or "")
    return kind(error.diag.message_primary or str(error), error.diag.message_hint) if kind else None


def refusal(error: psycopg.Error) -> MigrationError | None:
    """Turn an error of a migration into a refusal; None for any other error."""
    if refusal := numbered_refusal(error):
        return refusal
    text = error.diag.message_primary or str(error)
    if isinstance(error, InsufficientPrivilege):
        return MissingPrivilege(f"{MissingPrivilege.number} missing_privilege: {text}")
    if isinstance(error, LockNotAvailable | DeadlockDetected):
        return tables_in_use()
    # A change of a column that a view uses is a feature "not supported".
    is_used = isinstance(error, FeatureNotSupported) and error.diag.message_detail
    if is_used or isinstance(error, DependentObjectsStillExist):
        return SchemaInUse(
            f"{SchemaInUse.number} schema_in_use: foreign objects depend on rowq's: {text}",
            error.diag.message_detail,
        )
    return None


class Inspection(BaseInspection):
    """Queries on one connection."""

    ROLES = ("rowq_owner", "rowq_producer", "rowq_consumer", "rowq_admin", "rowq_monitor")
    SCHEMAS: ClassVar[tuple[str, ...]] = ("rowq",)
    """The schemas of the routines."""
    CREATE_ROLE = "create role {role} nologin;"
    ROLES_ARE_SHARED = (
        ", because other databases of the server may use them; then PostgreSQL does not drop them"
    )

    def begin(self) -> None:
        """Begin a read-only transaction that ends with the connection."""
        self._rows(_BEGIN)

    def server(self) -> str:
        """Return the server's name and version."""
        return f"PostgreSQL {self._value('show server_version')}"

    def owner(self) -> str | None:
        """Return the schema's owner; None if there is no schema.

        This reads the catalog only, and refuses if reading a table could run foreign code.

        Raises:
            ForeignSchema: not everything in the schema was created by rowq.
            MissingPrivilege: this account cannot read what is installed, or another account could
                have added code that would run with this account's privileges.
            RoutedDatabase: the database is a node of a Citus cluster.
        """
        rows = self._rows(_SCHEMA)
        if not rows:
            return None
        ((owner, is_ours, can_read),) = rows
        if not is_ours:
            raise ForeignSchema(
                f"{ForeignSchema.number} foreign_schema: the schema rowq was not created by rowq"
            )
        if not can_read:
            raise MissingPrivilege(
                f"{MissingPrivilege.number} missing_privilege: the schema rowq belongs to {owner}",
                f"Connect as {owner} or as a member of it.",
            )
        with refusals(psycopg.Error, numbered_refusal):
            self._rows(release_for("postgres").text(TRUST))
        self.refuse_wrappers()
        return str(owner)

    def refuse_wrappers(self) -> None:
        """Raise RoutedDatabase if the Citus add-on has replaced the routines by wrappers."""
        if self._rows(WRAPPED):
            raise RoutedDatabase(
                f"{RoutedDatabase.number} routed_database: this database is a node of a Citus"
                " cluster",
                "The add-on in sql/postgres/addons/citus shows and upgrades all nodes together.",
            )

    def installed_ids(self) -> list[str]:
        """Return the ids of the installed migrations; none without bookkeeping."""
        if self._value("select to_regclass('rowq.migration')") is None:
            return []
        return [name for (name,) in self._rows("select migration_id from rowq.migration")]

    def roles(self) -> dict[str, bool]:
        """Return which of rowq's roles exist.

        Only a superuser's installation creates rowq_owner, so it is never reported as missing.
        """
        present = {name for (name,) in self._rows("select rolname from pg_catalog.pg_roles")}
        roles = {role: role in present for role in self.ROLES}
        return {
            role: is_present
            for role, is_present in roles.items()
            if is_present or role != "rowq_owner"
        }

    def rights_of_others(self) -> tuple[str, ...]:
        """Return notices about accounts that could grant themselves a role, or have grants."""
        release = release_for("postgres")
        grants = release.files(release.newest)[GRANTS]
        roles = self._rows(_query_of_loop(grants, _ROLES_OF_OTHERS))
        rights = self._rows(_query_of_loop(grants, _RIGHTS_OF_OTHERS))
        return (
            *(f'{why}: if that is not intended, a DBA can run "{remedy}"' for why, remedy in roles),
            *(
                f"role {grantee} has its own privileges on {names}: revoke them if that is not"
                " intended"
                for grantee, names in rights
            ),
        )

    def routines(self) -> dict[str, str]:
        """Return name and text of every routine in the schema, in the form of shipped_routines."""
        found = self._connection.execute(
            _ROUTINES, {"pinned": _PINNED, "schemas": list(self.SCHEMAS)}
        )
        return {name: _together(texts) for name, texts in found}

    def shipped(self, files: Mapping[str, str]) -> dict[str, str]:
        """Return name and text of every routine in these files, in the form of `routines`."""
        return shipped_routines(files)

    def losses(self) -> Losses:
        """Return what dropping the tables would delete; call `owner` first."""
        return Losses(*self._rows(_LOSSES)[0])

    def _value(self, query: str) -> Any:
        return self._rows(query)[0][0]


def shipped_routines(files: Mapping[str, str]) -> dict[str, str]:
    """Return name and text of every routine in these files."""
    found: dict[str, list[str]] = {}
    for text in files.values():
        for name, head, body in _BODY.findall(text):
            is_pinned = _PINNED in " ".join((*head.split(), ""))
            text = f"{_PINNED}{body}" if is_pinned else body
            found.setdefault(name, []).append(f"{_arguments(head)} {text}")
    return {name: _together(texts) for name, texts in found.items()}


def _arguments(head: str) -> str:
    """Return the parameters without their defaults, as pg_get_function_identity_arguments does."""
    listed = " ".join(re.split(r"\)\n(?:returns|language) ", head)[0].split())
    parameters = [parameter.partition(" default ")[0] for parameter in re.split(_NEXT, listed)]
    return re.sub(r"\b(in)?out ", lambda mode: mode[0].upper(), ", ".join(parameters))


def _together(texts: list[str]) -> str:
    """Return the texts of the routines of one name as one, in a fixed order."""
    return " and ".join(sorted(texts))


def _query_of_loop(script: str, variables: str) -> str:
    """Return the query of the script's only loop over these variables."""
    (query,) = re.findall(rf"for {variables} in\n(.*?)\n    loop\n", script, re.DOTALL)
    return str(query)

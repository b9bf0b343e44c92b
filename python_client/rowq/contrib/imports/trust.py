"""Refuses a superuser whose reads or deletes would run the code of another role."""

from typing import Any

from rowq.tools.migrate.errors import MissingPrivilege

# Functions and operators of other schemas are not looked up by name from here on.
_PIN = "select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false)"

# "set role" gives no protection, because a trigger can reset it. A role that can become a superuser
# is one. Built-in objects, and those of the first superuser, have no row in pg_shdepend.
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
-- Schema public is the database owner's, by a role that stands for it.
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


def require_trust(connection: Any, schema: str) -> None:
    """Raise MissingPrivilege where code of other roles would run with a superuser's rights.

    It reads the catalog only, before any table of the other queue is read, and pins the search path
    of the session. A role with fewer rights than a superuser is not protected.
    """
    connection.execute(_PIN)
    found = connection.execute(_OTHERS_CODE, {"schema": schema}).fetchone()
    if found is None:
        return
    what, role = found
    raise MissingPrivilege(
        f"{MissingPrivilege.number} missing_privilege: {what} {role}, whose code would run with the"
        " rights of a superuser",
        "Import as the role that owns the tables of the other queue, and grant it rowq_producer; or"
        " name its connection with --from-url.",
    )

"""Read the whole schema rowq of PostgreSQL in a form that can be compared."""

from typing import Any

BOOKKEEPING = ("migration", "migration_log")

_ACL = "(select array_agg(a::text order by a::text) from unnest({}) a)"

_RELATION_ACL = """coalesce(
    c.relacl, acldefault(case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner)
)"""

QUERIES = {
    "schema": f"""
        select n.nspowner::regrole::text, {_ACL.format("n.nspacl")},
               obj_description(n.oid, 'pg_namespace')
        from pg_namespace n where n.nspname = 'rowq'
    """,
    "relations": f"""
        select c.relname, c.relkind::text, c.relpersistence::text, c.relowner::regrole::text,
               c.reloptions, t.reloptions, {_ACL.format(_RELATION_ACL)},
               pg_get_partkeydef(c.oid), obj_description(c.oid, 'pg_class')
        from pg_class c left join pg_class t on t.oid = c.reltoastrelid
        where c.relnamespace = 'rowq'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'S')
    """,
    "columns": """
        select c.relname, a.attname, a.attnum, format_type(a.atttypid, a.atttypmod), a.attnotnull,
               a.attidentity::text, a.attstorage::text, pg_get_expr(d.adbin, d.adrelid),
               col_description(c.oid, a.attnum)
        from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
        where c.relnamespace = 'rowq'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
    """,
    "constraints": """
        select c.relname, k.conname, pg_get_constraintdef(k.oid)
        from pg_constraint k join pg_class c on c.oid = k.conrelid
        where k.connamespace = 'rowq'::regnamespace
    """,
    "indexes": """
        select tablename, indexname, indexdef from pg_indexes where schemaname = 'rowq'
    """,
    "sequences": """
        select sequencename, data_type::text, start_value, min_value, max_value, increment_by,
               cycle, cache_size
        from pg_sequences where schemaname = 'rowq'
    """,
    "routines": f"""
        select p.proname, pg_get_functiondef(p.oid), p.proowner::regrole::text,
               {_ACL.format("p.proacl")}, obj_description(p.oid, 'pg_proc')
        from pg_proc p where p.pronamespace = 'rowq'::regnamespace
    """,
    "default rights": f"""
        select d.defaclrole::regrole::text, d.defaclobjtype::text, {_ACL.format("d.defaclacl")}
        from pg_default_acl d
    """,
}


def snapshot(connection: Any, *, without: tuple[str, ...] = ()) -> dict[str, list[tuple[Any, ...]]]:
    """Return all parts of the schema except those of the relations in `without`.

    Columns keep their order but not their numbers, which depend on dropped columns.
    """
    connection.execute("set search_path = ''")
    parts = {}
    for part, query in QUERIES.items():
        rows = [row for row in connection.execute(query).fetchall() if row[0] not in without]
        parts[part] = sorted(rows, key=repr)
    parts["columns"] = _in_order(parts["columns"])
    return parts


def _in_order(columns: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    ordered = sorted(columns, key=lambda column: (column[0], column[2]))
    return [(*column[:2], *column[3:]) for column in ordered]

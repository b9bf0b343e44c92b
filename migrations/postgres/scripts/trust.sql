-- Refuse a schema with foreign code that could run with the session's rights: a trigger, a default,
-- or a function in an index or in statistics, which the planner calls for constants. "set role"
-- does not protect, because such code can reset it. The script reads only the catalog, before any
-- table of the schema is read.
do $$
declare
    v_schema             pg_catalog.oid;
    v_owner              pg_catalog.oid;
    v_owner_name         text;
    v_owner_is_superuser boolean;
    v_other              text;
    v_what               text;
begin
    select n.oid, n.nspowner
    into v_schema, v_owner
    from pg_catalog.pg_namespace n
    where n.nspname = 'rowq';

    select r.oid, r.rolname, r.rolsuper
    into v_owner, v_owner_name, v_owner_is_superuser
    from pg_catalog.pg_roles r
    where case when v_schema is null then r.rolname = current_user else r.oid = v_owner end;

    -- Refuse if another role can act as the schema's owner. If the session is the owner, such a
    -- role can act as the session anyway and gains nothing.
    select r.rolname
    into v_other
    from pg_catalog.pg_roles r
    where not v_owner_is_superuser
      and v_owner_name <> session_user
      and r.rolcanlogin
      and not r.rolsuper
      and r.rolname <> session_user
      and pg_catalog.pg_has_role(r.oid, v_owner, 'member')
    order by r.rolname = v_owner_name desc, r.rolname
    limit 1;
    if found then
        raise exception
            'RQ803 missing_privilege: schema rowq % to %, as which % can act: its objects '
            'would run with the rights of %',
            case when v_schema is null then 'would belong' else 'belongs' end,
            v_owner_name, v_other, session_user
            using errcode = 'RQ803', hint = case
                when v_other = v_owner_name then pg_catalog.format('Connect as %I.', v_other)
                else pg_catalog.format('Connect as %1$I, or a DBA must run: revoke %2$I from %1$I; '
                    'objects of %1$I stay.', v_other, v_owner_name)
            end;
    end if;

    -- Another role's extension in the schema is harmless, and so are its default privileges.
    select pg_catalog.pg_describe_object(d.classid, d.objid, 0) || ' belongs to ' || r.rolname
    into v_what
    from pg_catalog.pg_depend d
    join pg_catalog.pg_shdepend s
        on s.classid = d.classid
        and s.objid = d.objid
        and s.dbid = (
            select b.oid
            from pg_catalog.pg_database b
            where b.datname = pg_catalog.current_database()
        )
        and s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass
        and s.deptype = 'o'
    join pg_catalog.pg_roles r on r.oid = s.refobjid
    where d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass
      and d.refobjid = v_schema
      and d.classid not in (
          'pg_catalog.pg_extension'::pg_catalog.regclass,
          'pg_catalog.pg_default_acl'::pg_catalog.regclass
      )
      and r.oid <> v_owner
      and not r.rolsuper
      and r.rolname <> session_user
    order by d.classid, d.objid
    limit 1;
    if found then
        raise exception 'RQ802 foreign_schema: %, and not to %, whom schema rowq belongs to',
            v_what, v_owner_name
            using errcode = 'RQ802', hint = 'Move it to another schema, or drop it.';
    end if;

    -- The owner of an extension can drop it with all its parts, and grants.sql leaves the rights on
    -- such parts alone, so nothing of rowq's may be a part of one.
    select pg_catalog.format(
        '%s is a part of extension %I, which belongs to %I',
        pg_catalog.pg_describe_object(d.classid, d.objid, 0), e.extname, r.rolname)
    into v_what
    from pg_catalog.pg_depend d
    join pg_catalog.pg_depend m
        on m.classid = d.classid
        and m.objid = d.objid
        and m.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
        and m.deptype = 'e'
    join pg_catalog.pg_extension e on e.oid = m.refobjid
    join pg_catalog.pg_roles r on r.oid = e.extowner
    join pg_catalog.pg_shdepend s
        on s.classid = d.classid
        and s.objid = d.objid
        and s.dbid = (
            select b.oid
            from pg_catalog.pg_database b
            where b.datname = pg_catalog.current_database()
        )
        and s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass
        and s.deptype = 'o'
    where d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass
      and d.refobjid = v_schema
      and s.refobjid = v_owner
      and r.oid <> v_owner
      and not r.rolsuper
      and r.rolname <> session_user
    order by d.classid, d.objid
    limit 1;
    if found then
        raise exception 'RQ802 foreign_schema: %', v_what
            using errcode = 'RQ802', hint = 'Run: alter extension ... drop ...;';
    end if;

    -- Built-in functions and types leave no row in pg_depend, and rowq's tables use nothing else,
    -- so a row that references another object is foreign.
    with recursive relation (oid) as (
        select c.oid
        from pg_catalog.pg_class c
        where c.relnamespace = v_schema
        union
        select i.inhrelid
        from relation r
        join pg_catalog.pg_inherits i on i.inhparent = r.oid
    ),
    part (classid, objid) as (
        select 'pg_catalog.pg_class'::pg_catalog.regclass, r.oid
        from relation r
        union all
        select 'pg_catalog.pg_attrdef'::pg_catalog.regclass, a.oid
        from relation r
        join pg_catalog.pg_attrdef a on a.adrelid = r.oid
        union all
        select 'pg_catalog.pg_constraint'::pg_catalog.regclass, k.oid
        from relation r
        join pg_catalog.pg_constraint k on k.conrelid = r.oid
        union all
        select 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass, s.oid
        from relation r
        join pg_catalog.pg_statistic_ext s on s.stxrelid = r.oid
    ),
    expression (classid, objid, tree) as (
        select 'pg_catalog.pg_attrdef'::pg_catalog.regclass, a.oid, a.adbin::text
        from relation r
        join pg_catalog.pg_attrdef a on a.adrelid = r.oid
        union all
        select 'pg_catalog.pg_constraint'::pg_catalog.regclass, k.oid, k.conbin::text
        from relation r
        join pg_catalog.pg_constraint k on k.conrelid = r.oid
    ),
    planted (classid, objid) as (
        select p.classid, p.objid
        from part p
        join pg_catalog.pg_depend d on d.classid = p.classid and d.objid = p.objid
        -- Membership in an extension runs no code.
        where d.deptype <> 'e'
          and d.refclassid not in (
              'pg_catalog.pg_class'::pg_catalog.regclass,
              'pg_catalog.pg_constraint'::pg_catalog.regclass,
              'pg_catalog.pg_namespace'::pg_catalog.regclass
          )
        union all
        -- Some built-in functions run a query in their argument, such as ts_rewrite and
        -- query_to_xml. Immutable functions do not, and indexes and statistics can use only those.
        select e.classid, e.objid
        from expression e
        cross join lateral pg_catalog.regexp_matches(
            e.tree, ':(?:op)?funcid ([0-9]+)', 'g'
        ) f (numbers)
        join pg_catalog.pg_proc p on p.oid = f.numbers[1]::pg_catalog.oid
        where p.provolatile <> 'i'
          and p.oid not in (
              'pg_catalog.clock_timestamp()'::pg_catalog.regprocedure,
              'pg_catalog.nextval(regclass)'::pg_catalog.regprocedure
          )
        union all
        select 'pg_catalog.pg_trigger'::pg_catalog.regclass, t.oid
        from relation r
        join pg_catalog.pg_trigger t on t.tgrelid = r.oid
        where not t.tgisinternal
        union all
        select 'pg_catalog.pg_rewrite'::pg_catalog.regclass, w.oid
        from relation r
        join pg_catalog.pg_rewrite w on w.ev_class = r.oid
        union all
        select 'pg_catalog.pg_policy'::pg_catalog.regclass, p.oid
        from relation r
        join pg_catalog.pg_policy p on p.polrelid = r.oid
        union all
        select 'pg_catalog.pg_constraint'::pg_catalog.regclass, k.oid
        from relation r
        join pg_catalog.pg_constraint k on r.oid in (k.conrelid, k.confrelid)
        where k.contype = 'f'
        union all
        select 'pg_catalog.pg_class'::pg_catalog.regclass, c.oid
        from relation r
        join pg_catalog.pg_class c on c.oid = r.oid
        where c.relnamespace <> v_schema
           or c.relrowsecurity
           or c.relkind = 'f'
    )
    select pg_catalog.pg_describe_object(p.classid, p.objid, 0)
    into v_what
    from planted p
    order by p.classid, p.objid
    limit 1;
    if found then
        raise exception 'RQ802 foreign_schema: % was not created by rowq, and could run foreign '
            'code with the rights of %', v_what, session_user
            using errcode = 'RQ802', hint = 'Find out who created it, and drop it.';
    end if;
end;
$$;

-- Refuse foreign schemas and functions, a role rowq_citus with other rights, and objects that would
-- keep calling one node. This script changes nothing. Run it as a superuser on every node before
-- any change, and first in each transaction that changes a node.
set local citus.enable_ddl_propagation = off;
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;

-- A foreign object in these schemas would be granted to rowq's roles and run with their rights.
-- Citus creates the schema rowq_citus on a node that is added to a cluster.
do $$
declare
    v_forwarded constant text[] := array[
        {{ routines }}
    ];
    v_owner   constant oid := coalesce(
        (select n.nspowner from pg_namespace n where n.nspname = 'rowq'),
        to_regrole('rowq_owner')
    );
    v_what    text;
    v_schema  text;
begin
    select n.nspname
    into v_schema
    from pg_namespace n
    where n.nspname in ('rowq_citus', 'rowq_node')
      and n.nspowner is distinct from v_owner
       or n.nspname = 'rowq_aside'
    limit 1;
    if found then
        raise exception 'RQ802 foreign_schema: database % has a schema % that rowq did not create',
            current_database(), v_schema
            using errcode = 'RQ802', hint = format(
                'It was not changed. Drop it, or rename it: alter schema %I rename to '
                '...;', v_schema);
    end if;

    select format('%s is in the schema %I', pg_describe_object(d.classid, d.objid, 0), n.nspname),
           n.nspname
    into v_what, v_schema
    from pg_namespace n
    join pg_depend d
        on d.refclassid = 'pg_namespace'::regclass
        and d.refobjid = n.oid
    left join pg_proc p on d.classid = 'pg_proc'::regclass and p.oid = d.objid
    left join pg_class c on d.classid = 'pg_class'::regclass and c.oid = d.objid
    where n.nspname in ('rowq_citus', 'rowq_node')
      and d.classid <> 'pg_default_acl'::regclass
      and not coalesce(
          case n.nspname
              when 'rowq_node' then p.proowner = v_owner and p.proname = any (v_forwarded)
              -- Only a superuser can have created objects of a role without create rights; the
              -- table's shards are in its schema too.
              else p.proowner in (to_regrole('rowq_citus'), v_owner)
                  or c.relname ~ '^route(_[0-9]+)?$' and (
                      select r.rolsuper from pg_roles r where r.oid = c.relowner
                  )
          end, false)
    limit 1;
    if found then
        raise exception 'RQ802 foreign_schema: %, and rowq did not create it', v_what
            using errcode = 'RQ802', hint = 'Move it to another schema '
                'or drop it.';
    end if;
end;
$$;

-- A user who can act as rowq_citus can do what rowq_admin can; every caller could use other rights
-- of the role.
do $$
declare
    v_role   constant oid := to_regrole('rowq_citus');
    v_why    text;
    v_remedy text;
begin
    with object as (
        select
            d.classid,
            d.objid,
            d.deptype,
            b.datname is null or b.datname = current_database() as is_near,
            d.classid = 'pg_proc'::regclass and coalesce(n.nspname = 'rowq_citus', true)
                as is_forwarder,
            case
                when b.datname is null or b.datname = current_database()
                    then pg_describe_object(d.classid, d.objid, 0)
                else 'something in database ' || b.datname
            end as name
        from pg_shdepend d
        left join pg_database b on b.oid = d.dbid
        left join pg_proc p
            on d.classid = 'pg_proc'::regclass
            and p.oid = d.objid
            and b.datname = current_database()
        left join pg_namespace n on n.oid = p.pronamespace
        where d.refclassid = 'pg_authid'::regclass
          and d.refobjid = v_role
    ),
    fault (place, why, remedy) as (
        select
            1,
            'may do more than forward calls',
            'alter role rowq_citus nosuperuser nocreaterole nocreatedb noreplication nobypassrls;'
        from pg_roles r
        where r.oid = v_role
          and (r.rolsuper or r.rolcreaterole or r.rolcreatedb or r.rolreplication
              or r.rolbypassrls)
        union all
        select 2, 'is a member of ' || quote_ident(g.rolname),
               format('revoke %I from rowq_citus;', g.rolname)
        from pg_auth_members m
        join pg_roles g on g.oid = m.roleid
        where m.member = v_role
        union all
        select 3, format('exists, and %I can act as it', g.rolname),
               format('revoke rowq_citus from %I;', g.rolname)
        from pg_auth_members m
        join pg_roles g on g.oid = m.member
        where m.roleid = v_role
          and not g.rolsuper
        union all
        select 4, 'owns ' || o.name, 'reassign owned by rowq_citus to ...; in that database.'
        from object o
        where o.deptype = 'o'
          and not o.is_forwarder
        union all
        -- Its rights in other databases are checked there.
        select 5, 'has rights on ' || o.name, 'revoke these rights; \dp and \df+ show them.'
        from object o
        left join pg_proc p on o.classid = 'pg_proc'::regclass and p.oid = o.objid
        left join pg_class c on o.classid = 'pg_class'::regclass and c.oid = o.objid
        left join pg_namespace n
            on n.oid in (p.pronamespace, c.relnamespace)
            or o.classid = 'pg_namespace'::regclass and n.oid = o.objid
        where o.deptype = 'a'
          and o.is_near
          and o.classid <> 'pg_database'::regclass
          and not coalesce(
              n.nspname in ('rowq_citus', 'rowq_node')
              or n.nspname = 'rowq' and p.proname = 'maintain', false)
        union all
        select 5, 'may create schemas',
               format('revoke create on database %I from rowq_citus;', b.datname)
        from pg_database b
        cross join aclexplode(b.datacl) a
        where b.datname = current_database()
          and a.grantee = v_role
          and a.privilege_type = 'CREATE'
        union all
        -- A password is allowed where calls between nodes need one: then the functions exist.
        select 6, 'has a password but forwards no calls yet',
               'alter role rowq_citus password null; and set a password after the installation.'
        from pg_authid a
        where a.oid = v_role
          and a.rolpassword is not null
          and not exists (select from object o where o.deptype = 'o' and o.is_forwarder)
    )
    select f.why, f.remedy into v_why, v_remedy from fault f order by f.place, f.why limit 1;
    if found then
        raise exception 'RQ803 missing_privilege: role rowq_citus %', v_why
            using errcode = 'RQ803', hint = 'A DBA must run: ' || v_remedy;
    end if;
end;
$$;

-- A view references a routine by its OID, and the wrapper is another object.
do $$
declare
    v_forwarded constant text[] := array[
        {{ routines }}
    ];
    v_what    text;
begin
    select string_agg(distinct pg_describe_object(
        case when w.oid is null then d.classid else 'pg_class'::regclass end,
        coalesce(w.ev_class, d.objid), 0), ', ')
    into v_what
    from pg_proc p
    join pg_depend d on d.refclassid = 'pg_proc'::regclass and d.refobjid = p.oid
    left join pg_rewrite w on d.classid = 'pg_rewrite'::regclass and w.oid = d.objid
    where p.proname = any (v_forwarded)
      and p.pronamespace = coalesce(to_regnamespace('rowq_node'), to_regnamespace('rowq'));
    if v_what is not null then
        raise exception 'RQ808 schema_in_use: % would call this node only', v_what
            using errcode = 'RQ808', hint = 'Drop it, and create it again afterwards.';
    end if;
end;
$$;

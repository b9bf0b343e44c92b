\set ON_ERROR_STOP on
\encoding UTF8
-- rowq 0.1.0: install 1.
-- Run it with psql, in a file or through a pipe. It is one transaction: all of it or nothing.
begin;

-- [before preflight.sql]
-- This script runs first in the transaction of every install, upgrade and rollback. It refuses what
-- would go wrong later, before anything is changed. trust.sql and lock.sql come after it. The level
-- is read committed, because a migration that waited for the lock must see what the one before it
-- has installed.
set transaction isolation level read committed;
set local standard_conforming_strings = on;
set local statement_timeout = 0;
set local lock_timeout = '60s';
set local search_path = '';
set local client_min_messages = warning;
-- Tables and routines must come out the same whatever the database's settings say.
set local default_table_access_method = heap;
set local quote_all_identifiers = off;
-- A node of a Citus cluster is installed by itself, and the setting means nothing elsewhere.
set local citus.enable_ddl_propagation = off;

do $$
declare
    v_database     constant text := pg_catalog.current_database();
    v_user         constant text := current_user;
    v_is_superuser constant boolean := (
        select r.rolsuper from pg_catalog.pg_roles r where r.rolname = current_user
    );
    v_schema             pg_catalog.oid;
    v_owner              pg_catalog.oid;
    v_owner_name         text;
    v_owner_is_superuser boolean;
    v_comment            text;
    v_why                text;
begin
    if pg_catalog.current_setting('server_version_num')::integer < 150000 then
        raise exception 'RQ801 server_too_old: rowq needs PostgreSQL 15 or newer; this is %',
            pg_catalog.current_setting('server_version')
            using errcode = 'RQ801';
    end if;

    -- A migration would replace the wrappers, and calls would stay where the queue is not. Somebody
    -- else's schema of that name means nothing.
    if exists (
        select 1
        from pg_catalog.pg_namespace r
        join pg_catalog.pg_namespace n on n.nspowner = r.nspowner
        where r.nspname = 'rowq'
          and n.nspname = 'rowq_node'
    ) then
        raise exception 'RQ809 routed_database: this is a node of a cluster that carries calls'
            using errcode = 'RQ809', hint = 'All nodes together: rowq citus upgrade';
    end if;

    -- The owner of the database can say "alter database ... set role", and what a superuser makes
    -- would then belong to that role.
    if session_user <> v_user and exists (
        select 1
        from pg_catalog.pg_roles r
        where r.rolname = session_user
          and r.rolsuper
    ) then
        raise exception 'RQ803 missing_privilege: superuser % acts as %, and would act as a '
            'superuser again with what that role has made', session_user, v_user
            using errcode = 'RQ803', hint = pg_catalog.format(
                'Connect as %I, or find out who set the role: alter database %I reset role;',
                v_user, v_database);
    end if;

    select n.oid, n.nspowner, r.rolname, r.rolsuper
    into v_schema, v_owner, v_owner_name, v_owner_is_superuser
    from pg_catalog.pg_namespace n
    join pg_catalog.pg_roles r on r.oid = n.nspowner
    where n.nspname = 'rowq';

    if v_schema is null and not pg_catalog.has_database_privilege(v_database, 'create') then
        raise exception 'RQ803 missing_privilege: % may not create a schema in database %',
            v_user, v_database
            using errcode = 'RQ803', hint = pg_catalog.format(
                'A DBA must run: grant create on database %I to %I;', v_database, v_user);
    end if;

    -- What a superuser installs belongs to rowq_owner and runs with its rights, so no ordinary role
    -- may be able to act as rowq_owner.
    if v_is_superuser and coalesce(v_owner_is_superuser, true) then
        select case when o.rolsuper then 'is a superuser' else r.rolname || ' can act as it' end
        into v_why
        from pg_catalog.pg_roles o
        join pg_catalog.pg_roles r
            on o.rolsuper
            or r.rolcanlogin and not r.rolsuper and pg_catalog.pg_has_role(r.oid, o.oid, 'member')
        where o.rolname = 'rowq_owner'
        limit 1;
        if found then
            raise exception
                'RQ803 missing_privilege: role rowq_owner is there already, and %', v_why
                using errcode = 'RQ803', hint = 'A DBA must run: alter role rowq_owner nologin '
                    'nosuperuser; and revoke it from its members. Or drop it.';
        end if;
    end if;
    perform pg_catalog.set_config(
        'rowq.has_schema', case when v_schema is null then 'no' else 'yes' end, true);
    if v_schema is null then
        if pg_catalog.current_setting('server_encoding') <> 'UTF8' then
            raise warning 'database % has the encoding %: bodies with other characters are '
                'refused, or in SQL_ASCII come in as bytes that no client can read; a database for '
                'queues is made with: create database ... encoding ''UTF8'' template template0;',
                v_database, pg_catalog.current_setting('server_encoding');
        end if;
        return;
    end if;

    -- A schema that rowq made has a comment that says so, or at least rowq's own tables, because a
    -- dump can lose comments.
    v_comment := coalesce(pg_catalog.obj_description(v_schema, 'pg_namespace'), '');
    if v_comment not like 'rowq message queue%' and (
        select count(*)
        from pg_catalog.pg_class c
        where c.relnamespace = v_schema
          and c.relkind = 'r'
          and c.relname in ('migration', 'migration_log', 'meta')
    ) < 3 then
        raise exception 'RQ802 foreign_schema: database % has a schema rowq that rowq did not make',
            v_database
            using errcode = 'RQ802', hint = 'It was left alone. Use another database; if this '
                'schema was made for rowq: comment on schema rowq is ''rowq message queue'';';
    end if;

    if not pg_catalog.pg_has_role(v_owner, 'member') then
        raise exception
            'RQ803 missing_privilege: schema rowq belongs to %, and % is not a member of that role',
            v_owner_name, v_user
            using errcode = 'RQ803', hint = pg_catalog.format(
                'Connect as %1$I, or a DBA must run: grant %1$I to %2$I;', v_owner_name, v_user);
    end if;
end;
$$;

-- [before trust.sql]
-- This script refuses to go on where code that somebody else has put into the schema could run with
-- the rights of the session: a trigger, a default, or a function in an index or in statistics,
-- which the planner calls to compute a constant. "set role" gives no protection, because such code
-- can reset it. The script reads the catalog only and changes nothing, and it runs before any table
-- of the schema is read.
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

    -- Refuse if another role can act as the schema's owner. Where the session is the owner itself,
    -- such a role can act as the session anyway and gains nothing.
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
            'RQ803 missing_privilege: schema rowq % to %, as whom % acts: what that role has put '
            'there would run with the rights of %',
            case when v_schema is null then 'would belong' else 'belongs' end,
            v_owner_name, v_other, session_user
            using errcode = 'RQ803', hint = case
                when v_other = v_owner_name then pg_catalog.format('Connect as %I.', v_other)
                else pg_catalog.format('Connect as %1$I, or a DBA must run: revoke %2$I from %1$I; '
                    'whatever %1$I has made there stays.', v_other, v_owner_name)
            end;
    end if;

    -- Another role's extension in the schema does no harm, and neither do its default privileges.
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
            using errcode = 'RQ802', hint = 'Take it out: alter extension ... drop ...;';
    end if;

    -- Built-in functions and types leave no row in pg_depend, and rowq's tables use nothing else,
    -- so a row that points to anything else was added by somebody.
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
        -- Being a part of an extension runs nothing by itself.
        where d.deptype <> 'e'
          and d.refclassid not in (
              'pg_catalog.pg_class'::pg_catalog.regclass,
              'pg_catalog.pg_constraint'::pg_catalog.regclass,
              'pg_catalog.pg_namespace'::pg_catalog.regclass
          )
        union all
        -- Some built-in functions run a query that somebody has written, such as ts_rewrite and
        -- query_to_xml. No immutable function does, and indexes and statistics can use no others.
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
        raise exception 'RQ802 foreign_schema: % was not made by rowq, and could run what is not '
            'rowq''s with the rights of %', v_what, session_user
            using errcode = 'RQ802', hint = 'Find out who made it, and drop it.';
    end if;
end;
$$;

-- [before lock.sql]
-- This script lets in one migration at a time. It acts as the schema's owner, so that what a member
-- of that role makes belongs to the owner.
do $$
declare
    v_owner_name text;
begin
    select r.rolname
    into v_owner_name
    from pg_catalog.pg_namespace n
    join pg_catalog.pg_roles r on r.oid = n.nspowner
    where n.nspname = 'rowq';
    if not found then
        return;
    end if;

    if v_owner_name <> current_user and not exists (
        select 1
        from pg_catalog.pg_roles r
        where r.rolname = current_user
          and r.rolsuper
    ) then
        perform pg_catalog.set_config('role', v_owner_name, true);
    end if;

    if exists (
        select 1
        from pg_catalog.pg_class c
        join pg_catalog.pg_namespace n on n.oid = c.relnamespace
        where n.nspname = 'rowq'
          and c.relname = 'migration'
          and c.relkind = 'r'
    ) then
        lock table rowq.migration in share row exclusive mode;
    end if;
exception
    when lock_not_available then
        raise exception 'RQ806 migration_busy: another migration has not ended for 60 seconds'
            using errcode = 'RQ806', hint = 'Try again.';
end;
$$;

-- Remember the routines that are there now, because the rights that grants.sql finds on all others
-- come from default privileges.
do $$
begin
    perform pg_catalog.set_config(
        'rowq.routines',
        coalesce(pg_catalog.array_agg(p.oid), '{}')::text,
        true)
    from pg_catalog.pg_proc p
    where p.pronamespace = pg_catalog.to_regnamespace('rowq');
end;
$$;

-- The statements that follow wait for tables in use, and every other session waits behind them, so
-- they give up after 10 seconds.
set local lock_timeout = '10s';

-- [before bookkeeping.sql]
-- These tables say which migrations are installed, in the columns that yoyo knows. Times are UTC.
-- If two migrations begin where there is no schema yet, one waits here for the other and then
-- fails, because a schema that has come meanwhile must pass preflight.sql first.
set local lock_timeout = '60s';

do $$
begin
    if pg_catalog.current_setting('rowq.has_schema') = 'no' then
        create schema rowq;
        comment on schema rowq is 'rowq message queue';
    end if;
end;
$$;

create table if not exists rowq.migration (
    migration_hash text not null,
    migration_id   text not null,
    applied_at_utc timestamp without time zone not null,
    constraint migration_pk primary key (migration_hash)
);

lock table rowq.migration in share row exclusive mode;

create table if not exists rowq.migration_log (
    id             text not null,
    migration_hash text not null,
    migration_id   text not null,
    operation      text not null,
    username       text not null,
    hostname       text not null,
    created_at_utc timestamp without time zone not null,
    constraint migration_log_pk primary key (id)
);

set local lock_timeout = '10s';

-- [before installed]
do $$
begin
    if exists (
        select 1
        from rowq.migration m
        where m.migration_id not in ('pg-0001-first-release')
    ) then
        raise exception 'RQ804 schema_newer: this database was upgraded by a newer rowq'
            using errcode = 'RQ804';
    end if;
end;
$$;

-- [file tables/schema.sql]
-- Look first, because "create schema if not exists" asks for the right to create schemas even where
-- there is nothing to do.
do $$
begin
    if to_regnamespace('rowq') is null then
        create schema rowq;
        comment on schema rowq is 'rowq message queue';
    end if;
end;
$$;

-- This sequence numbers a message and its place in a lane. It has cache 1, because the floor of a
-- lane relies on numbers being given out in order (internal/move_floor.sql).
create sequence if not exists rowq.message_seq as bigint cache 1;

-- This sequence numbers claims and finished batches.
create sequence if not exists rowq.claim_seq as bigint cache 1;

-- [file tables/meta.sql]
-- The rows say what is installed: schema_version and rowq_version. Each migration writes them.
create table if not exists rowq.meta (
    name       text not null,
    value      text not null,
    changed_at timestamp with time zone not null default clock_timestamp(),
    constraint meta_pk primary key (name)
);

-- [file tables/queue.sql]
-- A row holds the settings of a queue. part_id stands first in the key of every table below and is
-- never reused.
create table if not exists rowq.queue (
    part_id              integer generated always as identity,
    queue_name           text not null,
    lease_seconds        integer not null default 30,
    max_attempts         smallint not null default 10,
    backoff_base_seconds double precision not null default 5,
    backoff_factor       double precision not null default 2,
    backoff_cap_seconds  double precision not null default 3600,
    backoff_jitter       double precision not null default 0.2,
    archive_days         integer not null default 0,
    max_body_length      integer not null default 1048576,
    group_limit          smallint not null default 1,
    group_after_dead     text not null default 'continue',
    group_pause_seconds  double precision not null default 0,
    has_recheck          boolean not null default false,
    max_leased           integer not null default 0,
    rate_limit           integer not null default 0,
    rate_seconds         double precision not null default 1,
    result_seconds       double precision not null default 0,
    history_days         integer not null default 0,
    paused_at            timestamp with time zone,
    created_at           timestamp with time zone not null default clock_timestamp(),
    constraint queue_pk primary key (part_id),
    constraint queue_name_uq unique (queue_name),
    constraint queue_name_ck check (
        char_length(queue_name) between 1 and 100
        and queue_name !~ '[[:cntrl:]]'
    ),
    constraint queue_lease_seconds_ck check (lease_seconds between 1 and 86400),
    constraint queue_max_attempts_ck check (max_attempts between 1 and 10000),
    constraint queue_backoff_base_seconds_ck check (backoff_base_seconds between 0 and 86400),
    constraint queue_backoff_factor_ck check (backoff_factor between 1 and 10),
    constraint queue_backoff_cap_seconds_ck check (backoff_cap_seconds between 0 and 31536000),
    constraint queue_backoff_jitter_ck check (backoff_jitter between 0 and 1),
    constraint queue_archive_days_ck check (archive_days between 0 and 36500),
    constraint queue_max_body_length_ck check (max_body_length between 1 and 33554432),
    constraint queue_group_limit_ck check (group_limit between 1 and 100),
    constraint queue_group_after_dead_ck check (group_after_dead in ('continue', 'hold')),
    constraint queue_group_pause_seconds_ck check (group_pause_seconds between 0 and 86400),
    constraint queue_max_leased_ck check (max_leased between 0 and 100000),
    constraint queue_rate_limit_ck check (rate_limit between 0 and 100000),
    constraint queue_rate_seconds_ck check (rate_seconds between 0.1 and 86400),
    constraint queue_result_seconds_ck check (result_seconds between 0 and 31536000),
    constraint queue_history_days_ck check (history_days between 0 and 36500)
);

-- [file tables/message.sql]
-- A row is what the producer handed over. It is written once and deleted once, except that the
-- first message that waits for it sets has_successors.
create table if not exists rowq.message (
    part_id        integer not null,
    max_attempts   smallint,
    message_id     bigint not null default nextval('rowq.message_seq'),
    enqueued_at    timestamp with time zone not null,
    message_type   text,
    dedup_key      text,
    group_key      text,
    headers        jsonb,
    body           text,
    body_binary    bytea,
    has_successors boolean,
    expires_at     timestamp with time zone,
    constraint message_pk primary key (part_id, message_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off,
    toast.autovacuum_vacuum_scale_factor = 0,
    toast.autovacuum_vacuum_threshold = 5000,
    toast.autovacuum_vacuum_cost_delay = 0,
    toast.vacuum_truncate = off
);

-- [file tables/ready.sql]
-- A row is a message that waits for a worker. The primary key is the dequeue order, and there is no
-- second index. lane is priority * 2, plus 1 for the tail: a message that is released or reaped
-- goes to the front lane, so that seq only grows inside a lane.
create table if not exists rowq.ready (
    part_id    integer not null,
    lane       smallint not null,
    attempt    smallint not null default 0,
    seq        bigint not null default nextval('rowq.message_seq'),
    message_id bigint not null,
    last_error text,
    constraint ready_pk primary key (part_id, lane, seq)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- [file tables/delayed.sql]
-- A row is a message that waits for its time, kept apart so that dequeue does not read it.
-- group_key is of one that joins its group when it is due; one that is retried has its token, and
-- none here.
create table if not exists rowq.delayed (
    part_id    integer not null,
    lane       smallint not null,
    attempt    smallint not null default 0,
    message_id bigint not null,
    due_at     timestamp with time zone not null,
    last_error text,
    group_key  text,
    constraint delayed_pk primary key (part_id, message_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

create index if not exists delayed_due_ix on rowq.delayed (part_id, due_at, message_id);

-- [file tables/message_group.sql]
-- A row is a token: the right of one message of a group to be ready, leased or delayed for a retry.
-- It does not say whose it is: whoever finishes a message of the group passes one on or gives it
-- back, in the transaction that ends the message. Rows are inserted, locked and deleted, never
-- updated. A producer that joins the group locks all of its rows, so that nobody gives the last one
-- back while a message is coming.
create table if not exists rowq.message_group (
    part_id   integer not null,
    token_no  smallint not null,
    group_key text not null,
    constraint message_group_pk primary key (part_id, group_key, token_no)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);

-- [file tables/grouped.sql]
-- A row is a message that waits behind others of its group, kept apart so that dequeue does not
-- read it.
create table if not exists rowq.grouped (
    part_id    integer not null,
    lane       smallint not null,
    message_id bigint not null,
    group_key  text not null,
    last_error text,
    constraint grouped_pk primary key (part_id, group_key, message_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- [file tables/blocked.sql]
-- A row is a message that waits for others to end, its predecessors, kept apart so that dequeue
-- does not read it. It waits for one of them at a time, the newest that has not ended
-- (predecessor_id, with a row in successor); rest_ids are the others that it may still have to ask
-- for, in order.
create table if not exists rowq.blocked (
    part_id        integer not null,
    lane           smallint not null,
    message_id     bigint not null,
    predecessor_id bigint,
    due_at         timestamp with time zone,
    on_dead        text,
    group_key      text,
    rest_ids       bigint[],
    constraint blocked_pk primary key (part_id, message_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- [file tables/successor.sql]
-- A row says which message waits for which other one. Whoever ends a message whose has_successors
-- is true deletes its rows, in the same transaction.
create table if not exists rowq.successor (
    part_id        integer not null,
    predecessor_id bigint not null,
    message_id     bigint not null,
    constraint successor_pk primary key (part_id, predecessor_id, message_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- [file tables/recheck.sql]
-- A row is something that has to be looked at again, because another transaction held what was
-- looked at, or because there was too much of it. With a group_key it is a token that its last
-- owner could not pass on, or whose group rests; is_hint says that there is no token yet: the
-- group's limit was raised, and there may be one to take. With a message_id it is a blocked message
-- that waits for nothing any more, perhaps. With a predecessor_id it is a message that has ended,
-- of which not all successors were freed; is_hint says that it is dead. maintain looks at what is
-- due, and so does a dequeue that finds nothing.
create table if not exists rowq.recheck (
    part_id        integer not null,
    is_hint        boolean not null default false,
    due_at         timestamp with time zone not null,
    recheck_id     bigint not null default nextval('rowq.claim_seq'),
    message_id     bigint,
    predecessor_id bigint,
    group_key      text,
    constraint recheck_pk primary key (part_id, due_at, recheck_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0
);

-- [file tables/claim.sql]
-- A row is one successful dequeue: the messages of the batch as parallel arrays under one lease.
-- errors is null when no message of the batch has failed before. A heartbeat updates lease_until in
-- place, because lease_until is in no index and fillfactor leaves it room. cancel_ids is null but
-- where messages were cancelled while the worker had them.
create table if not exists rowq.claim (
    part_id     integer not null,
    claim_id    bigint not null default nextval('rowq.claim_seq'),
    lease_until timestamp with time zone not null,
    message_ids bigint[] not null,
    lanes       smallint[] not null,
    attempts    smallint[] not null,
    errors      text[],
    worker_name text,
    cancel_ids  bigint[],
    progress    text,
    leased_at   timestamp with time zone not null default clock_timestamp(),
    constraint claim_pk primary key (part_id, claim_id)
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- [file tables/dead.sql]
-- A row is a message that failed for good. It stays until it is reset, cancelled or purged.
-- holds_group is true where it has kept the token of its group, and else null.
create table if not exists rowq.dead (
    part_id     integer not null,
    lane        smallint not null,
    attempt     smallint not null,
    message_id  bigint not null,
    died_at     timestamp with time zone not null,
    last_error  text,
    holds_group boolean,
    constraint dead_pk primary key (part_id, message_id)
);

-- [file tables/dedup.sql]
-- A row is the dedup key of an unfinished message.
create table if not exists rowq.dedup (
    part_id    integer not null,
    message_id bigint not null,
    dedup_key  text not null,
    constraint dedup_pk primary key (part_id, dedup_key)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);

-- [file tables/expiry.sql]
-- A row says when a message expires, and where it is if it is ready then. Who adds a message adds
-- one, and so does who makes it ready under a new number or gives it back: maintain can forget a
-- row whose message it does not find. A row stays until its moment, also where the message has
-- ended before.
create table if not exists rowq.expiry (
    part_id    integer not null,
    lane       smallint,
    expires_at timestamp with time zone not null,
    expiry_id  bigint not null default nextval('rowq.claim_seq'),
    message_id bigint not null,
    seq        bigint,
    constraint expiry_pk primary key (part_id, expires_at, expiry_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- [file tables/finished.sql]
-- A row is a batch of finished messages of a queue that keeps an archive. It stays until the
-- archive routine has moved the messages.
create table if not exists rowq.finished (
    part_id     integer not null,
    finish_id   bigint not null default nextval('rowq.claim_seq'),
    finished_at timestamp with time zone not null,
    message_ids bigint[] not null,
    lanes       smallint[] not null,
    attempts    smallint[] not null,
    state       text not null,
    constraint finished_pk primary key (part_id, finish_id),
    constraint finished_state_ck check (state in ('completed', 'cancelled', 'expired'))
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- [file tables/archive.sql]
-- A row is a finished message. There is one partition a day (archive_YYYYMMDD, UTC), which is
-- dropped when no queue needs it.
create table if not exists rowq.archive (
    part_id      integer not null,
    lane         smallint not null,
    attempt      smallint not null,
    message_id   bigint not null,
    enqueued_at  timestamp with time zone not null,
    finished_at  timestamp with time zone not null,
    state        text not null,
    message_type text,
    dedup_key    text,
    headers      jsonb,
    body         text,
    body_binary  bytea,
    group_key    text,
    constraint archive_pk primary key (part_id, finished_at, message_id)
) partition by range (finished_at);

create index if not exists archive_message_ix on rowq.archive (part_id, message_id);

-- [file tables/floor.sql]
-- A row says where the live rows of a lane begin, so that no reader walks the dead rows before
-- them, however long an old snapshot keeps those from being cleaned up. The table is a ledger: rows
-- are added and deleted and never updated. generation counts down, so that the newest row of a lane
-- is the first in the key and is found in one step. Lanes below 0 stand for the other tables that
-- are read from their low end: -1 claim (by claim_id), -2 delayed (by due_at, in microseconds), -3
-- finished (by finish_id), -4 recheck (by due_at, in microseconds), which only queues with groups
-- have, -5 result (by finished_at, in microseconds), which only those have that have purged
-- results, -6 started (by started_at, in microseconds), which only those with a rate_limit have,
-- -7 expiry (by expires_at, in microseconds), which only those with messages that expire have, and
-- -8 history (by ended_at, in microseconds), which only those have that have purged history. A lane
-- that has never been maintained has rows with positive generations, which producers have written.
create table if not exists rowq.floor (
    part_id    integer not null,
    lane       smallint not null,
    generation bigint not null,
    seq        bigint not null,
    safe       bigint not null,
    frontier   bigint not null,
    writers    xid8 not null,
    rescan_at  timestamp with time zone not null,
    sweep_at   timestamp with time zone not null,
    constraint floor_pk primary key (part_id, lane, generation)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0
);

-- [file tables/schedule.sql]
-- A row is a schedule: maintain adds its message to the queue in the transaction that moves
-- next_run_at on. next_run_at is null while it is paused, and after its last tick.
create table if not exists rowq.schedule (
    part_id          integer not null,
    schedule_name    text not null,
    cron             text,
    interval_seconds double precision,
    time_zone        text not null,
    missed           text not null,
    overlap          boolean not null,
    starts_at        timestamp with time zone not null,
    ends_at          timestamp with time zone,
    message_type     text,
    headers          jsonb,
    priority         smallint not null,
    group_key        text,
    max_attempts     smallint,
    body             text,
    body_binary      bytea,
    is_paused        boolean not null default false,
    next_run_at      timestamp with time zone,
    last_run_at      timestamp with time zone,
    last_message_id  bigint,
    last_error       text,
    constraint schedule_pk primary key (part_id, schedule_name),
    constraint schedule_cron_ck check ((cron is null) <> (interval_seconds is null)),
    constraint schedule_missed_ck check (missed in ('skip', 'once', 'all'))
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    fillfactor = 50
);

-- [file tables/gate.sql]
-- A row is the right to take messages of a queue that has limits: a dequeue locks it before it
-- counts what is leased. It is never updated, so that there are no dead rows, however long an old
-- snapshot is kept. To enqueue it says that the queue is still there, so that the statement which
-- adds a message reads the tables of one part only, and not queue.
create table if not exists rowq.gate (
    part_id integer not null,
    constraint gate_pk primary key (part_id)
);

-- [file tables/started.sql]
-- A row says when a dequeue of a queue with a rate_limit has begun deliveries, and how many. It
-- stays until maintain finds it older than rate_seconds.
create table if not exists rowq.started (
    part_id    integer not null,
    messages   integer not null,
    started_at timestamp with time zone not null,
    claim_id   bigint not null,
    constraint started_pk primary key (part_id, started_at, claim_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- [file tables/result.sql]
-- A row says how a message has ended, in a queue with result_seconds. It stays until maintain finds
-- it older than these, or the message, which is dead, is reset.
create table if not exists rowq.result (
    part_id     integer not null,
    message_id  bigint not null,
    finished_at timestamp with time zone not null,
    state       text not null,
    result      jsonb,
    last_error  text,
    constraint result_pk primary key (part_id, message_id),
    constraint result_state_ck check (state in ('completed', 'cancelled', 'expired', 'dead'))
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

create index if not exists result_finished_ix on rowq.result (part_id, finished_at);

-- [file tables/history.sql]
-- A row is an attempt that has ended, in a queue with history_days. It stays until maintain finds
-- it older than these. There is no partition a day as in the archive, because a partition is
-- dropped under a lock on the whole table, for which every call that ends messages would wait.
create table if not exists rowq.history (
    part_id     integer not null,
    attempt     smallint not null,
    message_id  bigint not null,
    claim_id    bigint not null,
    leased_at   timestamp with time zone not null,
    ended_at    timestamp with time zone not null,
    outcome     text not null,
    worker_name text,
    error       text,
    constraint history_pk primary key (part_id, ended_at, message_id, claim_id),
    constraint history_outcome_ck check (
        outcome in ('completed', 'retrying', 'dead', 'released', 'lease_expired', 'cancelled')
    )
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

create index if not exists history_message_ix on rowq.history (part_id, message_id);

-- [file tables/topic_binding.sql]
-- A row says that a queue gets what is published under the topics that a pattern matches. Where a
-- pattern has no "*", a topic that begins with literal_head needs no other look. Bindings are few
-- and seldom change, and a producer locks none of them.
create table if not exists rowq.topic_binding (
    part_id       integer not null,
    word_count    smallint not null,
    has_rest      boolean not null,
    topic_pattern text not null,
    literal_head  text not null,
    like_pattern  text,
    constraint topic_binding_pk primary key (part_id, topic_pattern)
);

create index if not exists topic_binding_head_ix on rowq.topic_binding (literal_head);

-- [file internal/admit.sql]
create or replace function rowq.internal_admit(
    p_part_id      integer,
    p_wanted       integer,
    p_max_leased   integer,
    p_rate_limit   integer,
    p_rate_seconds double precision,
    out o_room       integer,
    out o_rate_limit integer
)
language plpgsql
as $$
-- routine   internal_admit
-- purpose   Return how many messages a dequeue may lease under its queue's limits, and the rate_limit by then; from then on it is alone until its transaction ends.
-- promise   P28 P29
-- locks     the gate of the queue
-- errors    RQ713
declare
    v_is_paused boolean;
begin
    -- An older snapshot does not show what others have leased since.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise exception 'RQ713 wrong_transaction_state: '
            'a queue with max_leased or rate_limit delivers under read committed only'
            using errcode = 'RQ713';
    end if;

    -- Look first, because a poll of a queue without room shall neither wait nor write.
    o_room := rowq.internal_room(
        p_part_id, p_wanted, p_max_leased, p_rate_limit, p_rate_seconds
    );
    if o_room = 0 then
        return;
    end if;
    o_room := 0;
    if not rowq.internal_lock_gate(p_part_id) then
        return;
    end if;

    -- Look again, in statements of their own: their snapshots are newer than the lock, so they see
    -- what the session leased that held the gate before, and settings that were changed meanwhile.
    select q.paused_at is not null, q.max_leased, q.rate_limit, q.rate_seconds
    into v_is_paused, p_max_leased, o_rate_limit, p_rate_seconds
    from rowq.queue q
    where q.part_id = p_part_id;
    if not v_is_paused then
        o_room := rowq.internal_room(
            p_part_id, p_wanted, p_max_leased, o_rate_limit, p_rate_seconds
        );
    end if;
end;
$$;

-- [file internal/archive.sql]
create or replace function rowq.internal_archive(p_part_id integer, p_limit integer)
returns integer
language plpgsql
set lock_timeout = '1s'
as $$
-- routine   internal_archive
-- purpose   Move finished messages to the archive, batch by batch, until p_limit is passed.
-- promise   P19 P26
-- locks     finished rows, passing over locked ones; message rows, tried only where messages wait
--           for others; archive, waited for a second; as internal_free_successors
declare
    v_from      constant bigint := rowq.internal_read_floor(p_part_id, -3::smallint);
    v_batch     record;
    v_archived  integer := 0;
    v_is_tied   boolean;
    v_ties      text[];
    v_tie       text[];
begin
    -- Only a queue in which messages have waited for others, or in groups, has this lane.
    v_is_tied := exists (
        select
        from rowq.floor f
        where f.part_id = p_part_id
          and f.lane = -4
    );
    for v_batch in
        select f.finish_id, f.finished_at, f.message_ids, f.lanes, f.attempts, f.state
        from rowq.finished f
        where f.part_id = p_part_id
          and f.finish_id >= v_from
        order by f.part_id, f.finish_id
        limit p_limit
        for update skip locked
    loop
        exit when v_archived >= p_limit;
        perform rowq.internal_open_day(v_batch.finished_at);

        -- Leave a batch alone while a producer is adding a message that waits for one of it.
        if v_is_tied then
            perform
            from unnest(v_batch.message_ids) u (message_id)
            left join lateral (
                select x.message_id
                from rowq.message x
                where x.part_id = p_part_id
                  and x.message_id = u.message_id
                for update skip locked
            ) m on true
            where m.message_id is null;
            continue when found;
        end if;

        insert into rowq.archive (
            part_id, lane, attempt, message_id, enqueued_at, finished_at, state, message_type,
            dedup_key, headers, body, body_binary, group_key
        )
        select p_part_id, u.lane, u.attempt, u.message_id, m.enqueued_at, v_batch.finished_at,
               v_batch.state, m.message_type, m.dedup_key, m.headers, m.body, m.body_binary,
               m.group_key
        from unnest(v_batch.message_ids, v_batch.lanes, v_batch.attempts)
            u (message_id, lane, attempt)
        cross join lateral (
            select x.enqueued_at, x.message_type, x.dedup_key, x.headers, x.body, x.body_binary,
                   x.group_key
            from rowq.message x
            where x.part_id = p_part_id
              and x.message_id = u.message_id
            offset 0
        ) m;
        v_ties := rowq.internal_delete_messages(p_part_id, v_batch.message_ids);

        delete from rowq.finished f
        where f.part_id = p_part_id
          and f.finish_id = v_batch.finish_id;
        v_archived := v_archived + cardinality(v_batch.message_ids);

        -- The end of a message did not see what its producer had not committed then.
        if v_ties is not null then
            foreach v_tie slice 1 in array v_ties loop
                if v_tie[3] is not null then
                    perform rowq.internal_free_successors(p_part_id, array[v_tie[3]::bigint]);
                end if;
            end loop;
        end if;
    end loop;
    return v_archived;
end;
$$;

-- [file internal/await_predecessor.sql]
create or replace function rowq.internal_await_predecessor(
    p_part_id         integer,
    p_message_id      bigint,
    p_predecessor_ids bigint[],
    p_on_dead         text,
    out o_state          text,
    out o_predecessor_id bigint,
    out o_rest_ids       bigint[]
)
language plpgsql
as $$
-- routine   internal_await_predecessor
-- purpose   Let a message wait for the newest of these, in order, that has not ended: waiting, free, failed, or unsure where others are at work.
-- promise   P25 P26 P27
-- locks     the predecessor's message row, tried only; a new successor row
declare
    v_has_successors boolean;
    v_is_dead        boolean;
    v_place          integer;
    v_from           bigint;
begin
    loop
        -- "offset 0" keeps this a lookup by key for one message after the other, which ends with
        -- the first that is there.
        select u.message_id, u.place into o_predecessor_id, v_place
        from (
            select x.message_id, x.place
            from unnest(p_predecessor_ids) with ordinality x (message_id, place)
            order by x.place desc
            offset 0
        ) u
        cross join lateral (
            select
            from rowq.message m
            where m.part_id = p_part_id
              and m.message_id = u.message_id
            offset 0
        ) h
        limit 1;
        if not found then
            o_state := 'free';
            exit;
        end if;

        -- Hold the row to the end of the transaction: whoever ends the predecessor waits for this
        -- one, or leaves a note to look again. This one waits for nobody.
        select m.has_successors into v_has_successors
        from rowq.message m
        where m.part_id = p_part_id
          and m.message_id = o_predecessor_id
        for key share skip locked;
        if not found then
            continue when not exists (
                select
                from rowq.message m
                where m.part_id = p_part_id
                  and m.message_id = o_predecessor_id
            );
            o_state := 'unsure';
            exit;
        end if;

        -- The archive keeps the message row for a while. Where the end is not seen here, the
        -- archiver frees what waits when it deletes the row.
        v_is_dead := p_on_dead in ('continue', 'fail') and exists (
            select
            from rowq.dead d
            where d.part_id = p_part_id
              and d.message_id = o_predecessor_id
        );
        v_from := rowq.internal_read_floor(p_part_id, -3::smallint);
        if v_is_dead and p_on_dead = 'continue' or exists (
            select
            from rowq.finished f
            where f.part_id = p_part_id
              and f.finish_id >= v_from
              and o_predecessor_id = any (f.message_ids)
        ) then
            -- Thousands may have ended since the archiver was here: leave all of them out at once.
            p_predecessor_ids := array(
                select u.message_id
                from unnest(p_predecessor_ids[:v_place - 1]) u (message_id)
                where u.message_id not in (
                    select unnest(f.message_ids)
                    from rowq.finished f
                    where f.part_id = p_part_id
                      and f.finish_id >= v_from
                )
                order by u.message_id
            );
            continue;
        elsif v_is_dead then
            o_state := 'failed';
            exit;
        end if;

        o_state := 'waiting';
        if v_has_successors is not true then
            perform
            from rowq.message m
            where m.part_id = p_part_id
              and m.message_id = o_predecessor_id
            for no key update skip locked;
            if found then
                update rowq.message m
                set has_successors = true
                where m.part_id = p_part_id
                  and m.message_id = o_predecessor_id;
            else
                o_state := 'unsure';
            end if;
        end if;
        exit;
    end loop;

    if o_state = 'waiting' then
        insert into rowq.successor (part_id, predecessor_id, message_id)
        values (p_part_id, o_predecessor_id, p_message_id)
        on conflict do nothing;
        o_rest_ids := nullif(p_predecessor_ids[:v_place - 1], '{}');
    elsif o_state = 'unsure' then
        o_predecessor_id := null;
        o_rest_ids := p_predecessor_ids[:v_place];
    end if;
end;
$$;

-- [file internal/block.sql]
create or replace function rowq.internal_block(
    p_part_id         integer,
    p_message_id      bigint,
    p_lane            smallint,
    p_due_at          timestamp with time zone,
    p_group_key       text,
    p_predecessor_ids bigint[],
    p_on_dead         text
)
returns boolean
language plpgsql
as $$
-- routine   internal_block
-- purpose   Let a new message wait for its predecessors, or fail with one; false where all have ended.
-- promise   P25 P26 P27
-- locks     as internal_await_predecessor; new blocked, recheck and dead rows
declare
    v_await record;
begin
    select a.o_state, a.o_predecessor_id, a.o_rest_ids into v_await
    from (
        select array_agg(distinct u.message_id order by u.message_id) as predecessor_ids
        from unnest(p_predecessor_ids) u (message_id)
    ) o
    cross join lateral rowq.internal_await_predecessor(
        p_part_id, p_message_id, o.predecessor_ids, p_on_dead
    ) a;
    if v_await.o_state = 'free' then
        return false;
    elsif v_await.o_state = 'failed' then
        perform rowq.internal_push_dead(
            p_part_id, array[p_lane], array[p_message_id], null,
            array[format('predecessor %s is dead', v_await.o_predecessor_id)], false
        );
        return true;
    end if;

    insert into rowq.blocked (
        part_id, lane, message_id, predecessor_id, due_at, on_dead, group_key, rest_ids
    )
    values (
        p_part_id, p_lane, p_message_id, v_await.o_predecessor_id, p_due_at, p_on_dead, p_group_key,
        v_await.o_rest_ids
    );
    if v_await.o_state = 'unsure' then
        perform rowq.internal_recheck_later(p_part_id, array[p_message_id], null, false);
    elsif current_setting('transaction_isolation') <> 'read committed' then
        -- An old snapshot does not show that the predecessor is dead.
        perform rowq.internal_recheck_later(
            p_part_id, null, array[v_await.o_predecessor_id], true
        );
    else
        -- The archive looks for messages that wait only where this lane is.
        perform rowq.internal_open_lanes(p_part_id, '{-4}'::smallint[]);
    end if;
    return true;
end;
$$;

-- [file internal/block_batch.sql]
create or replace function rowq.internal_block_batch(
    p_part_id     integer,
    p_ties        rowq.blocked[],
    p_awaited_ids bigint[]
)
returns bigint[]
language plpgsql
as $$
-- routine   internal_block_batch
-- purpose   Let new messages of a batch wait for their predecessors; return those that do, or have failed. p_awaited_ids are messages of the batch that others of it wait for.
-- promise   P25 P26 P27
-- locks     as internal_block and internal_let_go; new successor and blocked rows
declare
    v_tie     rowq.blocked;
    v_newest  bigint;
    v_late    bigint[];
    v_again   bigint[];
    v_blocked bigint[] := '{}'::bigint[];
begin
    foreach v_tie in array p_ties
    loop
        v_newest := v_tie.rest_ids[cardinality(v_tie.rest_ids)];
        if v_newest = any (p_awaited_ids) then
            -- Nobody else sees this predecessor yet, so it needs no lock.
            insert into rowq.successor (part_id, predecessor_id, message_id)
            values (p_part_id, v_newest, v_tie.message_id);
            insert into rowq.blocked (
                part_id, lane, message_id, predecessor_id, due_at, on_dead, group_key, rest_ids
            )
            values (
                p_part_id, v_tie.lane, v_tie.message_id, v_newest, v_tie.due_at, v_tie.on_dead,
                v_tie.group_key, nullif(array_remove(v_tie.rest_ids, v_newest), '{}')
            );
        elsif rowq.internal_block(
            p_part_id, v_tie.message_id, v_tie.lane, v_tie.due_at, v_tie.group_key, v_tie.rest_ids,
            v_tie.on_dead
        ) then
            -- One that has failed already is looked at by those of the batch that name it.
            if v_tie.on_dead = 'fail' and exists (
                select
                from rowq.dead d
                where d.part_id = p_part_id
                  and d.message_id = v_tie.message_id
            ) then
                p_awaited_ids := array_remove(p_awaited_ids, v_tie.message_id);
            end if;
        elsif v_tie.group_key is not null and v_tie.due_at is null then
            -- Its predecessors ended just now. This transaction must not wait for its group any
            -- more: whoever ends a predecessor that is held already waits for this transaction.
            insert into rowq.blocked (part_id, lane, message_id, on_dead, group_key)
            values (p_part_id, v_tie.lane, v_tie.message_id, v_tie.on_dead, v_tie.group_key);
            v_late := v_late || v_tie.message_id;
        else
            continue;
        end if;
        v_blocked := v_blocked || v_tie.message_id;
    end loop;

    if v_late is not null then
        v_again := rowq.internal_let_go(p_part_id, v_late);
        if v_again is not null then
            perform rowq.internal_recheck_later(p_part_id, v_again, null, false);
        end if;
    end if;
    return v_blocked;
end;
$$;

-- [file internal/body_fault.sql]
create or replace function rowq.internal_body_fault(
    p_body        text,
    p_body_binary bytea,
    p_max_length  integer
)
returns text
language plpgsql
as $$
-- routine   internal_body_fault
-- purpose   Return what is wrong with the length of a body; null means nothing.
-- promise   P15
declare
    v_length constant integer := greatest(char_length(p_body), octet_length(p_body_binary));
begin
    if v_length > p_max_length then
        return format(
            'body is %s long, and the queue takes %s: max_body_length', v_length, p_max_length
        );
    end if;
    return null;
end;
$$;

-- [file internal/bound_queues.sql]
create or replace function rowq.internal_bound_queues(p_topics text[])
returns table (topic text, queue_name text, max_body_length integer)
language plpgsql
as $$
-- routine   internal_bound_queues
-- purpose   Return the queues that are bound to topics, none twice for a topic, and keep them from being dropped.
-- promise   P35
-- locks     the table of messages against drop_queue; waits for one that is under way
#variable_conflict use_column
begin
    -- A drop_queue holds all tables. The statement after this one sees what it has left, and no
    -- other drop can begin before this transaction ends.
    lock table rowq.message in row exclusive mode;

    -- A pattern matches if the words before its first wildcard are the first ones of the topic, and
    -- if as many words as it has are like its own. No "%" swallows a dot there, because both sides
    -- have the same number of them.
    return query
    select distinct t.topic, q.queue_name, q.max_body_length
    from (select distinct u.topic from unnest(p_topics) u (topic)) t
    cross join lateral (
        select array_agg(array_to_string(w.words[:n.word_count], '.') order by n.word_count)
            as texts
        from (select string_to_array(t.topic, '.') as words) w
        cross join generate_series(0, cardinality(w.words)) n (word_count)
    ) head
    cross join lateral (
        select x.part_id
        from rowq.topic_binding x
        where x.literal_head = any (head.texts)
          and (x.has_rest or x.word_count = cardinality(head.texts) - 1)
          and (
              x.like_pattern is null
              or head.texts[x.word_count + 1] like x.like_pattern escape '!'
          )
        offset 0
    ) b
    join rowq.queue q on q.part_id = b.part_id;
end;
$$;

-- [file internal/check_batch_size.sql]
create or replace function rowq.internal_check_batch_size(p_batch_size integer)
returns void
language plpgsql
as $$
-- routine   internal_check_batch_size
-- purpose   Refuse a housekeeping batch_size outside 1 to 10000.
-- promise   P15
-- errors    RQ711
begin
    if p_batch_size is null or p_batch_size not between 1 and 10000 then
        raise exception 'RQ711 invalid_argument: batch_size must be between 1 and 10000, got %',
            p_batch_size
            using errcode = 'RQ711';
    end if;
end;
$$;

-- [file internal/check_name.sql]
create or replace function rowq.internal_check_name(p_name text, p_value text)
returns void
language plpgsql
as $$
-- routine   internal_check_name
-- purpose   Refuse a bad name of a queue or a schedule; p_name is that of the parameter.
-- promise   P15
-- errors    RQ711
begin
    if p_value is null
       or char_length(p_value) not between 1 and 100
       or p_value ~ '[[:cntrl:]]' then
        raise exception
            'RQ711 invalid_argument: % must be 1 to 100 characters, none of them control', p_name
            using errcode = 'RQ711';
    end if;
end;
$$;

-- [file internal/check_range.sql]
create or replace function rowq.internal_check_range(
    p_name  text,
    p_value double precision,
    p_low   double precision,
    p_high  double precision
)
returns void
language plpgsql
as $$
-- routine   internal_check_range
-- purpose   Refuse a number outside its range; null passes.
-- promise   P15
-- errors    RQ711
begin
    if not p_value between p_low and p_high then
        raise exception 'RQ711 invalid_argument: % must be between % and %, got %',
            p_name, p_low, p_high, p_value
            using errcode = 'RQ711';
    end if;
end;
$$;

-- [file internal/check_results.sql]
create or replace function rowq.internal_check_results(
    p_results        jsonb,
    p_count          integer,
    p_result_seconds double precision
)
returns void
language plpgsql
as $$
-- routine   internal_check_results
-- purpose   Refuse results that are not p_count good ones, or that the queue does not keep.
-- promise   P15
-- errors    RQ711
declare
    c_longest constant integer := 1048576;
    v_fault text;
begin
    v_fault := case
        when p_result_seconds = 0
            then 'the queue keeps no results: its result_seconds is 0'
        else coalesce(
            rowq.internal_json_fault('results', p_results, 'array', 'strict $[*].**{20}', null),
            case
                when jsonb_array_length(p_results) <> p_count
                    then format(
                        'results are %s, and message_ids are %s', jsonb_array_length(p_results),
                        p_count
                    )
            end,
            (
                select format('a result is longer than %s characters', c_longest)
                from jsonb_array_elements(p_results) e (result)
                where char_length(e.result::text) > c_longest
                limit 1
            )
        )
    end;
    if v_fault is not null then
        raise exception 'RQ711 invalid_argument: %', v_fault
            using errcode = 'RQ711';
    end if;
end;
$$;

-- [file internal/check_schedule.sql]
create or replace function rowq.internal_check_schedule(
    p_schedule rowq.schedule,
    p_queue    rowq.queue
)
returns timestamp with time zone
language plpgsql
as $$
-- routine   internal_check_schedule
-- purpose   Refuse a schedule with a bad name, time or message, or without a tick to come; return that tick.
-- promise   P15
-- errors    RQ711
declare
    v_fault text;
    v_tick  timestamp with time zone;
begin
    perform rowq.internal_check_name('schedule_name', p_schedule.schedule_name);
    v_fault := case
        when num_nonnulls(p_schedule.cron, p_schedule.interval_seconds) <> 1
            then 'a schedule has either cron or interval_seconds'
        when p_schedule.missed is null or p_schedule.missed not in ('skip', 'once', 'all')
            then 'missed must be skip, once or all, got '
                || coalesce(left(p_schedule.missed, 100), 'null')
        when p_schedule.starts_at not between '2000-01-01 00:00Z' and '2100-01-01 00:00Z'
             or p_schedule.ends_at not between '2000-01-01 00:00Z' and '2100-01-01 00:00Z'
            then 'starts_at and ends_at must be moments between the years 2000 and 2100'
    end;
    v_fault := coalesce(
        v_fault,
        rowq.internal_message_fault(
            p_schedule.body, p_schedule.body_binary, p_schedule.message_type,
            rowq.internal_tick_headers(p_schedule, clock_timestamp()), p_schedule.priority, null,
            null, null, p_schedule.max_attempts, p_schedule.group_key, null, null, null
        ),
        rowq.internal_body_fault(
            p_schedule.body, p_schedule.body_binary, p_queue.max_body_length
        )
    );
    if v_fault is not null then
        raise exception 'RQ711 invalid_argument: %', v_fault
            using errcode = 'RQ711';
    end if;
    perform rowq.internal_check_range(
        'interval_seconds', p_schedule.interval_seconds, 1, 315360000
    );
    perform rowq.internal_check_time_zone(p_schedule.time_zone);
    v_tick := rowq.internal_next_tick(p_schedule, clock_timestamp());
    if v_tick is null then
        raise exception
            'RQ711 invalid_argument: the schedule has no tick within ten years or before ends_at'
            using errcode = 'RQ711';
    end if;
    return v_tick;
end;
$$;

-- [file internal/check_settings.sql]
create or replace function rowq.internal_check_settings(
    p_queue_name           text,
    p_lease_seconds        integer,
    p_max_attempts         integer,
    p_backoff_base_seconds double precision,
    p_backoff_factor       double precision,
    p_backoff_cap_seconds  double precision,
    p_backoff_jitter       double precision,
    p_archive_days         integer,
    p_max_body_length      integer,
    p_group_limit          integer,
    p_group_after_dead     text,
    p_group_pause_seconds  double precision,
    p_max_leased           integer,
    p_rate_limit           integer,
    p_rate_seconds         double precision,
    p_result_seconds       double precision,
    p_history_days         integer
)
returns void
language plpgsql
as $$
-- routine   internal_check_settings
-- purpose   Refuse a bad queue name or a setting out of range; null passes for settings.
-- promise   P15
-- errors    RQ711
begin
    perform rowq.internal_check_name('queue_name', p_queue_name);
    perform rowq.internal_check_range('lease_seconds', p_lease_seconds, 1, 86400);
    perform rowq.internal_check_range('max_attempts', p_max_attempts, 1, 10000);
    perform rowq.internal_check_range('backoff_base_seconds', p_backoff_base_seconds, 0, 86400);
    perform rowq.internal_check_range('backoff_factor', p_backoff_factor, 1, 10);
    perform rowq.internal_check_range('backoff_cap_seconds', p_backoff_cap_seconds, 0, 31536000);
    perform rowq.internal_check_range('backoff_jitter', p_backoff_jitter, 0, 1);
    perform rowq.internal_check_range('archive_days', p_archive_days, 0, 36500);
    perform rowq.internal_check_range('max_body_length', p_max_body_length, 1, 33554432);
    perform rowq.internal_check_range('group_limit', p_group_limit, 1, 100);
    perform rowq.internal_check_range('group_pause_seconds', p_group_pause_seconds, 0, 86400);
    if p_group_after_dead not in ('continue', 'hold') then
        raise exception
            'RQ711 invalid_argument: group_after_dead must be continue or hold, got %',
            left(p_group_after_dead, 100)
            using errcode = 'RQ711';
    end if;
    perform rowq.internal_check_range('max_leased', p_max_leased, 0, 100000);
    perform rowq.internal_check_range('rate_limit', p_rate_limit, 0, 100000);
    perform rowq.internal_check_range('rate_seconds', p_rate_seconds, 0.1, 86400);
    perform rowq.internal_check_range('result_seconds', p_result_seconds, 0, 31536000);
    perform rowq.internal_check_range('history_days', p_history_days, 0, 36500);
end;
$$;

-- [file internal/check_time_zone.sql]
create or replace function rowq.internal_check_time_zone(p_time_zone text)
returns void
language plpgsql
as $$
-- routine   internal_check_time_zone
-- purpose   Refuse a time zone that the server does not know by this name.
-- promise   P15
-- errors    RQ711
begin
    -- The view reads every zone from disk.
    if p_time_zone = 'UTC' then
        return;
    end if;
    -- A name without a slash, such as CET, would be read as an abbreviation, which has no summer
    -- time and which a session may set.
    if p_time_zone not like '%/%' or p_time_zone is null or not exists (
        select
        from pg_timezone_names z
        where z.name = p_time_zone
    ) then
        raise exception 'RQ711 invalid_argument: time_zone must be a name such as Europe/Berlin '
            'that the server knows, got %', coalesce(left(p_time_zone, 100), 'null')
            using errcode = 'RQ711';
    end if;
end;
$$;

-- [file internal/count_ready.sql]
create or replace function rowq.internal_count_ready(
    p_part_id integer,
    p_limit   integer,
    out ready  bigint,
    out oldest timestamp with time zone
)
language plpgsql
as $$
-- routine   internal_count_ready
-- purpose   Count the ready messages up to p_limit, and find when the oldest at the head of a lane was enqueued.
-- promise   P13
declare
    v_lane  smallint := -1;
    v_safe  bigint;
    v_count bigint;
    v_head  timestamp with time zone;
begin
    ready := 0;
    loop
        select f.lane, f.safe into v_lane, v_safe
        from rowq.floor f
        where f.part_id = p_part_id
          and f.lane > v_lane
        order by f.part_id, f.lane, f.generation
        limit 1;
        exit when not found;

        select count(*) into v_count
        from (
            select 1
            from rowq.ready r
            where r.part_id = p_part_id
              and r.lane = v_lane
              and r.seq >= v_safe
            limit p_limit - ready
        ) h;
        ready := ready + v_count;

        select m.enqueued_at into v_head
        from rowq.ready r
        join rowq.message m on m.part_id = r.part_id and m.message_id = r.message_id
        where r.part_id = p_part_id
          and r.lane = v_lane
          and r.seq >= v_safe
        order by r.part_id, r.lane, r.seq
        limit 1;
        oldest := least(oldest, v_head);
    end loop;
end;
$$;

-- [file internal/cut_ties.sql]
create or replace function rowq.internal_cut_ties(
    p_part_id     integer,
    p_ties        text[],
    p_message_ids bigint[],
    p_have_tokens boolean,
    p_have_ended  boolean default true
)
returns void
language plpgsql
as $$
-- routine   internal_cut_ties
-- purpose   Free what these messages had, now that they have ended or died: a row of p_ties is a dedup key, a group key and the id of a message that others wait for.
-- promise   P12 P22 P26
-- locks     dedup rows; as internal_leave_groups and internal_free_successors
declare
    v_tie     text[];
    v_keys    text[];
    v_awaited bigint[];
begin
    foreach v_tie slice 1 in array p_ties loop
        if v_tie[1] is not null then
            delete from rowq.dedup d
            where d.part_id = p_part_id
              and d.dedup_key = v_tie[1]
              and d.message_id = any (p_message_ids);
        end if;
        if v_tie[2] is not null then
            v_keys := v_keys || v_tie[2];
        end if;
        if v_tie[3] is not null then
            v_awaited := v_awaited || v_tie[3]::bigint;
        end if;
    end loop;
    if p_have_tokens and v_keys is not null then
        perform rowq.internal_leave_groups(p_part_id, v_keys);
    end if;
    if p_have_ended and v_awaited is not null then
        perform rowq.internal_free_successors(
            p_part_id, array(select u.message_id from unnest(v_awaited) u (message_id) order by 1)
        );
    end if;
end;
$$;

-- [file internal/delete_messages.sql]
create or replace function rowq.internal_delete_messages(
    p_part_id     integer,
    p_message_ids bigint[]
)
returns text[]
language plpgsql
as $$
-- routine   internal_delete_messages
-- purpose   Delete messages; return their ties as internal_cut_ties takes them; null where none has any.
-- promise   P04 P13
-- locks     message rows
declare
    c_close_together constant integer := 10000;
    v_low        bigint;
    v_high       bigint;
    v_message_id bigint;
    v_tie        text[];
    v_ties       text[];
begin
    if cardinality(p_message_ids) > 1 then
        select min(u.message_id), max(u.message_id) into v_low, v_high
        from unnest(p_message_ids) u (message_id);
    end if;

    -- The bounds keep the delete to its own range of the key. A plan that was made while the table
    -- was small would make "= any" alone a filter over all messages of the queue, and the session
    -- would keep that plan.
    if v_high - v_low < c_close_together then
        with gone as (
            delete from rowq.message m
            where m.part_id = p_part_id
              and m.message_id between v_low and v_high
              and m.message_id = any (p_message_ids)
            returning case
                when m.dedup_key is not null or m.group_key is not null or m.has_successors
                    then array[
                        m.dedup_key, m.group_key,
                        case when m.has_successors then m.message_id::text end
                    ]
            end as tie
        )
        select array_agg(g.tie order by g.tie[1]) into v_ties
        from gone g
        where g.tie is not null;
        return v_ties;
    end if;

    foreach v_message_id in array coalesce(p_message_ids, '{}') loop
        delete from rowq.message m
        where m.part_id = p_part_id
          and m.message_id = v_message_id
        returning case
            when m.dedup_key is not null or m.group_key is not null or m.has_successors
                then array[
                    m.dedup_key, m.group_key,
                    case when m.has_successors then m.message_id::text end
                ]
        end
        into v_tie;
        if v_tie is not null then
            v_ties := v_ties || array[v_tie];
        end if;
    end loop;
    return v_ties;
end;
$$;

-- [file internal/end_cancelled.sql]
create or replace function rowq.internal_end_cancelled(
    p_part_id     integer,
    p_message_ids bigint[],
    p_lanes       smallint[],
    p_attempts    smallint[],
    p_errors      text[],
    p_cancel_ids  bigint[],
    p_claim_id    bigint,
    p_worker_name text,
    p_leased_at   timestamp with time zone,
    out o_message_ids bigint[],
    out o_lanes       smallint[],
    out o_attempts    smallint[],
    out o_errors      text[],
    out o_cancel_ids  bigint[],
    out o_worker_name text,
    out o_leased_at   timestamp with time zone
)
language plpgsql
as $$
-- routine   internal_end_cancelled
-- purpose   End those messages of a claim that were cancelled; return the others, and which ended.
-- promise   P34 P37
-- locks     new history rows; as internal_finish
declare
    v_archive_days integer;
    v_history_days integer;
    v_ended        record;
begin
    o_worker_name := p_worker_name;
    o_leased_at := p_leased_at;
    select q.archive_days, q.history_days into v_archive_days, v_history_days
    from rowq.queue q
    where q.part_id = p_part_id;

    select array_agg(u.message_id order by u.place) ids,
           array_agg(u.lane order by u.place) lanes,
           array_agg(u.attempt order by u.place) attempts
    into v_ended
    from unnest(p_message_ids, p_lanes, p_attempts)
        with ordinality u (message_id, lane, attempt, place)
    where u.message_id = any (p_cancel_ids);
    if v_history_days > 0 then
        perform rowq.internal_push_history(
            p_part_id, p_claim_id, p_worker_name, p_leased_at, v_ended.ids, v_ended.attempts,
            'cancelled'
        );
    end if;
    perform rowq.internal_finish(
        p_part_id, v_archive_days, v_ended.ids, v_ended.lanes, v_ended.attempts, 'cancelled'
    );
    o_cancel_ids := v_ended.ids;

    select coalesce(array_agg(u.message_id order by u.place), '{}'),
           array_agg(u.lane order by u.place),
           array_agg(u.attempt order by u.place),
           array_agg(u.last_error order by u.place)
    into o_message_ids, o_lanes, o_attempts, o_errors
    from unnest(p_message_ids, p_lanes, p_attempts, p_errors)
        with ordinality u (message_id, lane, attempt, last_error, place)
    where u.message_id <> all (p_cancel_ids);
end;
$$;

-- [file internal/enter_group.sql]
create or replace function rowq.internal_enter_group(
    p_part_id     integer,
    p_group_key   text,
    p_group_limit integer default null
)
returns boolean
language plpgsql
as $$
-- routine   internal_enter_group
-- purpose   Take a token of a group: true with one, false where the message has to wait behind others. p_group_limit: the limit, if the caller has read it.
-- promise   P21 P22 P24
-- locks     a new message_group row, or the group's, shared; waits for who opens or closes it
declare
    v_limit    integer := p_group_limit;
    v_newest   integer;
    v_token_no smallint;
    v_tokens   integer;
begin
    if v_limit is null then
        select q.group_limit into v_limit
        from rowq.queue q
        where q.part_id = p_part_id;
    end if;

    loop
        -- Take the first free number. The count keeps a limit that was lowered.
        insert into rowq.message_group (part_id, group_key, token_no)
        select p_part_id, p_group_key, n.token_no
        from (
            select min(s.token_no) as token_no
            from generate_series(1, v_limit) s (token_no)
            where not exists (
                select
                from rowq.message_group x
                where x.part_id = p_part_id
                  and x.group_key = p_group_key
                  and x.token_no = s.token_no
            )
        ) n
        where n.token_no is not null
          and v_limit > (
              select count(*)
              from rowq.message_group x
              where x.part_id = p_part_id
                and x.group_key = p_group_key
          )
        on conflict (part_id, group_key, token_no) do nothing
        returning token_no into v_token_no;
        -- Any limit leaves room for one.
        exit when v_token_no is not null and v_limit = 1;

        if v_token_no is null then
            -- Hold the tokens to the end of the transaction: whoever would give the last one back
            -- knows by this that a message is coming.
            select count(*) into v_tokens
            from (
                select
                from rowq.message_group x
                where x.part_id = p_part_id
                  and x.group_key = p_group_key
                for key share
            ) h;
        end if;

        -- Each of these may have waited, and an alter_queue that has come meanwhile does not see
        -- this message. So what counts is the limit that is read after them.
        select q.group_limit into v_newest
        from rowq.queue q
        where q.part_id = p_part_id;
        if v_token_no is null then
            exit when v_tokens >= v_newest;
            -- The limit was raised, or a token was given back in between: try once more.
        else
            exit when v_newest >= v_limit;
            -- The limit was lowered: give the token back and try with that.
            delete from rowq.message_group x
            where x.part_id = p_part_id
              and x.group_key = p_group_key
              and x.token_no = v_token_no;
        end if;
        v_limit := v_newest;
    end loop;
    return v_token_no is not null;
end;
$$;

-- [file internal/expire.sql]
create or replace function rowq.internal_expire(
    p_part_id      integer,
    p_archive_days integer,
    p_limit        integer,
    p_frontier     bigint,
    p_writers      xid8
)
returns integer
language plpgsql
as $$
-- routine   internal_expire
-- purpose   Withdraw messages whose time has come, until p_limit is passed; return how many there were.
-- promise   P13 P36
-- locks     expiry rows, passing over locked ones; as internal_pop_expired; then as complete
declare
    c_steps        constant integer := 10;
    c_long_walk    constant interval := interval '20 milliseconds';
    v_started      constant timestamp with time zone := clock_timestamp();
    -- The moment is no function in the query, so that the scan stops at the last row that is due.
    v_now          timestamp with time zone;
    v_from         timestamp with time zone;
    v_from_id      bigint := 0;
    v_due          record;
    v_popped       record;
    v_seen         integer := 0;
    v_row          record;
    v_kept         bigint[];
    v_kept_moments timestamp with time zone[];
    v_expired      integer := 0;
begin
    -- A message that an old snapshot does not show where it is now would be taken for one that has
    -- ended.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        return 0;
    end if;

    v_from := rowq.internal_from_microseconds(
        rowq.internal_read_floor(p_part_id, -7::smallint)
    );
    for v_step in 1 .. c_steps loop
        exit when v_expired >= p_limit;
        -- Take the time anew, because what the end of a message has let go on has a row of a later
        -- moment.
        v_now := clock_timestamp();

        -- One statement looks for the message in all places, so that none is missed on its way from
        -- one to another. Scalar subqueries are lookups by key; "exists" may become a hash of all
        -- rows.
        select array_agg(h.expiry_id) ids, array_agg(h.message_id) message_ids,
               array_agg(h.place) places, array_agg(h.lane) lanes, array_agg(h.seq) seqs,
               array_agg(h.expires_at) moments, max(h.expires_at) last_at, count(*) as due
        into v_due
        from (
            select e.expires_at, e.expiry_id, e.message_id, e.lane, e.seq,
                   case
                       when m.message_id is null then null
                       when (
                           select true
                           from rowq.ready r
                           where r.part_id = p_part_id
                             and r.lane = e.lane
                             and r.seq = e.seq
                             and r.message_id = e.message_id
                       ) then 'ready'
                       when (
                           select true
                           from rowq.delayed d
                           where d.part_id = p_part_id
                             and d.message_id = e.message_id
                       ) then 'delayed'
                       when (
                           select true
                           from rowq.blocked b
                           where b.part_id = p_part_id
                             and b.message_id = e.message_id
                       ) then 'blocked'
                       when (
                           select true
                           from rowq.grouped g
                           where g.part_id = p_part_id
                             and g.group_key = m.group_key
                             and g.message_id = e.message_id
                       ) then 'grouped'
                   end as place
            from (
                select x.expires_at, x.expiry_id, x.message_id, x.lane, x.seq
                from rowq.expiry x
                where x.part_id = p_part_id
                  and (x.expires_at, x.expiry_id) > (v_from, v_from_id)
                  and x.expires_at <= v_now
                order by x.part_id, x.expires_at, x.expiry_id
                limit p_limit
                for update skip locked
            ) e
            left join lateral (
                select y.message_id, y.group_key
                from rowq.message y
                where y.part_id = p_part_id
                  and y.message_id = e.message_id
                offset 0
            ) m on true
        ) h;
        exit when v_due.due = 0;
        v_seen := v_seen + v_due.due;

        v_popped := rowq.internal_pop_expired(
            p_part_id, v_due.message_ids, v_due.places, v_due.lanes, v_due.seqs
        );
        if v_popped.o_message_ids <> '{}' then
            perform rowq.internal_finish(
                p_part_id, p_archive_days, v_popped.o_message_ids, v_popped.o_lanes,
                v_popped.o_attempts, 'expired', v_popped.o_tokenless
            );
            v_expired := v_expired + cardinality(v_popped.o_message_ids);
        end if;

        -- A message that is in no place has ended, is dead, or is held by a claim, and who gives it
        -- back adds a row. One that another session holds now is looked for again. Delete the rows
        -- one by one, because many are of one moment, and the planner may make a filter over all
        -- that are due of any other way.
        for v_row in
            select u.expires_at, u.expiry_id,
                   u.place is null or u.message_id = any (v_popped.o_message_ids) as is_done
            from unnest(v_due.moments, v_due.ids, v_due.message_ids, v_due.places)
                u (expires_at, expiry_id, message_id, place)
        loop
            if v_row.is_done then
                delete from rowq.expiry e
                where e.part_id = p_part_id
                  and e.expires_at = v_row.expires_at
                  and e.expiry_id = v_row.expiry_id;
            else
                v_kept := v_kept || v_row.expiry_id;
                v_kept_moments := v_kept_moments || v_row.expires_at;
            end if;
        end loop;

        select v_due.last_at, max(u.expiry_id) into v_from, v_from_id
        from unnest(v_due.ids, v_due.moments) u (expiry_id, expires_at)
        where u.expires_at = v_due.last_at;
        exit when v_due.due < p_limit;
    end loop;

    -- Put what is kept behind the others that are due, once it could stand in front of them: else a
    -- session that is idle in its transaction must not make every look write.
    if v_kept is not null and (
        v_seen >= c_steps * p_limit or clock_timestamp() - v_started > c_long_walk
    ) then
        for v_row in
            select u.expires_at, u.expiry_id
            from unnest(v_kept_moments, v_kept) u (expires_at, expiry_id)
        loop
            update rowq.expiry e
            set expires_at = v_now
            where e.part_id = p_part_id
              and e.expires_at = v_row.expires_at
              and e.expiry_id = v_row.expiry_id;
        end loop;
    end if;
    -- The rows were deleted just now, and safe follows only with a row of the ledger.
    if v_seen > 0 then
        perform rowq.internal_move_floor(
            p_part_id, -7::smallint, true, true, p_frontier, p_writers
        );
    end if;
    return v_expired;
end;
$$;

-- [file internal/finish.sql]
create or replace function rowq.internal_finish(
    p_part_id      integer,
    p_archive_days integer,
    p_message_ids  bigint[],
    p_lanes        smallint[],
    p_attempts     smallint[],
    p_state        text,
    p_tokenless    bigint[] default null
)
returns void
language plpgsql
as $$
-- routine   internal_finish
-- purpose   Remove finished messages, or note them for the archive; those in p_tokenless have no token of their group.
-- promise   P04 P12 P22 P32
-- locks     message rows; as internal_cut_ties; result rows
declare
    v_rest bigint[] := p_message_ids;
    v_ties text[];
begin
    if p_archive_days > 0 then
        insert into rowq.finished (part_id, finished_at, message_ids, lanes, attempts, state)
        values (p_part_id, clock_timestamp(), p_message_ids, p_lanes, p_attempts, p_state);
    end if;

    if p_tokenless is not null then
        v_ties := case
            when p_archive_days > 0 then rowq.internal_read_ties(p_part_id, p_tokenless)
            else rowq.internal_delete_messages(p_part_id, p_tokenless)
        end;
        if v_ties is not null then
            perform rowq.internal_cut_ties(p_part_id, v_ties, p_tokenless, false);
        end if;
        v_rest := array(
            select u.message_id
            from unnest(p_message_ids) u (message_id)
            where u.message_id <> all (p_tokenless)
        );
    end if;

    v_ties := case
        when p_archive_days > 0 then rowq.internal_read_ties(p_part_id, v_rest)
        else rowq.internal_delete_messages(p_part_id, v_rest)
    end;
    if v_ties is not null then
        perform rowq.internal_cut_ties(p_part_id, v_ties, v_rest, true);
    end if;

    -- What was completed has results of its own, which complete keeps.
    if p_state <> 'completed' then
        perform rowq.internal_push_result(p_part_id, p_message_ids, p_state);
    end if;
end;
$$;

-- [file internal/first_key.sql]
create or replace function rowq.internal_first_key(
    p_part_id integer,
    p_lane    smallint,
    p_from    bigint
)
returns bigint
language plpgsql
as $$
-- routine   internal_first_key
-- purpose   Return the first live key of a lane from p_from on that this statement can see; null where there is none.
-- promise   P14
-- differs   only engines whose readers walk dead rows need it
declare
    v_key bigint;
begin
    if p_lane >= 0 then
        select r.seq into v_key
        from rowq.ready r
        where r.part_id = p_part_id
          and r.lane = p_lane
          and r.seq >= p_from
        order by r.part_id, r.lane, r.seq
        limit 1;
    elsif p_lane = -1 then
        select c.claim_id into v_key
        from rowq.claim c
        where c.part_id = p_part_id
          and c.claim_id >= p_from
        order by c.part_id, c.claim_id
        limit 1;
    elsif p_lane = -2 then
        select extract(epoch from d.due_at) * 1000000 into v_key
        from rowq.delayed d
        where d.part_id = p_part_id
          and d.due_at >= rowq.internal_from_microseconds(p_from)
        order by d.part_id, d.due_at, d.message_id
        limit 1;
    elsif p_lane = -6 then
        select extract(epoch from s.started_at) * 1000000 into v_key
        from rowq.started s
        where s.part_id = p_part_id
          and s.started_at >= rowq.internal_from_microseconds(p_from)
        order by s.part_id, s.started_at, s.claim_id
        limit 1;
    elsif p_lane = -7 then
        select extract(epoch from e.expires_at) * 1000000 into v_key
        from rowq.expiry e
        where e.part_id = p_part_id
          and e.expires_at >= rowq.internal_from_microseconds(p_from)
        order by e.part_id, e.expires_at, e.expiry_id
        limit 1;
    elsif p_lane = -5 then
        select extract(epoch from r.finished_at) * 1000000 into v_key
        from rowq.result r
        where r.part_id = p_part_id
          and r.finished_at >= rowq.internal_from_microseconds(p_from)
        order by r.part_id, r.finished_at
        limit 1;
    elsif p_lane = -8 then
        select extract(epoch from h.ended_at) * 1000000 into v_key
        from rowq.history h
        where h.part_id = p_part_id
          and h.ended_at >= rowq.internal_from_microseconds(p_from)
        order by h.part_id, h.ended_at, h.message_id, h.claim_id
        limit 1;
    elsif p_lane = -3 then
        select f.finish_id into v_key
        from rowq.finished f
        where f.part_id = p_part_id
          and f.finish_id >= p_from
        order by f.part_id, f.finish_id
        limit 1;
    else
        select extract(epoch from r.due_at) * 1000000 into v_key
        from rowq.recheck r
        where r.part_id = p_part_id
          and r.due_at >= rowq.internal_from_microseconds(p_from)
        order by r.part_id, r.due_at, r.recheck_id
        limit 1;
    end if;
    return v_key;
end;
$$;

-- [file internal/follow_deaths.sql]
create or replace function rowq.internal_follow_deaths(
    p_part_id     integer,
    p_message_ids bigint[],
    out o_failed_ids    bigint[],
    out o_failed_lanes  smallint[],
    out o_failed_errors text[]
)
language plpgsql
as $$
-- routine   internal_follow_deaths
-- purpose   Let the messages go on that wait for a dead one and do not mind; return those that fail with it.
-- promise   P27
-- locks     message rows, tried only; successor rows; as internal_unblock; new recheck rows
declare
    c_most     constant integer := 1000;
    v_awaited  bigint[];
    v_later    bigint[];
    v_dead_id  bigint;
    v_ids      bigint[];
    v_done     record;
begin
    -- Where a row is locked, a producer is adding a message that waits: look again when it is
    -- there.
    select array_agg(u.message_id) filter (where m.has_successors),
           array_agg(u.message_id) filter (where m.message_id is null)
    into v_awaited, v_later
    from unnest(p_message_ids) u (message_id)
    left join lateral (
        select x.message_id, x.has_successors
        from rowq.message x
        where x.part_id = p_part_id
          and x.message_id = u.message_id
        for update skip locked
    ) m on true;
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        v_later := v_later || v_awaited;
        v_awaited := null;
    end if;

    foreach v_dead_id in array coalesce(v_awaited, '{}') loop
        -- A wide tree dies in steps, too.
        if cardinality(o_failed_ids) >= c_most then
            v_later := v_later || v_dead_id;
            continue;
        end if;
        select array_agg(h.message_id order by h.message_id) into v_ids
        from (
            select s.message_id
            from rowq.successor s
            cross join lateral (
                select
                from rowq.blocked b
                where b.part_id = p_part_id
                  and b.message_id = s.message_id
                  and b.on_dead in ('continue', 'fail')
                offset 0
            ) b
            where s.part_id = p_part_id
              and s.predecessor_id = v_dead_id
            order by s.part_id, s.predecessor_id, s.message_id
            limit c_most
            for update of s skip locked
        ) h;
        continue when v_ids is null;
        delete from rowq.successor s
        where s.part_id = p_part_id
          and s.predecessor_id = v_dead_id
          and s.message_id = any (v_ids);
        if cardinality(v_ids) = c_most then
            v_later := v_later || v_dead_id;
        end if;

        v_done := rowq.internal_unblock(p_part_id, v_ids, null);
        if v_done.o_again is not null then
            perform rowq.internal_recheck_later(p_part_id, v_done.o_again, null, false);
        end if;
        o_failed_ids := o_failed_ids || v_done.o_failed_ids;
        o_failed_lanes := o_failed_lanes || v_done.o_failed_lanes;
        o_failed_errors := o_failed_errors || v_done.o_failed_errors;
    end loop;

    if v_later is not null then
        perform rowq.internal_recheck_later(p_part_id, null, v_later, true);
    end if;
end;
$$;

-- [file internal/free_successors.sql]
create or replace function rowq.internal_free_successors(
    p_part_id         integer,
    p_predecessor_ids bigint[]
)
returns void
language plpgsql
as $$
-- routine   internal_free_successors
-- purpose   Let the messages go on that have waited for these, which have ended; leave to maintain those that cannot go on now.
-- promise   P26
-- locks     successor rows; as internal_let_go; new recheck rows
declare
    c_most           constant integer := 1000;
    v_predecessor_id bigint;
    v_ids            bigint[];
    v_again          bigint[];
begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        -- An old snapshot does not show every message that waits.
        perform rowq.internal_recheck_later(p_part_id, null, p_predecessor_ids, false);
        return;
    end if;

    foreach v_predecessor_id in array p_predecessor_ids loop
        with cut as (
            delete from rowq.successor s
            where s.part_id = p_part_id
              and s.predecessor_id = v_predecessor_id
              and s.message_id = any (array(
                  select x.message_id
                  from rowq.successor x
                  where x.part_id = p_part_id
                    and x.predecessor_id = v_predecessor_id
                  order by x.part_id, x.predecessor_id, x.message_id
                  limit c_most
                  for update skip locked
              ))
            returning s.message_id
        )
        select array_agg(c.message_id order by c.message_id) into v_ids
        from cut c;
        continue when v_ids is null;
        if cardinality(v_ids) = c_most then
            perform rowq.internal_recheck_later(
                p_part_id, null, array[v_predecessor_id], false
            );
        end if;

        v_again := rowq.internal_let_go(p_part_id, v_ids, v_predecessor_id);
        if v_again is not null then
            perform rowq.internal_recheck_later(p_part_id, v_again, null, false);
        end if;
    end loop;
end;
$$;

-- [file internal/from_microseconds.sql]
create or replace function rowq.internal_from_microseconds(p_microseconds bigint)
returns timestamp with time zone
language sql
immutable
as $$
-- routine   internal_from_microseconds
-- purpose   Return the moment that is so many microseconds after the beginning of 1970.
-- promise   P14
-- differs   only engines whose readers walk dead rows need it
select timestamp with time zone 'epoch' + p_microseconds * interval '1 microsecond'
$$;

-- [file internal/give_up_tick.sql]
create or replace function rowq.internal_give_up_tick(p_schedule rowq.schedule, p_error text)
returns void
language plpgsql
as $$
-- routine   internal_give_up_tick
-- purpose   Note why a schedule made no message, and let it go on after now; one whose times cannot be read any more runs no more.
-- promise   P30
-- locks     the schedule row
declare
    v_tick timestamp with time zone;
begin
    begin
        v_tick := rowq.internal_next_tick(p_schedule, clock_timestamp());
    exception
        -- The server may have lost the time zone.
        when data_exception then
            v_tick := null;
    end;
    update rowq.schedule s
    set next_run_at = v_tick,
        last_error  = left(p_error, 2000)
    where s.part_id = p_schedule.part_id
      and s.schedule_name = p_schedule.schedule_name;
end;
$$;

-- [file internal/has_unended.sql]
create or replace function rowq.internal_has_unended(
    p_part_id     integer,
    p_message_ids bigint[],
    p_on_dead     text
)
returns boolean
language plpgsql
as $$
-- routine   internal_has_unended
-- purpose   Say whether one of these predecessors has not ended, as far as a plain look shows.
-- promise   P25
declare
    v_from constant bigint := rowq.internal_read_floor(p_part_id, -3::smallint);
begin
    -- "offset 0" keeps this a lookup by key for one message after the other.
    return exists (
        select
        from unnest(p_message_ids) u (message_id)
        cross join lateral (
            select
            from rowq.message m
            where m.part_id = p_part_id
              and m.message_id = u.message_id
            offset 0
        ) h
        where not (
            p_on_dead is not distinct from 'continue' and exists (
                select
                from rowq.dead d
                where d.part_id = p_part_id
                  and d.message_id = u.message_id
            )
        )
          and u.message_id not in (
              select unnest(f.message_ids)
              from rowq.finished f
              where f.part_id = p_part_id
                and f.finish_id >= v_from
          )
    );
end;
$$;

-- [file internal/health_queues.sql]
create or replace function rowq.internal_health_queues()
returns table (
    check_name text,
    queue_name text,
    value      double precision,
    warning    double precision,
    critical   double precision,
    detail     text
)
language plpgsql
as $$
-- routine   internal_health_queues
-- purpose   Return the checks of each queue, and whether the numbers of their messages are ahead of their sequence.
#variable_conflict use_column
declare
    v_queue      record;
    v_from       record;
    v_seen       record;
    v_oldest     timestamp with time zone;
    v_now        timestamp with time zone;
    v_waiting    bigint;
    v_recheck_at timestamp with time zone;
    v_expires_at timestamp with time zone;
    v_newest     bigint := 0;
    v_last       bigint;
begin
    for v_queue in
        select q.part_id, q.queue_name, q.paused_at is not null as is_paused, q.result_seconds,
               q.history_days
        from rowq.queue q
    loop
        v_oldest := (rowq.internal_count_ready(v_queue.part_id, 1)).oldest;

        -- The safe floors are read before what they are for, as internal_read_safe_floor does, but
        -- in one statement.
        select max(f.safe) filter (where l.lane = -1) as claims,
               max(f.safe) filter (where l.lane = -2) as delayed,
               max(f.safe) filter (where l.lane = -4) as tied,
               max(f.safe) filter (where l.lane = -5) as results,
               max(f.safe) filter (where l.lane = -7) as expiring,
               max(f.safe) filter (where l.lane = -8) as history
        into v_from
        from unnest('{-1,-2,-4,-5,-7,-8}'::smallint[]) l (lane)
        cross join lateral (
            select x.safe
            from rowq.floor x
            where x.part_id = v_queue.part_id
              and x.lane = l.lane
            order by x.part_id, x.lane, x.generation
            limit 1
        ) f;
        v_now := clock_timestamp();

        -- One statement looks for everything, and reads the rows of this queue only.
        select (
                   select count(*)
                   from (
                       select
                       from rowq.dead d
                       where d.part_id = v_queue.part_id
                       limit 1000
                   ) x
               ) as dead,
               (
                   select d.due_at
                   from rowq.delayed d
                   where d.part_id = v_queue.part_id
                     and d.due_at >= rowq.internal_from_microseconds(coalesce(v_from.delayed, 0))
                     and d.due_at <= v_now
                   order by d.part_id, d.due_at
                   limit 1
               ) as due_at,
               (
                   select min(k.lease_until) filter (where k.lease_until <= v_now)
                   from rowq.claim k
                   where k.part_id = v_queue.part_id
                     and k.claim_id >= coalesce(v_from.claims, 0)
               ) as lease_until,
               (
                   select r.finished_at
                   from rowq.result r
                   where r.part_id = v_queue.part_id
                     and r.finished_at
                         >= rowq.internal_from_microseconds(coalesce(v_from.results, 0))
                   order by r.part_id, r.finished_at
                   limit 1
               ) as finished_at,
               (
                   select h.ended_at
                   from rowq.history h
                   where h.part_id = v_queue.part_id
                     and h.ended_at >= rowq.internal_from_microseconds(coalesce(v_from.history, 0))
                   order by h.part_id, h.ended_at
                   limit 1
               ) as ended_at,
               s.next_run_at, s.failed,
               (
                   select m.message_id
                   from rowq.message m
                   where m.part_id = v_queue.part_id
                   order by m.part_id desc, m.message_id desc
                   limit 1
               ) as newest
        into v_seen
        from (
            select min(x.next_run_at) filter (where x.next_run_at <= v_now) as next_run_at,
                   count(x.last_error) as failed
            from rowq.schedule x
            where x.part_id = v_queue.part_id
        ) s;
        v_newest := greatest(v_newest, v_seen.newest);

        -- Only a queue in which messages have waited for others, or could expire, has these lanes.
        v_waiting := 0;
        v_recheck_at := null;
        v_expires_at := null;
        if v_from.tied is not null or v_from.expiring is not null then
            select (
                       select count(*)
                       from (
                           select
                           from (
                               select d.message_id
                               from rowq.dead d
                               where d.part_id = v_queue.part_id
                               order by d.part_id desc, d.message_id desc
                               limit 10000
                           ) d
                           cross join lateral (
                               select
                               from rowq.successor x
                               join rowq.blocked b
                                   on b.part_id = x.part_id and b.message_id = x.message_id
                               where x.part_id = v_queue.part_id
                                 and x.predecessor_id = d.message_id
                               limit 1000
                           ) w
                           limit 1000
                       ) x
                   ),
                   (
                       select r.due_at
                       from rowq.recheck r
                       where r.part_id = v_queue.part_id
                         and r.due_at >= rowq.internal_from_microseconds(coalesce(v_from.tied, 0))
                         and r.due_at <= v_now
                       order by r.part_id, r.due_at
                       limit 1
                   ),
                   (
                       select e.expires_at
                       from rowq.expiry e
                       where e.part_id = v_queue.part_id
                         and e.expires_at
                             >= rowq.internal_from_microseconds(coalesce(v_from.expiring, 0))
                         and e.expires_at <= v_now
                       order by e.part_id, e.expires_at
                       limit 1
                   )
            into v_waiting, v_recheck_at, v_expires_at;
        end if;

        return query
        select c.check_name, v_queue.queue_name, c.value::double precision, c.warning, c.critical,
               c.detail
        from (
            values
                (
                    'oldest_ready', coalesce(extract(epoch from v_now - v_oldest), 0),
                    300::double precision, 3600::double precision,
                    'seconds that the oldest ready message has waited'
                    || case when v_queue.is_paused then '; the queue is paused' else '' end
                ),
                (
                    'dead_messages', v_seen.dead, 1, 1000,
                    'dead messages, counted up to 1000; see list_dead and reset'
                ),
                (
                    'overdue_delayed', coalesce(extract(epoch from v_now - v_seen.due_at), 0),
                    30, 300,
                    'seconds that the oldest due message has not been promoted; '
                    'call maintain every second'
                ),
                (
                    'expired_leases', coalesce(extract(epoch from v_now - v_seen.lease_until), 0),
                    30, 300,
                    'seconds that the oldest expired lease has not been reaped; '
                    'call maintain every second'
                ),
                (
                    'waits_for_dead', v_waiting, 1, 1000,
                    'messages that wait for the newest 10000 dead ones, counted up to 1000; '
                    'reset or cancel these'
                ),
                (
                    'overdue_groups', coalesce(extract(epoch from v_now - v_recheck_at), 0),
                    30, 300,
                    'seconds that a group, or what waits for others, has waited for a transaction '
                    'to end, or for maintain'
                ),
                (
                    'overdue_expiries', coalesce(extract(epoch from v_now - v_expires_at), 0),
                    30, 300,
                    'seconds that a message whose time has come has waited for maintain, or for '
                    'who holds it'
                ),
                (
                    'overdue_results',
                    greatest(
                        coalesce(extract(epoch from v_now - v_seen.finished_at), 0)
                        - v_queue.result_seconds,
                        0
                    ),
                    300, 3600,
                    'seconds that the oldest result has been kept beyond result_seconds; '
                    'call maintain every second'
                ),
                (
                    'overdue_history',
                    greatest(
                        coalesce(extract(epoch from v_now - v_seen.ended_at), 0)
                        - v_queue.history_days * 86400::bigint,
                        0
                    ),
                    3600, 86400,
                    'seconds that the oldest attempt has been kept beyond history_days; '
                    'call maintain every second'
                ),
                (
                    'overdue_schedules',
                    coalesce(extract(epoch from v_now - v_seen.next_run_at), 0), 30, 300,
                    'seconds that a tick of a schedule has not been run; call maintain every second'
                ),
                (
                    'failed_schedules', v_seen.failed, 1, 1000,
                    'schedules whose last tick made no message; list_schedules says why'
                )
        ) c (check_name, value, warning, critical, detail);
    end loop;

    -- Ask the sequence after the messages, so that it is no earlier than any of these.
    v_last := coalesce(pg_sequence_last_value('rowq.message_seq'), 0);
    return query
    select 'sequence_behind', null::text, greatest(v_newest - v_last, 0)::double precision,
           1::double precision, 1::double precision,
           case
               when v_newest > v_last then format(
                   'rowq.message_seq is behind the data: select setval(''rowq.message_seq'', %s)',
                   v_newest
               )
               else 'rowq.message_seq is ahead of every message'
           end;
end;
$$;

-- [file internal/health_server.sql]
create or replace function rowq.internal_health_server()
returns table (
    check_name text,
    queue_name text,
    value      double precision,
    warning    double precision,
    critical   double precision,
    detail     text
)
language plpgsql
as $$
-- routine   internal_health_server
-- purpose   Return the checks that concern the whole server: old snapshots.
-- differs   this engine's own
#variable_conflict use_column
begin
    -- The oldest open transaction, prepared ones included, keeps dead rows from being cleaned up.
    return query
    select 'clean_up_horizon', null::text, coalesce(max(h.age), 0), 300::double precision,
           3600::double precision,
           coalesce(
               (array_agg(h.holder order by h.age desc))[1]
               || ' keeps dead rows from being cleaned up; rowq stays fast, other tables grow',
               'no transaction is older than a second'
           )
    from (
        select extract(epoch from clock_timestamp() - a.xact_start)::double precision as age,
               format('session %s of %s (%s)', a.pid, a.usename, a.state) as holder
        from pg_catalog.pg_stat_activity a
        where a.datname = current_database()
          and a.pid <> pg_backend_pid()
          and coalesce(a.backend_xmin, a.backend_xid) is not null
          and a.xact_start < clock_timestamp() - interval '1 second'
        union all
        select extract(epoch from clock_timestamp() - p.prepared)::double precision,
               format('prepared transaction %s', quote_literal(p.gid))
        from pg_catalog.pg_prepared_xacts p
        where p.database = current_database()
          and p.prepared < clock_timestamp() - interval '1 second'
    ) h;

    -- A replication slot has its age in transactions and not in seconds, so it is a check of its
    -- own.
    return query
    select 'replication_slot_horizon', null::text,
           coalesce(max(greatest(age(s.xmin), age(s.catalog_xmin))), 0)::double precision,
           10000000::double precision, 100000000::double precision,
           coalesce('slot ' || (array_agg(
               s.slot_name::text order by greatest(age(s.xmin), age(s.catalog_xmin)) desc
           ))[1] || ' holds the horizon for so many transactions', 'no slot holds the horizon')
    from pg_catalog.pg_replication_slots s
    where coalesce(s.xmin, s.catalog_xmin) is not null;
end;
$$;

-- [file internal/hint_groups.sql]
create or replace function rowq.internal_hint_groups(p_part_id integer)
returns void
language plpgsql
as $$
-- routine   internal_hint_groups
-- purpose   Have maintain look whether each group in which messages wait may have more of them in work.
-- promise   P24
-- locks     new recheck rows
begin
    -- Go from group to group and not from message to message.
    insert into rowq.recheck (part_id, is_hint, due_at, group_key)
    with recursive waiting as (
        (
            select x.group_key
            from rowq.grouped x
            where x.part_id = p_part_id
            order by x.part_id, x.group_key, x.message_id
            limit 1
        )
        union all
        select n.group_key
        from waiting w
        cross join lateral (
            select x.group_key
            from rowq.grouped x
            where x.part_id = p_part_id
              and x.group_key > w.group_key
            order by x.part_id, x.group_key, x.message_id
            limit 1
        ) n
    )
    select p_part_id, true, clock_timestamp(), w.group_key
    from waiting w;
    if found then
        perform rowq.internal_open_lanes(p_part_id, '{-4}'::smallint[]);
    end if;
end;
$$;

-- [file internal/idle_parts.sql]
create or replace function rowq.internal_idle_parts(p_part_ids integer[])
returns integer[]
language plpgsql
as $$
-- routine   internal_idle_parts
-- purpose   Return those of the parts in which maintain would find nothing to do.
-- promise   P13 P14
-- differs   only engines whose readers walk dead rows need it
declare
    -- Beyond this time the look has walked over dead rows, and some floor must move.
    c_short_walk constant interval := interval '2 milliseconds'
        + cardinality(p_part_ids) * interval '50 microseconds';
    v_now        constant timestamp with time zone := clock_timestamp();
    v_newest     constant bigint[] := array[
        rowq.internal_newest_number(0::smallint),
        rowq.internal_newest_number(-1::smallint),
        rowq.internal_newest_number(-2::smallint)
    ];
    v_parts      integer[];
begin
    with recursive lane as (
        select f.part_id, f.lane, f.seq, f.safe, f.frontier, f.writers, f.rescan_at, f.sweep_at
        from unnest(p_part_ids) p (part_id)
        cross join lateral (
            select x.part_id, x.lane, x.seq, x.safe, x.frontier, x.writers, x.rescan_at, x.sweep_at
            from rowq.floor x
            where x.part_id = p.part_id
            order by x.part_id, x.lane, x.generation
            limit 1
        ) f
        union all
        select f.part_id, f.lane, f.seq, f.safe, f.frontier, f.writers, f.rescan_at, f.sweep_at
        from lane l
        cross join lateral (
            select x.part_id, x.lane, x.seq, x.safe, x.frontier, x.writers, x.rescan_at, x.sweep_at
            from rowq.floor x
            where x.part_id = l.part_id
              and x.lane > l.lane
            order by x.part_id, x.lane, x.generation
            limit 1
        ) f
    )
    select array_agg(h.part_id) into v_parts
    from (
        select l.part_id
        from lane l
        group by l.part_id
        having count(*) filter (where l.lane between -3 and -1) = 3
           and bool_and(
               (l.lane in (-8, -6, -5) or l.sweep_at between v_now and v_now + interval '2 hours')
               and l.rescan_at <= v_now
               and l.writers < pg_snapshot_xmax(pg_current_snapshot())
               and case
                   when l.lane >= 0 then
                       v_newest[1] >= greatest(l.frontier, l.seq - 1)
                       and not exists (
                           select
                           from rowq.ready r
                           where r.part_id = l.part_id
                             and r.lane = l.lane
                             and r.seq >= l.safe
                       )
                   when l.lane = -1 then
                       v_newest[2] >= greatest(l.frontier, l.seq - 1)
                       and not exists (
                           select
                           from rowq.claim c
                           where c.part_id = l.part_id
                             and c.claim_id >= l.safe
                       )
                   when l.lane = -6 then
                       not exists (
                           select
                           from rowq.started s
                           where s.part_id = l.part_id
                             and s.started_at >= timestamp with time zone 'epoch'
                                 + l.safe * interval '1 microsecond'
                       )
                   when l.lane = -5 then
                       not exists (
                           select
                           from rowq.result r
                           where r.part_id = l.part_id
                             and r.finished_at >= timestamp with time zone 'epoch'
                                 + l.safe * interval '1 microsecond'
                             and r.finished_at < v_now - (
                                 select make_interval(secs => q.result_seconds)
                                 from rowq.queue q
                                 where q.part_id = l.part_id
                             )
                       )
                   when l.lane = -8 then
                       not exists (
                           select
                           from rowq.history h
                           where h.part_id = l.part_id
                             and h.ended_at >= timestamp with time zone 'epoch'
                                 + l.safe * interval '1 microsecond'
                             and h.ended_at < v_now - (
                                 select make_interval(days => q.history_days)
                                 from rowq.queue q
                                 where q.part_id = l.part_id
                             )
                       )
                   when l.lane = -3 then
                       v_newest[2] >= greatest(l.frontier, l.seq - 1)
                       and not exists (
                           select
                           from rowq.finished f
                           where f.part_id = l.part_id
                             and f.finish_id >= l.safe
                       )
                   when l.lane = -4 then
                       v_newest[3] >= greatest(l.frontier, l.seq - 1)
                       and not exists (
                           select
                           from rowq.recheck r
                           where r.part_id = l.part_id
                             and r.due_at >= timestamp with time zone 'epoch'
                                 + l.safe * interval '1 microsecond'
                             and r.due_at <= v_now
                       )
                   when l.lane = -7 then
                       v_newest[3] >= greatest(l.frontier, l.seq - 1)
                       and not exists (
                           select
                           from rowq.expiry e
                           where e.part_id = l.part_id
                             and e.expires_at >= timestamp with time zone 'epoch'
                                 + l.safe * interval '1 microsecond'
                             and e.expires_at <= v_now
                       )
                   else
                       v_newest[3] >= greatest(l.frontier, l.seq - 1)
                       and not exists (
                           select
                           from rowq.delayed d
                           where d.part_id = l.part_id
                             and d.due_at >= timestamp with time zone 'epoch'
                                 + l.safe * interval '1 microsecond'
                             and d.due_at <= v_now
                       )
               end
           )
    ) h
    -- As "not exists" this would become a join that reads all schedules.
    where (
        select s.part_id
        from rowq.schedule s
        where s.part_id = h.part_id
          and s.next_run_at <= v_now
        limit 1
    ) is null;
    if clock_timestamp() - v_now > c_short_walk then
        return '{}'::integer[];
    end if;
    return coalesce(v_parts, '{}'::integer[]);
end;
$$;

-- [file internal/is_id_list.sql]
create or replace function rowq.internal_is_id_list(p_message_ids bigint[])
returns boolean
language plpgsql
as $$
-- routine   internal_is_id_list
-- purpose   Return whether a list of messages is flat, not too long and without null; a null list passes.
-- promise   P15
begin
    return p_message_ids is null
        or cardinality(p_message_ids) <= 10000
        and coalesce(array_ndims(p_message_ids), 1) = 1
        and array_position(p_message_ids, null) is null;
end;
$$;

-- [file internal/is_listened.sql]
create or replace function rowq.internal_is_listened(p_part_id integer)
returns boolean
language sql
as $$
-- routine   internal_is_listened
-- purpose   Return whether a session listens for this queue's new messages: see listen.
-- locks     none that lasts, and none that is waited for
-- differs   this engine's own
    -- A session that listens holds this lock shared. One expression tries the lock and gives it
    -- back, so that nothing can come in between and leave it held. Two producers that try at the
    -- same moment take each other for a listener, which costs a needless notification. A
    -- transaction that has notified cannot be prepared, so the answer is always false where
    -- transactions may be prepared.
    select case
        when pg_try_advisory_lock(1919907698, p_part_id)
            then not pg_advisory_unlock(1919907698, p_part_id)
        else current_setting('max_prepared_transactions') = '0'
    end;
$$;

-- [file internal/is_past.sql]
create or replace function rowq.internal_is_past(p_moment timestamp with time zone)
returns boolean
language plpgsql
as $$
-- routine   internal_is_past
-- purpose   Return whether a moment has come, or lies so far ahead that only a wrong clock can have set it.
-- promise   P14
-- differs   only engines whose readers walk dead rows need it
begin
    return p_moment <= clock_timestamp() or p_moment > clock_timestamp() + interval '2 hours';
end;
$$;

-- [file internal/is_rescan_due.sql]
create or replace function rowq.internal_is_rescan_due(
    p_part_id integer,
    p_lane    smallint,
    p_what    text
)
returns boolean
language plpgsql
as $$
-- routine   internal_is_rescan_due
-- purpose   Return whether a rescan or a sweep of a lane is due; it is where the lane has no floor.
-- promise   P13 P14
-- differs   only engines whose readers walk dead rows need it
declare
    v_at timestamp with time zone;
begin
    select case p_what when 'sweep' then f.sweep_at else f.rescan_at end into v_at
    from rowq.floor f
    where f.part_id = p_part_id
      and f.lane = p_lane
    order by f.part_id, f.lane, f.generation
    limit 1;
    return v_at is null or rowq.internal_is_past(v_at);
end;
$$;

-- [file internal/join_groups.sql]
create or replace function rowq.internal_join_groups(
    p_part_id     integer,
    p_group_keys  text[],
    p_message_ids bigint[],
    p_lanes       smallint[],
    p_errors      text[] default null
)
returns bigint[]
language plpgsql
as $$
-- routine   internal_join_groups
-- purpose   Let messages join their groups; return those that wait there, the others are for the caller to make ready.
-- promise   P21 P22
-- locks     as internal_enter_group, in the order of the keys; new grouped rows
declare
    v_message  record;
    v_full_key text;
    v_waiting  bigint[] := '{}'::bigint[];
begin
    for v_message in
        select u.group_key, u.message_id
        from unnest(p_group_keys, p_message_ids) u (group_key, message_id)
        where u.group_key is not null
        order by u.group_key, u.message_id
    loop
        -- A group that is full stays so until the end of this transaction.
        if v_message.group_key is distinct from v_full_key then
            continue when rowq.internal_enter_group(p_part_id, v_message.group_key);
            v_full_key := v_message.group_key;
        end if;
        v_waiting := v_waiting || v_message.message_id;
    end loop;

    insert into rowq.grouped (part_id, lane, message_id, group_key, last_error)
    select p_part_id, u.lane, u.message_id, u.group_key, u.last_error
    from unnest(p_group_keys, p_message_ids, p_lanes, p_errors)
        u (group_key, message_id, lane, last_error)
    where u.message_id = any (v_waiting);
    return v_waiting;
end;
$$;

-- [file internal/json_fault.sql]
create or replace function rowq.internal_json_fault(
    p_name       text,
    p_value      jsonb,
    p_kind       text,
    p_too_deep   jsonpath,
    p_max_length integer
)
returns text
language plpgsql
as $$
-- routine   internal_json_fault
-- purpose   Return what is wrong with headers or results: p_kind is what they must be, p_too_deep finds what is nested too deep; null means nothing.
-- promise   P15
-- differs   jsonb has no exponents: digits are counted as they come out
begin
    -- The length of the text is checked last, because a short number such as 1e100000 is very long
    -- as a text. A number that is still no integer after it was multiplied by 1e300 has more than
    -- 300 digits after the point.
    return case
        when jsonb_typeof(p_value) <> p_kind
            then format('%s must be a JSON %s', p_name, p_kind)
        when jsonb_path_exists(p_value, p_too_deep)
            then format('%s are nested more than 20 deep', p_name)
        when jsonb_path_exists(
                p_value,
                'strict $.** ? (
                    @.type() == "number"
                    && (@ >= 1e300 || @ <= -1e300 || (@ * 1e300).floor() != @ * 1e300)
                )'
            )
            then format('%s have a number of too many digits', p_name)
        when p_max_length is not null and char_length(p_value::text) > p_max_length
            then format('%s are longer than %s characters', p_name, p_max_length)
    end;
end;
$$;

-- [file internal/leave_groups.sql]
create or replace function rowq.internal_leave_groups(p_part_id integer, p_group_keys text[])
returns void
language plpgsql
as $$
-- routine   internal_leave_groups
-- purpose   Pass on the tokens of messages that have ended, one for each element; leave to maintain those that cannot be passed on now.
-- promise   P22 P24
-- locks     as internal_pass_groups; new recheck rows
declare
    v_keys  text[] := p_group_keys;
    v_again text[];
    v_left  text[];
    v_pause double precision;
begin
    -- Several messages of one group may end at once where its limit is above 1: one after the
    -- other.
    while v_keys is not null loop
        if cardinality(v_keys) > 1 then
            select array_agg(u.group_key order by u.group_key) filter (where u.turn = 1),
                   array_agg(u.group_key) filter (where u.turn > 1)
            into v_keys, v_again
            from (
                select k.group_key, row_number() over (partition by k.group_key) as turn
                from unnest(v_keys) k (group_key)
            ) u;
        else
            v_again := null;
        end if;
        v_left := v_left || rowq.internal_pass_groups(p_part_id, v_keys, false);
        v_keys := v_again;
    end loop;

    if v_left is not null then
        select q.group_pause_seconds into v_pause
        from rowq.queue q
        where q.part_id = p_part_id;
        perform rowq.internal_open_lanes(p_part_id, '{-4}'::smallint[]);
        insert into rowq.recheck (part_id, due_at, group_key)
        select p_part_id, clock_timestamp() + make_interval(secs => v_pause), u.group_key
        from unnest(v_left) u (group_key);
    end if;
end;
$$;

-- [file internal/let_go.sql]
create or replace function rowq.internal_let_go(
    p_part_id     integer,
    p_message_ids bigint[],
    p_ended_id    bigint default null
)
returns bigint[]
language plpgsql
as $$
-- routine   internal_let_go
-- purpose   Let blocked messages go on that wait for nothing any more; those that fail with a predecessor are dead. Return those that need another look.
-- promise   P25 P26 P27
-- locks     as internal_unblock and internal_push_dead
declare
    v_done record;
begin
    v_done := rowq.internal_unblock(p_part_id, p_message_ids, p_ended_id);
    if v_done.o_failed_ids is not null then
        perform rowq.internal_push_dead(
            p_part_id, v_done.o_failed_lanes, v_done.o_failed_ids, null, v_done.o_failed_errors,
            false
        );
    end if;
    return v_done.o_again;
end;
$$;

-- [file internal/locate_messages.sql]
create or replace function rowq.internal_locate_messages(
    p_part_id    integer,
    p_message_id bigint,
    out state       text,
    out lane        smallint,
    out attempt     smallint,
    out due_at      timestamp with time zone,
    out claim_id    bigint,
    out worker_name text,
    out lease_until timestamp with time zone,
    out finished_at timestamp with time zone,
    out last_error  text,
    out waits_for   bigint,
    out progress    text,
    out leased_at   timestamp with time zone
)
language plpgsql
as $$
-- routine   internal_locate_messages
-- purpose   Find where a message is that still has a body; state is null for any other one.
#variable_conflict use_column
declare
    v_group_key text;
    v_from      bigint;
begin
    select m.group_key into v_group_key
    from rowq.message m
    where m.part_id = p_part_id
      and m.message_id = p_message_id;
    if not found then
        return;
    end if;

    select 'delayed', d.lane, d.attempt, d.due_at, d.last_error
    into state, lane, attempt, due_at, last_error
    from rowq.delayed d
    where d.part_id = p_part_id
      and d.message_id = p_message_id;
    if found then
        return;
    end if;

    select 'dead', d.lane, d.attempt, d.died_at, d.last_error
    into state, lane, attempt, finished_at, last_error
    from rowq.dead d
    where d.part_id = p_part_id
      and d.message_id = p_message_id;
    if found then
        return;
    end if;

    select 'blocked', b.lane, 0, b.due_at, b.predecessor_id
    into state, lane, attempt, due_at, waits_for
    from rowq.blocked b
    where b.part_id = p_part_id
      and b.message_id = p_message_id;
    if found then
        return;
    end if;

    if v_group_key is not null then
        select 'blocked', x.lane, 0, x.last_error, (
                   select max(y.message_id)
                   from rowq.grouped y
                   where y.part_id = p_part_id
                     and y.group_key = v_group_key
                     and y.message_id < p_message_id
               )
        into state, lane, attempt, last_error, waits_for
        from rowq.grouped x
        where x.part_id = p_part_id
          and x.group_key = v_group_key
          and x.message_id = p_message_id;
        if found then
            return;
        end if;
    end if;

    v_from := rowq.internal_read_safe_floor(p_part_id, -1::smallint);
    select 'leased', c.lanes[p.place], c.attempts[p.place], c.claim_id, c.worker_name,
           c.lease_until, c.errors[p.place], c.progress, c.leased_at
    into state, lane, attempt, claim_id, worker_name, lease_until, last_error, progress, leased_at
    from rowq.claim c
    cross join lateral array_position(c.message_ids, p_message_id) p (place)
    where c.part_id = p_part_id
      and c.claim_id >= v_from
      and p_message_id = any (c.message_ids);
    if found then
        return;
    end if;

    v_from := rowq.internal_read_safe_floor(p_part_id, -3::smallint);
    select f.state, f.lanes[p.place], f.attempts[p.place], f.finished_at
    into state, lane, attempt, finished_at
    from rowq.finished f
    cross join lateral array_position(f.message_ids, p_message_id) p (place)
    where f.part_id = p_part_id
      and f.finish_id >= v_from
      and p_message_id = any (f.message_ids);
    if found then
        return;
    end if;

    -- A message that was never given back is in the tail lane of its priority, where its seq is its
    -- message_id.
    select 'ready', r.lane, r.attempt, r.last_error
    into state, lane, attempt, last_error
    from unnest('{1,3,5,7,9,11,13,15,17,19}'::smallint[]) l (lane)
    cross join lateral (
        -- "offset 0" keeps this a lookup by key for each lane.
        select x.lane, x.attempt, x.last_error
        from rowq.ready x
        where x.part_id = p_part_id
          and x.lane = l.lane
          and x.seq = p_message_id
          and x.message_id = p_message_id
        offset 0
    ) r;
    if found then
        return;
    end if;

    select 'ready', r.lane, r.attempt, r.last_error
    into state, lane, attempt, last_error
    from rowq.ready r
    where r.part_id = p_part_id
      and r.message_id = p_message_id;
    if not found then
        -- Another session has moved the message from one place to another between these looks, so
        -- it is in that session's hands: report it as leased.
        state := 'leased';
    end if;
end;
$$;

-- [file internal/lock_dead.sql]
create or replace function rowq.internal_lock_dead(
    p_queue_name   text,
    p_message_ids  bigint[],
    p_max_messages integer,
    p_message_type text,
    p_died_before  timestamp with time zone,
    out o_part_id     integer,
    out o_message_ids bigint[],
    out o_tokenless   bigint[]
)
language plpgsql
as $$
-- routine   internal_lock_dead
-- purpose   Refuse bad arguments of reset and discard_dead, and lock the dead messages that they mean. o_tokenless are those without a token of a group.
-- locks     dead rows, passing over locked ones
-- errors    RQ711
begin
    if not rowq.internal_is_id_list(p_message_ids) then
        raise exception
            'RQ711 invalid_argument: message_ids must be a flat list of at most 10000 ids, no null'
            using errcode = 'RQ711';
    end if;
    if p_max_messages is null or p_max_messages not between 1 and 10000 then
        raise exception 'RQ711 invalid_argument: max_messages must be between 1 and 10000, got %',
            p_max_messages
            using errcode = 'RQ711';
    end if;
    if p_message_ids is not null and num_nonnulls(p_message_type, p_died_before) > 0 then
        raise exception 'RQ711 invalid_argument: '
            'message_type and died_before go together with no message_ids'
            using errcode = 'RQ711';
    end if;
    o_part_id := (rowq.internal_require_queue(p_queue_name)).part_id;

    select array_agg(h.message_id), array_agg(h.message_id) filter (where h.is_outside)
    into o_message_ids, o_tokenless
    from (
        select d.message_id, d.holds_group is null as is_outside
        from rowq.dead d
        where d.part_id = o_part_id
          and (p_message_ids is null or d.message_id = any (p_message_ids))
          and (p_died_before is null or d.died_at < p_died_before)
          and (p_message_type is null or p_message_type = (
              -- A value from a query is looked up by key for each dead message, whatever the
              -- planner thinks of the sizes.
              select m.message_type
              from rowq.message m
              where m.part_id = d.part_id
                and m.message_id = d.message_id
          ))
        order by d.part_id, d.message_id
        limit case when p_message_ids is null then p_max_messages else 10000 end
        for update skip locked
    ) h;
end;
$$;

-- [file internal/lock_gate.sql]
create or replace function rowq.internal_lock_gate(p_part_id integer)
returns boolean
language plpgsql
as $$
-- routine   internal_lock_gate
-- purpose   Lock the gate of a limited queue; return whether that was done in a tenth of a second.
-- promise   P28 P29
-- locks     the gate of the queue, tried for a tenth of a second
declare
    v_is_locked boolean;
    v_until     timestamp with time zone;
begin
    -- Nap between tries instead of waiting with a time-out, because a time-out at the very end of a
    -- wait for a row shows as a cancel by the user, and a cancel must never be taken for one.
    loop
        perform 1
        from rowq.gate g
        where g.part_id = p_part_id
        for update skip locked;
        v_is_locked := found;
        exit when v_is_locked;

        v_until := coalesce(v_until, clock_timestamp() + interval '100 milliseconds');
        exit when clock_timestamp() >= v_until;
        perform pg_sleep(0.005);
    end loop;
    return v_is_locked;
end;
$$;

-- [file internal/lock_queue.sql]
create or replace function rowq.internal_lock_queue(p_queue_name text)
returns integer
language plpgsql
as $$
-- routine   internal_lock_queue
-- purpose   Return the part of a queue, and keep the queue from being dropped.
-- promise   P15
-- locks     the queue row, shared; waits for a drop that is under way
-- errors    RQ701 RQ711
-- differs   this engine's own: elsewhere a row of the part is locked
declare
    v_part_id integer;
begin
    select q.part_id into v_part_id
    from rowq.queue q
    where q.queue_name = p_queue_name
    for key share;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;
    return v_part_id;
end;
$$;

-- [file internal/maintain_queue.sql]
create or replace function rowq.internal_maintain_queue(
    p_queue      rowq.queue,
    p_is_idle    boolean,
    p_batch_size integer,
    p_until      timestamp with time zone,
    p_frontiers  bigint[],
    p_locked     text[],
    p_maintained integer[],
    out o_elected            boolean,
    out o_promoted           integer,
    out o_reaped             integer,
    out o_died               integer,
    out o_archived           integer,
    out o_purged             integer,
    out o_partitions_dropped integer,
    out o_expired            integer,
    out o_locked             text[],
    out o_maintained         integer[]
)
language plpgsql
as $$
-- routine   internal_maintain_queue
-- purpose   Run the housekeeping of one queue, unless it is idle, in the one session that is elected for it.
-- promise   P09 P11 P13 P14 P16 P19 P24 P26 P27 P30 P31 P36 P37
-- locks     advisory lock of the queue, tried
declare
    v_lane        smallint := -1;
    v_rechecked   integer;
    v_may_reap    boolean;
    v_may_sweep   boolean;
    v_started     timestamp with time zone;
    v_writers     xid8;
begin
    -- Any session may take an advisory lock, so a lock that is held counts only if its holder may
    -- call maintain. Finding that out costs more the more locks the server has, so what was found
    -- for one queue is used for the next ones too.
    o_maintained := p_maintained;
    o_elected := pg_try_advisory_xact_lock(1919907697, p_queue.part_id);
    if not o_elected and p_queue.part_id <> all (o_maintained) then
        o_maintained := rowq.internal_maintained_parts(1919907697);
        o_elected := p_queue.part_id <> all (o_maintained);
    end if;
    o_promoted := 0;
    o_reaped := 0;
    o_died := 0;
    o_archived := 0;
    o_purged := 0;
    o_partitions_dropped := 0;
    o_expired := 0;
    o_locked := p_locked;
    if p_is_idle or not o_elected then
        return;
    end if;

    -- After a long walk over dead claims, rest for fifty times as long as it took, as for floors.
    v_may_reap := rowq.internal_is_rescan_due(p_queue.part_id, -1::smallint, 'rescan');
    v_may_sweep := rowq.internal_is_rescan_due(p_queue.part_id, -3::smallint, 'sweep');

    -- Put the floors right first, so that the steps below find what was committed late.
    if p_frontiers is not null then
        v_writers := pg_current_xact_id();
    end if;
    perform rowq.internal_move_floor(
        p_queue.part_id, -1::smallint, false, true, p_frontiers[2], v_writers
    );
    perform rowq.internal_move_floor(
        p_queue.part_id, -2::smallint, false, true, p_frontiers[3], v_writers
    );
    perform rowq.internal_move_floor(
        p_queue.part_id, -3::smallint, false, true, p_frontiers[2], v_writers
    );

    -- Only a queue that has had messages that expire has this lane. They go before anything that
    -- might make them ready.
    if exists (select 1 from rowq.floor f where f.part_id = p_queue.part_id and f.lane = -7) then
        perform rowq.internal_move_floor(
            p_queue.part_id, -7::smallint, false, true, p_frontiers[3], v_writers
        );
        o_expired := rowq.internal_expire(
            p_queue.part_id, p_queue.archive_days, p_batch_size, p_frontiers[3], v_writers
        );
    end if;

    o_promoted := rowq.internal_promote(p_queue.part_id, p_batch_size);
    perform rowq.internal_run_schedules(p_queue.part_id, p_queue.queue_name);

    -- Only a queue that has left something to look at again, or in which messages have waited for
    -- others, has this lane.
    if exists (select 1 from rowq.floor f where f.part_id = p_queue.part_id and f.lane = -4) then
        perform rowq.internal_move_floor(
            p_queue.part_id, -4::smallint, false, true, p_frontiers[3], v_writers
        );
        v_rechecked := rowq.internal_recheck(p_queue.part_id, p_batch_size, true);
        -- From now on a dequeue that finds nothing looks at what was left, too.
        if not p_queue.has_recheck
           and current_setting('transaction_isolation') = 'read committed'
           and (v_rechecked > 0 or exists (
               select
               from rowq.recheck r
               where r.part_id = p_queue.part_id
           )) then
            update rowq.queue q
            set has_recheck = true
            where q.part_id = (
                select x.part_id
                from rowq.queue x
                where x.part_id = p_queue.part_id
                for update skip locked
            );
        end if;
    end if;

    if v_may_reap then
        v_started := clock_timestamp();
        select r.o_reaped, r.o_died into o_reaped, o_died
        from rowq.internal_reap(
            p_queue.part_id, p_queue.max_attempts, p_queue.history_days, p_batch_size
        ) r;
        -- The floor cannot pass a claim that is kept alive, so the dead claims behind it are walked
        -- each time. Note how long the walk took, so that reap rests too.
        if o_reaped + o_died < p_batch_size
           and clock_timestamp() - v_started > interval '20 milliseconds' then
            perform rowq.internal_move_floor(
                p_queue.part_id, -1::smallint, true, true, p_started => v_started
            );
        end if;
    end if;

    -- A queue without an archive may have rows from a time when it had one, so look for them once a
    -- minute.
    if 'archive' <> all (p_locked) and (p_queue.archive_days > 0 or v_may_sweep) then
        begin
            o_archived := rowq.internal_archive(p_queue.part_id, p_batch_size);
            -- Purge whole days, and only once a minute, because dropping a partition costs less
            -- than deleting its rows.
            if v_may_sweep then
                select a.o_purged, a.o_partitions_dropped into o_purged, o_partitions_dropped
                from rowq.internal_purge_archive(
                    p_queue.part_id, p_queue.archive_days, 10 * p_batch_size,
                    p_queue.archive_days > 0
                ) a;
            end if;
        exception
            -- An error in the archive, such as a full disk, is only a warning, because promoting
            -- and reaping must go on.
            when others then
                o_archived := 0;
                if sqlstate = '55P03' then
                    o_locked := o_locked || 'archive'::text;
                end if;
                raise warning 'rowq: archive of queue % failed: % %',
                    p_queue.queue_name, sqlstate, sqlerrm;
        end;
    end if;

    -- A queue without a rate_limit may have notes from a time when it had one, so look for them
    -- once a minute.
    if p_queue.rate_limit > 0 or v_may_sweep then
        perform rowq.internal_purge_started(
            p_queue.part_id,
            case when p_queue.rate_limit > 0 then p_queue.rate_seconds else 0 end,
            10 * p_batch_size, p_frontiers[3], v_writers
        );
    end if;

    -- The same holds for results and history, but that they have lanes once some were purged. More
    -- than a batch of each goes only until p_until, and results leave history half of that time. An
    -- error is a warning, as in the archive.
    if 'result' <> all (p_locked) and (
        p_queue.result_seconds > 0 or v_may_sweep
        or exists (select 1 from rowq.floor f where f.part_id = p_queue.part_id and f.lane = -5)
    ) then
        begin
            v_started := clock_timestamp();
            o_purged := o_purged + rowq.internal_purge_results(
                p_queue.part_id, p_queue.result_seconds, p_batch_size,
                v_started + (p_until - v_started) / 2, p_frontiers[3], v_writers
            );
        exception
            when others then
                if sqlstate = '55P03' then
                    o_locked := o_locked || 'result'::text;
                end if;
                raise warning 'rowq: results of queue % failed: % %',
                    p_queue.queue_name, sqlstate, sqlerrm;
        end;
    end if;
    if 'history' <> all (p_locked) and (
        p_queue.history_days > 0 or v_may_sweep
        or exists (select 1 from rowq.floor f where f.part_id = p_queue.part_id and f.lane = -8)
    ) then
        begin
            o_purged := o_purged + rowq.internal_purge_history(
                p_queue.part_id, p_queue.history_days, p_batch_size, p_until, p_frontiers[3],
                v_writers
            );
        exception
            when others then
                if sqlstate = '55P03' then
                    o_locked := o_locked || 'history'::text;
                end if;
                raise warning 'rowq: history of queue % failed: % %',
                    p_queue.queue_name, sqlstate, sqlerrm;
        end;
    end if;

    if o_promoted > 0 then
        perform rowq.internal_move_floor(p_queue.part_id, -2::smallint, true);
    end if;
    loop
        select f.lane into v_lane
        from rowq.floor f
        where f.part_id = p_queue.part_id
          and f.lane > v_lane
        order by f.part_id, f.lane, f.generation
        limit 1;
        exit when not found;
        perform rowq.internal_move_floor(
            p_queue.part_id, v_lane, false, true, p_frontiers[1], v_writers
        );
    end loop;
end;
$$;

-- [file internal/maintained_parts.sql]
create or replace function rowq.internal_maintained_parts(p_lock integer)
returns integer[]
language plpgsql
as $$
-- routine   internal_maintained_parts
-- purpose   List the queues whose lock of this kind is held by a session that may call maintain.
-- promise   P16 P19
-- differs   only where a lock of this kind may be taken by anybody
begin
    return array(
        select l.objid::integer
        from pg_locks l
        cross join lateral pg_stat_get_activity(l.pid) a
        where l.locktype = 'advisory'
          and l.database = (select d.oid from pg_database d where d.datname = current_database())
          and l.classid = p_lock::oid
          and l.objsubid = 2
          and l.granted
          -- A prepared transaction has no session, so its locks elect nobody.
          and l.pid is not null
          -- A member of a role that may call maintain counts too, even if it must say "set role"
          -- first.
          and exists (
              select 1
              from pg_proc p
              cross join lateral aclexplode(p.proacl) given
              where p.oid = 'rowq.maintain(text, integer)'::regprocedure
                and pg_has_role(a.usesysid, given.grantee, 'member')
          )
    );
end;
$$;

-- [file internal/message_fault.sql]
create or replace function rowq.internal_message_fault(
    p_body                text,
    p_body_binary         bytea,
    p_message_type        text,
    p_headers             jsonb,
    p_priority            integer,
    p_delay_seconds       double precision,
    p_run_at              timestamp with time zone,
    p_dedup_key           text,
    p_max_attempts        integer,
    p_group_key           text,
    p_predecessor_ids     bigint[],
    p_on_predecessor_dead text,
    p_expire_seconds      double precision
)
returns text
language plpgsql
as $$
-- routine   internal_message_fault
-- purpose   Return what is wrong with the arguments of enqueue; null means nothing.
-- promise   P15
begin
    return case
        when p_priority is null or p_priority not between 0 and 9
            then 'priority must be between 0 and 9, got ' || coalesce(p_priority::text, 'null')
        when p_body is not null and p_body_binary is not null
            then 'body and body_binary exclude each other'
        when char_length(p_message_type) > 200
            then 'message_type is longer than 200 characters'
        when p_delay_seconds is not null and p_run_at is not null
            then 'delay_seconds and run_at exclude each other'
        when p_delay_seconds not between 0 and 315360000
            then format('delay_seconds must be between 0 and 315360000, got %s', p_delay_seconds)
        when p_run_at > clock_timestamp() + interval '3650 days' or not isfinite(p_run_at)
            then 'run_at must be a moment within the next ten years'
        when char_length(p_dedup_key) not between 1 and 200
            then 'dedup_key must be 1 to 200 characters'
        when char_length(p_group_key) not between 1 and 200
            then 'group_key must be 1 to 200 characters'
        when not rowq.internal_is_id_list(p_predecessor_ids)
            then 'predecessor_ids must be a flat list of at most 10000 ids, no null'
        when p_on_predecessor_dead not in ('hold', 'continue', 'fail')
            then 'on_predecessor_dead must be hold, continue or fail, got '
                || left(p_on_predecessor_dead, 100)
        when p_max_attempts not between 1 and 10000
            then format('max_attempts must be between 1 and 10000, got %s', p_max_attempts)
        when p_expire_seconds not between 0.001 and 315360000
            then format('expire_seconds must be between 0.001 and 315360000, got %s',
                        p_expire_seconds)
        when p_headers is not null
            then rowq.internal_json_fault(
                'headers', p_headers, 'object', 'strict $.**{20}', 65536
            )
    end;
end;
$$;

-- [file internal/moment_of_local.sql]
create or replace function rowq.internal_moment_of_local(
    p_local     timestamp without time zone,
    p_time_zone text
)
returns timestamp with time zone
language plpgsql
as $$
-- routine   internal_moment_of_local
-- purpose   Return when the clocks of a time zone show a time: the first of two moments where they are set back over it, and the end of the gap where they are set forward over it.
declare
    c_as_utc constant timestamp with time zone := p_local at time zone 'UTC';
    c_day    constant interval := interval '24 hours';
    -- The moment by the offset of the day before, and by that of the day after.
    v_before timestamp with time zone;
    v_after  timestamp with time zone;
begin
    v_before := c_as_utc - (
        (c_as_utc - c_day) at time zone p_time_zone - (c_as_utc - c_day) at time zone 'UTC'
    );
    if v_before at time zone p_time_zone = p_local then
        return v_before;
    end if;
    v_after := c_as_utc - (
        (c_as_utc + c_day) at time zone p_time_zone - (c_as_utc + c_day) at time zone 'UTC'
    );
    if v_after at time zone p_time_zone = p_local then
        return v_after;
    end if;
    return rowq.internal_offset_change(
        least(v_before, v_after), greatest(v_before, v_after), p_time_zone
    );
end;
$$;

-- [file internal/move_floor.sql]
create or replace function rowq.internal_move_floor(
    p_part_id  integer,
    p_lane     smallint,
    p_force    boolean default false,
    p_rescan   boolean default false,
    p_frontier bigint default null,
    p_writers  xid8 default null,
    p_cap      bigint default null,
    p_started  timestamp with time zone default clock_timestamp()
)
returns void
language plpgsql
as $$
-- routine   internal_move_floor
-- purpose   Add a ledger row for a lane when its floor has moved far enough to be worth one.
-- promise   P13 P14
-- locks     new floor rows; the one before, passed over when locked
-- differs   only engines whose readers walk dead rows need it
#variable_conflict use_column
declare
    -- A step that is shorter than this is not worth a new row. The unit is numbers, or microseconds
    -- for delayed, recheck, result, started, expiry and history.
    c_worth_a_row constant bigint := case
        when p_lane in (-2, -4, -5, -6, -7, -8) then 60000000
        else 400
    end;
    c_duty        constant integer := 50;
    -- At one row of maintain a second, generation reaches the end of a bigint after 58 years.
    c_step_of_maintain constant bigint := 5000000000;
    c_long_walk   constant interval := interval '20 milliseconds';
    v_now         bigint;
    v_snapshot    pg_snapshot;
    v_floor       rowq.floor;
    v_first       bigint;
    v_seq         bigint;
    v_jumped      boolean;
    v_sweep       boolean;
    v_rescan      boolean;
    v_resolved    boolean;
    v_marked      boolean := false;
    v_took        interval;
    v_generation  bigint;
    v_old         bigint;
begin
    -- The marks compare snapshots of several statements, and only read committed takes a new
    -- snapshot for each statement.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        return;
    end if;

    v_now := rowq.internal_newest_number(p_lane);
    select pg_current_snapshot() into v_snapshot;

    select f.part_id, f.lane, f.generation, f.seq, f.safe, f.frontier, f.writers,
           f.rescan_at, f.sweep_at
    into v_floor
    from rowq.floor f
    where f.part_id = p_part_id
      and f.lane = p_lane
    order by f.part_id, f.lane, f.generation
    limit 1;

    if not found then
        v_floor := row(p_part_id, p_lane, 0, 0, 0, 0, '0', p_started, p_started);
    end if;

    -- Trust no floor row and begin from 0 if numbers ran backwards (a restore, a failover, setval,
    -- or for moments the clock), or if the ledger comes from another server.
    v_jumped := v_now < v_floor.frontier
        or v_now < v_floor.seq - 1
        or coalesce(p_writers < v_floor.writers, false);
    v_sweep := v_jumped or (p_rescan and rowq.internal_is_past(v_floor.sweep_at));
    v_rescan := v_sweep or (p_rescan and rowq.internal_is_past(v_floor.rescan_at));

    v_first := rowq.internal_first_key(
        p_part_id,
        p_lane,
        case
            when v_sweep then 0
            when v_rescan then v_floor.safe
            else v_floor.seq
        end
    );
    v_resolved := not v_jumped and v_rescan and v_floor.writers <= pg_snapshot_xmin(v_snapshot);

    -- seq may move up to what a dequeue has taken (p_cap), or to frontier once no transaction can
    -- add a row below it. So seq passes a row that is not committed yet only where a newer row has
    -- been delivered. Without p_cap, a lane below 0 may move up to the newest number, because
    -- nobody waits for its rows.
    v_seq := least(
        v_first,
        case
            when v_jumped or p_cap is null and p_lane < 0 then v_now + 1
            else greatest(
                v_floor.seq,
                p_cap,
                case when v_resolved then v_floor.frontier + 1 end
            )
        end
    );

    if v_jumped then
        v_floor.safe := 0;
        v_floor.frontier := 0;
        v_floor.writers := '0';
    elsif v_resolved then
        -- Every writer that could have a number up to frontier had ended before v_first was read,
        -- so nothing can appear up to frontier any more.
        v_floor.safe := greatest(v_floor.safe, least(v_first, v_floor.frontier + 1));
        -- Take a new mark. p_writers is a transaction id that was given out after p_frontier was
        -- read, so every transaction that has a number up to p_frontier has an older id. (The xmax
        -- of a snapshot would not do, because the newest running transactions have ids beyond it.)
        if p_writers is not null then
            v_marked := p_frontier - v_floor.frontier > c_worth_a_row;
            v_floor.frontier := p_frontier;
            v_floor.writers := p_writers;
        end if;
    end if;
    if v_first < v_floor.safe then
        v_floor.safe := v_first;
    end if;

    v_took := clock_timestamp() - p_started;
    if not (v_marked
            or v_sweep
            or v_seq < v_floor.seq
            or v_seq - v_floor.seq > case when p_force then 0 else c_worth_a_row end
            or v_took > c_long_walk) then
        return;
    end if;

    -- After a long walk over dead rows, rest for fifty times as long as it took.
    if v_rescan and v_took > c_long_walk then
        v_floor.rescan_at := clock_timestamp() + least(v_took * c_duty, interval '1 hour');
    end if;
    if v_sweep then
        v_floor.sweep_at := clock_timestamp()
            + least(greatest(interval '1 minute', v_took * c_duty), interval '1 hour');
    end if;

    -- The new generation is at a random distance from the last one, so that no session waits for a
    -- row of the same generation that a long transaction has added and not committed. A step of
    -- maintain is longer than many steps of dequeue together, so that its row, with the new mark,
    -- stays the newest whatever dequeues have added since maintain looked.
    v_generation := least(v_floor.generation, 0) - 1 - (random() * 1000000)::bigint
        - case when p_rescan then c_step_of_maintain else 0 end;
    insert into rowq.floor (
        part_id, lane, generation, seq, safe, frontier, writers, rescan_at, sweep_at
    )
    values (
        p_part_id, p_lane, v_generation, v_seq, v_floor.safe, v_floor.frontier, v_floor.writers,
        v_floor.rescan_at, v_floor.sweep_at
    )
    on conflict do nothing;

    -- Delete only the row before the new one, because many dead rows may lie beyond it. A sweep
    -- deletes all older rows, so that those which were locked go too.
    for v_old in
        select f.generation
        from rowq.floor f
        where f.part_id = p_part_id
          and f.lane = p_lane
          and f.generation >= v_floor.generation
          and f.generation <= case
              when v_sweep then 9223372036854775807 else v_floor.generation
          end
        for update skip locked
    loop
        delete from rowq.floor f
        where f.part_id = p_part_id
          and f.lane = p_lane
          and f.generation = v_old;
    end loop;
end;
$$;

-- [file internal/newest_number.sql]
create or replace function rowq.internal_newest_number(p_lane smallint)
returns bigint
language plpgsql
as $$
-- routine   internal_newest_number
-- purpose   Return the newest number given out so far for rows of this kind of lane.
-- promise   P14
-- differs   only engines whose readers walk dead rows need it
begin
    return coalesce(
        case
            when p_lane >= 0 then pg_sequence_last_value('rowq.message_seq')
            -- The clock stands for the number here: a writer reads the clock after it has its
            -- transaction id, and its row has no earlier moment.
            when p_lane in (-2, -4, -5, -6, -7, -8)
                then extract(epoch from clock_timestamp()) * 1000000
            else pg_sequence_last_value('rowq.claim_seq')
        end,
        0
    );
end;
$$;

-- [file internal/next_cron.sql]
create or replace function rowq.internal_next_cron(
    p_bits      text,
    p_time_zone text,
    p_after     timestamp with time zone
)
returns timestamp with time zone
language plpgsql
as $$
-- routine   internal_next_cron
-- purpose   Return the first moment after p_after that a parsed cron expression names; null where the next ten years have none.
-- promise   P31
declare
    c_day    constant interval := interval '26 hours';
    v_local  timestamp;
    v_next   timestamp;
    v_from   timestamp with time zone;
    v_moment timestamp with time zone;
    v_change timestamp with time zone;
begin
    if substr(p_bits, 135, 1) = '1' then
        -- A minute and an hour that are given fire once for each local time.
        v_local := date_trunc('minute', p_after at time zone p_time_zone);
        loop
            v_local := rowq.internal_next_cron_local(p_bits, v_local + interval '1 minute');
            exit when v_local is null;
            v_moment := rowq.internal_moment_of_local(v_local, p_time_zone);
            exit when v_moment > p_after;
        end loop;
        return case when v_local is not null then v_moment end;
    end if;

    -- Any other one fires in each hour that there is, also in one that the clocks show twice. A
    -- time is as far away as the clocks say unless they are changed on the way. The look for that
    -- goes no further than a day, because local times that do not match are none later either.
    v_from := date_trunc('minute', p_after) + interval '1 minute';
    loop
        v_local := v_from at time zone p_time_zone;
        v_next := rowq.internal_next_cron_local(p_bits, v_local);
        exit when v_next is null;
        v_moment := v_from + extract(epoch from v_next - v_local) * interval '1 second';
        v_change := rowq.internal_offset_change(
            v_from, least(v_moment, v_from + c_day), p_time_zone
        );
        if v_change is not null then
            v_from := v_change;
        elsif v_moment <= v_from + c_day then
            return v_moment;
        else
            v_from := greatest(v_from + c_day, v_moment - c_day);
        end if;
    end loop;
    return null;
end;
$$;

-- [file internal/next_cron_local.sql]
create or replace function rowq.internal_next_cron_local(
    p_bits text,
    p_from timestamp without time zone
)
returns timestamp without time zone
language plpgsql
immutable
as $$
-- routine   internal_next_cron_local
-- purpose   Return the first minute from p_from on, in local time, that a parsed cron expression names; null where the next ten years have none.
declare
    c_end        constant date := p_from::date + 3660;
    v_day        date := p_from::date;
    v_hour       integer := extract(hour from p_from);
    v_minute     integer := extract(minute from p_from);
    v_is_day     boolean;
    v_is_weekday boolean;
    v_steps      integer;
begin
    while v_day < c_end loop
        if substr(p_bits, 115 + extract(month from v_day)::integer, 1) = '0' then
            v_day := date_trunc('month', v_day::timestamp) + interval '1 month';
        else
            v_is_day := substr(p_bits, 84 + extract(day from v_day)::integer, 1) = '1';
            v_is_weekday := substr(p_bits, 128 + extract(dow from v_day)::integer, 1) = '1';
            if v_is_day and v_is_weekday
               or (v_is_day or v_is_weekday) and substr(p_bits, 136, 1) = '1' then
                -- Look for the first hour, and in that hour for the first minute.
                while v_hour < 24 loop
                    v_steps := strpos(substr(p_bits, 61 + v_hour, 24 - v_hour), '1');
                    exit when v_steps = 0;
                    if v_steps > 1 then
                        v_hour := v_hour + v_steps - 1;
                        v_minute := 0;
                    end if;
                    v_steps := strpos(substr(p_bits, 1 + v_minute, 60 - v_minute), '1');
                    if v_steps > 0 then
                        return v_day + make_interval(
                            hours => v_hour, mins => v_minute + v_steps - 1
                        );
                    end if;
                    v_hour := v_hour + 1;
                    v_minute := 0;
                end loop;
            end if;
            v_day := v_day + 1;
        end if;
        v_hour := 0;
        v_minute := 0;
    end loop;
    return null;
end;
$$;

-- [file internal/next_tick.sql]
create or replace function rowq.internal_next_tick(
    p_schedule rowq.schedule,
    p_after    timestamp with time zone
)
returns timestamp with time zone
language plpgsql
as $$
-- routine   internal_next_tick
-- purpose   Return the first tick of a schedule after a moment; null where there is none.
-- promise   P31
declare
    c_after  constant timestamp with time zone
        := greatest(p_after, p_schedule.starts_at - interval '1 microsecond');
    v_step   bigint;
    v_passed bigint;
    v_count  bigint := 0;
    v_tick   timestamp with time zone;
begin
    if p_schedule.cron is not null then
        v_tick := rowq.internal_next_cron(
            rowq.internal_parse_cron(p_schedule.cron), p_schedule.time_zone, c_after
        );
    else
        -- Count in microseconds from starts_at, so that the ticks do not drift.
        v_step := round(p_schedule.interval_seconds * 1000000);
        v_passed := extract(epoch from c_after - p_schedule.starts_at) * 1000000;
        if v_passed >= 0 then
            v_count := v_passed / v_step + 1;
        end if;
        v_tick := p_schedule.starts_at + v_count * v_step * interval '1 microsecond';
    end if;
    -- Clients read no year beyond 9999.
    if v_tick > p_schedule.ends_at or v_tick >= '9999-12-31 00:00Z' then
        return null;
    end if;
    return v_tick;
end;
$$;

-- [file internal/note_cancels.sql]
create or replace function rowq.internal_note_cancels(p_part_id integer, p_message_ids bigint[])
returns bigint[]
language plpgsql
as $$
-- routine   internal_note_cancels
-- purpose   Note in the claims that hold these messages that they were cancelled; return those noted.
-- promise   P34
-- locks     claim rows, passing over locked ones
declare
    -- Begin at the safe floor, because a claim that was committed late may hold one of them.
    v_from     constant bigint := rowq.internal_read_safe_floor(p_part_id, -1::smallint);
    v_claim_id bigint;
    v_ids      bigint[];
    v_noted    bigint[] := '{}'::bigint[];
begin
    for v_claim_id in
        select c.claim_id
        from rowq.claim c
        where c.part_id = p_part_id
          and c.claim_id >= v_from
          and exists (
              select 1
              from unnest(c.message_ids) u (message_id)
              where u.message_id = any (p_message_ids)
          )
        order by c.part_id, c.claim_id
        for update skip locked
    loop
        update rowq.claim c
        set cancel_ids = array(
                select u.message_id
                from unnest(c.message_ids) u (message_id)
                where u.message_id = any (p_message_ids)
                   or u.message_id = any (c.cancel_ids)
            )
        where c.part_id = p_part_id
          and c.claim_id = v_claim_id
        returning c.cancel_ids into v_ids;
        v_noted := v_noted || v_ids;
    end loop;
    return v_noted;
end;
$$;

-- [file internal/note_expiry.sql]
create or replace function rowq.internal_note_expiry(p_part_id integer, p_message_ids bigint[])
returns void
language plpgsql
as $$
-- routine   internal_note_expiry
-- purpose   Let maintain look again for those of the messages that expire, which have come to wait elsewhere than in ready.
-- promise   P36
-- locks     new expiry rows
begin
    -- Only a queue that has had messages that expire has this lane, and without it the messages are
    -- not looked up. A row has no moment before now, as internal_newest_number wants it.
    insert into rowq.expiry (part_id, expires_at, message_id)
    select p_part_id, greatest(m.expires_at, clock_timestamp()), u.message_id
    from unnest(p_message_ids) u (message_id)
    cross join lateral (
        select x.expires_at
        from rowq.message x
        where x.part_id = p_part_id
          and x.message_id = u.message_id
        offset 0
    ) m
    where m.expires_at is not null
      and exists (
          select
          from rowq.floor f
          where f.part_id = p_part_id
            and f.lane = -7
      );
end;
$$;

-- [file internal/note_start.sql]
create or replace function rowq.internal_note_start(
    p_part_id    integer,
    p_claim_id   bigint,
    p_started_at timestamp with time zone,
    p_messages   integer
)
returns void
language plpgsql
as $$
-- routine   internal_note_start
-- purpose   Note the deliveries that a claim has begun, in a queue with a rate_limit.
-- promise   P29
-- locks     the new started row
begin
    insert into rowq.started (part_id, messages, started_at, claim_id)
    values (p_part_id, p_messages, p_started_at, p_claim_id);
end;
$$;

-- [file internal/notify.sql]
create or replace function rowq.internal_notify(p_part_id integer)
returns void
language plpgsql
as $$
-- routine   internal_notify
-- purpose   Notify the sessions that listen for this queue's messages, at the commit: see listen.
-- locks     as internal_is_listened
-- differs   this engine's own
begin
    if rowq.internal_is_listened(p_part_id) then
        perform pg_notify('rowq', q.queue_name)
        from rowq.queue q
        where q.part_id = p_part_id;
    end if;
end;
$$;

-- [file internal/offset_change.sql]
create or replace function rowq.internal_offset_change(
    p_from      timestamp with time zone,
    p_to        timestamp with time zone,
    p_time_zone text
)
returns timestamp with time zone
language plpgsql
as $$
-- routine   internal_offset_change
-- purpose   Return the first moment after p_from, up to p_to, when the clocks of a time zone were changed; null where they were not. Both moments are whole minutes at most two days apart.
declare
    c_offset constant interval := p_from at time zone p_time_zone - p_from at time zone 'UTC';
    v_low    timestamp with time zone := p_from;
    v_high   timestamp with time zone := p_to;
    v_middle timestamp with time zone;
begin
    if v_high at time zone p_time_zone - v_high at time zone 'UTC' = c_offset then
        return null;
    end if;
    while v_high - v_low > interval '1 minute' loop
        v_middle := v_low
            + floor(extract(epoch from v_high - v_low) / 120) * interval '1 minute';
        if v_middle at time zone p_time_zone - v_middle at time zone 'UTC' = c_offset then
            v_low := v_middle;
        else
            v_high := v_middle;
        end if;
    end loop;
    return v_high;
end;
$$;

-- [file internal/open_day.sql]
create or replace function rowq.internal_open_day(p_finished_at timestamp with time zone)
returns void
language plpgsql
set lock_timeout = '1s'
set default_tablespace = ''
set default_table_access_method = 'heap'
as $$
-- routine   internal_open_day
-- purpose   Make sure that the archive has a partition for the day of p_finished_at.
-- promise   P19
-- locks     share update exclusive on archive, waited for a second
declare
    v_from constant timestamp := date_trunc('day', p_finished_at at time zone 'UTC');
    v_name constant text := 'archive_' || to_char(v_from, 'YYYYMMDD');
    v_grantee name;
begin
    if to_regclass(format('rowq.%I', v_name)) is not null then
        return;
    end if;
    lock table rowq.archive in share update exclusive mode;
    -- Look in the catalog table, because the name cache may not know yet what another session has
    -- just made.
    if exists (
        select 1
        from pg_catalog.pg_class c
        where c.relname = v_name
          and c.relnamespace = 'rowq'::regnamespace
    ) then
        return;
    end if;

    -- Make a table and attach it, because "create table ... partition of" would lock out all users
    -- of the archive.
    execute format('create table rowq.%I (like rowq.archive including defaults)', v_name);
    -- Take back all rights, because everybody may use a new type by default, and the owner's
    -- default privileges may give more.
    for v_grantee in
        select distinct coalesce(r.rolname, 'public')
        from (
            select c.relowner as owner, c.relacl as acl
            from pg_catalog.pg_class c
            where c.relname = v_name
              and c.relnamespace = 'rowq'::regnamespace
            union all
            select t.typowner, coalesce(t.typacl, acldefault('T', t.typowner))
            from pg_catalog.pg_type t
            where t.typname = v_name
              and t.typnamespace = 'rowq'::regnamespace
        ) o
        cross join aclexplode(o.acl) given
        left join pg_catalog.pg_roles r on r.oid = given.grantee
        where given.grantee <> o.owner
    loop
        execute format('revoke all on table rowq.%I from %I cascade', v_name, v_grantee);
        execute format('revoke all on type rowq.%I from %I cascade', v_name, v_grantee);
    end loop;
    -- Write the bounds in full, because the caller's DateStyle and TimeZone must not matter.
    execute format(
        'alter table rowq.archive attach partition rowq.%I for values from (%L) to (%L)',
        v_name,
        to_char(v_from, 'YYYY-MM-DD 00:00:00+00'),
        to_char(v_from + interval '1 day', 'YYYY-MM-DD 00:00:00+00')
    );
end;
$$;

-- [file internal/open_lanes.sql]
create or replace function rowq.internal_open_lanes(p_part_id integer, p_lanes smallint[])
returns void
language plpgsql
as $$
-- routine   internal_open_lanes
-- purpose   Make lanes known to dequeue before the first row is put into them.
-- promise   P02 P13
-- locks     none that another producer could wait for
-- differs   only engines whose readers walk dead rows need it
begin
    -- Each producer that does not see the lane adds a row of its own, with its transaction id as
    -- generation. So no producer waits for another one's open transaction, and a rollback removes
    -- only its own row. The lane's newest row is looked for in the order of the key, because "not
    -- exists" would become a join that reads all dead rows of the lane.
    insert into rowq.floor (
        part_id, lane, generation, seq, safe, frontier, writers, rescan_at, sweep_at
    )
    select p_part_id, l.lane, pg_current_xact_id()::text::bigint, 0, 0, 0, '0',
           clock_timestamp(), clock_timestamp() + interval '1 minute'
    from (select distinct u.lane from unnest(p_lanes) u (lane)) l
    where (
        select f.lane
        from rowq.floor f
        where f.part_id = p_part_id
          and f.lane = l.lane
        order by f.part_id, f.lane, f.generation
        limit 1
    ) is null
    on conflict do nothing;
end;
$$;

-- [file internal/parse_cron.sql]
create or replace function rowq.internal_parse_cron(p_cron text)
returns text
language plpgsql
immutable
as $$
-- routine   internal_parse_cron
-- purpose   Turn a cron expression into a text of 0 and 1: 60 for minutes, 24 hours, 31 days, 12 months, 7 weekdays from Sunday on, one for a minute and an hour that are given, one for a day and a weekday that are both given.
-- promise   P15
-- errors    RQ711
declare
    v_fields   text[];
    v_weekdays text;
begin
    v_fields := regexp_split_to_array(
        btrim(
            case lower(left(p_cron, 201) collate "C")
                when '@hourly' then '0 * * * *'
                when '@daily' then '0 0 * * *'
                when '@midnight' then '0 0 * * *'
                when '@weekly' then '0 0 * * 0'
                when '@monthly' then '0 0 1 * *'
                when '@yearly' then '0 0 1 1 *'
                when '@annually' then '0 0 1 1 *'
                else left(p_cron, 201)
            end,
            E' \t'
        ),
        '[ \t]+'
    );
    if cardinality(v_fields) <> 5 or char_length(p_cron) > 200 then
        raise exception 'RQ711 invalid_argument: cron must be five fields (minute, hour, day, '
            'month, weekday) or a word such as @daily, got %', left(p_cron, 60)
            using errcode = 'RQ711';
    end if;
    -- Sunday is 0 and 7.
    v_weekdays := rowq.internal_parse_cron_field(
        v_fields[5], 'weekday', 0, 7, 'sun mon tue wed thu fri sat '
    );
    return rowq.internal_parse_cron_field(v_fields[1], 'minute', 0, 59)
        || rowq.internal_parse_cron_field(v_fields[2], 'hour', 0, 23)
        || rowq.internal_parse_cron_field(v_fields[3], 'day', 1, 31)
        || rowq.internal_parse_cron_field(
            v_fields[4], 'month', 1, 12, 'jan feb mar apr may jun jul aug sep oct nov dec '
        )
        || greatest(left(v_weekdays, 1), right(v_weekdays, 1))
        || substr(v_weekdays, 2, 6)
        || case when v_fields[1] like '*%' or v_fields[2] like '*%' then '0' else '1' end
        || case when v_fields[3] like '*%' or v_fields[5] like '*%' then '0' else '1' end;
end;
$$;

-- [file internal/parse_cron_field.sql]
create or replace function rowq.internal_parse_cron_field(
    p_field text,
    p_name  text,
    p_low   integer,
    p_high  integer,
    p_words text default null
)
returns text
language plpgsql
immutable
as $$
-- routine   internal_parse_cron_field
-- purpose   Turn a field of a cron expression into a text of 0 and 1, one for each value from p_low on. p_words are names of three letters for these values.
-- promise   P15
-- errors    RQ711
declare
    v_item  text;
    v_parts text[];
    v_ends  integer[];
    v_step  integer;
    v_bits  text := repeat('0', p_high - p_low + 1);
begin
    foreach v_item in array string_to_array(lower(p_field collate "C"), ',') loop
        v_parts := regexp_match(
            v_item, '^(?:(\*)|([0-9]{1,2}|[a-z]{3})(?:-([0-9]{1,2}|[a-z]{3}))?)(?:/([0-9]{1,2}))?$'
        );
        if v_parts[1] is not null then
            v_ends := array[p_low, p_high];
        else
            select array_agg(
                       case
                           when e.word is null and v_parts[4] is null then null
                           when e.word is null then p_high
                           when e.word ~ '^[0-9]' then e.word::integer
                           when strpos(p_words, e.word) % 4 = 1
                               then p_low + strpos(p_words, e.word) / 4
                           else -1
                       end
                       order by e.place
                   )
            into v_ends
            from unnest(v_parts[2:3]) with ordinality e (word, place);
            v_ends[2] := coalesce(v_ends[2], v_ends[1]);
        end if;
        v_step := coalesce(v_parts[4], '1')::integer;
        if v_parts is null
           or v_ends[1] < p_low
           or v_ends[2] > p_high
           or v_ends[1] > v_ends[2]
           or v_step = 0 then
            raise exception 'RQ711 invalid_argument: the % of cron must be *, values from % to %, '
                'ranges or steps of these, got %', p_name, p_low, p_high, left(p_field, 60)
                using errcode = 'RQ711';
        end if;
        for v_value in v_ends[1] - p_low .. v_ends[2] - p_low by v_step loop
            v_bits := overlay(v_bits placing '1' from v_value + 1);
        end loop;
    end loop;
    return v_bits;
end;
$$;

-- [file internal/parse_messages.sql]
create or replace function rowq.internal_parse_messages(
    p_messages   jsonb,
    p_max_length integer
)
returns table (
    place          integer,
    body           text,
    body_binary    bytea,
    message_type   text,
    headers        jsonb,
    priority       integer,
    delay_seconds  double precision,
    run_at         timestamp with time zone,
    dedup_key      text,
    max_attempts   integer,
    group_key      text,
    expire_seconds double precision
)
language plpgsql
as $$
-- routine   internal_parse_messages
-- purpose   Read and check the messages of enqueue_batch.
-- promise   P15
-- errors    RQ711
#variable_conflict use_column
declare
    v_place integer;
    v_fault text;
begin
    if p_messages is null
       or jsonb_typeof(p_messages) <> 'array'
       or jsonb_array_length(p_messages) > 10000 then
        raise exception
            'RQ711 invalid_argument: messages must be a JSON array of at most 10000 objects'
            using errcode = 'RQ711';
    end if;

    select e.place into v_place
    from jsonb_array_elements(p_messages) with ordinality e (message, place)
    where jsonb_typeof(e.message) <> 'object'
    limit 1;
    if found then
        raise exception 'RQ711 invalid_argument: a message must be a JSON object (message %)',
            v_place
            using errcode = 'RQ711';
    end if;

    select e.place, format(
               case when t.wanted is null then 'unknown key %I' else '%I must be a %s' end,
               left(k.key, 100), t.wanted
           )
    into v_place, v_fault
    from jsonb_array_elements(p_messages) with ordinality e (message, place)
    cross join lateral jsonb_each(e.message) k (key, value)
    left join (
        values
            ('body', 'value'), ('body_base64', 'string'), ('message_type', 'string'),
            ('headers', 'object'), ('priority', 'number'), ('delay_seconds', 'number'),
            ('run_at', 'string'), ('dedup_key', 'string'), ('max_attempts', 'number'),
            ('group_key', 'string'), ('predecessor_ids', 'array'),
            ('predecessor_positions', 'array'), ('on_predecessor_dead', 'string'),
            ('expire_seconds', 'number')
    ) t (key, wanted) on t.key = k.key
    where t.wanted is null
       or t.wanted not in ('value', jsonb_typeof(k.value)) and k.value <> 'null'
    limit 1;
    if found then
        raise exception 'RQ711 invalid_argument: % (message %)', v_fault, v_place
            using errcode = 'RQ711';
    end if;

    begin
        for place, body, body_binary, message_type, headers, priority, delay_seconds, run_at,
            dedup_key, max_attempts, group_key, expire_seconds in
            select e.place::integer,
                   case when e.body <> 'null' then e.body #>> '{}' end,
                   decode(e.body_base64, 'base64'),
                   e.message_type,
                   nullif(e.headers, 'null'),
                   coalesce(e.priority, 5),
                   e.delay_seconds,
                   case when e.run_at is not null then rowq.internal_parse_moment(e.run_at) end,
                   e.dedup_key,
                   e.max_attempts,
                   e.group_key,
                   e.expire_seconds
            from rows from (
                jsonb_to_recordset(p_messages) as (
                    body           jsonb,
                    body_base64    text,
                    message_type   text,
                    headers        jsonb,
                    priority       integer,
                    delay_seconds  double precision,
                    run_at         text,
                    dedup_key      text,
                    max_attempts   integer,
                    group_key      text,
                    expire_seconds double precision
                )
            ) with ordinality e (
                body, body_base64, message_type, headers, priority, delay_seconds, run_at,
                dedup_key, max_attempts, group_key, expire_seconds, place
            )
        loop
            -- A short text with a good priority and a good delay has nothing else to check.
            if priority not between 0 and 9
               or delay_seconds not between 0 and 315360000
               or octet_length(body) > p_max_length
               or num_nonnulls(
                   body_binary, message_type, headers, run_at, dedup_key, max_attempts, group_key,
                   expire_seconds
               ) > 0 then
                v_fault := coalesce(
                    rowq.internal_message_fault(
                        body, body_binary, message_type, headers, priority, delay_seconds, run_at,
                        dedup_key, max_attempts, group_key, null, null, expire_seconds
                    ),
                    rowq.internal_body_fault(body, body_binary, p_max_length)
                );
                if v_fault is not null then
                    raise exception 'RQ711 invalid_argument: % (message %)', v_fault, place
                        using errcode = 'RQ711';
                end if;
            end if;
            return next;
        end loop;
    exception
        when data_exception then
            perform rowq.internal_refuse_bad_value(e.message, e.place::integer)
            from jsonb_array_elements(p_messages) with ordinality e (message, place);
            raise;
    end;
end;
$$;

-- [file internal/parse_moment.sql]
create or replace function rowq.internal_parse_moment(p_text text)
returns timestamp with time zone
language plpgsql
set timezone = 'GMT'
set datestyle = 'ISO, YMD'
as $$
-- routine   internal_parse_moment
-- purpose   Read a moment in ISO 8601, UTC without a zone, whatever the caller's settings say.
-- promise   P15
-- differs   a text that is none raises an error of the class 22
begin
    return p_text::timestamp with time zone;
end;
$$;

-- [file internal/parse_predecessors.sql]
create or replace function rowq.internal_parse_predecessors(
    p_part_id  integer,
    p_given    jsonb,
    p_messages rowq.message[],
    p_kept_ids bigint[],
    p_lanes    smallint[],
    p_due_ats  timestamp with time zone[],
    p_now      timestamp with time zone
)
returns rowq.blocked[]
language plpgsql
as $$
-- routine   internal_parse_predecessors
-- purpose   Check the predecessors of a batch and return its new messages that may have to wait, with all of their predecessors in rest_ids.
-- promise   P15 P25
-- errors    RQ711
declare
    v_row  record;
    v_ids  bigint[];
    v_ties rowq.blocked[] := '{}'::rowq.blocked[];
begin
    for v_row in
        select m.place, m.message_id, m.kept_id, m.group_key, m.lane,
               case when m.due_at > p_now then m.due_at end as due_at,
               m.predecessor_ids, m.predecessor_positions, m.on_predecessor_dead
        from rows from (
            jsonb_to_recordset(p_given) as (
                predecessor_ids       bigint[],
                predecessor_positions integer[],
                on_predecessor_dead   text
            ),
            unnest(p_messages),
            unnest(p_kept_ids),
            unnest(p_lanes),
            unnest(p_due_ats)
        ) with ordinality m (
            predecessor_ids, predecessor_positions, on_predecessor_dead,
            part_id, max_attempts, message_id, enqueued_at, message_type, dedup_key,
            group_key, headers, body, body_binary, has_successors, expires_at,
            kept_id, lane, due_at, place
        )
        where num_nonnulls(
            m.predecessor_ids, m.predecessor_positions, m.on_predecessor_dead
        ) > 0
    loop
        perform rowq.internal_refuse_predecessors(
            v_row.place, p_messages[1].message_id, v_row.predecessor_ids,
            v_row.predecessor_positions, v_row.on_predecessor_dead
        );
        continue when v_row.message_id <> v_row.kept_id;

        select array_agg(distinct u.message_id order by u.message_id) into v_ids
        from (
            select unnest(v_row.predecessor_ids)
            union all
            select p_kept_ids[p.place]
            from unnest(v_row.predecessor_positions) p (place)
        ) u (message_id);

        -- Whose predecessors have all ended joins its group in its turn among the batch's others.
        if v_ids is not null and (
            v_row.group_key is null
            or v_row.due_at is not null
            or rowq.internal_has_unended(p_part_id, v_ids, v_row.on_predecessor_dead)
        ) then
            v_ties := v_ties || row(
                p_part_id, v_row.lane, v_row.message_id, null, v_row.due_at,
                v_row.on_predecessor_dead, v_row.group_key, v_ids
            )::rowq.blocked;
        end if;
    end loop;
    return v_ties;
exception
    when data_exception then
        perform rowq.internal_refuse_bad_value(e.message, e.place::integer)
        from jsonb_array_elements(p_given) with ordinality e (message, place);
        raise;
end;
$$;

-- [file internal/pass_groups.sql]
create or replace function rowq.internal_pass_groups(
    p_part_id    integer,
    p_group_keys text[],
    p_is_over    boolean
)
returns text[]
language plpgsql
as $$
-- routine   internal_pass_groups
-- purpose   Pass one token of each group on to its next message, or give it back; return the groups where that cannot be done now.
-- promise   P21 P22 P23 P24
-- locks     grouped and message_group rows, tried only; new ready rows
declare
    v_keys    text[] := p_group_keys;
    v_empty   text[];
    v_left    text[];
    v_look    record;
    v_tokens  smallint[];
    v_lanes   smallint[];
    v_ids     bigint[];
    v_errors  text[];
begin
    -- The second look needs a snapshot of its own, which only read committed takes.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        return p_group_keys;
    end if;

    for v_turn in 1 .. 2 loop
        -- Look at the first message that waits, and lock the first one that nobody holds. With a
        -- limit of 1 these must be the same, because a message that is being cancelled may stay,
        -- and must not be overtaken. A token beyond a limit that was lowered is given back.
        v_empty := null;
        for v_look in
            select u.group_key, q.group_limit, q.group_pause_seconds, f.message_id as first_id,
                   w.message_id, w.lane, w.last_error, s.token_no as surplus_no,
                   v_tokens[u.place] as token_no
            from rowq.queue q
            cross join unnest(v_keys) with ordinality u (group_key, place)
            left join lateral (
                select x.token_no
                from rowq.message_group x
                where x.part_id = p_part_id
                  and x.group_key = u.group_key
                  and x.token_no > q.group_limit
                  and exists (
                      select
                      from rowq.message_group y
                      where y.part_id = p_part_id
                        and y.group_key = u.group_key
                        and y.token_no <= q.group_limit
                  )
                order by x.part_id, x.group_key, x.token_no
                limit 1
                for update skip locked
            ) s on true
            left join lateral (
                select x.message_id
                from rowq.grouped x
                where x.part_id = p_part_id
                  and x.group_key = u.group_key
                order by x.part_id, x.group_key, x.message_id
                limit 1
            ) f on true
            left join lateral (
                select x.message_id, x.lane, x.last_error
                from rowq.grouped x
                where x.part_id = p_part_id
                  and x.group_key = u.group_key
                  and x.message_id >= f.message_id
                order by x.part_id, x.group_key, x.message_id
                limit 1
                for update skip locked
            ) w on true
            where q.part_id = p_part_id
        loop
            if v_look.group_pause_seconds > 0 and not p_is_over then
                v_left := v_left || v_look.group_key;
            elsif v_look.surplus_no is not null then
                delete from rowq.message_group x
                where x.part_id = p_part_id
                  and x.group_key = v_look.group_key
                  and x.token_no = v_look.surplus_no;
            elsif v_look.message_id = v_look.first_id
                  or v_look.message_id is not null and v_look.group_limit > 1 then
                delete from rowq.grouped x
                where x.part_id = p_part_id
                  and x.group_key = v_look.group_key
                  and x.message_id = v_look.message_id;
                v_lanes := v_lanes || v_look.lane;
                v_ids := v_ids || v_look.message_id;
                v_errors := v_errors || v_look.last_error;
            elsif v_look.first_id is not null then
                v_left := v_left || v_look.group_key;
            elsif v_turn = 2 then
                delete from rowq.message_group x
                where x.part_id = p_part_id
                  and x.group_key = v_look.group_key
                  and x.token_no = v_look.token_no;
            else
                v_empty := v_empty || v_look.group_key;
            end if;
        end loop;
        exit when v_empty is null;

        -- Nobody waits. Where a token can be locked, nobody is coming either, and who was coming a
        -- moment ago is there by now, so look once more.
        select array_agg(u.group_key) filter (where t.token_no is not null),
               array_agg(t.token_no) filter (where t.token_no is not null),
               v_left || array_agg(u.group_key) filter (where t.token_no is null)
        into v_keys, v_tokens, v_left
        from unnest(v_empty) u (group_key)
        left join lateral (
            select x.token_no
            from rowq.message_group x
            where x.part_id = p_part_id
              and x.group_key = u.group_key
            order by x.part_id desc, x.group_key desc, x.token_no desc
            limit 1
            for update skip locked
        ) t on true;
        exit when v_keys is null;
    end loop;

    if v_ids is not null then
        perform rowq.internal_push_ready(
            p_part_id, v_lanes, v_ids, array_fill(0::smallint, array[cardinality(v_ids)]), v_errors
        );
    end if;
    return v_left;
end;
$$;

-- [file internal/poll.sql]
create or replace function rowq.internal_poll(
    p_queue_name    text,
    p_batch_size    integer,
    p_worker_name   text,
    p_lease_seconds integer,
    p_until         timestamp with time zone,
    p_pause         double precision,
    out o_messages  jsonb,
    out o_pause     double precision
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   internal_poll
-- purpose   Look once for dequeue_wait: return messages as a JSON array, else the pause before the next look.
-- promise   P03 P05
-- locks     as dequeue_fast
-- errors    RQ701 RQ711
-- differs   only where the caller's path reaches into dequeue_wait
declare
    -- A JSON array holds less than 256 MB, and a text may grow on its way to the client, so an
    -- answer ends at 64 MB.
    c_most_octets constant bigint := 67108864;
    v_claim_id    bigint;
    v_rest        bigint[];
begin
    select jsonb_agg(
               jsonb_build_object(
                   'claim_id', t.claim_id, 'message_id', t.message_id, 'attempt', t.attempt,
                   'message_type', t.message_type, 'headers', t.headers, 'body', t.body,
                   'body_binary', translate(encode(t.body_binary, 'base64'), E'\n', ''),
                   'enqueued_at', t.enqueued_at, 'lease_until', t.lease_until,
                   'last_error', t.last_error
               )
           ) filter (where t.octets <= c_most_octets or t.place = 1),
           min(t.claim_id),
           array_agg(t.message_id) filter (where t.octets > c_most_octets and t.place > 1)
    into o_messages, v_claim_id, v_rest
    from (
        select d.claim_id, d.message_id, d.attempt, d.message_type, d.headers, d.body,
               d.body_binary, d.enqueued_at, d.lease_until, d.last_error,
               row_number() over w as place,
               sum(
                   octet_length(coalesce(d.body, '')) + octet_length(coalesce(d.body_binary, ''))
                   + octet_length(coalesce(d.headers::text, ''))
                   + octet_length(coalesce(d.message_type, ''))
                   + octet_length(coalesce(d.last_error, ''))
               ) over w as octets
        from rowq.dequeue_fast(p_queue_name, p_batch_size, p_worker_name, p_lease_seconds) d
        window w as (rows unbounded preceding)
    ) t;
    if v_rest is not null then
        perform rowq.release(p_queue_name, v_claim_id, v_rest);
    end if;

    if o_messages is null and clock_timestamp() < p_until then
        o_pause := least(p_pause * 2, 0.25, extract(epoch from p_until - clock_timestamp()));
    end if;
end;
$$;

-- [file internal/poll_result.sql]
create or replace function rowq.internal_poll_result(
    p_queue_name text,
    p_message_id bigint,
    p_until      timestamp with time zone,
    p_pause      double precision,
    out o_answer jsonb,
    out o_pause  double precision
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   internal_poll_result
-- purpose   Look once for wait_for_result: return the row of get_result as JSON object, else the pause before the next look; p_pause is the one before this look.
-- promise   P32
-- errors    RQ701 RQ711
-- differs   only where the caller's path reaches into wait_for_result
declare
    v_part_id        integer;
    v_result_seconds double precision;
    v_is_last        constant boolean := clock_timestamp() >= p_until;
    v_has_ended      boolean;
begin
    select q.part_id, q.result_seconds into v_part_id, v_result_seconds
    from rowq.queue q
    where q.queue_name = p_queue_name;

    -- The first look and the last one ask where the message is. Those between need no more than
    -- the result, which is found by its key. A queue that is not here may be on another node of a
    -- cluster: get_result goes there, or refuses.
    if v_part_id is null or p_pause is null or v_is_last then
        select to_jsonb(g), g.finished_at is not null
        into o_answer, v_has_ended
        from rowq.get_result(p_queue_name, p_message_id) g;
        if v_has_ended is not false or v_is_last then
            return;
        end if;
        o_answer := null;
    else
        select to_jsonb(h) into o_answer
        from (
            select r.message_id, r.state, r.finished_at, r.result, r.last_error
            from rowq.result r
            where r.part_id = v_part_id
              and r.message_id = p_message_id
        ) h;
        if found then
            return;
        end if;
    end if;

    if v_part_id is null and p_pause is null then
        v_result_seconds := (
            select s.result_seconds from rowq.queue_stats(p_queue_name, 1) s
        );
    end if;
    if v_result_seconds = 0 then
        raise exception
            'RQ711 invalid_argument: the queue keeps no results: its result_seconds is 0'
            using errcode = 'RQ711';
    end if;

    o_pause := least(
        coalesce(p_pause * 2, 0.02), 0.25, extract(epoch from p_until - clock_timestamp())
    );
end;
$$;

-- [file internal/pop_claimed.sql]
create or replace function rowq.internal_pop_claimed(
    p_part_id     integer,
    p_claim_id    bigint,
    p_message_ids bigint[],
    out o_message_ids bigint[],
    out o_lanes       smallint[],
    out o_attempts    smallint[],
    out o_errors      text[],
    out o_cancel_ids  bigint[],
    out o_worker_name text,
    out o_leased_at   timestamp with time zone
)
language plpgsql
as $$
-- routine   internal_pop_claimed
-- purpose   Take messages out of a claim: those asked for that it still holds, or all of them. o_cancel_ids are those of them that were cancelled, null where there is none.
-- promise   P08
-- locks     the claim row, first of all
-- errors    RQ711 RQ721
-- differs   elsewhere a claim's messages are rows of a table
declare
    v_kept_ids      bigint[];
    v_kept_lanes    smallint[];
    v_kept_attempts smallint[];
    v_kept_errors   text[];
    v_kept_cancels  bigint[];
begin
    if p_claim_id is null then
        raise exception 'RQ711 invalid_argument: claim_id is missing'
            using errcode = 'RQ711';
    end if;
    if (cardinality(p_message_ids) <> 1 or p_message_ids[1] is null)
       and not rowq.internal_is_id_list(p_message_ids) then
        raise exception
            'RQ711 invalid_argument: message_ids must be a flat list of at most 10000 ids, no null'
            using errcode = 'RQ711';
    end if;

    delete from rowq.claim c
    where c.part_id = p_part_id
      and c.claim_id = p_claim_id
      and (p_message_ids is null or c.message_ids <@ p_message_ids)
    returning c.message_ids, c.lanes, c.attempts, c.errors, c.cancel_ids, c.worker_name,
              c.leased_at
    into o_message_ids, o_lanes, o_attempts, o_errors, o_cancel_ids, o_worker_name, o_leased_at;
    if found then
        return;
    end if;

    select c.message_ids, c.lanes, c.attempts, c.errors, c.cancel_ids, c.worker_name, c.leased_at
    into v_kept_ids, v_kept_lanes, v_kept_attempts, v_kept_errors, v_kept_cancels,
         o_worker_name, o_leased_at
    from rowq.claim c
    where c.part_id = p_part_id
      and c.claim_id = p_claim_id
    for update;
    if not found and p_message_ids is null then
        raise exception 'RQ721 stale_claim: claim % holds nothing any more', p_claim_id
            using errcode = 'RQ721';
    end if;

    select coalesce(array_agg(u.message_id) filter (where u.is_asked), '{}'),
           array_agg(u.lane) filter (where u.is_asked),
           array_agg(u.attempt) filter (where u.is_asked),
           array_agg(u.last_error) filter (where u.is_asked),
           array_agg(u.message_id) filter (where not u.is_asked),
           array_agg(u.lane) filter (where not u.is_asked),
           array_agg(u.attempt) filter (where not u.is_asked),
           array_agg(u.last_error) filter (where not u.is_asked)
    into o_message_ids, o_lanes, o_attempts, o_errors,
         v_kept_ids, v_kept_lanes, v_kept_attempts, v_kept_errors
    from (
        select x.message_id, x.lane, x.attempt, x.last_error,
               x.message_id = any (p_message_ids) as is_asked
        from unnest(v_kept_ids, v_kept_lanes, v_kept_attempts, v_kept_errors)
            x (message_id, lane, attempt, last_error)
    ) u;

    if v_kept_cancels is not null then
        select array_agg(u.message_id) filter (where u.message_id = any (o_message_ids)),
               array_agg(u.message_id) filter (where u.message_id <> all (o_message_ids))
        into o_cancel_ids, v_kept_cancels
        from unnest(v_kept_cancels) u (message_id);
    end if;

    if v_kept_ids is null then
        -- Another session finished the rest of the claim between the two statements above, so
        -- nothing of it is left.
        delete from rowq.claim c
        where c.part_id = p_part_id
          and c.claim_id = p_claim_id;
    elsif o_message_ids <> '{}' then
        update rowq.claim c
        set message_ids = v_kept_ids,
            lanes       = v_kept_lanes,
            attempts    = v_kept_attempts,
            errors      = v_kept_errors,
            cancel_ids  = v_kept_cancels
        where c.part_id = p_part_id
          and c.claim_id = p_claim_id;
    end if;
end;
$$;

-- [file internal/pop_expired.sql]
create or replace function rowq.internal_pop_expired(
    p_part_id     integer,
    p_message_ids bigint[],
    p_places      text[],
    p_lanes       smallint[],
    p_seqs        bigint[],
    out o_message_ids bigint[],
    out o_lanes       smallint[],
    out o_attempts    smallint[],
    out o_tokenless   bigint[]
)
language plpgsql
as $$
-- routine   internal_pop_expired
-- purpose   Take messages out of the places where they were seen, unless another session holds them. o_tokenless are those without a token of a group.
-- promise   P03 P36
-- locks     ready, delayed, blocked and grouped rows, then message rows, all of them tried only
declare
    v_row   record;
    v_found record;
begin
    o_message_ids := '{}';
    for v_row in
        select u.message_id, u.place, u.lane, u.seq, m.group_key
        from unnest(p_message_ids, p_places, p_lanes, p_seqs) u (message_id, place, lane, seq)
        cross join lateral (
            select x.group_key
            from rowq.message x
            where x.part_id = p_part_id
              and x.message_id = u.message_id
            offset 0
        ) m
        where u.place is not null
    loop
        case v_row.place
            when 'ready' then
                select r.lane, r.attempt, false as is_tokenless into v_found
                from rowq.ready r
                where r.part_id = p_part_id
                  and r.lane = v_row.lane
                  and r.seq = v_row.seq
                  and r.message_id = v_row.message_id
                for update skip locked;
            when 'delayed' then
                select d.lane, d.attempt, d.group_key is not null as is_tokenless into v_found
                from rowq.delayed d
                where d.part_id = p_part_id
                  and d.message_id = v_row.message_id
                for update skip locked;
            when 'blocked' then
                select b.lane, 0::smallint as attempt, true as is_tokenless into v_found
                from rowq.blocked b
                where b.part_id = p_part_id
                  and b.message_id = v_row.message_id
                for update skip locked;
            else
                select g.lane, 0::smallint as attempt, true as is_tokenless into v_found
                from rowq.grouped g
                where g.part_id = p_part_id
                  and g.group_key = v_row.group_key
                  and g.message_id = v_row.message_id
                for update skip locked;
        end case;
        continue when not found;

        -- The end of a message waits for a producer that has just named it as a predecessor, and
        -- maintain must not.
        perform
        from rowq.message m
        where m.part_id = p_part_id
          and m.message_id = v_row.message_id
        for update skip locked;
        continue when not found;

        case v_row.place
            when 'ready' then
                delete from rowq.ready r
                where r.part_id = p_part_id
                  and r.lane = v_row.lane
                  and r.seq = v_row.seq;
            when 'delayed' then
                delete from rowq.delayed d
                where d.part_id = p_part_id
                  and d.message_id = v_row.message_id;
            when 'blocked' then
                delete from rowq.blocked b
                where b.part_id = p_part_id
                  and b.message_id = v_row.message_id;
            else
                delete from rowq.grouped g
                where g.part_id = p_part_id
                  and g.group_key = v_row.group_key
                  and g.message_id = v_row.message_id;
        end case;
        o_message_ids := o_message_ids || v_row.message_id;
        o_lanes := o_lanes || v_found.lane;
        o_attempts := o_attempts || v_found.attempt;
        if v_found.is_tokenless then
            o_tokenless := o_tokenless || v_row.message_id;
        end if;
    end loop;
end;
$$;

-- [file internal/pop_ready.sql]
create or replace function rowq.internal_pop_ready(
    p_part_id  integer,
    p_limit    integer,
    out o_message_ids bigint[],
    out o_lanes       smallint[],
    out o_attempts    smallint[],
    out o_errors      text[],
    out o_least_id    bigint,
    out o_greatest_id bigint
)
language plpgsql
as $$
-- routine   internal_pop_ready
-- purpose   Take up to p_limit messages from the lanes, best lane first; nulls when there is none.
-- promise   P05 P06 P13
-- locks     ready rows, passing over locked ones
declare
    v_left  integer := p_limit;
    v_lane  smallint := -1;
    v_floor bigint;
    v_seqs  bigint[];
begin
    while v_left > 0 loop
        -- Find the next lane that was ever used, and its newest floor, in one step.
        select f.lane, f.seq into v_lane, v_floor
        from rowq.floor f
        where f.part_id = p_part_id
          and f.lane > v_lane
        order by f.part_id, f.lane, f.generation
        limit 1;
        exit when not found;

        select array_agg(h.seq),
               o_message_ids || array_agg(h.message_id),
               o_lanes || array_agg(v_lane),
               o_attempts || array_agg((h.attempt + 1)::smallint),
               o_errors || array_agg(h.last_error),
               least(o_least_id, min(h.message_id)),
               greatest(o_greatest_id, max(h.message_id))
        into v_seqs, o_message_ids, o_lanes, o_attempts, o_errors, o_least_id, o_greatest_id
        from (
            select r.seq, r.message_id, r.attempt, r.last_error
            from rowq.ready r
            where r.part_id = p_part_id
              and r.lane = v_lane
              and r.seq >= v_floor
            order by r.part_id, r.lane, r.seq
            limit v_left
            for update skip locked
        ) h;
        continue when v_seqs is null;
        v_left := v_left - cardinality(v_seqs);

        -- The bounds keep the delete to its own range of the key. A plan that was made while the
        -- table was small would make "= any" alone a filter over the whole lane with its dead rows,
        -- and the session would keep that plan.
        delete from rowq.ready r
        where r.part_id = p_part_id
          and r.lane = v_lane
          and r.seq between v_seqs[1] and v_seqs[cardinality(v_seqs)]
          and r.seq = any (v_seqs);

        -- Moving the floor costs a row in the ledger, so only one dequeue in twelve does it, and
        -- each one that finds the floor more than a thousand numbers away.
        if v_seqs[1] > v_floor and (random() < 0.08 or v_seqs[1] - v_floor > 1000) then
            perform rowq.internal_move_floor(
                p_part_id, v_lane, true, p_cap => v_seqs[cardinality(v_seqs)] + 1
            );
        end if;
    end loop;
end;
$$;

-- [file internal/pop_waiting.sql]
create or replace function rowq.internal_pop_waiting(
    p_part_id     integer,
    p_message_ids bigint[],
    out o_message_ids bigint[],
    out o_lanes       smallint[],
    out o_attempts    smallint[],
    out o_tokenless   bigint[]
)
language plpgsql
as $$
-- routine   internal_pop_waiting
-- purpose   Take messages out of wherever they wait; those that a worker holds stay. o_tokenless are those without a token of a group.
-- promise   P03
-- locks     delayed, dead, blocked, grouped and ready rows, passing over locked ones
declare
    v_rest  bigint[];
    v_found record;
begin
    with locked as (
        select d.message_id
        from rowq.delayed d
        where d.part_id = p_part_id
          and d.message_id = any (p_message_ids)
        for update skip locked
    ),
    gone as (
        delete from rowq.delayed d
        where d.part_id = p_part_id
          and d.message_id = any (array(select l.message_id from locked l))
        returning d.message_id, d.lane, d.attempt, d.group_key is not null as is_tokenless
    )
    select coalesce(array_agg(g.message_id), '{}'), coalesce(array_agg(g.lane), '{}'),
           coalesce(array_agg(g.attempt), '{}'),
           array_agg(g.message_id) filter (where g.is_tokenless)
    into o_message_ids, o_lanes, o_attempts, o_tokenless
    from gone g;

    with locked as (
        select d.message_id
        from rowq.dead d
        where d.part_id = p_part_id
          and d.message_id = any (p_message_ids)
        for update skip locked
    ),
    gone as (
        delete from rowq.dead d
        where d.part_id = p_part_id
          and d.message_id = any (array(select l.message_id from locked l))
        returning d.message_id, d.lane, d.attempt, d.holds_group is null as is_tokenless
    )
    select o_message_ids || array_agg(g.message_id), o_lanes || array_agg(g.lane),
           o_attempts || array_agg(g.attempt),
           o_tokenless || array_agg(g.message_id) filter (where g.is_tokenless)
    into o_message_ids, o_lanes, o_attempts, o_tokenless
    from gone g;

    -- A message that was never given back is in the tail lane of its priority, where its seq is its
    -- message_id.
    for v_found in
        select r.lane, r.seq, r.message_id, r.attempt
        from rowq.ready r
        where r.part_id = p_part_id
          and r.lane = any ('{1,3,5,7,9,11,13,15,17,19}'::smallint[])
          and r.seq = any (p_message_ids)
          and r.message_id = r.seq
        for update skip locked
    loop
        delete from rowq.ready r
        where r.part_id = p_part_id
          and r.lane = v_found.lane
          and r.seq = v_found.seq;
        o_message_ids := o_message_ids || v_found.message_id;
        o_lanes := o_lanes || v_found.lane;
        o_attempts := o_attempts || v_found.attempt;
    end loop;

    for v_found in
        select b.message_id, b.lane
        from rowq.blocked b
        where b.part_id = p_part_id
          and b.message_id = any (p_message_ids)
        for update skip locked
    loop
        delete from rowq.blocked b
        where b.part_id = p_part_id
          and b.message_id = v_found.message_id;
        o_message_ids := o_message_ids || v_found.message_id;
        o_lanes := o_lanes || v_found.lane;
        o_attempts := o_attempts || 0::smallint;
        o_tokenless := o_tokenless || v_found.message_id;
    end loop;

    select array_agg(m.message_id) into v_rest
    from rowq.message m
    where m.part_id = p_part_id
      and m.message_id = any (p_message_ids)
      and m.message_id <> all (o_message_ids);
    if v_rest is null then
        return;
    end if;

    -- A message goes from its group to the ready ones, so look for it there first.
    for v_found in
        select x.group_key, x.message_id, x.lane
        from rowq.message m
        cross join lateral (
            select w.group_key, w.message_id, w.lane
            from rowq.grouped w
            where w.part_id = p_part_id
              and w.group_key = m.group_key
              and w.message_id = m.message_id
            for update skip locked
        ) x
        where m.part_id = p_part_id
          and m.message_id = any (v_rest)
          and m.group_key is not null
    loop
        delete from rowq.grouped x
        where x.part_id = p_part_id
          and x.group_key = v_found.group_key
          and x.message_id = v_found.message_id;
        o_message_ids := o_message_ids || v_found.message_id;
        o_lanes := o_lanes || v_found.lane;
        o_attempts := o_attempts || 0::smallint;
        o_tokenless := o_tokenless || v_found.message_id;
        v_rest := array_remove(v_rest, v_found.message_id);
    end loop;
    if v_rest = '{}' then
        return;
    end if;

    for v_found in
        select r.lane, r.seq, r.message_id, r.attempt
        from rowq.ready r
        where r.part_id = p_part_id
          and r.message_id = any (v_rest)
        for update skip locked
    loop
        delete from rowq.ready r
        where r.part_id = p_part_id
          and r.lane = v_found.lane
          and r.seq = v_found.seq;
        o_message_ids := o_message_ids || v_found.message_id;
        o_lanes := o_lanes || v_found.lane;
        o_attempts := o_attempts || v_found.attempt;
    end loop;
end;
$$;

-- [file internal/promote.sql]
create or replace function rowq.internal_promote(p_part_id integer, p_limit integer)
returns integer
language plpgsql
as $$
-- routine   internal_promote
-- purpose   Move up to p_limit due messages to the tails of their lanes, or into their groups, earliest first.
-- promise   P11 P21
-- locks     delayed rows, passing over locked ones; as internal_try_enter_group
declare
    -- The moment is a constant, because a scan that compares with clock_timestamp() itself would
    -- not stop at the last row that is due.
    v_now         constant timestamp with time zone := clock_timestamp();
    v_from        constant timestamp with time zone := rowq.internal_from_microseconds(
        rowq.internal_read_floor(p_part_id, -2::smallint)
    );
    v_row         record;
    v_message_ids bigint[];
    v_lanes       smallint[];
    v_attempts    smallint[];
    v_errors      text[];
    v_last_due_at timestamp with time zone;
    v_later       timestamp with time zone;
    v_promoted    integer := 0;
    v_has_token   boolean;
    v_is_late     boolean := false;
begin
    for v_row in
        select d.message_id, d.lane, d.attempt, d.last_error, d.due_at, d.group_key
        from rowq.delayed d
        where d.part_id = p_part_id
          and d.due_at >= v_from
          and d.due_at <= v_now
        order by d.part_id, d.due_at, d.message_id
        limit p_limit
        for update skip locked
    loop
        v_last_due_at := v_row.due_at;
        if v_row.group_key is not null then
            -- Wait for a producer once a call, and no longer than a moment.
            v_has_token := case
                when not v_is_late
                    then rowq.internal_try_enter_group(p_part_id, v_row.group_key)
            end;
            if v_has_token is null then
                v_is_late := true;
                v_later := clock_timestamp() + interval '0.5 seconds';
                update rowq.delayed d
                set due_at = v_later
                where d.part_id = p_part_id
                  and d.message_id = v_row.message_id;
                continue;
            end if;
        end if;

        -- Delete the rows one by one, because their ids may lie far apart, and the planner may make
        -- "= any" a filter over all rows.
        delete from rowq.delayed d
        where d.part_id = p_part_id
          and d.message_id = v_row.message_id;
        v_promoted := v_promoted + 1;
        if v_row.group_key is not null and not v_has_token then
            insert into rowq.grouped (part_id, lane, message_id, group_key, last_error)
            values (
                p_part_id, v_row.lane, v_row.message_id, v_row.group_key, v_row.last_error
            );
            continue;
        end if;
        v_message_ids := v_message_ids || v_row.message_id;
        v_lanes := v_lanes || v_row.lane;
        v_attempts := v_attempts || v_row.attempt;
        v_errors := v_errors || v_row.last_error;
    end loop;
    if v_message_ids is not null then
        perform rowq.internal_push_ready(p_part_id, v_lanes, v_message_ids, v_attempts, v_errors);
    end if;
    if v_promoted > 0 and random() < 0.08 * v_promoted then
        perform rowq.internal_move_floor(
            p_part_id, -2::smallint, true,
            p_cap => (extract(epoch from v_last_due_at) * 1000000)::bigint + 1
        );
    end if;
    return v_promoted;
end;
$$;

-- [file internal/purge_archive.sql]
create or replace function rowq.internal_purge_archive(
    p_part_id      integer,
    p_archive_days integer,
    p_limit        integer,
    p_whole_days   boolean,
    out o_purged             integer,
    out o_partitions_dropped integer
)
language plpgsql
set lock_timeout = '1s'
as $$
-- routine   internal_purge_archive
-- purpose   Delete a queue's archived messages that are too old; drop partitions too old for every queue.
-- promise   P19
-- locks     archive rows, waited for a second; for a drop the archive, tried, kept to the end
declare
    v_cutoff    timestamp with time zone;
    v_before    timestamp with time zone;
    v_keep_from timestamp with time zone;
    v_partition record;
    v_rows      integer;
begin
    o_purged := 0;
    o_partitions_dropped := 0;
    v_cutoff := clock_timestamp() - make_interval(days => p_archive_days);
    v_before := v_cutoff + case when p_whole_days then interval '0' else interval '1 day' end;
    for v_partition in
        select c.relname::text as partition_name,
               to_date(right(c.relname::text, 8), 'YYYYMMDD')::timestamp at time zone 'UTC'
                   as from_day
        from pg_catalog.pg_inherits i
        join pg_catalog.pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'rowq.archive'::regclass
          -- A partition that the DBA has made, of a year perhaps, is left to the DBA.
          and c.relname ~ '^archive_[0-9]{8}$'
          and c.relname < 'archive_' || to_char(v_before at time zone 'UTC', 'YYYYMMDD')
        order by c.relname
    loop
        if v_keep_from is null then
            select clock_timestamp() - make_interval(days => max(q.archive_days)) into v_keep_from
            from rowq.queue q;
        end if;
        begin
            if v_partition.from_day + interval '1 day' <= v_keep_from then
                -- Do not wait for a session that reads the archive: the next call tries again.
                lock table rowq.archive in access exclusive mode nowait;
                execute format('drop table rowq.%I', v_partition.partition_name);
                o_partitions_dropped := o_partitions_dropped + 1;
                continue;
            end if;

            execute format(
                'delete from rowq.%I where part_id = $1 and (finished_at, message_id) in ('
                'select finished_at, message_id from rowq.%1$I '
                'where part_id = $1 and finished_at < $2 order by part_id, finished_at, message_id '
                'limit $3)',
                v_partition.partition_name
            )
            using p_part_id, v_cutoff, p_limit - o_purged;
            get diagnostics v_rows = row_count;
            o_purged := o_purged + v_rows;
            exit when o_purged >= p_limit;
        exception
            when lock_not_available then
                exit;
        end;
    end loop;
end;
$$;

-- [file internal/purge_history.sql]
create or replace function rowq.internal_purge_history(
    p_part_id  integer,
    p_days     integer,
    p_limit    integer,
    p_until    timestamp with time zone default null,
    p_frontier bigint default null,
    p_writers  xid8 default null
)
returns integer
language plpgsql
set lock_timeout = '1s'
as $$
-- routine   internal_purge_history
-- purpose   Delete up to p_limit attempts that ended more than p_days ago, and until p_until up to ten times as many; return how many.
-- promise   P13 P37
-- locks     history rows, passing over locked ones; the table, waited for a second
declare
    v_before constant timestamp with time zone :=
        clock_timestamp() - make_interval(days => p_days);
    v_from   timestamp with time zone;
    v_row    record;
    v_purged integer := 0;
begin
    v_from := rowq.internal_from_microseconds(
        rowq.internal_read_floor(p_part_id, -8::smallint)
    );
    -- Delete the rows one by one, because the planner may make "= any" a filter over all rows.
    for v_row in
        select h.ended_at, h.message_id, h.claim_id
        from rowq.history h
        where h.part_id = p_part_id
          and h.ended_at >= v_from
          and h.ended_at < v_before
        order by h.part_id, h.ended_at, h.message_id, h.claim_id
        limit p_limit * case when p_until is null then 1 else 10 end
        for update skip locked
    loop
        delete from rowq.history h
        where h.part_id = p_part_id
          and h.ended_at = v_row.ended_at
          and h.message_id = v_row.message_id
          and h.claim_id = v_row.claim_id;
        v_purged := v_purged + 1;
        exit when v_purged >= p_limit and clock_timestamp() > p_until;
    end loop;

    if v_purged = 0 then
        -- A queue that has purged no attempt yet needs no floor.
        perform 1
        from rowq.floor f
        where f.part_id = p_part_id
          and f.lane = -8
        limit 1;
        if not found then
            return 0;
        end if;
    end if;
    perform rowq.internal_move_floor(
        p_part_id, -8::smallint, v_purged > 0, true, p_frontier, p_writers
    );
    return v_purged;
end;
$$;

-- [file internal/purge_results.sql]
create or replace function rowq.internal_purge_results(
    p_part_id  integer,
    p_seconds  double precision,
    p_limit    integer,
    p_until    timestamp with time zone,
    p_frontier bigint,
    p_writers  xid8
)
returns integer
language plpgsql
set lock_timeout = '1s'
as $$
-- routine   internal_purge_results
-- purpose   Delete up to p_limit results of messages that ended more than p_seconds ago, and until p_until up to ten times as many; return how many.
-- promise   P13 P32
-- locks     result rows, passing over locked ones; the table, waited for a second
declare
    v_before constant timestamp with time zone :=
        clock_timestamp() - make_interval(secs => p_seconds);
    v_from   timestamp with time zone;
    v_row    record;
    v_purged integer := 0;
begin
    v_from := rowq.internal_from_microseconds(
        rowq.internal_read_floor(p_part_id, -5::smallint)
    );
    -- Delete the rows one by one, because the planner may make "= any" a filter over all rows.
    for v_row in
        select r.message_id
        from rowq.result r
        where r.part_id = p_part_id
          and r.finished_at >= v_from
          and r.finished_at < v_before
        order by r.part_id, r.finished_at
        limit 10 * p_limit
        for update skip locked
    loop
        delete from rowq.result r
        where r.part_id = p_part_id
          and r.message_id = v_row.message_id;
        v_purged := v_purged + 1;
        exit when v_purged >= p_limit and clock_timestamp() > p_until;
    end loop;

    if v_purged = 0 then
        -- A queue that has purged no result yet needs no floor.
        perform 1
        from rowq.floor f
        where f.part_id = p_part_id
          and f.lane = -5
        limit 1;
        if not found then
            return 0;
        end if;
    end if;
    perform rowq.internal_move_floor(
        p_part_id, -5::smallint, v_purged > 0, true, p_frontier, p_writers
    );
    return v_purged;
end;
$$;

-- [file internal/purge_started.sql]
create or replace function rowq.internal_purge_started(
    p_part_id  integer,
    p_seconds  double precision,
    p_limit    integer,
    p_frontier bigint,
    p_writers  xid8
)
returns void
language plpgsql
as $$
-- routine   internal_purge_started
-- purpose   Delete up to p_limit notes of deliveries that began more than p_seconds ago.
-- promise   P13 P29
-- locks     started rows
declare
    v_before constant timestamp with time zone :=
        clock_timestamp() - make_interval(secs => p_seconds);
    v_from   timestamp with time zone;
    v_last   timestamp with time zone;
begin
    v_from := rowq.internal_from_microseconds(
        rowq.internal_read_floor(p_part_id, -6::smallint)
    );
    select max(h.started_at) into v_last
    from (
        select s.started_at
        from rowq.started s
        where s.part_id = p_part_id
          and s.started_at >= v_from
          and s.started_at < v_before
        order by s.part_id, s.started_at, s.claim_id
        limit p_limit
    ) h;

    if v_last is not null then
        delete from rowq.started s
        where s.part_id = p_part_id
          and s.started_at between v_from and v_last;
    else
        -- A queue that never had a rate_limit needs no floor.
        perform 1
        from rowq.floor f
        where f.part_id = p_part_id
          and f.lane = -6
        limit 1;
        if not found then
            return;
        end if;
    end if;
    perform rowq.internal_move_floor(
        p_part_id, -6::smallint, false, true, p_frontier, p_writers
    );
end;
$$;

-- [file internal/push_dead.sql]
create or replace function rowq.internal_push_dead(
    p_part_id     integer,
    p_lanes       smallint[],
    p_message_ids bigint[],
    p_attempts    smallint[],
    p_errors      text[],
    p_have_tokens boolean default true
)
returns void
language plpgsql
as $$
-- routine   internal_push_dead
-- purpose   Keep messages as dead with their last errors, after no attempt where p_attempts is null; free their dedup keys, and their groups unless they are to wait; then what waits for them does as it asked.
-- promise   P10 P12 P21 P27 P32
-- locks     new dead and result rows; as internal_cut_ties and internal_follow_deaths
declare
    c_most  constant integer := 1000;
    v_ties  text[];
    v_holds boolean;
    v_next  record;
    v_count integer := 0;
begin
    loop
        v_ties := rowq.internal_read_ties(p_part_id, p_message_ids);
        v_holds := false;
        if v_ties is not null and p_have_tokens then
            select q.group_after_dead = 'hold' into v_holds
            from rowq.queue q
            where q.part_id = p_part_id;
        end if;

        insert into rowq.dead (part_id, lane, attempt, message_id, died_at, last_error, holds_group)
        select p_part_id, u.lane, coalesce(u.attempt, 0), u.message_id, clock_timestamp(),
               left(u.last_error, 2000),
               case
                   when v_holds then (
                       select true
                       from rowq.message m
                       where m.part_id = p_part_id
                         and m.message_id = u.message_id
                         and m.group_key is not null
                   )
               end
        from unnest(p_lanes, p_message_ids, p_attempts, p_errors)
            u (lane, message_id, attempt, last_error);

        if v_ties is not null then
            perform rowq.internal_cut_ties(
                p_part_id, v_ties, p_message_ids, p_have_tokens and not v_holds, false
            );
        end if;
        perform rowq.internal_push_result(p_part_id, p_message_ids, 'dead', p_errors);

        -- A long tree dies in steps, so that no transaction grows without end.
        v_count := v_count + cardinality(p_message_ids);
        if not p_have_tokens and v_count > c_most then
            perform rowq.internal_recheck_later(p_part_id, null, p_message_ids, true);
            return;
        end if;
        v_next := rowq.internal_follow_deaths(p_part_id, p_message_ids);
        exit when v_next.o_failed_ids is null;
        p_message_ids := v_next.o_failed_ids;
        p_lanes := v_next.o_failed_lanes;
        p_attempts := null;
        p_errors := v_next.o_failed_errors;
        p_have_tokens := false;
    end loop;
end;
$$;

-- [file internal/push_delayed.sql]
create or replace function rowq.internal_push_delayed(
    p_part_id     integer,
    p_lanes       smallint[],
    p_message_ids bigint[],
    p_attempts    smallint[],
    p_due_ats     timestamp with time zone[],
    p_now         timestamp with time zone,
    p_error       text
)
returns void
language plpgsql
as $$
-- routine   internal_push_delayed
-- purpose   Let messages wait for their time; those that are due by p_now are ready at once.
-- promise   P10 P11 P36
-- locks     new delayed, ready and expiry rows
declare
    v_ready record;
begin
    insert into rowq.delayed (part_id, lane, attempt, message_id, due_at, last_error)
    select p_part_id, u.lane, u.attempt, u.message_id, u.due_at, p_error
    from unnest(p_lanes, p_message_ids, p_attempts, p_due_ats) u (lane, message_id, attempt, due_at)
    where u.due_at > p_now;

    perform rowq.internal_note_expiry(p_part_id, p_message_ids);

    select array_agg(u.lane) lanes, array_agg(u.message_id) ids, array_agg(u.attempt) attempts
    into v_ready
    from unnest(p_lanes, p_message_ids, p_attempts, p_due_ats) u (lane, message_id, attempt, due_at)
    where u.due_at <= p_now;

    if v_ready.ids is not null then
        perform rowq.internal_push_ready(
            p_part_id, v_ready.lanes, v_ready.ids, v_ready.attempts,
            array_fill(p_error, array[cardinality(v_ready.ids)])
        );
    end if;
end;
$$;

-- [file internal/push_history.sql]
create or replace function rowq.internal_push_history(
    p_part_id     integer,
    p_claim_id    bigint,
    p_worker_name text,
    p_leased_at   timestamp with time zone,
    p_message_ids bigint[],
    p_attempts    smallint[],
    p_outcome     text,
    p_error       text default null,
    p_dead_ids    bigint[] default null
)
returns void
language plpgsql
as $$
-- routine   internal_push_history
-- purpose   Keep how attempts have ended, all in one way, but that the messages in p_dead_ids are dead.
-- promise   P37
-- locks     new history rows
declare
    c_ended_at constant timestamp with time zone := clock_timestamp();
begin
    insert into rowq.history (
        part_id, attempt, message_id, claim_id, leased_at, ended_at, outcome, worker_name, error
    )
    select p_part_id, u.attempt, u.message_id, p_claim_id, p_leased_at, c_ended_at,
           case when u.message_id = any (p_dead_ids) then 'dead' else p_outcome end,
           p_worker_name, left(p_error, 2000)
    from unnest(p_message_ids, p_attempts) u (message_id, attempt);
end;
$$;

-- [file internal/push_ready.sql]
create or replace function rowq.internal_push_ready(
    p_part_id     integer,
    p_lanes       smallint[],
    p_message_ids bigint[],
    p_attempts    smallint[],
    p_errors      text[]
)
returns void
language plpgsql
as $$
-- routine   internal_push_ready
-- purpose   Append messages to lanes, in the order of the arrays, under new numbers.
-- promise   P02 P14 P36
-- locks     new ready and expiry rows
-- differs   notifies the sessions that listen
begin
    -- Get the transaction id before the numbers: internal_move_floor relies on this order.
    perform pg_current_xact_id();
    perform rowq.internal_open_lanes(p_part_id, p_lanes);

    -- internal_expire looks for a message where this says. Only a queue that has had messages that
    -- expire has that lane, and without it the messages are not looked up.
    with pushed as (
        insert into rowq.ready as r (part_id, lane, message_id, attempt, last_error)
        select p_part_id, u.lane, u.message_id, u.attempt, u.last_error
        from unnest(p_lanes, p_message_ids, p_attempts, p_errors)
            with ordinality u (lane, message_id, attempt, last_error, place)
        order by u.place
        returning r.lane, r.seq, r.message_id
    )
    insert into rowq.expiry (part_id, lane, expires_at, message_id, seq)
    select p_part_id, p.lane, greatest(m.expires_at, clock_timestamp()), p.message_id, p.seq
    from pushed p
    cross join lateral (
        select x.expires_at
        from rowq.message x
        where x.part_id = p_part_id
          and x.message_id = p.message_id
        offset 0
    ) m
    where m.expires_at is not null
      and exists (
          select
          from rowq.floor f
          where f.part_id = p_part_id
            and f.lane = -7
      );

    perform rowq.internal_notify(p_part_id);
end;
$$;

-- [file internal/push_result.sql]
create or replace function rowq.internal_push_result(
    p_part_id     integer,
    p_message_ids bigint[],
    p_state       text,
    p_errors      text[] default null,
    p_results     jsonb default null,
    p_asked_ids   bigint[] default null
)
returns void
language plpgsql
as $$
-- routine   internal_push_result
-- purpose   Keep how messages have ended, where the queue has result_seconds; p_results go along p_asked_ids, among which they are.
-- promise   P32
-- locks     result rows
declare
    v_is_kept boolean;
begin
    -- complete, which knows the setting, asks only where results are kept.
    if p_state <> 'completed' then
        select q.result_seconds > 0 into v_is_kept
        from rowq.queue q
        where q.part_id = p_part_id;
        if v_is_kept is not true then
            return;
        end if;
    end if;

    -- A dead message that is cancelled or purged has its row already.
    insert into rowq.result (part_id, message_id, finished_at, state, result, last_error)
    select p_part_id, u.message_id, clock_timestamp(), p_state,
           nullif(p_results -> (array_position(p_asked_ids, u.message_id) - 1), 'null'),
           left(u.last_error, 2000)
    from unnest(p_message_ids, p_errors) u (message_id, last_error)
    on conflict (part_id, message_id) do update
    set finished_at = excluded.finished_at,
        state       = excluded.state,
        result      = excluded.result,
        last_error  = coalesce(excluded.last_error, result.last_error);
end;
$$;

-- [file internal/read_floor.sql]
create or replace function rowq.internal_read_floor(p_part_id integer, p_lane smallint)
returns bigint
language plpgsql
stable
as $$
-- routine   internal_read_floor
-- purpose   Return where a reader of a lane begins.
-- promise   P13
-- differs   only engines whose readers walk dead rows need it
declare
    v_seq bigint;
begin
    select f.seq into v_seq
    from rowq.floor f
    where f.part_id = p_part_id
      and f.lane = p_lane
    order by f.part_id, f.lane, f.generation
    limit 1;
    return coalesce(v_seq, 0);
end;
$$;

-- [file internal/read_safe_floor.sql]
create or replace function rowq.internal_read_safe_floor(p_part_id integer, p_lane smallint)
returns bigint
language plpgsql
stable
as $$
-- routine   internal_read_safe_floor
-- purpose   Return where a reader of a lane begins that must not overlook late rows. A statement that comes later may begin there, too: nothing appears below it any more.
-- promise   P13 P14
-- differs   only engines whose readers walk dead rows need it
declare
    v_safe bigint;
begin
    select f.safe into v_safe
    from rowq.floor f
    where f.part_id = p_part_id
      and f.lane = p_lane
    order by f.part_id, f.lane, f.generation
    limit 1;
    return coalesce(v_safe, 0);
end;
$$;

-- [file internal/read_ties.sql]
create or replace function rowq.internal_read_ties(p_part_id integer, p_message_ids bigint[])
returns text[]
language plpgsql
as $$
-- routine   internal_read_ties
-- purpose   Return the ties of messages as internal_cut_ties takes them; null where none has any.
declare
    v_ties text[];
begin
    select array_agg(
               array[
                   m.dedup_key, m.group_key,
                   case when m.has_successors then u.message_id::text end
               ]
               order by m.dedup_key
           )
    into v_ties
    from unnest(p_message_ids) u (message_id)
    cross join lateral (
        -- "offset 0" keeps this a lookup by key for each message, whatever the planner thinks of
        -- the sizes.
        select x.dedup_key, x.group_key, x.has_successors
        from rowq.message x
        where x.part_id = p_part_id
          and x.message_id = u.message_id
        offset 0
    ) m
    where m.dedup_key is not null
       or m.group_key is not null
       or m.has_successors;
    return v_ties;
end;
$$;

-- [file internal/reap.sql]
create or replace function rowq.internal_reap(
    p_part_id      integer,
    p_max_attempts integer,
    p_history_days integer,
    p_limit        integer,
    out o_reaped   integer,
    out o_died     integer
)
language plpgsql
as $$
-- routine   internal_reap
-- purpose   Take messages back from expired claims to the front of their lanes, until p_limit is passed.
-- promise   P03 P09 P34 P37
-- locks     expired claim rows, passing over locked ones; rows of cancelled messages, tried only;
--           for these as internal_finish; new history rows
declare
    v_from       constant bigint := rowq.internal_read_floor(p_part_id, -1::smallint);
    -- A cursor locks no claim before it comes to it; a loop over a query would lock some ahead.
    v_expired cursor for
        select c.claim_id, c.message_ids, c.lanes, c.attempts, c.worker_name, c.leased_at,
               c.cancel_ids
        from rowq.claim c
        where c.part_id = p_part_id
          and c.claim_id >= v_from
          and c.lease_until <= clock_timestamp()
        order by c.part_id, c.claim_id
        for update skip locked;
    v_claim      record;
    v_rest       record;
    v_ended      integer := 0;
    v_lanes      smallint[];
    v_ids        bigint[];
    v_attempts   smallint[];
    v_dead_lanes smallint[];
    v_dead_ids   bigint[];
    v_dead_tries smallint[];
    v_error      text;
begin
    o_reaped := 0;
    o_died := 0;
    -- Pass over a claim whose heartbeat or finish came first: its lease is longer by then, or its
    -- row is locked or gone.
    open v_expired;
    while o_reaped + o_died + v_ended < p_limit loop
        fetch v_expired into v_claim;
        exit when not found;

        if v_claim.cancel_ids is not null then
            -- Leave the claim alone while a producer is adding a message that waits for one of
            -- these, because the end of a message would wait for that transaction.
            perform
            from unnest(v_claim.cancel_ids) u (message_id)
            left join lateral (
                select x.message_id
                from rowq.message x
                where x.part_id = p_part_id
                  and x.message_id = u.message_id
                for update skip locked
            ) m on true
            where m.message_id is null;
            continue when found;
            v_rest := rowq.internal_end_cancelled(
                p_part_id, v_claim.message_ids, v_claim.lanes, v_claim.attempts, null,
                v_claim.cancel_ids, v_claim.claim_id, v_claim.worker_name, v_claim.leased_at
            );
            v_claim.message_ids := v_rest.o_message_ids;
            v_claim.lanes := v_rest.o_lanes;
            v_claim.attempts := v_rest.o_attempts;
            v_ended := v_ended + cardinality(v_rest.o_cancel_ids);
        end if;
        select array_agg((u.lane / 2 * 2)::smallint) filter (where u.attempt < u.allowed),
               array_agg(u.message_id) filter (where u.attempt < u.allowed),
               array_agg(u.attempt) filter (where u.attempt < u.allowed),
               array_agg(u.lane) filter (where u.attempt >= u.allowed),
               array_agg(u.message_id) filter (where u.attempt >= u.allowed),
               array_agg(u.attempt) filter (where u.attempt >= u.allowed)
        into v_lanes, v_ids, v_attempts, v_dead_lanes, v_dead_ids, v_dead_tries
        from rowq.internal_with_max_attempts(
            p_part_id, v_claim.message_ids, v_claim.lanes, v_claim.attempts, p_max_attempts
        ) u;

        delete from rowq.claim c
        where c.part_id = p_part_id
          and c.claim_id = v_claim.claim_id;

        v_error := 'lease expired' || coalesce(': ' || v_claim.worker_name, '');
        if p_history_days > 0 then
            perform rowq.internal_push_history(
                p_part_id, v_claim.claim_id, v_claim.worker_name, v_claim.leased_at,
                v_claim.message_ids, v_claim.attempts, 'lease_expired', v_error
            );
        end if;
        if v_ids is not null then
            perform rowq.internal_push_ready(
                p_part_id, v_lanes, v_ids, v_attempts,
                array_fill(v_error, array[cardinality(v_ids)])
            );
            o_reaped := o_reaped + cardinality(v_ids);
        end if;
        if v_dead_ids is not null then
            perform rowq.internal_push_dead(
                p_part_id, v_dead_lanes, v_dead_ids, v_dead_tries,
                array_fill(v_error, array[cardinality(v_dead_ids)])
            );
            o_died := o_died + cardinality(v_dead_ids);
        end if;
    end loop;
    close v_expired;
end;
$$;

-- [file internal/recheck.sql]
create or replace function rowq.internal_recheck(
    p_part_id     integer,
    p_limit       integer,
    p_may_reorder boolean default false
)
returns integer
language plpgsql
as $$
-- routine   internal_recheck
-- purpose   Look again at up to p_limit tokens and messages that were left; return for how many that was enough. p_may_reorder: what stays may be put behind what was not looked at.
-- promise   P22 P24 P26 P27
-- locks     recheck rows, passing over locked ones; as internal_pass_groups, internal_widen_group,
--           internal_let_go, internal_free_successors and internal_recheck_death
declare
    -- The moment is a constant, so that the scan stops at the last row that is due.
    v_now         constant timestamp with time zone := clock_timestamp();
    v_floor       bigint;
    v_note        record;
    v_due_ats     timestamp with time zone[];
    v_recheck_ids bigint[];
    v_message_ids bigint[];
    v_seen_ats    timestamp with time zone[];
    v_seen_ids    bigint[];
    v_again       bigint[];
    v_count       integer;
    v_solved      integer := 0;
begin
    -- Only a queue that has left a token has this lane.
    select f.seq into v_floor
    from rowq.floor f
    where f.part_id = p_part_id
      and f.lane = -4
    order by f.part_id, f.lane, f.generation
    limit 1;
    if not found then
        return 0;
    end if;

    for v_note in
        select r.due_at, r.recheck_id, r.is_hint, r.message_id, r.predecessor_id, r.group_key
        from rowq.recheck r
        where r.part_id = p_part_id
          and r.due_at >= rowq.internal_from_microseconds(v_floor)
          and r.due_at <= v_now
        order by r.part_id, r.due_at, r.recheck_id
        limit p_limit
        for update skip locked
    loop
        v_seen_ats := v_seen_ats || v_note.due_at;
        v_seen_ids := v_seen_ids || v_note.recheck_id;
        -- A row that cannot be solved stays as it is: a producer that is idle in its transaction
        -- must not make every look write.
        if v_note.group_key is null then
            -- An old snapshot does not show what has happened since.
            continue when current_setting('transaction_isolation')
                not in ('read committed', 'read uncommitted');
            if v_note.message_id is not null then
                v_due_ats := v_due_ats || v_note.due_at;
                v_recheck_ids := v_recheck_ids || v_note.recheck_id;
                v_message_ids := v_message_ids || v_note.message_id;
                continue;
            elsif v_note.is_hint then
                continue when not rowq.internal_recheck_death(p_part_id, v_note.predecessor_id);
            else
                perform rowq.internal_free_successors(p_part_id, array[v_note.predecessor_id]);
            end if;
        elsif v_note.is_hint then
            continue when not rowq.internal_widen_group(p_part_id, v_note.group_key);
        else
            continue when rowq.internal_pass_groups(
                p_part_id, array[v_note.group_key], true
            ) is not null;
        end if;
        delete from rowq.recheck r
        where r.part_id = p_part_id
          and r.due_at = v_note.due_at
          and r.recheck_id = v_note.recheck_id;
        v_solved := v_solved + 1;
    end loop;

    -- One call for all of the messages waits once for a producer that opens their group.
    if v_message_ids is not null then
        v_again := rowq.internal_let_go(
            p_part_id,
            array(select distinct u.message_id from unnest(v_message_ids) u (message_id) order by 1)
        );
        delete from rowq.recheck r
        using unnest(v_due_ats, v_recheck_ids, v_message_ids) u (due_at, recheck_id, message_id)
        where r.part_id = p_part_id
          and r.due_at = u.due_at
          and r.recheck_id = u.recheck_id
          and u.message_id <> all (coalesce(v_again, '{}'));
        get diagnostics v_count = row_count;
        v_solved := v_solved + v_count;
    end if;

    -- But where there are so many of these that others were not looked at, put them behind those.
    if p_may_reorder and cardinality(v_seen_ids) >= p_limit and v_solved < p_limit and exists (
        select
        from rowq.recheck r
        where r.part_id = p_part_id
          and (r.due_at, r.recheck_id) > (v_seen_ats[p_limit], v_seen_ids[p_limit])
          and r.due_at <= v_now
    ) then
        for v_note in
            select u.due_at, u.recheck_id
            from unnest(v_seen_ats, v_seen_ids) u (due_at, recheck_id)
        loop
            update rowq.recheck r
            set due_at = v_now
            where r.part_id = p_part_id
              and r.due_at = v_note.due_at
              and r.recheck_id = v_note.recheck_id;
        end loop;
    end if;
    return v_solved;
end;
$$;

-- [file internal/recheck_death.sql]
create or replace function rowq.internal_recheck_death(p_part_id integer, p_message_id bigint)
returns boolean
language plpgsql
as $$
-- routine   internal_recheck_death
-- purpose   Look again what waits for a dead message; false where a producer is still adding something that does.
-- promise   P27
-- locks     the message row, tried only; as internal_follow_deaths and internal_push_dead
declare
    v_next record;
begin
    perform
    from rowq.message m
    where m.part_id = p_part_id
      and m.message_id = p_message_id
    for update skip locked;
    if not found then
        return not exists (
            select
            from rowq.message m
            where m.part_id = p_part_id
              and m.message_id = p_message_id
        );
    end if;

    -- One that was reset meanwhile is waited for as before.
    if exists (
        select
        from rowq.dead d
        where d.part_id = p_part_id
          and d.message_id = p_message_id
    ) then
        v_next := rowq.internal_follow_deaths(p_part_id, array[p_message_id]);
        if v_next.o_failed_ids is not null then
            perform rowq.internal_push_dead(
                p_part_id, v_next.o_failed_lanes, v_next.o_failed_ids, null,
                v_next.o_failed_errors, false
            );
        end if;
    end if;
    return true;
end;
$$;

-- [file internal/recheck_later.sql]
create or replace function rowq.internal_recheck_later(
    p_part_id         integer,
    p_message_ids     bigint[],
    p_predecessor_ids bigint[],
    p_are_dead        boolean
)
returns void
language plpgsql
as $$
-- routine   internal_recheck_later
-- purpose   Have maintain look again at blocked messages, and at what waits for predecessors that have ended.
-- promise   P26
-- locks     new recheck rows
begin
    perform rowq.internal_open_lanes(p_part_id, '{-4}'::smallint[]);
    insert into rowq.recheck (part_id, is_hint, due_at, message_id, predecessor_id)
    select p_part_id, u.predecessor_id is not null and p_are_dead, clock_timestamp(), u.message_id,
           u.predecessor_id
    from rows from (unnest(p_message_ids), unnest(p_predecessor_ids)) u (
        message_id, predecessor_id
    );
end;
$$;

-- [file internal/refuse_bad_value.sql]
create or replace function rowq.internal_refuse_bad_value(p_message jsonb, p_position integer)
returns void
language plpgsql
as $$
-- routine   internal_refuse_bad_value
-- purpose   Refuse a message of enqueue_batch with a value that cannot be read, by key and position.
-- promise   P15
-- errors    RQ711
declare
    v_key text;
begin
    foreach v_key in array array[
        'priority', 'max_attempts', 'delay_seconds', 'run_at', 'body_base64', 'predecessor_ids',
        'predecessor_positions'
    ] loop
        begin
            case v_key
                when 'delay_seconds' then
                    perform (p_message ->> v_key)::double precision;
                when 'run_at' then
                    perform rowq.internal_parse_moment(p_message ->> v_key);
                when 'body_base64' then
                    perform decode(p_message ->> v_key, 'base64');
                when 'predecessor_ids', 'predecessor_positions' then
                    perform max(e.id::bigint)
                    from jsonb_array_elements_text(nullif(p_message -> v_key, 'null')) e (id);
                else
                    perform (p_message ->> v_key)::integer;
            end case;
        exception
            when data_exception then
                raise exception 'RQ711 invalid_argument: %: % (message %)',
                    v_key, sqlerrm, p_position
                    using errcode = 'RQ711';
        end;
    end loop;
end;
$$;

-- [file internal/refuse_filled_queue.sql]
create or replace function rowq.internal_refuse_filled_queue(
    p_part_id    integer,
    p_queue_name text,
    p_force      boolean
)
returns void
language plpgsql
as $$
-- routine   internal_refuse_filled_queue
-- purpose   Refuse to drop a queue that has messages or an archive, unless it is to be forced.
-- promise   P02
-- errors    RQ704
begin
    if not coalesce(p_force, false) and (
        exists (select 1 from rowq.message m where m.part_id = p_part_id)
        or exists (select 1 from rowq.archive a where a.part_id = p_part_id)
    ) then
        raise exception 'RQ704 queue_not_empty: % has messages or an archive; force drops them too',
            p_queue_name
            using errcode = 'RQ704';
    end if;
end;
$$;

-- [file internal/refuse_predecessors.sql]
create or replace function rowq.internal_refuse_predecessors(
    p_position        bigint,
    p_first_id        bigint,
    p_predecessor_ids bigint[],
    p_positions       integer[],
    p_on_dead         text
)
returns void
language plpgsql
as $$
-- routine   internal_refuse_predecessors
-- purpose   Refuse a message of enqueue_batch, whose first message is p_first_id, for bad predecessors.
-- promise   P15
-- errors    RQ711
declare
    v_fault text;
begin
    v_fault := coalesce(
        rowq.internal_message_fault(
            null, null, null, null, 5, null, null, null, null, null, p_predecessor_ids, p_on_dead,
            null
        ),
        case
            when p_first_id <= any (p_predecessor_ids)
                then 'predecessor_ids must name messages that are there'
            when not rowq.internal_is_id_list(p_positions)
                 or 1 > any (p_positions)
                 or p_position <= any (p_positions)
                then 'predecessor_positions must be a flat list of places before the message''s own'
        end
    );
    if v_fault is not null then
        raise exception 'RQ711 invalid_argument: % (message %)', v_fault, p_position
            using errcode = 'RQ711';
    end if;
end;
$$;

-- [file internal/refuse_queue.sql]
create or replace function rowq.internal_refuse_queue(p_queue_name text)
returns void
language plpgsql
as $$
-- routine   internal_refuse_queue
-- purpose   Raise the error for a queue name that is missing or unknown.
-- promise   P15
-- errors    RQ701 RQ711
begin
    if p_queue_name is null then
        raise exception 'RQ711 invalid_argument: queue_name is missing'
            using errcode = 'RQ711';
    end if;
    raise exception 'RQ701 queue_not_found: %', left(p_queue_name, 100)
        using errcode = 'RQ701';
end;
$$;

-- [file internal/require_autocommit.sql]
create or replace procedure rowq.internal_require_autocommit(p_routine text)
language plpgsql
as $$
-- routine   internal_require_autocommit
-- purpose   Fail before anything is done when the caller of p_routine has a transaction open.
-- promise   P17
-- commits   yes; that is what it tries out
-- errors    RQ713
-- differs   PostgreSQL gives no way to ask; where the open transaction has written nothing yet, the
--           error is its own 2D000 "invalid transaction termination", with this procedure's name
begin
    if pg_catalog.pg_current_xact_id_if_assigned() is not null then
        raise exception
            'RQ713 wrong_transaction_state: % commits; call it in autocommit', p_routine
            using errcode = 'RQ713';
    end if;
    commit;
end;
$$;

-- [file internal/require_part.sql]
create or replace function rowq.internal_require_part(p_part_id integer, p_queue_name text)
returns void
language plpgsql
as $$
-- routine   internal_require_part
-- purpose   Refuse a message for a queue that was dropped since its settings were read.
-- promise   P01
-- locks     none; under repeatable read the queue row, shared
-- errors    RQ701
begin
    -- The caller must have written to rowq.message: from then on drop_queue waits for it, so that
    -- the answer stays true.
    if current_setting('transaction_isolation') <> 'read committed' then
        -- An old snapshot still shows a queue that was dropped, but locking its row fails with
        -- 40001.
        perform 1
        from rowq.queue q
        where q.part_id = p_part_id
        for key share;
    else
        perform 1
        from rowq.queue q
        where q.part_id = p_part_id;
    end if;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;
end;
$$;

-- [file internal/require_queue.sql]
create or replace function rowq.internal_require_queue(p_queue_name text)
returns rowq.queue
language plpgsql
as $$
-- routine   internal_require_queue
-- purpose   Return the settings of a queue; raise an error if it does not exist.
-- promise   P15
-- errors    RQ701 RQ711
declare
    v_queue rowq.queue;
begin
    select q.part_id, q.queue_name, q.lease_seconds, q.max_attempts, q.backoff_base_seconds,
           q.backoff_factor, q.backoff_cap_seconds, q.backoff_jitter, q.archive_days,
           q.max_body_length, q.group_limit, q.group_after_dead, q.group_pause_seconds,
           q.has_recheck, q.max_leased, q.rate_limit, q.rate_seconds, q.result_seconds,
           q.history_days, q.paused_at, q.created_at
    into v_queue
    from rowq.queue q
    where q.queue_name = p_queue_name;

    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;
    return v_queue;
end;
$$;

-- [file internal/require_schedule.sql]
create or replace function rowq.internal_require_schedule(p_part_id integer, p_schedule_name text)
returns rowq.schedule
language plpgsql
as $$
-- routine   internal_require_schedule
-- purpose   Return a schedule and hold it to the end of the transaction; raise an error if there is none.
-- promise   P15
-- locks     the schedule row
-- errors    RQ702 RQ711
declare
    v_schedule rowq.schedule;
begin
    if p_schedule_name is null then
        raise exception 'RQ711 invalid_argument: schedule_name is missing'
            using errcode = 'RQ711';
    end if;
    select s.part_id, s.schedule_name, s.cron, s.interval_seconds, s.time_zone, s.missed,
           s.overlap, s.starts_at, s.ends_at, s.message_type, s.headers, s.priority,
           s.group_key, s.max_attempts, s.body, s.body_binary, s.is_paused, s.next_run_at,
           s.last_run_at, s.last_message_id, s.last_error
    into v_schedule
    from rowq.schedule s
    where s.part_id = p_part_id
      and s.schedule_name = p_schedule_name
    for update;
    if not found then
        raise exception 'RQ702 schedule_not_found: %', left(p_schedule_name, 100)
            using errcode = 'RQ702';
    end if;
    return v_schedule;
end;
$$;

-- [file internal/reserve_dedup_keys.sql]
create or replace function rowq.internal_reserve_dedup_keys(
    p_part_id  integer,
    p_messages rowq.message[]
)
returns bigint[]
language plpgsql
as $$
-- routine   internal_reserve_dedup_keys
-- purpose   Reserve dedup keys; return for each message its own id, or the id of the message that owns its key.
-- promise   P12
-- locks     new dedup rows, in key order; waits for other open enqueues of the same keys
declare
    v_kept_ids bigint[];
begin
    loop
        -- The block is a subtransaction: what it has taken is given back before it begins anew.
        begin
            -- Insert in key order, so that two batches with the same keys cannot wait for each
            -- other. Whoever owned a key when the statement began is its owner also where it ends
            -- meanwhile.
            with keys as materialized (
                select distinct on (m.dedup_key) m.dedup_key, m.message_id
                from unnest(p_messages) m
                where m.dedup_key is not null
                order by m.dedup_key, m.message_id
            ),
            added as (
                insert into rowq.dedup (part_id, message_id, dedup_key)
                select p_part_id, k.message_id, k.dedup_key
                from keys k
                order by k.dedup_key
                on conflict (part_id, dedup_key) do nothing
                returning message_id, dedup_key
            )
            select array_agg(
                       case when m.dedup_key is null then m.message_id
                            else coalesce(a.message_id, d.message_id)
                       end
                       order by m.place
                   )
            into v_kept_ids
            from unnest(p_messages) with ordinality m (
                part_id, max_attempts, message_id, enqueued_at, message_type, dedup_key,
                group_key, headers, body, body_binary, has_successors, expires_at,
                place
            )
            left join added a on a.dedup_key = m.dedup_key
            -- A stricter snapshot may show a former owner beside this transaction's own message.
            left join lateral (
                select max(x.message_id) as message_id
                from rowq.dedup x
                where x.part_id = p_part_id
                  and x.dedup_key = m.dedup_key
            ) d on true;
            exit when array_position(v_kept_ids, null) is null;

            -- What others have committed while this call waited for them is seen by a new look.
            select array_agg(
                       coalesce(
                           v_kept_ids[m.place], (
                               select max(x.message_id)
                               from rowq.dedup x
                               where x.part_id = p_part_id
                                 and x.dedup_key = m.dedup_key
                           )
                       )
                       order by m.place
                   )
            into v_kept_ids
            from unnest(p_messages) with ordinality m (
                part_id, max_attempts, message_id, enqueued_at, message_type, dedup_key,
                group_key, headers, body, body_binary, has_successors, expires_at,
                place
            );
            exit when array_position(v_kept_ids, null) is null;

            -- A key whose owner was finished in between is free again. To wait for it now, with
            -- later keys in hand, could end in a deadlock.
            raise sqlstate 'RQAGN';
        exception
            when sqlstate 'RQAGN' then
                v_kept_ids := null;
        end;
    end loop;
    return v_kept_ids;
end;
$$;

-- [file internal/room.sql]
create or replace function rowq.internal_room(
    p_part_id      integer,
    p_wanted       integer,
    p_max_leased   integer,
    p_rate_limit   integer,
    p_rate_seconds double precision
)
returns integer
language plpgsql
as $$
-- routine   internal_room
-- purpose   Return how many of the wanted messages a queue's limits leave room for at this moment.
-- promise   P28 P29
declare
    -- The moment is no function in the query, because a scan that compares with clock_timestamp()
    -- itself would not begin at the first row that counts.
    v_since constant timestamp with time zone :=
        clock_timestamp() - make_interval(secs => p_rate_seconds);
    v_from  bigint;
    v_room  bigint;
begin
    -- Begin at the safe floor of the claims, because one that was committed late counts, too.
    if p_max_leased > 0 then
        v_from := rowq.internal_read_safe_floor(p_part_id, -1::smallint);
    end if;
    v_room := least(
        p_wanted,
        case when p_max_leased > 0 then p_max_leased - (
            select coalesce(sum(cardinality(c.message_ids)), 0)
            from rowq.claim c
            where c.part_id = p_part_id
              and c.claim_id >= v_from
        ) end,
        case when p_rate_limit > 0 then p_rate_limit - (
            select coalesce(sum(s.messages), 0)
            from rowq.started s
            where s.part_id = p_part_id
              and s.started_at > v_since
        ) end
    );
    return greatest(v_room, 0);
end;
$$;

-- [file internal/run_due.sql]
create or replace function rowq.internal_run_due(p_schedule rowq.schedule, p_queue_name text)
returns boolean
language plpgsql
set lock_timeout = '20ms'
as $$
-- routine   internal_run_due
-- purpose   Add the messages of a schedule's due ticks, a hundred at most, and move it on; false where that is left to the next call.
-- promise   P30 P31
-- locks     as internal_send_tick, waited for 20 ms
declare
    c_now     constant timestamp with time zone := clock_timestamp();
    c_late    constant timestamp with time zone := c_now - interval '60 seconds';
    v_tick    timestamp with time zone := p_schedule.next_run_at;
    v_sent    record;
    v_last_id bigint;
    v_error   text;
    v_count   integer := 0;
begin
    while v_tick <= c_now and v_count < 100 loop
        if v_tick < c_late and p_schedule.missed = 'skip' then
            v_tick := rowq.internal_next_tick(p_schedule, c_late);
            continue;
        end if;
        v_sent := rowq.internal_send_tick(p_schedule, p_queue_name, v_tick);
        v_error := null;
        if v_sent.o_outcome = 'enqueued' then
            v_last_id := v_sent.o_message_id;
        else
            v_error := format('message %s of an earlier tick has not ended', v_sent.o_message_id);
        end if;
        v_tick := rowq.internal_next_tick(
            p_schedule,
            case when v_tick < c_late and p_schedule.missed = 'once' then c_now else v_tick end
        );
        v_count := v_count + 1;
    end loop;

    update rowq.schedule s
    set next_run_at     = v_tick,
        last_run_at     = case when v_last_id is null then s.last_run_at else c_now end,
        last_message_id = coalesce(v_last_id, s.last_message_id),
        last_error      = v_error
    where s.part_id = p_schedule.part_id
      and s.schedule_name = p_schedule.schedule_name;
    return true;
exception
    when others then
        -- What comes of locks or of the server's state is tried again by the next call, and so is
        -- a number that is used already. What would be refused again is noted, and its tick is
        -- given up.
        if sqlstate !~ '^(RQ|22|23502|23514)' then
            return false;
        end if;
        perform rowq.internal_give_up_tick(p_schedule, sqlerrm);
        return true;
end;
$$;

-- [file internal/run_schedules.sql]
create or replace function rowq.internal_run_schedules(p_part_id integer, p_queue_name text)
returns void
language plpgsql
set timezone = 'UTC'
as $$
-- routine   internal_run_schedules
-- purpose   Run the schedules of a queue that are due and that no other session is running.
-- promise   P30 P31
-- locks     due schedule rows, tried only; as internal_run_due
-- differs   a caller in repeatable read or serializable leaves them to others
declare
    v_schedule rowq.schedule;
    v_is_late  boolean := false;
begin
    -- An old snapshot may show a tick that was run already.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        return;
    end if;
    for v_schedule in
        select s.part_id, s.schedule_name, s.cron, s.interval_seconds, s.time_zone, s.missed,
               s.overlap, s.starts_at, s.ends_at, s.message_type, s.headers, s.priority,
               s.group_key, s.max_attempts, s.body, s.body_binary, s.is_paused, s.next_run_at,
               s.last_run_at, s.last_message_id, s.last_error
        from rowq.schedule s
        where s.part_id = p_part_id
          and s.next_run_at <= clock_timestamp()
        for update skip locked
    loop
        -- Wait for a producer once a call, and no longer than a moment.
        if v_schedule.overlap and v_schedule.group_key is null or not v_is_late then
            v_is_late := not rowq.internal_run_due(v_schedule, p_queue_name) or v_is_late;
        end if;
    end loop;
end;
$$;

-- [file internal/send_tick.sql]
create or replace function rowq.internal_send_tick(
    p_schedule   rowq.schedule,
    p_queue_name text,
    p_tick       timestamp with time zone,
    out o_message_id bigint,
    out o_outcome    text
)
language plpgsql
as $$
-- routine   internal_send_tick
-- purpose   Add the message of a schedule to its queue; the outcome is enqueue's.
-- promise   P30
-- locks     as enqueue
-- errors    RQ701 RQ711
begin
    select e.message_id, e.outcome into o_message_id, o_outcome
    from rowq.enqueue(
        p_queue_name   => p_queue_name,
        p_body         => p_schedule.body,
        p_body_binary  => p_schedule.body_binary,
        p_message_type => p_schedule.message_type,
        p_headers      => rowq.internal_tick_headers(p_schedule, p_tick),
        p_priority     => p_schedule.priority,
        p_dedup_key    => case
            when not p_schedule.overlap then 'schedule:' || p_schedule.schedule_name
        end,
        p_max_attempts => p_schedule.max_attempts,
        p_group_key    => p_schedule.group_key
    ) e;
end;
$$;

-- [file internal/store_plain.sql]
create or replace function rowq.internal_store_plain(
    p_part_id    integer,
    p_messages   jsonb,
    p_max_length integer,
    p_now        timestamp with time zone,
    out o_message_ids bigint[],
    out o_lanes       smallint[]
)
language plpgsql
as $$
-- routine   internal_store_plain
-- purpose   Store a batch whose messages have short bodies, good priorities and nothing else; return nulls for another one.
-- promise   P01 P05 P11
-- locks     new rows only
-- differs   only here: most batches are such, and need no common table of their messages
begin
    -- A value of a table's column may be compressed, and would be unpacked for each look into it.
    p_messages := p_messages #> '{}';

    if p_messages is null
       or jsonb_typeof(p_messages) <> 'array'
       or jsonb_array_length(p_messages) > 10000
       or exists (
        select 1
        from jsonb_array_elements(p_messages) e (message)
        where case
                  when jsonb_typeof(e.message) <> 'object' then true
                  when pg_column_size(e.message) > p_max_length then true
                  -- A body that is no JSON string may be much longer as a text: 1e9999 has ten
                  -- thousand digits.
                  when jsonb_typeof(e.message -> 'body') <> 'string'
                       and octet_length(e.message ->> 'body') > p_max_length then true
                  when e.message - '{body,priority}'::text[] <> '{}' then true
                  when jsonb_typeof(e.message -> 'priority') = 'number'
                      then (e.message ->> 'priority') not in (
                          '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'
                      )
                  else jsonb_typeof(e.message -> 'priority') <> 'null'
              end
    ) then
        return;
    end if;

    -- Arrays of numbers and lanes cost less than rows that one insert returns to another.
    select array_agg(nextval('rowq.message_seq')),
           array_agg((coalesce((e.message ->> 'priority')::integer, 5) * 2 + 1)::smallint)
    into o_message_ids, o_lanes
    from jsonb_array_elements(p_messages) e (message);

    insert into rowq.message (part_id, message_id, enqueued_at, body)
    select p_part_id, n.message_id, p_now, n.message ->> 'body'
    from rows from (jsonb_array_elements(p_messages), unnest(o_message_ids)) n (
        message, message_id
    );

    insert into rowq.ready (part_id, lane, seq, message_id)
    select p_part_id, n.lane, n.message_id, n.message_id
    from unnest(o_message_ids, o_lanes) n (message_id, lane);
end;
$$;

-- [file internal/store_unkeyed.sql]
create or replace function rowq.internal_store_unkeyed(
    p_part_id    integer,
    p_messages   jsonb,
    p_max_length integer,
    p_now        timestamp with time zone,
    out o_message_ids bigint[],
    out o_lanes       smallint[]
)
language plpgsql
as $$
-- routine   internal_store_unkeyed
-- purpose   Store the messages of a batch of which none has a dedup key.
-- promise   P01 P05 P11 P36
-- locks     new rows only
-- errors    RQ711
-- differs   elsewhere part of enqueue_batch: here one statement writes all rows
declare
    v_expires boolean;
begin
    with given as materialized (
        select nextval('rowq.message_seq') as message_id, p.*,
               (p.priority * 2 + 1)::smallint as lane,
               coalesce(p.run_at, p_now + make_interval(secs => p.delay_seconds)) as due_at,
               p_now + make_interval(secs => p.expire_seconds) as expires_at
        from rowq.internal_parse_messages(p_messages, p_max_length) p
    ),
    stored as (
        insert into rowq.message (
            part_id, max_attempts, message_id, enqueued_at, message_type, headers, body,
            body_binary, expires_at
        )
        select p_part_id, g.max_attempts, g.message_id, p_now, g.message_type, g.headers, g.body,
               g.body_binary, g.expires_at
        from given g
    ),
    put_off as (
        insert into rowq.delayed (part_id, lane, message_id, due_at)
        select p_part_id, g.lane, g.message_id, g.due_at
        from given g
        where g.due_at > p_now
    ),
    queued as (
        insert into rowq.ready (part_id, lane, seq, message_id)
        select p_part_id, g.lane, g.message_id, g.message_id
        from given g
        where g.due_at <= p_now
           or g.due_at is null
    ),
    expiring as (
        insert into rowq.expiry (part_id, lane, expires_at, message_id, seq)
        select p_part_id, g.lane, g.expires_at, g.message_id, g.message_id
        from given g
        where g.expires_at is not null
    )
    select array_agg(g.message_id order by g.place),
           array_agg(g.lane) filter (where g.due_at <= p_now or g.due_at is null),
           bool_or(g.expires_at is not null)
    into o_message_ids, o_lanes, v_expires
    from given g;
    if v_expires then
        perform rowq.internal_open_lanes(p_part_id, '{-7}'::smallint[]);
    end if;
end;
$$;

-- [file internal/take_topics.sql]
create or replace function rowq.internal_take_topics(
    inout p_messages jsonb,
    out o_topics     text[]
)
language plpgsql
as $$
-- routine   internal_take_topics
-- purpose   Take the topics out of the messages of publish_batch, which get them as their types where they have none.
-- promise   P15
-- errors    RQ711
declare
    v_place integer;
    v_fault text;
begin
    -- What is no array of objects is left as it is, for internal_parse_messages to refuse.
    if jsonb_typeof(p_messages) is distinct from 'array' or exists (
        select 1
        from jsonb_array_elements(p_messages) e (message)
        where jsonb_typeof(e.message) <> 'object'
    ) then
        return;
    end if;

    select f.place, f.fault into v_place, v_fault
    from (
        select e.place,
               case
                   when e.message ?| array[
                           'predecessor_ids', 'predecessor_positions', 'on_predecessor_dead'
                       ]
                       then 'a published message has no predecessors'
                   when jsonb_typeof(e.message -> 'topic') not in ('string', 'null')
                       then 'topic must be a string'
                   else rowq.internal_topic_fault('topic', e.message ->> 'topic', false)
               end as fault
        from jsonb_array_elements(p_messages) with ordinality e (message, place)
    ) f
    where f.fault is not null
    order by f.place
    limit 1;
    if found then
        raise exception 'RQ711 invalid_argument: % (message %)', v_fault, v_place
            using errcode = 'RQ711';
    end if;

    select coalesce(
               jsonb_agg(
                   case
                       when e.message ->> 'message_type' is null
                           then e.message - 'topic'
                               || jsonb_build_object('message_type', e.message -> 'topic')
                       else e.message - 'topic'
                   end
                   order by e.place
               ),
               '[]'
           ),
           array_agg(e.message ->> 'topic' order by e.place)
    into p_messages, o_topics
    from jsonb_array_elements(p_messages) with ordinality e (message, place);
end;
$$;

-- [file internal/tick_headers.sql]
create or replace function rowq.internal_tick_headers(
    p_schedule rowq.schedule,
    p_tick     timestamp with time zone
)
returns jsonb
language plpgsql
as $$
-- routine   internal_tick_headers
-- purpose   Return the headers of a message of a schedule: its own, the schedule's name and the tick.
begin
    if jsonb_typeof(p_schedule.headers) <> 'object' then
        return p_schedule.headers;
    end if;
    return coalesce(p_schedule.headers, '{}'::jsonb) || jsonb_build_object(
        'schedule', p_schedule.schedule_name,
        'tick', to_char(p_tick at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    );
end;
$$;

-- [file internal/topic_fault.sql]
create or replace function rowq.internal_topic_fault(
    p_name       text,
    p_topic      text,
    p_is_pattern boolean
)
returns text
language plpgsql
as $$
-- routine   internal_topic_fault
-- purpose   Return what is wrong with a topic or a pattern; null means nothing.
-- promise   P15
begin
    return case
        when p_topic is null
            then p_name || ' is missing'
        when char_length(p_topic) > 200
            then p_name || ' is longer than 200 characters'
        when p_is_pattern
             and p_topic collate "C" !~ '^(([A-Za-z0-9_-]+|[*])[.])*([A-Za-z0-9_-]+|[*#])$'
            then p_name || ' must be words of letters, digits, _, - or *, with dots between, # last'
        when not p_is_pattern
             and p_topic collate "C" !~ '^[A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)*$'
            then p_name || ' must be words of letters, digits, _, -, with dots between'
    end;
end;
$$;

-- [file internal/try_enter_group.sql]
create or replace function rowq.internal_try_enter_group(p_part_id integer, p_group_key text)
returns boolean
language plpgsql
set lock_timeout = '20ms'
as $$
-- routine   internal_try_enter_group
-- purpose   Do what internal_enter_group does, but return null where that takes longer than a moment.
-- promise   P22
-- locks     as internal_enter_group, waited for 20 ms, so that a deadlock never ends a producer
declare
    v_started constant timestamp with time zone := clock_timestamp();
begin
    return rowq.internal_enter_group(p_part_id, p_group_key);
exception
    when lock_not_available or serialization_failure then
        return null;
    -- The wait for a row is two waits, and a time-out at the very end of the first one shows in the
    -- second as a cancel by the user. Any other cancel, or a statement_timeout, ends the call: only
    -- one that comes within this moment is lost.
    when query_canceled then
        if clock_timestamp() - v_started
           not between interval '20 milliseconds' and interval '30 milliseconds' then
            raise;
        end if;
        return null;
end;
$$;

-- [file internal/unblock.sql]
create or replace function rowq.internal_unblock(
    p_part_id     integer,
    p_message_ids bigint[],
    p_ended_id    bigint,
    out o_again         bigint[],
    out o_failed_ids    bigint[],
    out o_failed_lanes  smallint[],
    out o_failed_errors text[]
)
language plpgsql
as $$
-- routine   internal_unblock
-- purpose   Look again what blocked messages wait for, and let them go on where that is nothing. o_again are those that need another look, o_failed_ids those that fail with a predecessor.
-- promise   P25 P26 P27
-- locks     blocked rows, tried only; as internal_await_predecessor and internal_try_enter_group
declare
    v_row        record;
    v_await      record;
    v_state      text;
    v_has_token  boolean;
    v_is_delayed boolean;
    v_is_late    boolean := false;
    v_rest_ids   bigint[];
    v_ids        bigint[];
    v_lanes      smallint[];
begin
    -- To ask again needs a snapshot of its own, which only read committed takes.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        o_again := p_message_ids;
        return;
    end if;

    for v_row in
        select u.message_id, b.message_id is not null as is_held, b.lane, b.predecessor_id,
               b.due_at, b.on_dead, b.group_key, b.rest_ids
        from unnest(p_message_ids) u (message_id)
        left join lateral (
            select x.message_id, x.lane, x.predecessor_id, x.due_at, x.on_dead, x.group_key,
                   x.rest_ids
            from rowq.blocked x
            where x.part_id = p_part_id
              and x.message_id = u.message_id
            for update skip locked
        ) b on true
    loop
        if not v_row.is_held then
            -- It is gone, or somebody is cancelling it.
            if exists (
                select
                from rowq.blocked b
                where b.part_id = p_part_id
                  and b.message_id = v_row.message_id
            ) then
                o_again := o_again || v_row.message_id;
            end if;
            continue;
        end if;

        v_state := 'free';
        v_rest_ids := v_row.rest_ids;
        if v_row.predecessor_id <> p_ended_id or p_ended_id is null then
            v_rest_ids := v_rest_ids || v_row.predecessor_id;
        end if;
        if array_remove(v_rest_ids, null) <> '{}' then
            v_await := rowq.internal_await_predecessor(
                p_part_id, v_row.message_id, array_remove(v_rest_ids, null), v_row.on_dead
            );
            v_state := v_await.o_state;
            if v_state = 'unsure' then
                o_again := o_again || v_row.message_id;
                continue;
            elsif v_state = 'waiting' then
                update rowq.blocked b
                set predecessor_id = v_await.o_predecessor_id,
                    rest_ids = v_await.o_rest_ids
                where b.part_id = p_part_id
                  and b.message_id = v_row.message_id;
                continue;
            end if;
        end if;

        v_has_token := true;
        v_is_delayed := coalesce(v_row.due_at > clock_timestamp(), false);
        if v_row.group_key is not null and v_state = 'free' and not v_is_delayed then
            -- Wait for a producer once a call, and no longer than a moment.
            v_has_token := case
                when not v_is_late
                    then rowq.internal_try_enter_group(p_part_id, v_row.group_key)
            end;
            if v_has_token is null then
                v_is_late := true;
                o_again := o_again || v_row.message_id;
                continue;
            end if;
        end if;

        delete from rowq.blocked b
        where b.part_id = p_part_id
          and b.message_id = v_row.message_id;
        if v_state = 'failed' then
            o_failed_ids := o_failed_ids || v_row.message_id;
            o_failed_lanes := o_failed_lanes || v_row.lane;
            o_failed_errors := o_failed_errors
                || format('predecessor %s is dead', v_await.o_predecessor_id);
        elsif v_is_delayed then
            insert into rowq.delayed (part_id, lane, message_id, due_at, group_key)
            values (
                p_part_id, v_row.lane, v_row.message_id, v_row.due_at, v_row.group_key
            );
        elsif not v_has_token then
            insert into rowq.grouped (part_id, lane, message_id, group_key)
            values (p_part_id, v_row.lane, v_row.message_id, v_row.group_key);
        else
            -- What has been begun is finished first, but groups take turns.
            v_ids := v_ids || v_row.message_id;
            v_lanes := v_lanes || case
                when v_row.group_key is null then v_row.lane / 2 * 2
                else v_row.lane
            end::smallint;
        end if;
    end loop;

    if v_ids is not null then
        perform rowq.internal_push_ready(
            p_part_id, v_lanes, v_ids, array_fill(0::smallint, array[cardinality(v_ids)]), null
        );
    end if;
end;
$$;

-- [file internal/wait_until.sql]
create or replace function rowq.internal_wait_until(p_wait_seconds double precision)
returns timestamp with time zone
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   internal_wait_until
-- purpose   Return the moment that ends a wait; raise an error if the wait is too long.
-- promise   P15
-- errors    RQ711
-- differs   only where the caller's path reaches into dequeue_wait
begin
    if p_wait_seconds is null or p_wait_seconds not between 0 and 3600 then
        raise exception 'RQ711 invalid_argument: wait_seconds must be between 0 and 3600, got %',
            p_wait_seconds
            using errcode = 'RQ711';
    end if;
    return clock_timestamp() + make_interval(secs => p_wait_seconds);
end;
$$;

-- [file internal/widen_group.sql]
create or replace function rowq.internal_widen_group(p_part_id integer, p_group_key text)
returns boolean
language plpgsql
as $$
-- routine   internal_widen_group
-- purpose   Give a group whose limit was raised its new tokens; return false where another look is needed.
-- promise   P22 P24
-- locks     as internal_try_enter_group and internal_leave_groups
declare
    v_has_token boolean;
begin
    while exists (
        select
        from rowq.grouped x
        where x.part_id = p_part_id
          and x.group_key = p_group_key
    ) loop
        v_has_token := rowq.internal_try_enter_group(p_part_id, p_group_key);
        exit when not v_has_token;
        if v_has_token is null then
            return false;
        end if;
        perform rowq.internal_leave_groups(p_part_id, array[p_group_key]);
    end loop;
    return true;
end;
$$;

-- [file internal/with_max_attempts.sql]
create or replace function rowq.internal_with_max_attempts(
    p_part_id      integer,
    p_message_ids  bigint[],
    p_lanes        smallint[],
    p_attempts     smallint[],
    p_max_attempts integer
)
returns table (message_id bigint, lane smallint, attempt smallint, allowed integer)
language plpgsql
as $$
-- routine   internal_with_max_attempts
-- purpose   Add to each message of a claim the number of attempts that it is allowed.
-- promise   P10
#variable_conflict use_column
begin
    return query
    select u.message_id, u.lane, u.attempt, coalesce(m.max_attempts::integer, p_max_attempts)
    from unnest(p_message_ids, p_lanes, p_attempts)
        with ordinality u (message_id, lane, attempt, place)
    cross join lateral (
        -- "offset 0" keeps this a lookup by key for each message, whatever the planner thinks of
        -- the sizes.
        select x.max_attempts
        from rowq.message x
        where x.part_id = p_part_id
          and x.message_id = u.message_id
        offset 0
    ) m
    order by u.place;
end;
$$;

-- [file internal/withdraw.sql]
create or replace function rowq.internal_withdraw(
    p_part_id      integer,
    p_archive_days integer,
    p_message_ids  bigint[]
)
returns bigint[]
language plpgsql
as $$
-- routine   internal_withdraw
-- purpose   Cancel those messages that no worker holds, and return them.
-- promise   P03 P12 P22
-- locks     as internal_pop_waiting, then as internal_finish
declare
    v_found record;
begin
    v_found := rowq.internal_pop_waiting(p_part_id, p_message_ids);
    if v_found.o_message_ids <> '{}' then
        perform rowq.internal_finish(
            p_part_id, p_archive_days, v_found.o_message_ids, v_found.o_lanes, v_found.o_attempts,
            'cancelled', v_found.o_tokenless
        );
    end if;
    return v_found.o_message_ids;
end;
$$;

-- [file routines/create_queue.sql]
create or replace function rowq.create_queue(
    p_queue_name           text,
    p_lease_seconds        integer default null,
    p_max_attempts         integer default null,
    p_backoff_base_seconds double precision default null,
    p_backoff_factor       double precision default null,
    p_backoff_cap_seconds  double precision default null,
    p_backoff_jitter       double precision default null,
    p_archive_days         integer default null,
    p_max_body_length      integer default null,
    p_group_limit          integer default null,
    p_group_after_dead     text default null,
    p_group_pause_seconds  double precision default null,
    p_max_leased           integer default null,
    p_rate_limit           integer default null,
    p_rate_seconds         double precision default null,
    p_result_seconds       double precision default null,
    p_history_days         integer default null
)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   create_queue
-- version   1
-- purpose   Create a queue; an existing queue of that name is left as it is.
-- promise   P15
-- locks     the new rows of queue and gate
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_part_id integer;
begin
    perform rowq.internal_check_settings(
        p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds,
        p_backoff_factor, p_backoff_cap_seconds, p_backoff_jitter, p_archive_days,
        p_max_body_length, p_group_limit, p_group_after_dead, p_group_pause_seconds,
        p_max_leased, p_rate_limit, p_rate_seconds, p_result_seconds, p_history_days
    );

    insert into rowq.queue (
        queue_name, lease_seconds, max_attempts, backoff_base_seconds,
        backoff_factor, backoff_cap_seconds, backoff_jitter, archive_days, max_body_length,
        group_limit, group_after_dead, group_pause_seconds,
        max_leased, rate_limit, rate_seconds, result_seconds, history_days
    )
    select
        p_queue_name, coalesce(p_lease_seconds, 30), coalesce(p_max_attempts, 10),
        coalesce(p_backoff_base_seconds, 5), coalesce(p_backoff_factor, 2),
        coalesce(p_backoff_cap_seconds, 3600), coalesce(p_backoff_jitter, 0.2),
        coalesce(p_archive_days, 0), coalesce(p_max_body_length, 1048576),
        coalesce(p_group_limit, 1), coalesce(p_group_after_dead, 'continue'),
        coalesce(p_group_pause_seconds, 0),
        coalesce(p_max_leased, 0), coalesce(p_rate_limit, 0), coalesce(p_rate_seconds, 1),
        coalesce(p_result_seconds, 0), coalesce(p_history_days, 0)
    -- Look first, because an insert that ends in a conflict uses up a number.
    where not exists (select 1 from rowq.queue q where q.queue_name = p_queue_name)
    on conflict (queue_name) do nothing
    returning part_id into v_part_id;
    if v_part_id is not null then
        insert into rowq.gate (part_id) values (v_part_id);
    end if;

    return query
    select p_queue_name, case when v_part_id is not null then 'created' else 'exists' end;
end;
$$;

-- [file routines/alter_queue.sql]
create or replace function rowq.alter_queue(
    p_queue_name           text,
    p_lease_seconds        integer default null,
    p_max_attempts         integer default null,
    p_backoff_base_seconds double precision default null,
    p_backoff_factor       double precision default null,
    p_backoff_cap_seconds  double precision default null,
    p_backoff_jitter       double precision default null,
    p_archive_days         integer default null,
    p_max_body_length      integer default null,
    p_group_limit          integer default null,
    p_group_after_dead     text default null,
    p_group_pause_seconds  double precision default null,
    p_max_leased           integer default null,
    p_rate_limit           integer default null,
    p_rate_seconds         double precision default null,
    p_result_seconds       double precision default null,
    p_history_days         integer default null
)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   alter_queue
-- version   1
-- purpose   Change settings of a queue; null leaves a setting as it is.
-- promise   P15
-- locks     the queue row; new recheck rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
begin
    perform rowq.internal_check_settings(
        p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds,
        p_backoff_factor, p_backoff_cap_seconds, p_backoff_jitter, p_archive_days,
        p_max_body_length, p_group_limit, p_group_after_dead, p_group_pause_seconds,
        p_max_leased, p_rate_limit, p_rate_seconds, p_result_seconds, p_history_days
    );
    v_queue := rowq.internal_require_queue(p_queue_name);

    update rowq.queue q
    set lease_seconds        = coalesce(p_lease_seconds, q.lease_seconds),
        max_attempts         = coalesce(p_max_attempts, q.max_attempts),
        backoff_base_seconds = coalesce(p_backoff_base_seconds, q.backoff_base_seconds),
        backoff_factor       = coalesce(p_backoff_factor, q.backoff_factor),
        backoff_cap_seconds  = coalesce(p_backoff_cap_seconds, q.backoff_cap_seconds),
        backoff_jitter       = coalesce(p_backoff_jitter, q.backoff_jitter),
        archive_days         = coalesce(p_archive_days, q.archive_days),
        max_body_length      = coalesce(p_max_body_length, q.max_body_length),
        group_limit          = coalesce(p_group_limit, q.group_limit),
        group_after_dead     = coalesce(p_group_after_dead, q.group_after_dead),
        group_pause_seconds  = coalesce(p_group_pause_seconds, q.group_pause_seconds),
        max_leased           = coalesce(p_max_leased, q.max_leased),
        rate_limit           = coalesce(p_rate_limit, q.rate_limit),
        rate_seconds         = coalesce(p_rate_seconds, q.rate_seconds),
        result_seconds       = coalesce(p_result_seconds, q.result_seconds),
        history_days         = coalesce(p_history_days, q.history_days)
    where q.queue_name = p_queue_name;
    if not found then
        -- The queue was dropped while this call waited for its row.
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;
    if p_group_limit > v_queue.group_limit then
        perform rowq.internal_hint_groups(v_queue.part_id);
    end if;

    return query select p_queue_name, 'altered';
end;
$$;

-- [file routines/drop_queue.sql]
create or replace function rowq.drop_queue(p_queue_name text, p_force boolean default false)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '47ms'
set jit = off
as $$
-- routine   drop_queue
-- version   1
-- purpose   Remove an empty queue, or with force a queue and everything in it, archive included.
-- promise   P02 P15
-- locks     the tables of all queues against writers, until the caller's transaction ends
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ704 RQ705 RQ711 RQ713
-- differs   refused under repeatable read and serializable
#variable_conflict use_column
declare
    v_queue rowq.queue;
    v_row   record;
begin
    v_queue := rowq.internal_require_queue(p_queue_name);

    -- An older snapshot does not show what is committed before the tables are locked, so it would
    -- be left behind without its queue.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise exception 'RQ713 wrong_transaction_state: '
            'drop_queue works under read committed only'
            using errcode = 'RQ713';
    end if;

    perform rowq.internal_refuse_filled_queue(v_queue.part_id, p_queue_name, p_force);

    -- Wait for open enqueues, because their messages are not visible yet. Lock all tables first, in
    -- the order in which workers lock, so that no delete below has to wait. Lock each in a
    -- statement of its own: where a time-out falls together with the end of a wait, another wait in
    -- the same statement would show it as a cancel by the user. All time-outs together are shorter
    -- than deadlock_timeout, so that a deadlock never ends a producer or a worker.
    begin
        -- History may be long, so delete it before everybody waits for this transaction, but for
        -- rows that others hold. Go one by one, because the planner may join the two sides row by
        -- row where statistics do not know the queue.
        for v_row in
            select x.ended_at, x.message_id, x.claim_id
            from rowq.history x
            where x.part_id = v_queue.part_id
            for update skip locked
        loop
            delete from rowq.history h
            where h.part_id = v_queue.part_id
              and h.ended_at = v_row.ended_at
              and h.message_id = v_row.message_id
              and h.claim_id = v_row.claim_id;
        end loop;
        lock table rowq.queue in exclusive mode;
        lock table rowq.gate in exclusive mode;
        lock table rowq.claim in exclusive mode;
        lock table rowq.floor in exclusive mode;
        lock table rowq.ready in exclusive mode;
        lock table rowq.delayed in exclusive mode;
        lock table rowq.message in exclusive mode;
        lock table rowq.dedup in exclusive mode;
        lock table rowq.grouped in exclusive mode;
        lock table rowq.message_group in exclusive mode;
        lock table rowq.successor in exclusive mode;
        lock table rowq.blocked in exclusive mode;
        lock table rowq.recheck in exclusive mode;
        lock table rowq.dead in exclusive mode;
        lock table rowq.finished in exclusive mode;
        lock table rowq.archive in exclusive mode;
        lock table rowq.started in exclusive mode;
        lock table rowq.result in exclusive mode;
        lock table rowq.history in exclusive mode;
        -- Who runs a schedule, or lets messages expire, waits for the tables above.
        lock table rowq.schedule in exclusive mode;
        lock table rowq.expiry in exclusive mode;
    exception
        when lock_not_available then
            raise exception 'RQ705 queue_busy: open transactions hold the tables; try again'
                using errcode = 'RQ705';
    end;

    perform rowq.internal_refuse_filled_queue(v_queue.part_id, p_queue_name, p_force);

    delete from rowq.ready r where r.part_id = v_queue.part_id;
    delete from rowq.delayed d where d.part_id = v_queue.part_id;
    delete from rowq.claim c where c.part_id = v_queue.part_id;
    delete from rowq.dead d where d.part_id = v_queue.part_id;
    delete from rowq.dedup d where d.part_id = v_queue.part_id;
    delete from rowq.grouped g where g.part_id = v_queue.part_id;
    delete from rowq.message_group g where g.part_id = v_queue.part_id;
    delete from rowq.successor s where s.part_id = v_queue.part_id;
    delete from rowq.blocked b where b.part_id = v_queue.part_id;
    delete from rowq.recheck r where r.part_id = v_queue.part_id;
    delete from rowq.finished f where f.part_id = v_queue.part_id;
    delete from rowq.message m where m.part_id = v_queue.part_id;
    delete from rowq.archive a where a.part_id = v_queue.part_id;
    delete from rowq.started s where s.part_id = v_queue.part_id;
    delete from rowq.result r where r.part_id = v_queue.part_id;
    delete from rowq.history h where h.part_id = v_queue.part_id;
    delete from rowq.schedule s where s.part_id = v_queue.part_id;
    delete from rowq.expiry e where e.part_id = v_queue.part_id;
    -- Whoever binds a queue, or unbinds it, locks its row first.
    delete from rowq.topic_binding b where b.part_id = v_queue.part_id;
    delete from rowq.gate g where g.part_id = v_queue.part_id;
    delete from rowq.floor f where f.part_id = v_queue.part_id;
    delete from rowq.queue q where q.part_id = v_queue.part_id;

    return query select p_queue_name, 'dropped';
end;
$$;

-- [file routines/pause_queue.sql]
create or replace function rowq.pause_queue(p_queue_name text)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   pause_queue
-- version   1
-- purpose   Stop delivery; enqueue and the finishing routines go on.
-- promise   P18
-- locks     the queue row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_now constant timestamp with time zone := clock_timestamp();
begin
    perform rowq.internal_require_queue(p_queue_name);

    update rowq.queue q
    set paused_at = coalesce(q.paused_at, v_now)
    where q.queue_name = p_queue_name;
    if not found then
        -- The queue was dropped while this call waited for its row.
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;

    return query select p_queue_name, 'paused';
end;
$$;

-- [file routines/resume_queue.sql]
create or replace function rowq.resume_queue(p_queue_name text)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   resume_queue
-- version   1
-- purpose   Start delivery again.
-- promise   P18
-- locks     the queue row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   notifies the sessions that listen
#variable_conflict use_column
declare
    v_part_id integer;
begin
    perform rowq.internal_require_queue(p_queue_name);

    update rowq.queue q
    set paused_at = null
    where q.queue_name = p_queue_name
    returning q.part_id into v_part_id;
    if not found then
        -- The queue was dropped while this call waited for its row.
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;
    perform rowq.internal_notify(v_part_id);

    return query select p_queue_name, 'resumed';
end;
$$;

-- [file routines/bind_topic.sql]
create or replace function rowq.bind_topic(p_queue_name text, p_topic_pattern text)
returns table (queue_name text, topic_pattern text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   bind_topic
-- version   1
-- purpose   Let a queue get what is published under the topics that a pattern matches.
-- promise   P15 P35
-- locks     the queue row, shared; a new topic_binding row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_fault   text;
    v_words   text;
    v_part_id integer;
begin
    v_fault := rowq.internal_topic_fault('topic_pattern', p_topic_pattern, true);
    if v_fault is not null then
        raise exception 'RQ711 invalid_argument: %', v_fault
            using errcode = 'RQ711';
    end if;
    v_part_id := rowq.internal_lock_queue(p_queue_name);

    v_words := rtrim(rtrim(p_topic_pattern, '#'), '.');
    insert into rowq.topic_binding (
        part_id, word_count, has_rest, topic_pattern, literal_head, like_pattern
    )
    values (
        v_part_id,
        cardinality(string_to_array(v_words, '.')),
        right(p_topic_pattern, 1) = '#',
        p_topic_pattern,
        rtrim(split_part(v_words, '*', 1), '.'),
        case
            when strpos(v_words, '*') > 0
                then replace(replace(v_words, '_', '!_'), '*', '%')
        end
    )
    on conflict (part_id, topic_pattern) do nothing;

    return query
    select p_queue_name, p_topic_pattern, case when found then 'bound' else 'exists' end;
end;
$$;

-- [file routines/unbind_topic.sql]
create or replace function rowq.unbind_topic(p_queue_name text, p_topic_pattern text)
returns table (queue_name text, topic_pattern text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   unbind_topic
-- version   1
-- purpose   Take a queue's pattern away; what it has got stays.
-- promise   P15 P35
-- locks     the queue row, shared; the topic_binding row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_fault   text;
    v_part_id integer;
begin
    v_fault := rowq.internal_topic_fault('topic_pattern', p_topic_pattern, true);
    if v_fault is not null then
        raise exception 'RQ711 invalid_argument: %', v_fault
            using errcode = 'RQ711';
    end if;
    v_part_id := rowq.internal_lock_queue(p_queue_name);

    delete from rowq.topic_binding b
    where b.part_id = v_part_id
      and b.topic_pattern = p_topic_pattern;

    return query
    select p_queue_name, p_topic_pattern, case when found then 'unbound' else 'not_bound' end;
end;
$$;

-- [file routines/purge_queue.sql]
create or replace function rowq.purge_queue(
    p_queue_name   text,
    p_include_dead boolean default false,
    p_max_messages integer default null
)
returns table (removed bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
-- routine   purge_queue
-- version   1
-- purpose   Delete waiting messages: ready, delayed, blocked; leased ones stay with their workers.
-- promise   P15
-- locks     blocked, grouped, ready, delayed and dead rows, passing over locked ones; then as
--           complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    c_step    constant integer := 10000;
    v_queue   rowq.queue;
    v_removed bigint := 0;
    v_wanted  integer;
    v_lane    smallint := -1;
    v_seq     bigint := 0;
    v_ids     bigint[];
    v_seqs    bigint[];
    v_lanes   smallint[];
    v_key     text := '';
    v_id      bigint := 0;
    v_keys    text[];
    v_outside bigint[];
begin
    if p_max_messages not between 1 and 10000 then
        raise exception 'RQ711 invalid_argument: max_messages must be between 1 and 10000, got %',
            p_max_messages
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    -- Begin with what waits for others, so that none of it is made ready by the end of what it
    -- waits for, and no token is passed on to a message that goes too.
    loop
        v_wanted := least(c_step, p_max_messages - v_removed);
        exit when v_wanted <= 0;

        select array_agg(h.message_id) into v_ids
        from (
            select b.message_id
            from rowq.blocked b
            where b.part_id = v_queue.part_id
              and b.message_id > v_id
            order by b.part_id, b.message_id
            limit v_wanted
            for update skip locked
        ) h;
        exit when v_ids is null;

        delete from rowq.blocked b
        where b.part_id = v_queue.part_id
          and b.message_id between v_ids[1] and v_ids[cardinality(v_ids)]
          and b.message_id = any (v_ids);
        v_id := v_ids[cardinality(v_ids)];
        perform rowq.internal_finish(v_queue.part_id, 0, v_ids, null, null, 'cancelled', v_ids);
        v_removed := v_removed + cardinality(v_ids);
    end loop;
    v_id := 0;

    loop
        v_wanted := least(c_step, p_max_messages - v_removed);
        exit when v_wanted <= 0;

        select array_agg(h.message_id), array_agg(h.group_key) into v_ids, v_keys
        from (
            select x.message_id, x.group_key
            from rowq.grouped x
            where x.part_id = v_queue.part_id
              and (x.group_key, x.message_id) > (v_key, v_id)
            order by x.part_id, x.group_key, x.message_id
            limit v_wanted
            for update skip locked
        ) h;
        exit when v_ids is null;

        delete from rowq.grouped x
        where x.part_id = v_queue.part_id
          and (x.group_key, x.message_id) > (v_key, v_id)
          and (x.group_key, x.message_id)
              <= (v_keys[cardinality(v_keys)], v_ids[cardinality(v_ids)])
          and x.message_id = any (v_ids);
        v_key := v_keys[cardinality(v_keys)];
        v_id := v_ids[cardinality(v_ids)];
        perform rowq.internal_finish(v_queue.part_id, 0, v_ids, null, null, 'cancelled', v_ids);
        v_removed := v_removed + cardinality(v_ids);
    end loop;

    loop
        v_wanted := least(c_step, p_max_messages - v_removed);
        exit when v_wanted <= 0;

        -- Go on from the last row and not from the start, where the index still has the rows
        -- deleted so far.
        select array_agg(h.message_id), array_agg(h.lane), array_agg(h.seq)
        into v_ids, v_lanes, v_seqs
        from (
            select r.message_id, r.lane, r.seq
            from rowq.ready r
            where r.part_id = v_queue.part_id
              and (r.lane, r.seq) > (v_lane, v_seq)
            order by r.part_id, r.lane, r.seq
            limit v_wanted
            for update skip locked
        ) h;
        exit when v_ids is null;

        delete from rowq.ready r
        where r.part_id = v_queue.part_id
          and (r.lane, r.seq) > (v_lane, v_seq)
          and (r.lane, r.seq) <= (v_lanes[cardinality(v_lanes)], v_seqs[cardinality(v_seqs)])
          and r.seq = any (v_seqs);
        v_lane := v_lanes[cardinality(v_lanes)];
        v_seq := v_seqs[cardinality(v_seqs)];
        perform rowq.internal_finish(v_queue.part_id, 0, v_ids, null, null, 'cancelled');
        v_removed := v_removed + cardinality(v_ids);
    end loop;

    select array_agg(h.message_id), array_agg(h.message_id) filter (where h.group_key is not null)
    into v_ids, v_outside
    from (
        select d.message_id, d.group_key
        from rowq.delayed d
        where d.part_id = v_queue.part_id
        order by d.part_id, d.message_id
        limit p_max_messages - v_removed
        for update skip locked
    ) h;
    delete from rowq.delayed d
    where d.part_id = v_queue.part_id
      and d.message_id between v_ids[1] and v_ids[cardinality(v_ids)]
      and d.message_id = any (v_ids);
    perform rowq.internal_finish(v_queue.part_id, 0, v_ids, null, null, 'cancelled', v_outside);
    v_removed := v_removed + coalesce(cardinality(v_ids), 0);

    if p_include_dead then
        select array_agg(h.message_id), array_agg(h.message_id) filter (where h.is_outside)
        into v_ids, v_outside
        from (
            select d.message_id, d.holds_group is null as is_outside
            from rowq.dead d
            where d.part_id = v_queue.part_id
            order by d.part_id, d.message_id
            limit p_max_messages - v_removed
            for update skip locked
        ) h;
        delete from rowq.dead d
        where d.part_id = v_queue.part_id
          and d.message_id between v_ids[1] and v_ids[cardinality(v_ids)]
          and d.message_id = any (v_ids);
        perform rowq.internal_finish(
            v_queue.part_id, 0, v_ids, null, null, 'cancelled', v_outside
        );
        v_removed := v_removed + coalesce(cardinality(v_ids), 0);
    end if;

    return query select v_removed;
end;
$$;

-- [file routines/enqueue.sql]
create or replace function rowq.enqueue(
    p_queue_name          text,
    p_body                text default null,
    p_body_binary         bytea default null,
    p_message_type        text default null,
    p_headers             jsonb default null,
    p_priority            integer default 5,
    p_delay_seconds       double precision default null,
    p_run_at              timestamp with time zone default null,
    p_dedup_key           text default null,
    p_max_attempts        integer default null,
    p_group_key           text default null,
    p_predecessor_ids     bigint[] default null,
    p_on_predecessor_dead text default null,
    p_expire_seconds      double precision default null
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   enqueue
-- version   1
-- purpose   Hand over one message.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P27 P36
-- locks     new rows; with a dedup key, waits for another open enqueue of that key; with a group
--           key, for one that has opened the group, and for what is closing it; the row of a
--           predecessor, tried only
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_fault           text;
    v_lane            smallint;
    v_part_id         integer;
    v_max_body_length integer;
    v_group_limit     integer;
    v_message_id      bigint;
    v_existing        bigint;
    v_now             timestamp with time zone;
    v_due_at          timestamp with time zone;
begin
    -- A message with only a text body and a good priority has nothing else to check.
    if p_priority not between 0 and 9 or p_priority is null or num_nonnulls(
        p_body_binary, p_message_type, p_headers, p_delay_seconds, p_run_at, p_dedup_key,
        p_max_attempts, p_group_key, p_predecessor_ids, p_on_predecessor_dead,
        p_expire_seconds
    ) > 0 then
        v_fault := rowq.internal_message_fault(
            p_body, p_body_binary, p_message_type, p_headers, p_priority,
            p_delay_seconds, p_run_at, p_dedup_key, p_max_attempts, p_group_key,
            p_predecessor_ids, p_on_predecessor_dead, p_expire_seconds
        );
        if v_fault is not null then
            raise exception 'RQ711 invalid_argument: %', v_fault
                using errcode = 'RQ711';
        end if;
    end if;
    v_lane := p_priority * 2 + 1;
    select q.part_id, q.max_body_length, q.group_limit
    into v_part_id, v_max_body_length, v_group_limit
    from rowq.queue q
    where q.queue_name = p_queue_name;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;

    -- Compare bytes first, because counting them costs nothing and no text has more characters than
    -- bytes.
    if octet_length(p_body) > v_max_body_length
       or octet_length(p_body_binary) > v_max_body_length then
        v_fault := rowq.internal_body_fault(p_body, p_body_binary, v_max_body_length);
        if v_fault is not null then
            raise exception 'RQ711 invalid_argument: %', v_fault
                using errcode = 'RQ711';
        end if;
    end if;

    -- Get the transaction id before the number and the clock: internal_move_floor relies on this
    -- order.
    if pg_current_xact_id() is not null then
        v_message_id := nextval('rowq.message_seq');
        v_now := clock_timestamp();
    end if;
    if v_message_id <= any (p_predecessor_ids) then
        raise exception
            'RQ711 invalid_argument: predecessor_ids must name messages that are there, got %', (
                select max(u.message_id)
                from unnest(p_predecessor_ids) u (message_id)
            )
            using errcode = 'RQ711';
    end if;

    while p_dedup_key is not null loop
        insert into rowq.dedup (part_id, message_id, dedup_key)
        values (v_part_id, v_message_id, p_dedup_key)
        on conflict (part_id, dedup_key) do nothing;
        exit when found;

        -- A stricter snapshot may show a former owner beside this transaction's own message.
        select max(d.message_id) into v_existing
        from rowq.dedup d
        where d.part_id = v_part_id
          and d.dedup_key = p_dedup_key;
        if v_existing is not null then
            return query select v_existing, 'duplicate';
            return;
        end if;
        -- A key whose owner was finished in between is free again: try once more.
    end loop;

    insert into rowq.message (
        part_id, message_id, enqueued_at, max_attempts, message_type, dedup_key,
        headers, body, body_binary, group_key, expires_at
    )
    select g.part_id, v_message_id, v_now, p_max_attempts, p_message_type, p_dedup_key,
           p_headers, p_body, p_body_binary, p_group_key,
           v_now + make_interval(secs => p_expire_seconds)
    from rowq.gate g
    where g.part_id = v_part_id;
    if not found then
        -- The queue was dropped: the insert waited for drop_queue, and found no gate after that.
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        -- An old snapshot still shows a queue that was dropped, but locking its row fails with
        -- 40001.
        perform rowq.internal_require_part(v_part_id, p_queue_name);
    end if;

    v_due_at := coalesce(p_run_at, v_now + make_interval(secs => p_delay_seconds));
    if p_predecessor_ids is not null and rowq.internal_block(
        v_part_id, v_message_id, v_lane, case when v_due_at > v_now then v_due_at end, p_group_key,
        p_predecessor_ids, p_on_predecessor_dead
    ) then
        null;
    elsif v_due_at > v_now then
        insert into rowq.delayed (part_id, lane, message_id, due_at, group_key)
        values (v_part_id, v_lane, v_message_id, v_due_at, p_group_key);
    elsif p_group_key is not null
          and not rowq.internal_enter_group(v_part_id, p_group_key, v_group_limit) then
        insert into rowq.grouped (part_id, lane, message_id, group_key)
        values (v_part_id, v_lane, v_message_id, p_group_key);
    else
        insert into rowq.ready (part_id, lane, seq, message_id)
        select f.part_id, f.lane, v_message_id, v_message_id
        from rowq.floor f
        where f.part_id = v_part_id
          and f.lane = v_lane
        order by f.part_id, f.lane, f.generation
        limit 1;
        if not found then
            -- The lane was never used before.
            perform rowq.internal_open_lanes(v_part_id, array[v_lane]);
            insert into rowq.ready (part_id, lane, seq, message_id)
            values (v_part_id, v_lane, v_message_id, v_message_id);
        end if;
        if rowq.internal_is_listened(v_part_id) then
            perform pg_notify('rowq', p_queue_name);
        end if;
    end if;

    if p_expire_seconds is not null then
        perform rowq.internal_open_lanes(v_part_id, '{-7}'::smallint[]);
        insert into rowq.expiry (part_id, lane, expires_at, message_id, seq)
        values (
            v_part_id, v_lane, v_now + make_interval(secs => p_expire_seconds), v_message_id,
            v_message_id
        );
    end if;

    message_id := v_message_id;
    outcome := 'enqueued';
    return next;
end;
$$;

-- [file routines/enqueue_batch.sql]
create or replace function rowq.enqueue_batch(p_queue_name text, p_messages jsonb)
returns table ("position" integer, message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   enqueue_batch
-- version   1
-- purpose   Hand over many messages in one call: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P26 P27 P36
-- locks     new rows; with dedup and group keys, waits as enqueue does, in the order of the keys;
--           rows of predecessors, tried only
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_part_id    integer;
    v_max_length integer;
    v_now        timestamp with time zone;
    v_stored     record;
    v_messages   rowq.message[];
    v_lanes      smallint[];
    v_due_ats    timestamp with time zone[];
    v_kept_ids   bigint[];
    v_awaited    bigint[];
    v_ties       rowq.blocked[];
    v_blocked    bigint[];
    v_waiting    bigint[];
    v_expires    boolean;
begin
    select q.part_id, q.max_body_length into v_part_id, v_max_length
    from rowq.queue q
    where q.queue_name = p_queue_name;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;

    -- Get the transaction id before the numbers and the clock: internal_move_floor relies on this
    -- order.
    perform pg_current_xact_id();
    v_now := clock_timestamp();

    v_stored := rowq.internal_store_plain(v_part_id, p_messages, v_max_length, v_now);
    if v_stored.o_message_ids is null
       and coalesce(
           not p_messages @? (
               '$[*] ? (exists(@.dedup_key) || exists(@.group_key) || exists(@.predecessor_ids)'
               '|| exists(@.predecessor_positions) || exists(@.on_predecessor_dead))'
           ),
           true
       )
    then
        v_stored := rowq.internal_store_unkeyed(v_part_id, p_messages, v_max_length, v_now);
        if v_stored.o_message_ids is null then
            return;
        end if;
    end if;
    if v_stored.o_message_ids is not null then
        perform rowq.internal_require_part(v_part_id, p_queue_name);
        if v_stored.o_lanes is not null then
            perform rowq.internal_open_lanes(v_part_id, v_stored.o_lanes);
            if rowq.internal_is_listened(v_part_id) then
                perform pg_notify('rowq', p_queue_name);
            end if;
        end if;
        return query
        select s.place::integer, s.message_id, 'enqueued'
        from unnest(v_stored.o_message_ids) with ordinality s (message_id, place);
        return;
    end if;

    select array_agg(row(
               v_part_id, p.max_attempts, nextval('rowq.message_seq'), v_now, p.message_type,
               p.dedup_key, p.group_key, p.headers, p.body, p.body_binary, null,
               v_now + make_interval(secs => p.expire_seconds)
           )::rowq.message),
           array_agg((p.priority * 2 + 1)::smallint),
           array_agg(coalesce(p.run_at, v_now + make_interval(secs => p.delay_seconds))),
           bool_or(p.expire_seconds is not null)
    into v_messages, v_lanes, v_due_ats, v_expires
    from rowq.internal_parse_messages(p_messages, v_max_length) p;
    if v_messages is null then
        return;
    end if;

    v_kept_ids := rowq.internal_reserve_dedup_keys(v_part_id, v_messages);

    -- Messages of this batch that others of it wait for need no second write.
    select array_agg(distinct v_kept_ids[p.place]) into v_awaited
    from (
        select e.position::integer as place
        from jsonb_path_query(
            p_messages, '$[*].predecessor_positions[*] ? (@ >= 1 && @ <= 10000)'
        ) e ("position")
    ) p
    where v_kept_ids[p.place] = v_messages[p.place].message_id;

    insert into rowq.message (
        part_id, max_attempts, message_id, enqueued_at, message_type, dedup_key,
        headers, body, body_binary, group_key, has_successors, expires_at
    )
    select v_part_id, m.max_attempts, m.message_id, m.enqueued_at, m.message_type, m.dedup_key,
           m.headers, m.body, m.body_binary, m.group_key,
           case when m.message_id = any (v_awaited) then true end, m.expires_at
    from unnest(v_messages, v_kept_ids) m (
        part_id, max_attempts, message_id, enqueued_at, message_type, dedup_key,
        group_key, headers, body, body_binary, has_successors, expires_at,
        kept_id
    )
    where m.message_id = m.kept_id;
    perform rowq.internal_require_part(v_part_id, p_queue_name);

    if v_expires then
        perform rowq.internal_open_lanes(v_part_id, '{-7}'::smallint[]);
        insert into rowq.expiry (part_id, lane, expires_at, message_id, seq)
        select v_part_id, m.lane, m.expires_at, m.message_id, m.message_id
        from unnest(v_messages, v_kept_ids, v_lanes) m (
            part_id, max_attempts, message_id, enqueued_at, message_type, dedup_key,
            group_key, headers, body, body_binary, has_successors, expires_at, kept_id, lane
        )
        where m.message_id = m.kept_id
          and m.expires_at is not null;
    end if;

    v_ties := rowq.internal_parse_predecessors(
        v_part_id, p_messages, v_messages, v_kept_ids, v_lanes, v_due_ats, v_now
    );

    -- Enter groups before predecessors are held: whoever ends one of those waits for this
    -- transaction, which must wait for nobody from then on.
    perform rowq.internal_open_lanes(v_part_id, array_agg(m.lane))
    from unnest(v_lanes, v_due_ats) m (lane, due_at)
    where m.due_at <= v_now or m.due_at is null;
    if v_ties <> '{}' then
        -- The archive looks for messages that wait only where this lane is.
        perform rowq.internal_open_lanes(v_part_id, '{-4}'::smallint[]);
    end if;
    select rowq.internal_join_groups(
               v_part_id, array_agg(m.group_key), array_agg(m.message_id), array_agg(m.lane)
           )
    into v_waiting
    from unnest(v_messages, v_kept_ids, v_lanes, v_due_ats) m (
        part_id, max_attempts, message_id, enqueued_at, message_type, dedup_key,
        group_key, headers, body, body_binary, has_successors, expires_at,
        kept_id, lane, due_at
    )
    where m.message_id = m.kept_id
      and m.group_key is not null
      and (m.due_at <= v_now or m.due_at is null)
      and not exists (
          select
          from unnest(v_ties) t
          where t.message_id = m.message_id
      )
    having count(*) > 0;

    v_blocked := rowq.internal_block_batch(v_part_id, v_ties, v_awaited);

    insert into rowq.delayed (part_id, lane, message_id, due_at, group_key)
    select v_part_id, m.lane, m.message_id, m.due_at, m.group_key
    from unnest(v_messages, v_kept_ids, v_lanes, v_due_ats) m (
        part_id, max_attempts, message_id, enqueued_at, message_type, dedup_key,
        group_key, headers, body, body_binary, has_successors, expires_at,
        kept_id, lane, due_at
    )
    where m.message_id = m.kept_id
      and m.due_at > v_now
      and m.message_id <> all (v_blocked);

    insert into rowq.ready (part_id, lane, seq, message_id)
    select v_part_id, m.lane, m.message_id, m.message_id
    from unnest(v_messages, v_kept_ids, v_lanes, v_due_ats) m (
        part_id, max_attempts, message_id, enqueued_at, message_type, dedup_key,
        group_key, headers, body, body_binary, has_successors, expires_at,
        kept_id, lane, due_at
    )
    where m.message_id = m.kept_id
      and (m.due_at <= v_now or m.due_at is null)
      and m.message_id <> all (v_blocked)
      and m.message_id = any (v_waiting) is not true;
    if found and rowq.internal_is_listened(v_part_id) then
        perform pg_notify('rowq', p_queue_name);
    end if;

    return query
    select m.place::integer, m.kept_id,
           case when m.message_id = m.kept_id then 'enqueued' else 'duplicate' end
    from unnest(v_messages, v_kept_ids) with ordinality m (
        part_id, max_attempts, message_id, enqueued_at, message_type, dedup_key,
        group_key, headers, body, body_binary, has_successors, expires_at,
        kept_id, place
    );
end;
$$;

-- [file routines/publish.sql]
create or replace function rowq.publish(
    p_topic          text,
    p_body           text default null,
    p_body_binary    bytea default null,
    p_message_type   text default null,
    p_headers        jsonb default null,
    p_priority       integer default 5,
    p_delay_seconds  double precision default null,
    p_run_at         timestamp with time zone default null,
    p_dedup_key      text default null,
    p_max_attempts   integer default null,
    p_group_key      text default null,
    p_expire_seconds double precision default null
)
returns table (queue_name text, message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   publish
-- version   1
-- purpose   Hand over one message to each queue that is bound to a topic, in the order of their names; to none where none is. Without a message_type it is the topic.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as internal_bound_queues; as enqueue, queue by queue in the order of their names
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_fault      text;
    v_queue_name text;
begin
    -- What is wrong is refused where no queue is bound, too.
    v_fault := coalesce(
        rowq.internal_topic_fault('topic', p_topic, false),
        rowq.internal_message_fault(
            p_body, p_body_binary, p_message_type, p_headers, p_priority, p_delay_seconds,
            p_run_at, p_dedup_key, p_max_attempts, p_group_key, null, null, p_expire_seconds
        )
    );
    if v_fault is not null then
        raise exception 'RQ711 invalid_argument: %', v_fault
            using errcode = 'RQ711';
    end if;

    for v_queue_name in
        select b.queue_name
        from rowq.internal_bound_queues(array[p_topic]) b
        order by b.queue_name collate "C"
    loop
        return query
        select v_queue_name, e.message_id, e.outcome
        from rowq.enqueue(
            v_queue_name, p_body, p_body_binary, coalesce(p_message_type, p_topic), p_headers,
            p_priority, p_delay_seconds, p_run_at, p_dedup_key, p_max_attempts, p_group_key,
            p_expire_seconds => p_expire_seconds
        ) e;
    end loop;
end;
$$;

-- [file routines/publish_batch.sql]
create or replace function rowq.publish_batch(p_messages jsonb)
returns table ("position" integer, queue_name text, message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   publish_batch
-- version   1
-- purpose   Do what publish does with many messages in one call, queue by queue: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as internal_bound_queues; as enqueue_batch, queue by queue in the order of their names
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_given   record;
    v_lengths integer[];
    v_queue   record;
begin
    v_given := rowq.internal_take_topics(p_messages);
    -- What is wrong is refused by its place in the whole batch, where no queue is bound, too. The
    -- length of a body is for each queue to judge.
    select array_agg(
               coalesce(char_length(p.body), octet_length(p.body_binary), 0) order by p.place
           )
    into v_lengths
    from rowq.internal_parse_messages(v_given.p_messages, 2147483647) p;

    for v_queue in
        select b.queue_name, b.max_body_length,
               array_agg(e.place::integer order by e.place) as places,
               jsonb_agg(e.message order by e.place) as messages,
               min(e.place) filter (where e.body_length > b.max_body_length) as too_long_place
        from rowq.internal_bound_queues(v_given.o_topics) b
        join rows from (
            jsonb_array_elements(v_given.p_messages),
            unnest(v_given.o_topics),
            unnest(v_lengths)
        ) with ordinality e (message, topic, body_length, place) on e.topic = b.topic
        group by b.queue_name, b.max_body_length
        order by b.queue_name collate "C"
    loop
        if v_queue.too_long_place is not null then
            raise exception
                'RQ711 invalid_argument: body is % long, % takes %: max_body_length (message %)',
                v_lengths[v_queue.too_long_place], v_queue.queue_name, v_queue.max_body_length,
                v_queue.too_long_place
                using errcode = 'RQ711';
        end if;

        return query
        select v_queue.places[s.position], v_queue.queue_name, s.message_id, s.outcome
        from rowq.enqueue_batch(v_queue.queue_name, v_queue.messages) s;
    end loop;
end;
$$;

-- [file routines/dequeue_fast.sql]
create or replace function rowq.dequeue_fast(
    p_queue_name    text,
    p_batch_size    integer default 1,
    p_worker_name   text default null,
    p_lease_seconds integer default null
)
returns table (
    claim_id     bigint,
    message_id   bigint,
    attempt      integer,
    message_type text,
    headers      jsonb,
    body         text,
    body_binary  bytea,
    enqueued_at  timestamp with time zone,
    lease_until  timestamp with time zone,
    last_error   text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   dequeue_fast
-- version   1
-- purpose   Lease up to batch_size ready messages to one new claim, passing over rows that another session holds.
-- promise   P02 P03 P05 P06 P07 P13 P18 P28 P29
-- locks     ready rows, passing over locked ones; the new claim row; where the queue has limits,
--           its gate, waited for a tenth of a second and held until the caller's transaction ends
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ713
-- differs   the batch is held as arrays in the claim row
#variable_conflict use_column
declare
    v_part_id       integer;
    v_lease_seconds integer;
    v_is_paused     boolean;
    v_has_recheck   boolean;
    v_max_leased    integer;
    v_rate_limit    integer;
    v_rate_seconds  double precision;
    v_is_limited    boolean := false;
    v_admitted      record;
    v_claim_id      bigint;
    v_lease_until   timestamp with time zone;
    v_lane          smallint := -1;
    v_floor         bigint;
    v_seq           bigint;
    v_message_id    bigint;
    v_attempt       smallint;
    v_error         text;
    v_is_second     boolean := false;
    v_taken         record;
begin
    -- Check.
    if p_batch_size is null
       or p_batch_size not between 1 and 1000
       or p_lease_seconds not between 1 and 86400
       or char_length(p_worker_name) > 200 then
        raise exception 'RQ711 invalid_argument: %',
            case
                when p_batch_size between 1 and 1000 and p_lease_seconds not between 1 and 86400
                    then 'lease_seconds must be between 1 and 86400, got ' || p_lease_seconds
                when p_batch_size between 1 and 1000
                    then 'worker_name is longer than 200 characters'
                else 'batch_size must be between 1 and 1000, got '
                    || coalesce(p_batch_size::text, 'null')
            end
            using errcode = 'RQ711';
    end if;

    select q.part_id, q.lease_seconds, q.paused_at is not null, q.has_recheck,
           q.max_leased, q.rate_limit, q.rate_seconds
    into v_part_id, v_lease_seconds, v_is_paused, v_has_recheck,
         v_max_leased, v_rate_limit, v_rate_seconds
    from rowq.queue q
    where q.queue_name = p_queue_name;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;
    if v_is_paused then
        return;
    end if;
    if v_max_leased + v_rate_limit > 0 then
        v_is_limited := true;
        v_admitted := rowq.internal_admit(
            v_part_id, p_batch_size, v_max_leased, v_rate_limit, v_rate_seconds
        );
        p_batch_size := v_admitted.o_room;
        v_rate_limit := v_admitted.o_rate_limit;
        if p_batch_size = 0 then
            return;
        end if;
    end if;

    -- Lease one message from the best lane that has one. A helper, and the arrays of a batch, would
    -- cost a tenth of the call.
    while p_batch_size = 1 and not v_is_limited loop
        -- Find the next lane that was ever used, and its newest floor, in one step.
        select f.lane, f.seq into v_lane, v_floor
        from rowq.floor f
        where f.part_id = v_part_id
          and f.lane > v_lane
        order by f.part_id, f.lane, f.generation
        limit 1;
        exit when not found;

        select r.seq, r.message_id, (r.attempt + 1)::smallint, r.last_error
        into v_seq, v_message_id, v_attempt, v_error
        from rowq.ready r
        where r.part_id = v_part_id
          and r.lane = v_lane
          and r.seq >= v_floor
        order by r.part_id, r.lane, r.seq
        limit 1
        for update skip locked;
        continue when not found;

        delete from rowq.ready r
        where r.part_id = v_part_id
          and r.lane = v_lane
          and r.seq = v_seq;

        -- Moving the floor costs about as much as the rest of the call, far more than to walk over
        -- some dead rows. So of the dequeues that find it more than eight numbers away one in ten
        -- does it, and each one that finds it more than a thousand away.
        if (v_seq - v_floor > 8 and random() < 0.1) or v_seq - v_floor > 1000 then
            perform rowq.internal_move_floor(v_part_id, v_lane, true, p_cap => v_seq + 1);
        end if;

        insert into rowq.claim (
            part_id, lease_until, message_ids, lanes, attempts, errors, worker_name
        )
        values (
            v_part_id,
            clock_timestamp() + make_interval(secs => coalesce(p_lease_seconds, v_lease_seconds)),
            array[v_message_id], array[v_lane], array[v_attempt],
            case when v_error is not null then array[v_error] end,
            p_worker_name
        )
        returning claim_id, lease_until
        into v_claim_id, v_lease_until;
        return query
        select v_claim_id, m.message_id, v_attempt::integer, m.message_type, m.headers,
               m.body, m.body_binary, m.enqueued_at, v_lease_until, v_error
        from rowq.message m
        where m.part_id = v_part_id
          and m.message_id = v_message_id;
        return;
    end loop;

    -- Lease a batch, or one message after all.
    loop
        if p_batch_size > 1 or v_is_second or v_is_limited then
            v_taken := rowq.internal_pop_ready(v_part_id, p_batch_size);
            exit when v_taken.o_message_ids is not null;
        end if;

        -- Nothing is ready: what has become due meanwhile need not wait for maintain, nor what was
        -- left to be looked at again. But maintain finds what was promoted below the floor, by a
        -- sequence that was set back.
        if v_is_second
           or rowq.internal_promote(v_part_id, p_batch_size) = 0
              and (not v_has_recheck or rowq.internal_recheck(v_part_id, 10) = 0) then
            return;
        end if;
        v_is_second := true;
    end loop;

    insert into rowq.claim (
        part_id, lease_until, message_ids, lanes, attempts, errors, worker_name
    )
    values (
        v_part_id,
        clock_timestamp() + make_interval(secs => coalesce(p_lease_seconds, v_lease_seconds)),
        v_taken.o_message_ids, v_taken.o_lanes, v_taken.o_attempts,
        case when array_remove(v_taken.o_errors, null) <> '{}' then v_taken.o_errors end,
        p_worker_name
    )
    returning claim_id, lease_until
    into v_claim_id, v_lease_until;
    if v_rate_limit > 0 then
        perform rowq.internal_note_start(
            v_part_id,
            v_claim_id,
            v_lease_until - make_interval(secs => coalesce(p_lease_seconds, v_lease_seconds)),
            cardinality(v_taken.o_message_ids)
        );
    end if;

    -- Rows of one message.
    if cardinality(v_taken.o_message_ids) = 1 then
        return query
        select v_claim_id, m.message_id, v_taken.o_attempts[1]::integer, m.message_type, m.headers,
               m.body, m.body_binary, m.enqueued_at, v_lease_until, v_taken.o_errors[1]
        from rowq.message m
        where m.part_id = v_part_id
          and m.message_id = v_taken.o_message_ids[1];
        return;
    end if;

    -- Rows of messages whose ids are close together: one range scan instead of a lookup for each. A
    -- full join cannot be a nested loop, and offset keeps the planner from making it another join.
    if v_taken.o_greatest_id - v_taken.o_least_id < 2 * cardinality(v_taken.o_message_ids) then
        return query
        select v_claim_id, j.message_id, j.attempt::integer, j.message_type, j.headers,
               j.body, j.body_binary, j.enqueued_at, v_lease_until, j.last_error
        from (
            select u.place, u.message_id, u.attempt, u.last_error,
                   m.message_type, m.headers, m.body, m.body_binary, m.enqueued_at
            from unnest(v_taken.o_message_ids, v_taken.o_attempts, v_taken.o_errors)
                with ordinality u (message_id, attempt, last_error, place)
            full join (
                select x.message_id, x.message_type, x.headers, x.body, x.body_binary, x.enqueued_at
                from rowq.message x
                where x.part_id = v_part_id
                  and x.message_id between v_taken.o_least_id and v_taken.o_greatest_id
            ) m on m.message_id = u.message_id
            offset 0
        ) j
        where j.place is not null
        order by j.place;
        return;
    end if;

    -- Rows of messages that lie apart: a lookup for each, which offset keeps whatever the planner
    -- thinks of the sizes.
    return query
    select v_claim_id, u.message_id, u.attempt::integer, m.message_type, m.headers,
           m.body, m.body_binary, m.enqueued_at, v_lease_until, u.last_error
    from unnest(v_taken.o_message_ids, v_taken.o_attempts, v_taken.o_errors)
        with ordinality u (message_id, attempt, last_error, place)
    cross join lateral (
        select x.message_type, x.headers, x.body, x.body_binary, x.enqueued_at
        from rowq.message x
        where x.part_id = v_part_id
          and x.message_id = u.message_id
        offset 0
    ) m
    order by u.place;
end;
$$;

-- [file routines/dequeue_wait.sql]
create or replace procedure rowq.dequeue_wait(
    p_queue_name     text,
    p_batch_size     integer default 1,
    p_worker_name    text default null,
    p_lease_seconds  integer default null,
    p_wait_seconds   double precision default 20,
    inout p_messages jsonb default null
)
language plpgsql
as $$
-- routine   dequeue_wait
-- version   1
-- purpose   Do what dequeue_fast does, but wait until something is ready or the time is up; return fewer messages where they are long.
-- promise   P03 P17
-- locks     as dequeue_fast; none while waiting
-- commits   after each look, so that no snapshot is held while it waits; needs autocommit
-- errors    RQ701 RQ711 RQ713
-- differs   rows come as one JSON array; caller's rights, as only such a procedure may commit
declare
    v_until timestamp with time zone;
    v_pause double precision := 0.01;
begin
    -- Every name has its schema and no operator is used, because this procedure runs with the
    -- caller's search_path.
    v_until := rowq.internal_wait_until(p_wait_seconds);
    call rowq.internal_require_autocommit('dequeue_wait');

    loop
        select l.o_messages, l.o_pause
        into p_messages, v_pause
        from rowq.internal_poll(
            p_queue_name, p_batch_size, p_worker_name, p_lease_seconds, v_until, v_pause
        ) l;
        commit;

        exit when v_pause is null;
        perform pg_catalog.pg_sleep(v_pause);
    end loop;
end;
$$;

-- [file routines/peek.sql]
create or replace function rowq.peek(p_queue_name text, p_max_messages integer default 1)
returns table (
    message_id   bigint,
    priority     integer,
    attempt      integer,
    message_type text,
    headers      jsonb,
    body         text,
    body_binary  bytea,
    enqueued_at  timestamp with time zone,
    last_error   text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   peek
-- version   1
-- purpose   Show the next ready messages without leasing them.
-- promise   P05
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue   rowq.queue;
    v_lane    smallint := -1;
    v_floor   bigint;
    v_wanted  integer := p_max_messages;
    v_counted integer;
begin
    if p_max_messages is null or p_max_messages not between 1 and 1000 then
        raise exception 'RQ711 invalid_argument: max_messages must be between 1 and 1000, got %',
            p_max_messages
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    while v_wanted > 0 loop
        select f.lane, f.seq into v_lane, v_floor
        from rowq.floor f
        where f.part_id = v_queue.part_id
          and f.lane > v_lane
        order by f.part_id, f.lane, f.generation
        limit 1;
        exit when not found;

        return query
        select h.message_id, v_lane / 2, h.attempt::integer, m.message_type, m.headers, m.body,
               m.body_binary, m.enqueued_at, h.last_error
        from (
            select r.message_id, r.attempt, r.last_error, r.seq
            from rowq.ready r
            where r.part_id = v_queue.part_id
              and r.lane = v_lane
              and r.seq >= v_floor
            order by r.part_id, r.lane, r.seq
            limit v_wanted
        ) h
        cross join lateral (
            select x.message_type, x.headers, x.body, x.body_binary, x.enqueued_at
            from rowq.message x
            where x.part_id = v_queue.part_id
              and x.message_id = h.message_id
            offset 0
        ) m
        order by h.seq;
        get diagnostics v_counted = row_count;
        v_wanted := v_wanted - v_counted;
    end loop;
end;
$$;

-- [file routines/complete.sql]
create or replace function rowq.complete(
    p_queue_name  text,
    p_claim_id    bigint,
    p_message_ids bigint[] default null,
    p_results     jsonb default null
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   complete
-- version   1
-- purpose   Finish messages: they are gone, or in the archive, and never delivered again.
-- promise   P04 P08 P21 P22 P23 P24 P26 P32 P37
-- locks     the claim row first; then new history rows; message and dedup rows, waiting for who has
--           just named one of the messages as a predecessor; rows of groups and of messages that
--           wait, tried only
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
#variable_conflict use_column
declare
    v_part_id        integer;
    v_archive_days   integer;
    v_result_seconds double precision;
    v_history_days   integer;
    v_message_ids    bigint[];
    v_lanes          smallint[];
    v_attempts       smallint[];
    v_message_id     bigint;
    v_dedup_key      text;
    v_group_key      text;
    v_is_awaited     boolean;
    v_worker_name    text;
    v_leased_at      timestamp with time zone;
begin
    select q.part_id, q.archive_days, q.result_seconds, q.history_days
    into v_part_id, v_archive_days, v_result_seconds, v_history_days
    from rowq.queue q
    where q.queue_name = p_queue_name;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;

    if p_results is not null then
        perform rowq.internal_check_results(
            p_results, coalesce(cardinality(p_message_ids), 1), v_result_seconds
        );
    end if;

    -- Nearly always the whole claim is completed, which takes one statement. internal_pop_claimed
    -- does everything else, and says what the history needs.
    if v_history_days = 0 then
        delete from rowq.claim c
        where c.part_id = v_part_id
          and c.claim_id = p_claim_id
          and (p_message_ids is null or c.message_ids = p_message_ids)
        returning c.message_ids, c.lanes, c.attempts into v_message_ids, v_lanes, v_attempts;
    end if;

    -- One message of a larger claim is cut out of the arrays without reading them, because only the
    -- archive and the history need its lane and attempt.
    if v_message_ids is null and cardinality(p_message_ids) = 1
       and v_archive_days + v_history_days = 0 then
        v_message_id := p_message_ids[1];
        update rowq.claim c
        set message_ids = array_remove(c.message_ids, v_message_id),
            lanes       = c.lanes[:array_position(c.message_ids, v_message_id) - 1]
                       || c.lanes[array_position(c.message_ids, v_message_id) + 1:],
            attempts    = c.attempts[:array_position(c.message_ids, v_message_id) - 1]
                       || c.attempts[array_position(c.message_ids, v_message_id) + 1:],
            errors      = c.errors[:array_position(c.message_ids, v_message_id) - 1]
                       || c.errors[array_position(c.message_ids, v_message_id) + 1:],
            cancel_ids  = nullif(array_remove(c.cancel_ids, v_message_id), '{}')
        where c.part_id = v_part_id
          and c.claim_id = p_claim_id
          and array_position(c.message_ids, v_message_id) is not null
          and cardinality(c.message_ids) > 1;
        if found then
            v_message_ids := p_message_ids;
        end if;
    end if;

    if v_message_ids is null then
        select t.o_message_ids, t.o_lanes, t.o_attempts, t.o_worker_name, t.o_leased_at
        into v_message_ids, v_lanes, v_attempts, v_worker_name, v_leased_at
        from rowq.internal_pop_claimed(v_part_id, p_claim_id, p_message_ids) t;
    end if;

    if p_results is not null and p_message_ids is null and cardinality(v_message_ids) > 1 then
        raise exception
            'RQ711 invalid_argument: results without message_ids are of a claim of one message'
            using errcode = 'RQ711';
    end if;

    if v_history_days > 0 then
        perform rowq.internal_push_history(
            v_part_id, p_claim_id, v_worker_name, v_leased_at, v_message_ids, v_attempts,
            'completed'
        );
    end if;

    -- One message without an archive is deleted here, because a call of internal_finish would cost
    -- more statements.
    if v_archive_days = 0 and cardinality(v_message_ids) = 1 then
        delete from rowq.message m
        where m.part_id = v_part_id
          and m.message_id = v_message_ids[1]
        returning m.dedup_key, m.group_key, m.has_successors
        into v_dedup_key, v_group_key, v_is_awaited;
        if v_dedup_key is not null or v_group_key is not null or v_is_awaited then
            perform rowq.internal_cut_ties(
                v_part_id,
                array[array[
                    v_dedup_key, v_group_key, case when v_is_awaited then v_message_ids[1]::text end
                ]],
                v_message_ids, true
            );
        end if;
    elsif v_message_ids <> '{}' then
        perform rowq.internal_finish(
            v_part_id, v_archive_days, v_message_ids, v_lanes, v_attempts, 'completed'
        );
    end if;

    if v_result_seconds > 0 and v_message_ids <> '{}' then
        perform rowq.internal_push_result(
            v_part_id, v_message_ids, 'completed', null, p_results,
            coalesce(p_message_ids, v_message_ids)
        );
    end if;

    foreach message_id in array coalesce(p_message_ids, v_message_ids) loop
        outcome := case when message_id = any (v_message_ids) then 'completed' else 'stale' end;
        return next;
    end loop;
end;
$$;

-- [file routines/retry_later.sql]
create or replace function rowq.retry_later(
    p_queue_name    text,
    p_claim_id      bigint,
    p_message_ids   bigint[] default null,
    p_delay_seconds double precision default null,
    p_error         text default null
)
returns table (message_id bigint, outcome text, due_at timestamp with time zone)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   retry_later
-- version   1
-- purpose   Give messages back for another attempt after a delay, the queue's backoff unless delay_seconds is given; without an attempt left they are dead.
-- promise   P08 P10 P34 P37
-- locks     the claim row first; then new delayed, ready, dead or history rows, and for
--           cancelled messages as complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
#variable_conflict use_column
declare
    v_queue    rowq.queue;
    v_taken    record;
    v_now      timestamp with time zone;
    v_lanes    smallint[];
    v_ids      bigint[];
    v_attempts smallint[];
    v_due_ats  timestamp with time zone[];
    v_dead     record;
begin
    perform rowq.internal_check_range('delay_seconds', p_delay_seconds, 0, 315360000);
    v_queue := rowq.internal_require_queue(p_queue_name);

    v_taken := rowq.internal_pop_claimed(v_queue.part_id, p_claim_id, p_message_ids);
    if v_taken.o_cancel_ids is not null then
        v_taken := rowq.internal_end_cancelled(
            v_queue.part_id, v_taken.o_message_ids, v_taken.o_lanes, v_taken.o_attempts,
            v_taken.o_errors, v_taken.o_cancel_ids, p_claim_id, v_taken.o_worker_name,
            v_taken.o_leased_at
        );
    end if;

    -- Read the clock after internal_pop_claimed, which has given the transaction its id:
    -- internal_move_floor relies on this order.
    v_now := clock_timestamp();
    select array_agg((u.lane / 2 * 2 + 1)::smallint),
           array_agg(u.message_id),
           array_agg(u.attempt),
           array_agg(v_now + make_interval(secs => coalesce(
               p_delay_seconds,
               least(
                   v_queue.backoff_cap_seconds,
                   v_queue.backoff_base_seconds
                   * power(v_queue.backoff_factor, least(u.attempt - 1, 60))
               ) * (1 - v_queue.backoff_jitter * random())
           )))
    into v_lanes, v_ids, v_attempts, v_due_ats
    from rowq.internal_with_max_attempts(
        v_queue.part_id, v_taken.o_message_ids, v_taken.o_lanes, v_taken.o_attempts,
        v_queue.max_attempts
    ) u
    where u.attempt < u.allowed;

    select array_agg(u.lane) lanes, array_agg(u.message_id) ids, array_agg(u.attempt) attempts
    into v_dead
    from unnest(v_taken.o_message_ids, v_taken.o_lanes, v_taken.o_attempts)
        u (message_id, lane, attempt)
    where u.message_id <> all (coalesce(v_ids, '{}'));

    if v_queue.history_days > 0 then
        perform rowq.internal_push_history(
            v_queue.part_id, p_claim_id, v_taken.o_worker_name, v_taken.o_leased_at,
            v_taken.o_message_ids, v_taken.o_attempts, 'retrying', p_error, v_dead.ids
        );
    end if;
    if v_ids is not null then
        perform rowq.internal_push_delayed(
            v_queue.part_id, v_lanes, v_ids, v_attempts, v_due_ats, v_now, left(p_error, 2000)
        );
    end if;
    if v_dead.ids is not null then
        perform rowq.internal_push_dead(
            v_queue.part_id, v_dead.lanes, v_dead.ids, v_dead.attempts,
            array_fill(p_error, array[cardinality(v_dead.ids)])
        );
    end if;

    return query
    select u.message_id,
           case
               when u.message_id = any (v_ids) then 'retrying'
               when u.message_id = any (v_dead.ids) then 'dead'
               when u.message_id = any (v_taken.o_cancel_ids) then 'cancelled'
               else 'stale'
           end,
           v_due_ats[array_position(v_ids, u.message_id)]
    from unnest(
        coalesce(p_message_ids, v_taken.o_message_ids || v_taken.o_cancel_ids)
    ) u (message_id);
end;
$$;

-- [file routines/fail_now.sql]
create or replace function rowq.fail_now(
    p_queue_name  text,
    p_claim_id    bigint,
    p_message_ids bigint[] default null,
    p_error       text default null
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   fail_now
-- version   1
-- purpose   Declare messages dead without another attempt.
-- promise   P08 P10 P34 P37
-- locks     the claim row first; then new dead and history rows and dedup rows, and for cancelled
--           messages as complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
    v_taken record;
begin
    v_queue := rowq.internal_require_queue(p_queue_name);

    v_taken := rowq.internal_pop_claimed(v_queue.part_id, p_claim_id, p_message_ids);
    if v_taken.o_cancel_ids is not null then
        v_taken := rowq.internal_end_cancelled(
            v_queue.part_id, v_taken.o_message_ids, v_taken.o_lanes, v_taken.o_attempts,
            v_taken.o_errors, v_taken.o_cancel_ids, p_claim_id, v_taken.o_worker_name,
            v_taken.o_leased_at
        );
    end if;

    if v_queue.history_days > 0 then
        perform rowq.internal_push_history(
            v_queue.part_id, p_claim_id, v_taken.o_worker_name, v_taken.o_leased_at,
            v_taken.o_message_ids, v_taken.o_attempts, 'dead', p_error
        );
    end if;
    if v_taken.o_message_ids <> '{}' then
        perform rowq.internal_push_dead(
            v_queue.part_id, v_taken.o_lanes, v_taken.o_message_ids, v_taken.o_attempts,
            array_fill(p_error, array[cardinality(v_taken.o_message_ids)])
        );
    end if;

    return query
    select u.message_id,
           case
               when u.message_id = any (v_taken.o_message_ids) then 'dead'
               when u.message_id = any (v_taken.o_cancel_ids) then 'cancelled'
               else 'stale'
           end
    from unnest(
        coalesce(p_message_ids, v_taken.o_message_ids || v_taken.o_cancel_ids)
    ) u (message_id);
end;
$$;

-- [file routines/release.sql]
create or replace function rowq.release(
    p_queue_name  text,
    p_claim_id    bigint,
    p_message_ids bigint[] default null
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   release
-- version   1
-- purpose   Give messages back to the front of their priority without spending the attempt.
-- promise   P08 P34 P37
-- locks     the claim row first; then new ready and history rows, and for cancelled messages as
--           complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
#variable_conflict use_column
declare
    v_queue    rowq.queue;
    v_taken    record;
    v_lanes    smallint[];
    v_attempts smallint[];
    v_errors   text[];
begin
    v_queue := rowq.internal_require_queue(p_queue_name);

    v_taken := rowq.internal_pop_claimed(v_queue.part_id, p_claim_id, p_message_ids);
    if v_taken.o_cancel_ids is not null then
        v_taken := rowq.internal_end_cancelled(
            v_queue.part_id, v_taken.o_message_ids, v_taken.o_lanes, v_taken.o_attempts,
            v_taken.o_errors, v_taken.o_cancel_ids, p_claim_id, v_taken.o_worker_name,
            v_taken.o_leased_at
        );
    end if;

    if v_queue.history_days > 0 then
        perform rowq.internal_push_history(
            v_queue.part_id, p_claim_id, v_taken.o_worker_name, v_taken.o_leased_at,
            v_taken.o_message_ids, v_taken.o_attempts, 'released'
        );
    end if;
    if v_taken.o_message_ids <> '{}' then
        select array_agg((u.lane / 2 * 2)::smallint order by u.place),
               array_agg((u.attempt - 1)::smallint order by u.place),
               array_agg(u.last_error order by u.place)
        into v_lanes, v_attempts, v_errors
        from unnest(v_taken.o_lanes, v_taken.o_attempts, v_taken.o_errors)
            with ordinality u (lane, attempt, last_error, place);

        perform rowq.internal_push_ready(
            v_queue.part_id, v_lanes, v_taken.o_message_ids, v_attempts, v_errors
        );
    end if;

    return query
    select u.message_id,
           case
               when u.message_id = any (v_taken.o_message_ids) then 'released'
               when u.message_id = any (v_taken.o_cancel_ids) then 'cancelled'
               else 'stale'
           end
    from unnest(
        coalesce(p_message_ids, v_taken.o_message_ids || v_taken.o_cancel_ids)
    ) u (message_id);
end;
$$;

-- [file routines/extend_lease.sql]
create or replace function rowq.extend_lease(
    p_queue_name    text,
    p_claim_id      bigint,
    p_lease_seconds integer default null,
    p_progress      text default null
)
returns table (claim_id bigint, lease_until timestamp with time zone, cancel_ids bigint[])
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   extend_lease
-- version   1
-- purpose   Heartbeat: hold all messages of a claim for lease_seconds from now; a lease is never shortened.
-- promise   P08 P34
-- locks     the claim row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
#variable_conflict use_column
declare
    v_part_id       integer;
    v_lease_seconds integer;
    v_lease_until   timestamp with time zone;
    v_now           timestamp with time zone;
    v_tries         integer := 0;
begin
    if p_claim_id is null then
        raise exception 'RQ711 invalid_argument: claim_id is missing'
            using errcode = 'RQ711';
    end if;
    perform rowq.internal_check_range('lease_seconds', p_lease_seconds, 1, 86400);
    select q.part_id, coalesce(p_lease_seconds, q.lease_seconds)
    into v_part_id, v_lease_seconds
    from rowq.queue q
    where q.queue_name = p_queue_name;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;

    loop
        v_tries := v_tries + 1;
        v_now := clock_timestamp();
        v_lease_until := v_now + make_interval(secs => v_lease_seconds);
        update rowq.claim c
        set lease_until = greatest(c.lease_until, v_lease_until),
            progress    = coalesce(left(p_progress, 2000), c.progress)
        where c.part_id = v_part_id
          and c.claim_id = p_claim_id
        returning c.claim_id, c.lease_until, c.cancel_ids
        into claim_id, lease_until, cancel_ids;
        -- Where this has waited for the row, do it again, so that the lease counts from now: this
        -- transaction holds the row, so the second time waits for nobody.
        exit when not found
            or v_tries = 2
            or clock_timestamp() - v_now < interval '100 milliseconds';
    end loop;

    if not found then
        raise exception 'RQ721 stale_claim: claim % holds nothing any more', p_claim_id
            using errcode = 'RQ721';
    end if;
    return next;
end;
$$;

-- [file routines/cancel.sql]
create or replace function rowq.cancel(
    p_queue_name     text,
    p_message_ids    bigint[],
    p_include_leased boolean default false
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
set jit = off
as $$
-- routine   cancel
-- version   1
-- purpose   Withdraw messages that no worker holds, dead ones too.
-- promise   P15 P34
-- locks     claim rows, if include_leased, then delayed, dead, blocked, grouped and ready rows;
--           locked ones are passed over; then as complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that was retried or delayed is looked for among all ready ones of the queue
#variable_conflict use_column
declare
    v_queue   rowq.queue;
    v_noted   bigint[] := '{}'::bigint[];
    v_ids     bigint[] := p_message_ids;
    v_unknown bigint[];
    v_from    bigint;
begin
    if p_message_ids is null then
        raise exception 'RQ711 invalid_argument: message_ids is missing'
            using errcode = 'RQ711';
    end if;
    if not rowq.internal_is_id_list(p_message_ids) then
        raise exception
            'RQ711 invalid_argument: message_ids must be a flat list of at most 10000 ids, no null'
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    -- Look into the claims first: what is noted there is not looked for among the ready ones.
    if p_include_leased then
        v_noted := rowq.internal_note_cancels(v_queue.part_id, p_message_ids);
        v_ids := array(
            select u.message_id
            from unnest(p_message_ids) u (message_id)
            where u.message_id <> all (v_noted)
        );
    end if;
    v_ids := rowq.internal_withdraw(v_queue.part_id, v_queue.archive_days, v_ids);

    -- A message without a body is unknown, and so is one that is finished and not yet archived.
    -- Every other one that is left is in a worker's hands.
    v_from := rowq.internal_read_safe_floor(v_queue.part_id, -3::smallint);
    select coalesce(array_agg(u.message_id), '{}') into v_unknown
    from unnest(p_message_ids) u (message_id)
    where u.message_id <> all (v_ids)
      and u.message_id <> all (v_noted)
      and (
          not exists (
              select 1
              from rowq.message m
              where m.part_id = v_queue.part_id
                and m.message_id = u.message_id
          )
          or exists (
              select 1
              from rowq.finished f
              where f.part_id = v_queue.part_id
                and f.finish_id >= v_from
                and u.message_id = any (f.message_ids)
          )
      );

    return query
    select u.message_id,
           case
               when u.message_id = any (v_ids) then 'cancelled'
               when u.message_id = any (v_noted) then 'requested'
               when u.message_id = any (v_unknown) then 'not_found'
               else 'leased'
           end
    from unnest(p_message_ids) u (message_id);
end;
$$;

-- [file routines/cancel_many.sql]
create or replace function rowq.cancel_many(
    p_queue_name       text,
    p_message_type     text default null,
    p_group_key        text default null,
    p_header_name      text default null,
    p_header_value     text default null,
    p_enqueued_before  timestamp with time zone default null,
    p_after_message_id bigint default 0,
    p_max_messages     integer default 1000
)
returns table (cancelled integer, after_message_id bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
set jit = off
as $$
-- routine   cancel_many
-- version   1
-- purpose   Look at up to max_messages messages, in the order of their ids, and withdraw those that match every filter given and that no worker holds, dead ones too. At least one filter is required.
-- promise   P15
-- locks     as cancel
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that was retried or delayed is looked for among all ready ones of the queue
#variable_conflict use_column
declare
    v_queue         rowq.queue;
    v_fault         text;
    v_seen          record;
    v_claims_from   bigint;
    v_finished_from bigint;
begin
    v_fault := case
        when p_max_messages is null or p_max_messages not between 1 and 10000
            then 'max_messages must be between 1 and 10000, got '
                || coalesce(p_max_messages::text, 'null')
        when (p_header_name is null) <> (p_header_value is null)
            then 'header_name and header_value are given together'
        when char_length(p_header_name) not between 1 and 200
          or p_header_name ~ '[^\x20-\x7e]|["\\]|^-'
            then 'header_name must have 1 to 200 printable ASCII characters, no ", \ or leading -'
        when num_nonnulls(p_message_type, p_group_key, p_header_name, p_enqueued_before) = 0
            then 'a filter is missing: message_type, group_key, header_name with header_value, '
                'or enqueued_before'
    end;
    if v_fault is not null then
        raise exception 'RQ711 invalid_argument: %', v_fault
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    select array_agg(h.message_id) filter (where h.is_wanted) ids, count(*) looked_at,
           max(h.message_id) last_id
    into v_seen
    from (
        select m.message_id,
               (p_message_type is null or m.message_type = p_message_type)
               and (p_group_key is null or m.group_key = p_group_key)
               and (p_enqueued_before is null or m.enqueued_at < p_enqueued_before)
               and (
                   p_header_name is null
                   or m.headers ->> p_header_name = p_header_value
                   and case jsonb_typeof(m.headers -> p_header_name)
                       when 'number' then p_header_value ~ '^-?[0-9]+$'
                       else jsonb_typeof(m.headers -> p_header_name) in ('string', 'boolean')
                   end
               ) as is_wanted
        from rowq.message m
        where m.part_id = v_queue.part_id
          and m.message_id > coalesce(p_after_message_id, 0)
        order by m.part_id, m.message_id
        limit p_max_messages
    ) h;

    -- Leave out what a worker holds, and what is finished and not yet archived, because it would
    -- be looked for among all ready messages.
    if v_seen.ids is not null then
        v_claims_from := rowq.internal_read_safe_floor(v_queue.part_id, -1::smallint);
        v_finished_from := rowq.internal_read_safe_floor(v_queue.part_id, -3::smallint);
        v_seen.ids := array(
            select u.message_id
            from unnest(v_seen.ids) u (message_id)
            except
            select x.message_id
            from rowq.claim c
            cross join lateral unnest(c.message_ids) x (message_id)
            where c.part_id = v_queue.part_id
              and c.claim_id >= v_claims_from
            except
            select x.message_id
            from rowq.finished f
            cross join lateral unnest(f.message_ids) x (message_id)
            where f.part_id = v_queue.part_id
              and f.finish_id >= v_finished_from
        );
    end if;

    cancelled := 0;
    if v_seen.ids <> '{}' then
        cancelled := cardinality(
            rowq.internal_withdraw(v_queue.part_id, v_queue.archive_days, v_seen.ids)
        );
    end if;
    if v_seen.looked_at = p_max_messages then
        after_message_id := v_seen.last_id;
    end if;
    return next;
end;
$$;

-- [file routines/reset.sql]
create or replace function rowq.reset(
    p_queue_name   text,
    p_message_ids  bigint[] default null,
    p_max_messages integer default 1000,
    p_message_type text default null,
    p_died_before  timestamp with time zone default null
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
set jit = off
as $$
-- routine   reset
-- version   1
-- purpose   Make dead messages ready again, at the tail of their priority, with fresh attempts; null takes the oldest max_messages.
-- promise   P10 P12 P32
-- locks     dead rows, passing over locked ones; dedup rows; result rows; new ready rows;
--           groups as enqueue
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_dead       record;
    v_reset      record;
    v_group_keys text[];
    v_taken      bigint[];
    v_waiting    bigint[];
begin
    v_dead := rowq.internal_lock_dead(
        p_queue_name, p_message_ids, p_max_messages, p_message_type, p_died_before
    );

    -- A dedup key has one owner at a time, so a dead message whose key is taken stays dead.
    insert into rowq.dedup (part_id, message_id, dedup_key)
    select m.part_id, m.message_id, m.dedup_key
    from rowq.message m
    where m.part_id = v_dead.o_part_id
      and m.message_id = any (v_dead.o_message_ids)
      and m.dedup_key is not null
    order by m.dedup_key, m.message_id
    on conflict (part_id, dedup_key) do nothing;

    select coalesce(array_agg(m.message_id), '{}') into v_taken
    from rowq.message m
    where m.part_id = v_dead.o_part_id
      and m.message_id = any (v_dead.o_message_ids)
      and m.dedup_key is not null
      and not exists (
          select 1
          from rowq.dedup d
          where d.part_id = m.part_id
            and d.dedup_key = m.dedup_key
            and d.message_id = m.message_id
      );

    with from_dead as (
        delete from rowq.dead d
        where d.part_id = v_dead.o_part_id
          and d.message_id = any (v_dead.o_message_ids)
          and d.message_id <> all (v_taken)
        returning d.message_id, d.lane, d.last_error, d.holds_group
    )
    select coalesce(array_agg(f.message_id order by f.message_id), '{}') ids,
           array_agg((f.lane / 2 * 2 + 1)::smallint order by f.message_id) lanes,
           array_agg(f.last_error order by f.message_id) errors,
           array_agg(f.holds_group order by f.message_id) holds
    into v_reset
    from from_dead f;

    -- One that has kept the token of its group goes on as if it had none.
    select array_agg(case when u.holds_group then null else m.group_key end order by u.place)
    into v_group_keys
    from unnest(v_reset.ids, v_reset.holds) with ordinality u (message_id, holds_group, place)
    left join lateral (
        select x.group_key
        from rowq.message x
        where x.part_id = v_dead.o_part_id
          and x.message_id = u.message_id
        offset 0
    ) m on true;

    -- A message that is alive again has not ended.
    delete from rowq.result r
    where r.part_id = v_dead.o_part_id
      and r.message_id = any (v_reset.ids);

    if array_remove(v_group_keys, null) <> '{}' then
        v_waiting := rowq.internal_join_groups(
            v_dead.o_part_id, v_group_keys, v_reset.ids, v_reset.lanes, v_reset.errors
        );
        perform rowq.internal_note_expiry(v_dead.o_part_id, v_waiting);
    end if;
    perform rowq.internal_push_ready(
        v_dead.o_part_id, array_agg(u.lane order by u.place),
        array_agg(u.message_id order by u.place), array_agg(0::smallint),
        array_agg(u.last_error order by u.place)
    )
    from unnest(v_reset.ids, v_reset.lanes, v_reset.errors)
        with ordinality u (message_id, lane, last_error, place)
    where u.message_id = any (v_waiting) is not true
    having count(*) > 0;

    return query
    select u.message_id,
           case
               when u.message_id = any (v_reset.ids) then 'reset'
               when u.message_id = any (v_taken) then 'duplicate'
               else 'not_found'
           end
    from unnest(coalesce(p_message_ids, v_dead.o_message_ids)) u (message_id);
end;
$$;

-- [file routines/discard_dead.sql]
create or replace function rowq.discard_dead(
    p_queue_name   text,
    p_message_ids  bigint[] default null,
    p_max_messages integer default 1000,
    p_message_type text default null,
    p_died_before  timestamp with time zone default null
)
returns table (removed bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
set jit = off
as $$
-- routine   discard_dead
-- version   1
-- purpose   Delete dead messages for good, the archive keeps none of them; null takes the oldest max_messages.
-- promise   P12 P22 P26
-- locks     dead rows, passing over locked ones; then as complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_dead record;
begin
    v_dead := rowq.internal_lock_dead(
        p_queue_name, p_message_ids, p_max_messages, p_message_type, p_died_before
    );

    delete from rowq.dead d
    where d.part_id = v_dead.o_part_id
      and d.message_id = any (v_dead.o_message_ids);
    perform rowq.internal_finish(
        v_dead.o_part_id, 0, v_dead.o_message_ids, null, null, 'cancelled', v_dead.o_tokenless
    );

    return query select coalesce(cardinality(v_dead.o_message_ids), 0)::bigint;
end;
$$;

-- [file routines/create_schedule.sql]
create or replace function rowq.create_schedule(
    p_queue_name       text,
    p_schedule_name    text,
    p_cron             text default null,
    p_interval_seconds double precision default null,
    p_time_zone        text default 'UTC',
    p_body             text default null,
    p_body_binary      bytea default null,
    p_message_type     text default null,
    p_headers          jsonb default null,
    p_priority         integer default 5,
    p_max_attempts     integer default null,
    p_group_key        text default null,
    p_missed           text default 'once',
    p_overlap          boolean default true,
    p_starts_at        timestamp with time zone default null,
    p_ends_at          timestamp with time zone default null
)
returns table (schedule_name text, outcome text, next_run_at timestamp with time zone)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
-- routine   create_schedule
-- version   1
-- purpose   Let maintain enqueue a message at the times of a cron expression, or every so many seconds; an existing schedule of that name is left as it is.
-- promise   P15 P30 P31
-- locks     the queue row, shared; the new schedule row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   names of time zones without a slash, such as CET, are refused, but for UTC
#variable_conflict use_column
declare
    v_schedule rowq.schedule;
    v_queue    rowq.queue;
begin
    v_queue := rowq.internal_require_queue(p_queue_name);
    v_schedule.schedule_name := p_schedule_name;
    v_schedule.cron := p_cron;
    v_schedule.interval_seconds := p_interval_seconds;
    v_schedule.time_zone := p_time_zone;
    v_schedule.missed := p_missed;
    v_schedule.overlap := coalesce(p_overlap, true);
    v_schedule.starts_at := coalesce(p_starts_at, clock_timestamp());
    v_schedule.ends_at := p_ends_at;
    v_schedule.message_type := p_message_type;
    v_schedule.headers := p_headers;
    v_schedule.group_key := p_group_key;
    v_schedule.body := p_body;
    v_schedule.body_binary := p_body_binary;
    perform rowq.internal_check_range('priority', p_priority, 0, 9);
    perform rowq.internal_check_range('max_attempts', p_max_attempts, 1, 10000);
    v_schedule.priority := p_priority;
    v_schedule.max_attempts := p_max_attempts;
    v_schedule.next_run_at := rowq.internal_check_schedule(v_schedule, v_queue);

    -- From here on drop_queue waits for the new row.
    v_schedule.part_id := rowq.internal_lock_queue(p_queue_name);
    insert into rowq.schedule (
        part_id, schedule_name, cron, interval_seconds, time_zone, missed, overlap, starts_at,
        ends_at, message_type, headers, priority, group_key, max_attempts, body, body_binary,
        next_run_at
    )
    values (
        v_schedule.part_id, v_schedule.schedule_name, v_schedule.cron,
        v_schedule.interval_seconds, v_schedule.time_zone, v_schedule.missed,
        v_schedule.overlap, v_schedule.starts_at, v_schedule.ends_at,
        v_schedule.message_type, v_schedule.headers, v_schedule.priority,
        v_schedule.group_key, v_schedule.max_attempts, v_schedule.body,
        v_schedule.body_binary, v_schedule.next_run_at
    )
    on conflict do nothing;
    outcome := case when found then 'created' else 'exists' end;
    schedule_name := p_schedule_name;
    next_run_at := v_schedule.next_run_at;
    if outcome = 'exists' then
        -- It is null where the schedule was dropped a moment ago.
        next_run_at := (
            select s.next_run_at
            from rowq.schedule s
            where s.part_id = v_schedule.part_id
              and s.schedule_name = p_schedule_name
        );
    end if;
    return next;
end;
$$;

-- [file routines/alter_schedule.sql]
create or replace function rowq.alter_schedule(
    p_queue_name       text,
    p_schedule_name    text,
    p_cron             text default null,
    p_interval_seconds double precision default null,
    p_time_zone        text default null,
    p_body             text default null,
    p_body_binary      bytea default null,
    p_message_type     text default null,
    p_headers          jsonb default null,
    p_priority         integer default null,
    p_max_attempts     integer default null,
    p_group_key        text default null,
    p_missed           text default null,
    p_overlap          boolean default null,
    p_starts_at        timestamp with time zone default null,
    p_ends_at          timestamp with time zone default null,
    p_is_paused        boolean default null
)
returns table (schedule_name text, outcome text, next_run_at timestamp with time zone)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
-- routine   alter_schedule
-- version   1
-- purpose   Change a schedule, pause it or let it go on; null leaves a setting as it is. It counts anew from now: what it has missed is not made up for.
-- promise   P15 P31
-- locks     the schedule row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ702 RQ711
-- differs   names of time zones without a slash, such as CET, are refused, but for UTC
#variable_conflict use_column
declare
    v_queue    rowq.queue;
    v_schedule rowq.schedule;
begin
    v_queue := rowq.internal_require_queue(p_queue_name);
    v_schedule := rowq.internal_require_schedule(v_queue.part_id, p_schedule_name);
    perform rowq.internal_check_range('priority', p_priority, 0, 9);
    perform rowq.internal_check_range('max_attempts', p_max_attempts, 1, 10000);

    -- One kind of time, or of body, takes the place of the other.
    if num_nonnulls(p_cron, p_interval_seconds) > 0 then
        v_schedule.cron := p_cron;
        v_schedule.interval_seconds := p_interval_seconds;
    end if;
    if num_nonnulls(p_body, p_body_binary) > 0 then
        v_schedule.body := p_body;
        v_schedule.body_binary := p_body_binary;
    end if;
    v_schedule.time_zone := coalesce(p_time_zone, v_schedule.time_zone);
    v_schedule.message_type := coalesce(p_message_type, v_schedule.message_type);
    v_schedule.headers := coalesce(p_headers, v_schedule.headers);
    v_schedule.priority := coalesce(p_priority, v_schedule.priority);
    v_schedule.max_attempts := coalesce(p_max_attempts, v_schedule.max_attempts);
    v_schedule.group_key := coalesce(p_group_key, v_schedule.group_key);
    v_schedule.missed := coalesce(p_missed, v_schedule.missed);
    v_schedule.overlap := coalesce(p_overlap, v_schedule.overlap);
    v_schedule.starts_at := coalesce(p_starts_at, v_schedule.starts_at);
    v_schedule.ends_at := coalesce(p_ends_at, v_schedule.ends_at);
    v_schedule.is_paused := coalesce(p_is_paused, v_schedule.is_paused);
    -- What cannot run any more can still be paused.
    if p_is_paused is not true or num_nonnulls(
        p_cron, p_interval_seconds, p_time_zone, p_body, p_body_binary, p_message_type, p_headers,
        p_priority, p_max_attempts, p_group_key, p_missed, p_overlap, p_starts_at, p_ends_at
    ) > 0 then
        v_schedule.next_run_at := rowq.internal_check_schedule(v_schedule, v_queue);
    end if;
    if v_schedule.is_paused then
        v_schedule.next_run_at := null;
    end if;

    update rowq.schedule s
    set cron             = v_schedule.cron,
        interval_seconds = v_schedule.interval_seconds,
        time_zone        = v_schedule.time_zone,
        missed           = v_schedule.missed,
        overlap          = v_schedule.overlap,
        starts_at        = v_schedule.starts_at,
        ends_at          = v_schedule.ends_at,
        message_type     = v_schedule.message_type,
        headers          = v_schedule.headers,
        priority         = v_schedule.priority,
        group_key        = v_schedule.group_key,
        max_attempts     = v_schedule.max_attempts,
        body             = v_schedule.body,
        body_binary      = v_schedule.body_binary,
        is_paused        = v_schedule.is_paused,
        next_run_at      = v_schedule.next_run_at,
        last_error       = null
    where s.part_id = v_schedule.part_id
      and s.schedule_name = v_schedule.schedule_name;
    return query select p_schedule_name, 'altered', v_schedule.next_run_at;
end;
$$;

-- [file routines/drop_schedule.sql]
create or replace function rowq.drop_schedule(p_queue_name text, p_schedule_name text)
returns table (schedule_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   drop_schedule
-- version   1
-- purpose   Remove a schedule; the messages that it made stay.
-- promise   P15
-- locks     the schedule row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ702 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue    rowq.queue;
    v_schedule rowq.schedule;
begin
    v_queue := rowq.internal_require_queue(p_queue_name);
    v_schedule := rowq.internal_require_schedule(v_queue.part_id, p_schedule_name);
    delete from rowq.schedule s
    where s.part_id = v_schedule.part_id
      and s.schedule_name = v_schedule.schedule_name;
    return query select p_schedule_name, 'dropped';
end;
$$;

-- [file routines/run_schedule.sql]
create or replace function rowq.run_schedule(p_queue_name text, p_schedule_name text)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   run_schedule
-- version   1
-- purpose   Enqueue the message of a schedule now, paused or not; its next tick stays as it is.
-- promise   P15
-- locks     the schedule row; as enqueue
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ702 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue    rowq.queue;
    v_schedule rowq.schedule;
    v_sent     record;
    v_now      timestamp with time zone;
begin
    v_queue := rowq.internal_require_queue(p_queue_name);
    v_schedule := rowq.internal_require_schedule(v_queue.part_id, p_schedule_name);
    v_now := clock_timestamp();
    v_sent := rowq.internal_send_tick(v_schedule, v_queue.queue_name, v_now);
    if v_sent.o_outcome = 'enqueued' then
        update rowq.schedule s
        set last_run_at     = v_now,
            last_message_id = v_sent.o_message_id
        where s.part_id = v_schedule.part_id
          and s.schedule_name = v_schedule.schedule_name;
    end if;
    return query select v_sent.o_message_id, v_sent.o_outcome;
end;
$$;

-- [file routines/list_schedules.sql]
create or replace function rowq.list_schedules(p_queue_name text default null)
returns table (
    queue_name       text,
    schedule_name    text,
    cron             text,
    interval_seconds double precision,
    time_zone        text,
    is_paused        boolean,
    next_run_at      timestamp with time zone,
    last_run_at      timestamp with time zone,
    last_message_id  bigint,
    last_error       text,
    missed           text,
    overlap          boolean,
    starts_at        timestamp with time zone,
    ends_at          timestamp with time zone,
    message_type     text,
    priority         integer,
    max_attempts     integer,
    group_key        text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   list_schedules
-- version   1
-- purpose   The schedules of one queue, or of all, without their bodies and headers.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
#variable_conflict use_column
begin
    if p_queue_name is not null then
        perform rowq.internal_require_queue(p_queue_name);
    end if;
    return query
    select q.queue_name, s.schedule_name, s.cron, s.interval_seconds, s.time_zone, s.is_paused,
           s.next_run_at, s.last_run_at, s.last_message_id, s.last_error, s.missed, s.overlap,
           s.starts_at, s.ends_at, s.message_type, s.priority::integer, s.max_attempts::integer,
           s.group_key
    from rowq.queue q
    join rowq.schedule s on s.part_id = q.part_id
    where q.queue_name = p_queue_name or p_queue_name is null
    order by q.queue_name collate "C", s.schedule_name collate "C";
end;
$$;

-- [file routines/next_ticks.sql]
create or replace function rowq.next_ticks(
    p_cron             text default null,
    p_interval_seconds double precision default null,
    p_time_zone        text default 'UTC',
    p_after            timestamp with time zone default null,
    p_max_ticks        integer default 5
)
returns table (tick timestamp with time zone)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
-- routine   next_ticks
-- version   1
-- purpose   When a schedule with these times would run: a look before it is created. An interval counts from after.
-- promise   P31
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   names of time zones without a slash, such as CET, are refused, but for UTC
declare
    v_schedule rowq.schedule;
begin
    if num_nonnulls(p_cron, p_interval_seconds) <> 1 then
        raise exception 'RQ711 invalid_argument: a schedule has either cron or interval_seconds'
            using errcode = 'RQ711';
    end if;
    perform rowq.internal_check_range('interval_seconds', p_interval_seconds, 1, 315360000);
    perform rowq.internal_check_time_zone(p_time_zone);
    if p_max_ticks is null or p_max_ticks not between 1 and 1000 then
        raise exception 'RQ711 invalid_argument: max_ticks must be between 1 and 1000, got %',
            coalesce(p_max_ticks::text, 'null')
            using errcode = 'RQ711';
    end if;
    tick := coalesce(p_after, clock_timestamp());
    if tick not between '2000-01-01 00:00Z' and '2100-01-01 00:00Z' then
        raise exception
            'RQ711 invalid_argument: after must be a moment between the years 2000 and 2100'
            using errcode = 'RQ711';
    end if;
    v_schedule.cron := p_cron;
    v_schedule.interval_seconds := p_interval_seconds;
    v_schedule.time_zone := p_time_zone;
    v_schedule.starts_at := tick;
    for v_number in 1 .. p_max_ticks loop
        tick := rowq.internal_next_tick(v_schedule, tick);
        exit when tick is null;
        return next;
    end loop;
end;
$$;

-- [file routines/maintain.sql]
create or replace function rowq.maintain(
    p_queue_name text default null,
    p_batch_size integer default 1000
)
returns table (
    queue_name         text,
    elected            boolean,
    promoted           integer,
    reaped             integer,
    died               integer,
    archived           integer,
    purged             integer,
    partitions_dropped integer,
    expired            integer
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
-- routine   maintain
-- version   1
-- purpose   All housekeeping of one queue, or of every queue: schedules, promote, reap, expiry, floors, archive, results, history. Call it about once a second.
-- promise   P09 P11 P13 P14 P19 P24 P26 P27 P30 P31 P34 P36 P37
-- locks     advisory lock of each queue, tried, until the caller's transaction ends
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   with more than 1000 queues, a call without a name takes 1000 of them at random
#variable_conflict use_column
declare
    v_queues     rowq.queue[];
    v_queue      rowq.queue;
    v_frontiers  bigint[];
    -- After a wait of a second for a lock in the archive, in results or in history, what further
    -- queues have there is left to the next call.
    v_locked     text[] := '{}'::text[];
    v_maintained integer[] := '{}'::integer[];
    v_idle       integer[];
    -- More than a batch of results and history goes only till then, whatever the number of queues,
    -- because what was promoted and reaped waits for the end of this transaction.
    v_until      constant timestamp with time zone :=
        clock_timestamp() + interval '100 milliseconds';
begin
    perform rowq.internal_check_batch_size(p_batch_size);

    -- Read the newest numbers before this transaction has an id, so that every transaction with one
    -- of these numbers has an older id. If this one has an id already, take no new marks.
    if pg_current_xact_id_if_assigned() is null then
        v_frontiers := array[
            rowq.internal_newest_number(0::smallint),
            rowq.internal_newest_number(-1::smallint),
            rowq.internal_newest_number(-2::smallint)
        ];
    end if;

    if p_queue_name is not null then
        v_queues := array[rowq.internal_require_queue(p_queue_name)];
    else
        v_queues := array(select q from rowq.queue q order by random() limit 1000);
    end if;

    -- Find the queues in which nothing is to be done by one statement for all of them, so that many
    -- idle queues cost next to nothing.
    v_idle := rowq.internal_idle_parts(array(select q.part_id from unnest(v_queues) q));

    foreach v_queue in array v_queues loop
        queue_name := v_queue.queue_name;
        select m.o_elected, m.o_promoted, m.o_reaped, m.o_died, m.o_archived, m.o_purged,
               m.o_partitions_dropped, m.o_expired, m.o_locked, m.o_maintained
        into elected, promoted, reaped, died, archived, purged, partitions_dropped, expired,
             v_locked, v_maintained
        from rowq.internal_maintain_queue(
            v_queue, v_queue.part_id = any (v_idle), p_batch_size, v_until, v_frontiers,
            v_locked, v_maintained
        ) m;
        return next;
    end loop;
end;
$$;

-- [file routines/reap.sql]
create or replace function rowq.reap(p_queue_name text, p_batch_size integer default 1000)
returns table (reaped integer, died integer)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
-- routine   reap
-- version   1
-- purpose   Take unfinished messages back from claims whose lease ran out.
-- promise   P03 P09 P34 P37
-- locks     expired claim rows, passing over locked ones; new ready, dead or history rows; for
--           cancelled messages as complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
begin
    perform rowq.internal_check_batch_size(p_batch_size);
    v_queue := rowq.internal_require_queue(p_queue_name);

    return query
    select r.o_reaped, r.o_died
    from rowq.internal_reap(
        v_queue.part_id, v_queue.max_attempts, v_queue.history_days, p_batch_size
    ) r;
end;
$$;

-- [file routines/promote.sql]
create or replace function rowq.promote(p_queue_name text, p_batch_size integer default 1000)
returns table (promoted integer)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
-- routine   promote
-- version   1
-- purpose   Make delayed messages ready whose time has come.
-- promise   P11
-- locks     delayed rows, passing over locked ones; new ready rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
begin
    perform rowq.internal_check_batch_size(p_batch_size);
    v_queue := rowq.internal_require_queue(p_queue_name);

    return query select rowq.internal_promote(v_queue.part_id, p_batch_size);
end;
$$;

-- [file routines/archive.sql]
create or replace function rowq.archive(p_queue_name text, p_batch_size integer default 1000)
returns table (archived integer)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
-- routine   archive
-- version   1
-- purpose   Move finished messages of a queue with archive_days above 0 to the archive.
-- promise   P19
-- locks     finished rows, passing over locked ones; message rows; new archive rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
begin
    perform rowq.internal_check_batch_size(p_batch_size);
    v_queue := rowq.internal_require_queue(p_queue_name);

    return query select rowq.internal_archive(v_queue.part_id, p_batch_size);
end;
$$;

-- [file routines/purge_archive.sql]
create or replace function rowq.purge_archive(p_queue_name text, p_batch_size integer default 1000)
returns table (purged integer, partitions_dropped integer)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
-- routine   purge_archive
-- version   1
-- purpose   Delete archived messages older than the queue's archive_days and attempts older than its history_days, and drop partitions that no queue needs.
-- promise   P19 P37
-- locks     archive and history rows; for a drop the archive, tried without waiting, until the
--           caller's end
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue  rowq.queue;
    v_purged integer;
begin
    perform rowq.internal_check_batch_size(p_batch_size);
    v_queue := rowq.internal_require_queue(p_queue_name);

    v_purged := rowq.internal_purge_history(v_queue.part_id, v_queue.history_days, p_batch_size);

    return query
    select v_purged + a.o_purged, a.o_partitions_dropped
    from rowq.internal_purge_archive(
        v_queue.part_id, v_queue.archive_days, p_batch_size, false
    ) a;
end;
$$;

-- [file routines/queue_stats.sql]
create or replace function rowq.queue_stats(
    p_queue_name text default null,
    p_max_count  integer default 100000
)
returns table (
    queue_name           text,
    is_paused            boolean,
    ready                bigint,
    delayed              bigint,
    leased               bigint,
    dead                 bigint,
    blocked              bigint,
    oldest_ready_seconds double precision,
    lease_seconds        integer,
    max_attempts         integer,
    backoff_base_seconds double precision,
    backoff_factor       double precision,
    backoff_cap_seconds  double precision,
    backoff_jitter       double precision,
    archive_days         integer,
    max_body_length      integer,
    group_limit          integer,
    group_after_dead     text,
    group_pause_seconds  double precision,
    max_leased           integer,
    rate_limit           integer,
    rate_seconds         double precision,
    result_seconds       double precision,
    history_days         integer
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
-- routine   queue_stats
-- version   1
-- purpose   Counts, age and settings of one queue or all.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
    v_ready record;
    v_from  bigint;
begin
    if p_max_count is null or p_max_count not between 1 and 100000000 then
        raise exception 'RQ711 invalid_argument: max_count must be between 1 and 100000000, got %',
            p_max_count
            using errcode = 'RQ711';
    end if;
    if p_queue_name is not null then
        perform rowq.internal_require_queue(p_queue_name);
    end if;

    -- One statement counts what a queue has, and reads the rows of this queue only.
    for v_queue in
        select q.part_id, q.queue_name, q.lease_seconds, q.max_attempts, q.backoff_base_seconds,
               q.backoff_factor, q.backoff_cap_seconds, q.backoff_jitter, q.archive_days,
               q.max_body_length, q.group_limit, q.group_after_dead, q.group_pause_seconds,
               q.has_recheck, q.max_leased, q.rate_limit, q.rate_seconds, q.result_seconds,
               q.history_days, q.paused_at, q.created_at
        from rowq.queue q
        where p_queue_name is null
           or q.queue_name = p_queue_name
        order by q.queue_name collate "C"
    loop
        v_ready := rowq.internal_count_ready(v_queue.part_id, p_max_count);
        v_from := rowq.internal_read_safe_floor(v_queue.part_id, -1::smallint);
        return query
        select v_queue.queue_name, v_queue.paused_at is not null, v_ready.ready,
               (
                   select count(*)
                   from (
                       select
                       from rowq.delayed d
                       where d.part_id = v_queue.part_id
                       limit p_max_count
                   ) x
               ),
               (
                   select least(coalesce(sum(cardinality(x.message_ids)), 0), p_max_count)
                   from (
                       select k.message_ids
                       from rowq.claim k
                       where k.part_id = v_queue.part_id
                         and k.claim_id >= v_from
                       limit p_max_count
                   ) x
               ),
               (
                   select count(*)
                   from (
                       select
                       from rowq.dead d
                       where d.part_id = v_queue.part_id
                       limit p_max_count
                   ) x
               ),
               (
                   select count(*)
                   from (
                       (
                           select
                           from rowq.grouped g
                           where g.part_id = v_queue.part_id
                           limit p_max_count
                       )
                       union all
                       (
                           select
                           from rowq.blocked b
                           where b.part_id = v_queue.part_id
                           limit p_max_count
                       )
                       limit p_max_count
                   ) x
               ),
               extract(epoch from clock_timestamp() - v_ready.oldest)::double precision,
               v_queue.lease_seconds, v_queue.max_attempts::integer, v_queue.backoff_base_seconds,
               v_queue.backoff_factor, v_queue.backoff_cap_seconds, v_queue.backoff_jitter,
               v_queue.archive_days, v_queue.max_body_length, v_queue.group_limit::integer,
               v_queue.group_after_dead, v_queue.group_pause_seconds, v_queue.max_leased,
               v_queue.rate_limit, v_queue.rate_seconds, v_queue.result_seconds,
               v_queue.history_days;
    end loop;
end;
$$;

-- [file routines/get_message.sql]
create or replace function rowq.get_message(p_queue_name text, p_message_id bigint)
returns table (
    message_id   bigint,
    state        text,
    priority     integer,
    attempt      integer,
    max_attempts integer,
    message_type text,
    headers      jsonb,
    body         text,
    body_binary  bytea,
    dedup_key    text,
    enqueued_at  timestamp with time zone,
    due_at       timestamp with time zone,
    claim_id     bigint,
    worker_name  text,
    lease_until  timestamp with time zone,
    finished_at  timestamp with time zone,
    last_error   text,
    group_key    text,
    waits_for    bigint,
    expires_at   timestamp with time zone,
    progress     text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
set jit = off
as $$
-- routine   get_message
-- version   1
-- purpose   Where a message is and everything about it; no row when rowq does not know it.
-- promise   P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
    v_place record;
begin
    if p_message_id is null then
        raise exception 'RQ711 invalid_argument: message_id is missing'
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    v_place := rowq.internal_locate_messages(v_queue.part_id, p_message_id);
    if v_place.state is not null then
        return query
        select m.message_id, v_place.state, v_place.lane / 2, v_place.attempt::integer,
               coalesce(m.max_attempts, v_queue.max_attempts)::integer, m.message_type, m.headers,
               m.body, m.body_binary, m.dedup_key, m.enqueued_at, v_place.due_at,
               v_place.claim_id, v_place.worker_name, v_place.lease_until, v_place.finished_at,
               v_place.last_error, m.group_key, v_place.waits_for, m.expires_at, v_place.progress
        from rowq.message m
        where m.part_id = v_queue.part_id
          and m.message_id = p_message_id;
        if found then
            return;
        end if;
        -- It has ended since it was located, so it may be in the archive.
    end if;

    return query
    select a.message_id, a.state, a.lane / 2, a.attempt::integer, null::integer, a.message_type,
           a.headers, a.body, a.body_binary, a.dedup_key, a.enqueued_at,
           null::timestamp with time zone, null::bigint, null::text,
           null::timestamp with time zone, a.finished_at, null::text,
           a.group_key, null::bigint, null::timestamp with time zone, null::text
    from rowq.archive a
    where a.part_id = v_queue.part_id
      and a.message_id = p_message_id;
end;
$$;

-- [file routines/find_message.sql]
create or replace function rowq.find_message(p_queue_name text, p_dedup_key text)
returns table (
    message_id   bigint,
    state        text,
    priority     integer,
    attempt      integer,
    max_attempts integer,
    message_type text,
    headers      jsonb,
    body         text,
    body_binary  bytea,
    dedup_key    text,
    enqueued_at  timestamp with time zone,
    due_at       timestamp with time zone,
    claim_id     bigint,
    worker_name  text,
    lease_until  timestamp with time zone,
    finished_at  timestamp with time zone,
    last_error   text,
    group_key    text,
    waits_for    bigint,
    expires_at   timestamp with time zone,
    progress     text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
set jit = off
as $$
-- routine   find_message
-- version   1
-- purpose   Find the unfinished message that has a dedup key, and return what get_message does.
-- promise   P12 P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue      rowq.queue;
    v_message_id bigint;
begin
    if p_dedup_key is null then
        raise exception 'RQ711 invalid_argument: dedup_key is missing'
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    select d.message_id into v_message_id
    from rowq.dedup d
    where d.part_id = v_queue.part_id
      and d.dedup_key = p_dedup_key;
    if not found then
        return;
    end if;

    return query
    select g.message_id, g.state, g.priority, g.attempt, g.max_attempts, g.message_type,
           g.headers, g.body, g.body_binary, g.dedup_key, g.enqueued_at, g.due_at,
           g.claim_id, g.worker_name, g.lease_until, g.finished_at, g.last_error,
           g.group_key, g.waits_for, g.expires_at, g.progress
    from rowq.get_message(p_queue_name, v_message_id) g
    -- It may have ended since it was seen.
    where g.finished_at is null;
end;
$$;

-- [file routines/get_result.sql]
create or replace function rowq.get_result(p_queue_name text, p_message_id bigint)
returns table (
    message_id  bigint,
    state       text,
    finished_at timestamp with time zone,
    result      jsonb,
    last_error  text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
set jit = off
as $$
-- routine   get_result
-- version   1
-- purpose   How a message has ended, and its result; of one that has not ended its state; no row when rowq does not know it.
-- promise   P32
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
    v_place record;
begin
    if p_message_id is null then
        raise exception 'RQ711 invalid_argument: message_id is missing'
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    v_place := rowq.internal_locate_messages(v_queue.part_id, p_message_id);
    if v_place.state in ('ready', 'delayed', 'blocked', 'leased') then
        return query
        select p_message_id, v_place.state, null::timestamp with time zone, null::jsonb, null::text;
        return;
    end if;

    -- Look for the result last, because it is committed together with the end that was seen.
    return query
    select r.message_id, r.state, r.finished_at, r.result, r.last_error
    from rowq.result r
    where r.part_id = v_queue.part_id
      and r.message_id = p_message_id;
    if found then
        return;
    end if;

    if v_place.state is not null then
        return query
        select p_message_id, v_place.state, v_place.finished_at, null::jsonb, v_place.last_error;
        return;
    end if;
    return query
    select a.message_id, a.state, a.finished_at, null::jsonb, null::text
    from rowq.archive a
    where a.part_id = v_queue.part_id
      and a.message_id = p_message_id;
end;
$$;

-- [file routines/wait_for_result.sql]
create or replace procedure rowq.wait_for_result(
    p_queue_name   text,
    p_message_id   bigint,
    p_wait_seconds double precision default 20,
    inout p_answer jsonb default null
)
language plpgsql
as $$
-- routine   wait_for_result
-- version   1
-- purpose   Do what get_result does, but wait until the message has ended or the time is up; the queue must keep results.
-- promise   P17 P32
-- locks     none
-- commits   after each look, so that no snapshot is held while it waits; needs autocommit
-- errors    RQ701 RQ711 RQ713
-- differs   the row comes as one JSON object; caller's rights, as only such a procedure may commit
declare
    v_until timestamp with time zone;
    v_pause double precision;
begin
    -- Every name has its schema and no operator is used, because this procedure runs with the
    -- caller's search_path.
    v_until := rowq.internal_wait_until(p_wait_seconds);
    call rowq.internal_require_autocommit('wait_for_result');

    loop
        select l.o_answer, l.o_pause
        into p_answer, v_pause
        from rowq.internal_poll_result(p_queue_name, p_message_id, v_until, v_pause) l;
        commit;

        exit when v_pause is null;
        perform pg_catalog.pg_sleep(v_pause);
    end loop;
end;
$$;

-- [file routines/get_history.sql]
create or replace function rowq.get_history(p_queue_name text, p_message_id bigint)
returns table (
    attempt     integer,
    worker_name text,
    leased_at   timestamp with time zone,
    ended_at    timestamp with time zone,
    outcome     text,
    error       text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
set jit = off
as $$
-- routine   get_history
-- version   1
-- purpose   The attempts of a message: those that have ended within the queue's history_days, oldest first, then the present lease. A lease that ran out is lease_expired, also where no attempt was left; no row when rowq knows of none.
-- promise   P37
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
    v_lease record;
    v_row   record;
begin
    if p_message_id is null then
        raise exception 'RQ711 invalid_argument: message_id is missing'
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    -- Look for the lease first: one that ends meanwhile is in the history then, and none is missed.
    v_lease := rowq.internal_locate_messages(v_queue.part_id, p_message_id);

    for v_row in
        select h.attempt, h.worker_name, h.leased_at, h.ended_at, h.outcome, h.error, h.claim_id
        from rowq.history h
        where h.part_id = v_queue.part_id
          and h.message_id = p_message_id
        order by h.ended_at, h.claim_id
    loop
        attempt := v_row.attempt;
        worker_name := v_row.worker_name;
        leased_at := v_row.leased_at;
        ended_at := v_row.ended_at;
        outcome := v_row.outcome;
        error := v_row.error;
        return next;
        if v_row.claim_id = v_lease.claim_id then
            v_lease.claim_id := null;
        end if;
    end loop;

    if v_lease.claim_id is not null then
        return query
        select v_lease.attempt::integer, v_lease.worker_name, v_lease.leased_at,
               null::timestamp with time zone, null::text, null::text;
    end if;
end;
$$;

-- [file routines/list_dead.sql]
create or replace function rowq.list_dead(
    p_queue_name        text,
    p_after_message_id  bigint default 0,
    p_max_messages      integer default 100,
    p_before_message_id bigint default null,
    p_message_type      text default null
)
returns table (
    message_id   bigint,
    priority     integer,
    attempt      integer,
    message_type text,
    enqueued_at  timestamp with time zone,
    died_at      timestamp with time zone,
    last_error   text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
-- routine   list_dead
-- version   1
-- purpose   Dead messages, without their bodies, in the order of their ids, or backwards before one; of one type only, if given.
-- promise   P10
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
begin
    if p_max_messages is null or p_max_messages not between 1 and 10000 then
        raise exception 'RQ711 invalid_argument: max_messages must be between 1 and 10000, got %',
            p_max_messages
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    if p_before_message_id is null then
        return query
        select d.message_id, d.lane / 2, d.attempt::integer, m.message_type, m.enqueued_at,
               d.died_at, d.last_error
        from rowq.dead d
        cross join lateral (
            -- "offset 0" keeps this a lookup by key for each dead message.
            select x.message_type, x.enqueued_at
            from rowq.message x
            where x.part_id = d.part_id
              and x.message_id = d.message_id
            offset 0
        ) m
        where d.part_id = v_queue.part_id
          and d.message_id > coalesce(p_after_message_id, 0)
          and (p_message_type is null or m.message_type = p_message_type)
        order by d.part_id, d.message_id
        limit p_max_messages;
    else
        return query
        select d.message_id, d.lane / 2, d.attempt::integer, m.message_type, m.enqueued_at,
               d.died_at, d.last_error
        from rowq.dead d
        cross join lateral (
            select x.message_type, x.enqueued_at
            from rowq.message x
            where x.part_id = d.part_id
              and x.message_id = d.message_id
            offset 0
        ) m
        where d.part_id = v_queue.part_id
          and d.message_id > coalesce(p_after_message_id, 0)
          and d.message_id < p_before_message_id
          and (p_message_type is null or m.message_type = p_message_type)
        order by d.part_id desc, d.message_id desc
        limit p_max_messages;
    end if;
end;
$$;

-- [file routines/list_claims.sql]
create or replace function rowq.list_claims(
    p_queue_name     text default null,
    p_after_claim_id bigint default 0,
    p_max_claims     integer default 100
)
returns table (
    queue_name         text,
    claim_id           bigint,
    worker_name        text,
    message_count      integer,
    lease_until        timestamp with time zone,
    lease_left_seconds double precision
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
-- routine   list_claims
-- version   1
-- purpose   Who is at work on what: the claims of one queue or all, in the order of their ids.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
begin
    if p_max_claims is null or p_max_claims not between 1 and 10000 then
        raise exception 'RQ711 invalid_argument: max_claims must be between 1 and 10000, got %',
            p_max_claims
            using errcode = 'RQ711';
    end if;
    if p_queue_name is not null then
        perform rowq.internal_require_queue(p_queue_name);
    end if;

    return query
    select q.queue_name, c.claim_id, c.worker_name, cardinality(c.message_ids), c.lease_until,
           extract(epoch from c.lease_until - clock_timestamp())::double precision
    from rowq.queue q
    cross join lateral (
        -- Each queue gives a page at most, so no more than these are put in order.
        select k.claim_id, k.worker_name, k.message_ids, k.lease_until
        from rowq.claim k
        where k.part_id = q.part_id
          and k.claim_id > coalesce(p_after_claim_id, 0)
          and k.claim_id >= rowq.internal_read_safe_floor(q.part_id, -1::smallint)
        order by k.part_id, k.claim_id
        limit p_max_claims
    ) c
    where p_queue_name is null
       or q.queue_name = p_queue_name
    order by c.claim_id
    limit p_max_claims;
end;
$$;

-- [file routines/list_delayed.sql]
create or replace function rowq.list_delayed(
    p_queue_name       text,
    p_after_due_at     timestamp with time zone default null,
    p_after_message_id bigint default 0,
    p_max_messages     integer default 100
)
returns table (
    message_id   bigint,
    priority     integer,
    attempt      integer,
    message_type text,
    due_at       timestamp with time zone,
    last_error   text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
-- routine   list_delayed
-- version   1
-- purpose   Messages that wait for their time, without their bodies, in the order in which they become due.
-- promise   P11
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
    v_from  timestamp with time zone;
    v_after bigint := coalesce(p_after_message_id, 0);
begin
    if p_max_messages is null or p_max_messages not between 1 and 10000 then
        raise exception 'RQ711 invalid_argument: max_messages must be between 1 and 10000, got %',
            p_max_messages
            using errcode = 'RQ711';
    end if;
    if p_after_due_at is null and v_after <> 0 then
        raise exception 'RQ711 invalid_argument: '
            'after_message_id goes together with after_due_at'
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    -- Begin no sooner than where the first live row may be, beyond the dead ones.
    v_from := rowq.internal_from_microseconds(
        rowq.internal_read_safe_floor(v_queue.part_id, -2::smallint)
    );
    if p_after_due_at >= v_from then
        v_from := p_after_due_at;
    else
        v_after := 0;
    end if;

    return query
    select d.message_id, d.lane / 2, d.attempt::integer, m.message_type, d.due_at, d.last_error
    from rowq.delayed d
    cross join lateral (
        -- "offset 0" keeps this a lookup by key for each message.
        select x.message_type
        from rowq.message x
        where x.part_id = d.part_id
          and x.message_id = d.message_id
        offset 0
    ) m
    where d.part_id = v_queue.part_id
      and (d.due_at, d.message_id) > (v_from, v_after)
    order by d.part_id, d.due_at, d.message_id
    limit p_max_messages;
end;
$$;

-- [file routines/list_topics.sql]
create or replace function rowq.list_topics(p_queue_name text default null)
returns table (queue_name text, topic_pattern text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   list_topics
-- version   1
-- purpose   The patterns of one queue or all, in the order of the queues' names.
-- promise   P35
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
#variable_conflict use_column
begin
    if p_queue_name is not null then
        perform rowq.internal_require_queue(p_queue_name);
    end if;

    return query
    select q.queue_name, b.topic_pattern
    from rowq.topic_binding b
    join rowq.queue q on q.part_id = b.part_id
    where p_queue_name is null
       or q.queue_name = p_queue_name
    order by q.queue_name collate "C", b.topic_pattern collate "C";
end;
$$;

-- [file routines/health.sql]
create or replace function rowq.health()
returns table (
    check_name text,
    queue_name text,
    status     text,
    value      double precision,
    detail     text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
-- routine   health
-- version   1
-- purpose   Report what needs attention: who holds back clean-up, overdue messages, expired leases, dead messages, a sequence behind its data.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   the horizon and sequence checks are this engine's
#variable_conflict use_column
begin
    return query
    select h.check_name, h.queue_name,
           case
               when h.value >= h.critical then 'critical'
               when h.value >= h.warning then 'warning'
               else 'ok'
           end,
           h.value, h.detail
    from (
        select t.check_name, t.queue_name, t.value, t.warning, t.critical, t.detail
        from rowq.internal_health_server() t
        union all
        select t.check_name, t.queue_name, t.value, t.warning, t.critical, t.detail
        from rowq.internal_health_queues() t
    ) h
    order by h.check_name collate "C", h.queue_name collate "C" nulls first;
end;
$$;

-- [file routines/version.sql]
create or replace function rowq.version()
returns table (rowq_version text, schema_version integer, engine text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   version
-- version   1
-- purpose   What is installed.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
#variable_conflict use_column
begin
    return query
    select (select m.value from rowq.meta m where m.name = 'rowq_version'),
           (select m.value::integer from rowq.meta m where m.name = 'schema_version'),
           'PostgreSQL ' || current_setting('server_version');
end;
$$;

-- [file routines/listen.sql]
create or replace function rowq.listen(p_queue_name text)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   listen
-- version   1
-- purpose   Have this session notified on the channel rowq of a queue's new messages.
-- promise   none
-- locks     a shared advisory lock until unlisten or the session's end; tried, never waited for
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   this engine's own
declare
    c_tries constant integer := 100;
    v_queue rowq.queue;
begin
    v_queue := rowq.internal_require_queue(p_queue_name);

    if current_setting('max_prepared_transactions') <> '0' then
        -- A transaction that has notified cannot be prepared, so a producer's "prepare transaction"
        -- would fail.
        return query select p_queue_name, 'unavailable';
        return;
    end if;

    listen rowq;
    -- Producers hold the lock for a moment each, so a session that holds it for longer is no part
    -- of rowq.
    for v_try in 1..c_tries loop
        if pg_try_advisory_lock_shared(1919907698, v_queue.part_id) then
            return query select p_queue_name, 'listening';
            return;
        end if;
        perform pg_sleep(0.001);
    end loop;
    return query select p_queue_name, 'busy';
end;
$$;

-- [file routines/unlisten.sql]
create or replace function rowq.unlisten(p_queue_name text)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set client_min_messages = error
as $$
-- routine   unlisten
-- version   1
-- purpose   Take back one listen; while nobody listens, producers notify nobody.
-- promise   none
-- locks     gives the lock of listen back
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   this engine's own; the channel stays, other queues may need it
declare
    v_queue rowq.queue;
begin
    v_queue := rowq.internal_require_queue(p_queue_name);

    return query
    select p_queue_name,
           case when pg_advisory_unlock_shared(1919907698, v_queue.part_id)
               then 'stopped' else 'not_listening' end;
end;
$$;

-- [file routines/elect_keeper.sql]
create or replace function rowq.elect_keeper(p_queue_name text)
returns table (queue_name text, elected boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   elect_keeper
-- version   1
-- purpose   Elect the one session that calls maintain for a queue each second; the others may call it more seldom.
-- promise   P19
-- locks     an advisory lock until the session's end; tried, never waited for
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   this engine's own
declare
    v_queue rowq.queue;
begin
    v_queue := rowq.internal_require_queue(p_queue_name);

    -- A lock that is held by a session that may not call maintain elects nobody. Then every session
    -- keeps house.
    return query
    select p_queue_name,
           pg_try_advisory_lock(1919907699, v_queue.part_id)
           or v_queue.part_id <> all (rowq.internal_maintained_parts(1919907699));
end;
$$;

-- [file overloads/enqueue_jsonb.sql]
create or replace function rowq.enqueue(
    p_queue_name          text,
    p_body                jsonb,
    p_body_binary         bytea default null,
    p_message_type        text default null,
    p_headers             jsonb default null,
    p_priority            integer default 5,
    p_delay_seconds       double precision default null,
    p_run_at              timestamp with time zone default null,
    p_dedup_key           text default null,
    p_max_attempts        integer default null,
    p_group_key           text default null,
    p_predecessor_ids     bigint[] default null,
    p_on_predecessor_dead text default null,
    p_expire_seconds      double precision default null
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   enqueue
-- version   1
-- purpose   Hand over one message.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P27 P36
-- locks     as enqueue with a text body, which it calls
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   PostgreSQL only: the body is jsonb, and its text is kept
begin
    return query
    select e.message_id, e.outcome
    from rowq.enqueue(
        p_queue_name, p_body::text, p_body_binary, p_message_type, p_headers, p_priority,
        p_delay_seconds, p_run_at, p_dedup_key, p_max_attempts, p_group_key, p_predecessor_ids,
        p_on_predecessor_dead, p_expire_seconds
    ) e;
end;
$$;

-- [file overloads/enqueue_json.sql]
create or replace function rowq.enqueue(
    p_queue_name          text,
    p_body                json,
    p_body_binary         bytea default null,
    p_message_type        text default null,
    p_headers             jsonb default null,
    p_priority            integer default 5,
    p_delay_seconds       double precision default null,
    p_run_at              timestamp with time zone default null,
    p_dedup_key           text default null,
    p_max_attempts        integer default null,
    p_group_key           text default null,
    p_predecessor_ids     bigint[] default null,
    p_on_predecessor_dead text default null,
    p_expire_seconds      double precision default null
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   enqueue
-- version   1
-- purpose   Hand over one message.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P27 P36
-- locks     as enqueue with a text body, which it calls
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   PostgreSQL only: the body is json, and its text is kept
begin
    return query
    select e.message_id, e.outcome
    from rowq.enqueue(
        p_queue_name, p_body::text, p_body_binary, p_message_type, p_headers, p_priority,
        p_delay_seconds, p_run_at, p_dedup_key, p_max_attempts, p_group_key, p_predecessor_ids,
        p_on_predecessor_dead, p_expire_seconds
    ) e;
end;
$$;

-- [file comments.sql]
-- This script lets "\df+", "\d+" and graphical tools show what each routine, table and column is.
-- It may run any number of times, and changes only a comment that is not right yet. It leaves alone
-- what is not there, and what belongs to an extension.
do $$
declare
    v_change text;
begin
    for v_change in
        with wanted (kind, name, column_name, comment) as (
            values
                -- comments: generated from contract.toml by make generate
                ('routine', 'create_queue', '', 'Create a queue; an existing queue of that name is left as it is.'),
                ('routine', 'alter_queue', '', 'Change settings of a queue; null leaves a setting as it is.'),
                ('routine', 'drop_queue', '', 'Remove an empty queue, or with force a queue and everything in it, archive included.'),
                ('routine', 'pause_queue', '', 'Stop delivery; enqueue and the finishing routines go on.'),
                ('routine', 'resume_queue', '', 'Start delivery again.'),
                ('routine', 'bind_topic', '', 'Let a queue get what is published under the topics that a pattern matches.'),
                ('routine', 'unbind_topic', '', 'Take a queue''s pattern away; what it has got stays.'),
                ('routine', 'purge_queue', '', 'Delete waiting messages: ready, delayed, blocked; leased ones stay with their workers.'),
                ('routine', 'enqueue', '', 'Hand over one message.'),
                ('routine', 'enqueue_batch', '', 'Hand over many messages in one call: all of them or, on an error, none.'),
                ('routine', 'publish', '', 'Hand over one message to each queue that is bound to a topic, in the order of their names; to none where none is. Without a message_type it is the topic.'),
                ('routine', 'publish_batch', '', 'Do what publish does with many messages in one call, queue by queue: all of them or, on an error, none.'),
                ('routine', 'dequeue_fast', '', 'Lease up to batch_size ready messages to one new claim, passing over rows that another session holds.'),
                ('routine', 'dequeue_wait', '', 'Do what dequeue_fast does, but wait until something is ready or the time is up; return fewer messages where they are long.'),
                ('routine', 'peek', '', 'Show the next ready messages without leasing them.'),
                ('routine', 'complete', '', 'Finish messages: they are gone, or in the archive, and never delivered again.'),
                ('routine', 'retry_later', '', 'Give messages back for another attempt after a delay, the queue''s backoff unless delay_seconds is given; without an attempt left they are dead.'),
                ('routine', 'fail_now', '', 'Declare messages dead without another attempt.'),
                ('routine', 'release', '', 'Give messages back to the front of their priority without spending the attempt.'),
                ('routine', 'extend_lease', '', 'Heartbeat: hold all messages of a claim for lease_seconds from now; a lease is never shortened.'),
                ('routine', 'cancel', '', 'Withdraw messages that no worker holds, dead ones too.'),
                ('routine', 'cancel_many', '', 'Look at up to max_messages messages, in the order of their ids, and withdraw those that match every filter given and that no worker holds, dead ones too. At least one filter is required.'),
                ('routine', 'reset', '', 'Make dead messages ready again, at the tail of their priority, with fresh attempts; null takes the oldest max_messages.'),
                ('routine', 'discard_dead', '', 'Delete dead messages for good, the archive keeps none of them; null takes the oldest max_messages.'),
                ('routine', 'create_schedule', '', 'Let maintain enqueue a message at the times of a cron expression, or every so many seconds; an existing schedule of that name is left as it is.'),
                ('routine', 'alter_schedule', '', 'Change a schedule, pause it or let it go on; null leaves a setting as it is. It counts anew from now: what it has missed is not made up for.'),
                ('routine', 'drop_schedule', '', 'Remove a schedule; the messages that it made stay.'),
                ('routine', 'run_schedule', '', 'Enqueue the message of a schedule now, paused or not; its next tick stays as it is.'),
                ('routine', 'list_schedules', '', 'The schedules of one queue, or of all, without their bodies and headers.'),
                ('routine', 'next_ticks', '', 'When a schedule with these times would run: a look before it is created. An interval counts from after.'),
                ('routine', 'maintain', '', 'All housekeeping of one queue, or of every queue: schedules, promote, reap, expiry, floors, archive, results, history. Call it about once a second.'),
                ('routine', 'reap', '', 'Take unfinished messages back from claims whose lease ran out.'),
                ('routine', 'promote', '', 'Make delayed messages ready whose time has come.'),
                ('routine', 'archive', '', 'Move finished messages of a queue with archive_days above 0 to the archive.'),
                ('routine', 'purge_archive', '', 'Delete archived messages older than the queue''s archive_days and attempts older than its history_days, and drop partitions that no queue needs.'),
                ('routine', 'queue_stats', '', 'Counts, age and settings of one queue or all.'),
                ('routine', 'get_message', '', 'Where a message is and everything about it; no row when rowq does not know it.'),
                ('routine', 'find_message', '', 'Find the unfinished message that has a dedup key, and return what get_message does.'),
                ('routine', 'get_result', '', 'How a message has ended, and its result; of one that has not ended its state; no row when rowq does not know it.'),
                ('routine', 'wait_for_result', '', 'Do what get_result does, but wait until the message has ended or the time is up; the queue must keep results.'),
                ('routine', 'get_history', '', 'The attempts of a message: those that have ended within the queue''s history_days, oldest first, then the present lease. A lease that ran out is lease_expired, also where no attempt was left; no row when rowq knows of none.'),
                ('routine', 'list_dead', '', 'Dead messages, without their bodies, in the order of their ids, or backwards before one; of one type only, if given.'),
                ('routine', 'list_claims', '', 'Who is at work on what: the claims of one queue or all, in the order of their ids.'),
                ('routine', 'list_delayed', '', 'Messages that wait for their time, without their bodies, in the order in which they become due.'),
                ('routine', 'list_topics', '', 'The patterns of one queue or all, in the order of the queues'' names.'),
                ('routine', 'health', '', 'Report what needs attention: who holds back clean-up, overdue messages, expired leases, dead messages, a sequence behind its data.'),
                ('routine', 'version', '', 'What is installed.'),
                ('routine', 'listen', '', 'Have this session notified on the channel rowq of a queue''s new messages.'),
                ('routine', 'unlisten', '', 'Take back one listen; while nobody listens, producers notify nobody.'),
                ('routine', 'elect_keeper', '', 'Elect the one session that calls maintain for a queue each second; the others may call it more seldom.'),
                ('table', 'archive', '', 'Finished messages, kept for the queue''s archive_days.'),
                ('table', 'blocked', '', 'Messages that wait for others to end.'),
                ('table', 'claim', '', 'One successful dequeue each: the lease of a batch.'),
                ('table', 'dead', '', 'Messages that failed for good, until they are reset, cancelled or purged.'),
                ('table', 'dedup', '', 'Dedup keys of unfinished messages.'),
                ('table', 'delayed', '', 'Messages that wait for their time.'),
                ('table', 'expiry', '', 'When messages expire: what is due is withdrawn by maintain, or has ended before.'),
                ('table', 'finished', '', 'Finished messages of queues that keep an archive, until archive moves them there.'),
                ('table', 'floor', '', 'Where the live rows of each lane begin, so that no reader walks the dead rows before them.'),
                ('table', 'gate', '', 'One row a queue, which a dequeue of a limited queue locks while it counts and takes.'),
                ('table', 'grouped', '', 'Messages that wait behind others of their groups.'),
                ('table', 'history', '', 'Attempts that have ended, kept for the queue''s history_days.'),
                ('table', 'message', '', 'What the producers handed over: written once, deleted once.'),
                ('table', 'message_group', '', 'Tokens: each is the right of one message of a group to be ready, leased or waiting for a retry.'),
                ('table', 'meta', '', 'What is installed: schema_version and rowq_version.'),
                ('table', 'queue', '', 'Queues and their settings.'),
                ('table', 'ready', '', 'Messages that wait for a worker; the primary key is the order of delivery.'),
                ('table', 'recheck', '', 'What could not be passed on at once, because others were at work on it: tokens of groups, messages that waited for others; maintain looks at it again.'),
                ('table', 'result', '', 'How messages have ended, with their results, kept for the queue''s result_seconds.'),
                ('table', 'schedule', '', 'Schedules, whose messages maintain adds to their queues when they are due.'),
                ('table', 'started', '', 'The deliveries of queues with a rate_limit that began within their rate_seconds: a row each dequeue.'),
                ('table', 'successor', '', 'Which message waits for which other one.'),
                ('table', 'topic_binding', '', 'Which queue gets what is published under which topics.'),
                ('column', 'archive', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'archive', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
                ('column', 'archive', 'attempt', 'How many times the message has been leased.'),
                ('column', 'archive', 'message_id', 'The message.'),
                ('column', 'archive', 'enqueued_at', 'When the producer handed it over.'),
                ('column', 'archive', 'finished_at', 'When it was completed, cancelled, expired or declared dead.'),
                ('column', 'archive', 'state', 'completed, cancelled or expired.'),
                ('column', 'archive', 'message_type', 'The producer''s label.'),
                ('column', 'archive', 'dedup_key', 'The producer''s dedup key.'),
                ('column', 'archive', 'headers', 'The producer''s headers.'),
                ('column', 'archive', 'body', 'Text body, or null.'),
                ('column', 'archive', 'body_binary', 'Binary body, or null.'),
                ('column', 'archive', 'group_key', 'The producer''s group key.'),
                ('column', 'blocked', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'blocked', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
                ('column', 'blocked', 'message_id', 'The message.'),
                ('column', 'blocked', 'predecessor_id', 'The message that it waits for now; null where that is to be found out.'),
                ('column', 'blocked', 'due_at', 'When the message may be delivered, if it has a time of its own.'),
                ('column', 'blocked', 'on_dead', 'What a dead predecessor does to the message: hold, continue or fail; null is hold.'),
                ('column', 'blocked', 'group_key', 'The group that it joins when it waits for nothing any more.'),
                ('column', 'blocked', 'rest_ids', 'The other messages that it may have to wait for, in order.'),
                ('column', 'claim', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'claim', 'claim_id', 'The claim that holds the lease; pass it to the finishing routines.'),
                ('column', 'claim', 'lease_until', 'When the lease runs out.'),
                ('column', 'claim', 'message_ids', 'The messages of the batch.'),
                ('column', 'claim', 'lanes', 'Lanes of the messages, in the order of message_ids.'),
                ('column', 'claim', 'attempts', 'Attempts of the messages, in the order of message_ids.'),
                ('column', 'claim', 'errors', 'Last errors of the messages, in the order of message_ids; null when none has failed before.'),
                ('column', 'claim', 'worker_name', 'Who holds the lease.'),
                ('column', 'claim', 'cancel_ids', 'Messages of the batch that were cancelled while the worker had them; null where there is none.'),
                ('column', 'claim', 'progress', 'How far the work is, as the worker said last.'),
                ('column', 'claim', 'leased_at', 'When the dequeue leased the message.'),
                ('column', 'dead', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'dead', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
                ('column', 'dead', 'attempt', 'How many times the message has been leased.'),
                ('column', 'dead', 'message_id', 'The message.'),
                ('column', 'dead', 'died_at', 'When it failed for good.'),
                ('column', 'dead', 'last_error', 'What went wrong last, or null.'),
                ('column', 'dead', 'holds_group', 'Whether the dead message has kept its token, so that its group waits; else null.'),
                ('column', 'dedup', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'dedup', 'message_id', 'The message.'),
                ('column', 'dedup', 'dedup_key', 'The producer''s dedup key.'),
                ('column', 'delayed', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'delayed', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
                ('column', 'delayed', 'attempt', 'How many times the message has been leased.'),
                ('column', 'delayed', 'message_id', 'The message.'),
                ('column', 'delayed', 'due_at', 'When a delayed message becomes ready.'),
                ('column', 'delayed', 'last_error', 'What went wrong last, or null.'),
                ('column', 'delayed', 'group_key', 'Group that the message joins when it is due; null for one that has its token.'),
                ('column', 'expiry', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'expiry', 'lane', 'Lane in which the message is if it is ready.'),
                ('column', 'expiry', 'expires_at', 'Maintain looks for the message from this moment on.'),
                ('column', 'expiry', 'expiry_id', 'Makes the key unique.'),
                ('column', 'expiry', 'message_id', 'The message.'),
                ('column', 'expiry', 'seq', 'Its place there; null where the row was written for another place.'),
                ('column', 'finished', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'finished', 'finish_id', 'The call that finished the messages; the archive goes in this order.'),
                ('column', 'finished', 'finished_at', 'When it was completed, cancelled, expired or declared dead.'),
                ('column', 'finished', 'message_ids', 'The messages of the batch.'),
                ('column', 'finished', 'lanes', 'Lanes of the messages, in the order of message_ids.'),
                ('column', 'finished', 'attempts', 'Attempts of the messages, in the order of message_ids.'),
                ('column', 'finished', 'state', 'completed, cancelled or expired.'),
                ('column', 'floor', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'floor', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
                ('column', 'floor', 'generation', 'Counts down, so that the newest row of a lane is the first.'),
                ('column', 'floor', 'seq', 'Dequeue starts here; may have overtaken a writer that has not committed yet.'),
                ('column', 'floor', 'safe', 'Nothing can appear below this any more; maintain looks from here for late rows.'),
                ('column', 'floor', 'frontier', 'Newest number given out when this row''s pending mark was taken.'),
                ('column', 'floor', 'writers', 'Once every transaction older than this has ended, safe may move up to frontier.'),
                ('column', 'floor', 'rescan_at', 'No rescan looks below the floor before this moment.'),
                ('column', 'floor', 'sweep_at', 'No sweep, a rescan from the very start, begins before this moment.'),
                ('column', 'gate', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'grouped', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'grouped', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
                ('column', 'grouped', 'message_id', 'The message.'),
                ('column', 'grouped', 'group_key', 'The producer''s group key.'),
                ('column', 'grouped', 'last_error', 'What went wrong last, or null.'),
                ('column', 'history', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'history', 'attempt', 'How many times the message has been leased.'),
                ('column', 'history', 'message_id', 'The message.'),
                ('column', 'history', 'claim_id', 'The claim that held the message.'),
                ('column', 'history', 'leased_at', 'When the dequeue leased the message.'),
                ('column', 'history', 'ended_at', 'When the attempt ended.'),
                ('column', 'history', 'outcome', 'completed, retrying, dead, released, lease_expired or cancelled.'),
                ('column', 'history', 'worker_name', 'Who held the lease.'),
                ('column', 'history', 'error', 'What the worker said went wrong, or that the lease expired; else null.'),
                ('column', 'message', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'message', 'max_attempts', 'Leases before a message is dead; of a message: null for the queue''s setting.'),
                ('column', 'message', 'message_id', 'The message.'),
                ('column', 'message', 'enqueued_at', 'When the producer handed it over.'),
                ('column', 'message', 'message_type', 'The producer''s label.'),
                ('column', 'message', 'dedup_key', 'The producer''s dedup key.'),
                ('column', 'message', 'group_key', 'The producer''s group key.'),
                ('column', 'message', 'headers', 'The producer''s headers.'),
                ('column', 'message', 'body', 'Text body, or null.'),
                ('column', 'message', 'body_binary', 'Binary body, or null.'),
                ('column', 'message', 'has_successors', 'Whether a message has waited for this one; null for no.'),
                ('column', 'message', 'expires_at', 'When maintain withdraws the message unless it has ended, or null.'),
                ('column', 'message_group', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'message_group', 'token_no', 'Number of the token in its group, from 1.'),
                ('column', 'message_group', 'group_key', 'The producer''s group key.'),
                ('column', 'meta', 'name', 'What the value is of.'),
                ('column', 'meta', 'value', 'The value.'),
                ('column', 'meta', 'changed_at', 'When the value was set.'),
                ('column', 'queue', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'queue', 'queue_name', 'Name of the queue.'),
                ('column', 'queue', 'lease_seconds', 'Setting: default lease.'),
                ('column', 'queue', 'max_attempts', 'Leases before a message is dead; of a message: null for the queue''s setting.'),
                ('column', 'queue', 'backoff_base_seconds', 'Setting: delay before the second attempt.'),
                ('column', 'queue', 'backoff_factor', 'Setting: growth of the delay.'),
                ('column', 'queue', 'backoff_cap_seconds', 'Setting: longest delay.'),
                ('column', 'queue', 'backoff_jitter', 'Setting: random share taken off a delay.'),
                ('column', 'queue', 'archive_days', 'Setting: days in the archive.'),
                ('column', 'queue', 'max_body_length', 'Setting: longest body.'),
                ('column', 'queue', 'group_limit', 'Setting: messages of one group in work at once.'),
                ('column', 'queue', 'group_after_dead', 'Setting: continue or hold.'),
                ('column', 'queue', 'group_pause_seconds', 'Setting: rest of a group between two messages.'),
                ('column', 'queue', 'has_recheck', 'Whether a dequeue that finds nothing looks into recheck, too: maintain sets it once a token was left there.'),
                ('column', 'queue', 'max_leased', 'Setting: most messages leased at a time; 0 is no limit.'),
                ('column', 'queue', 'rate_limit', 'Setting: most deliveries begun within rate_seconds; 0 is no limit.'),
                ('column', 'queue', 'rate_seconds', 'Setting: the time that rate_limit is about.'),
                ('column', 'queue', 'result_seconds', 'Setting: how long results are kept; 0 is not at all.'),
                ('column', 'queue', 'history_days', 'Setting: days that ended attempts are kept; 0 is not at all.'),
                ('column', 'queue', 'paused_at', 'Since when dequeue is stopped; null while it is not.'),
                ('column', 'queue', 'created_at', 'When the queue was created.'),
                ('column', 'ready', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'ready', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
                ('column', 'ready', 'attempt', 'How many times the message has been leased.'),
                ('column', 'ready', 'seq', 'Place in the lane; it only grows.'),
                ('column', 'ready', 'message_id', 'The message.'),
                ('column', 'ready', 'last_error', 'What went wrong last, or null.'),
                ('column', 'recheck', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'recheck', 'is_hint', 'Whether there is no token yet, but may be one to take; of a predecessor: whether it is dead.'),
                ('column', 'recheck', 'due_at', 'Maintain looks at it from this moment on.'),
                ('column', 'recheck', 'recheck_id', 'Makes the key unique.'),
                ('column', 'recheck', 'message_id', 'A blocked message that may wait for nothing any more.'),
                ('column', 'recheck', 'predecessor_id', 'A message that has ended, of which not all successors were freed.'),
                ('column', 'recheck', 'group_key', 'The group that the token is of; null where it is no token.'),
                ('column', 'result', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'result', 'message_id', 'The message.'),
                ('column', 'result', 'finished_at', 'When it was completed, cancelled, expired or declared dead.'),
                ('column', 'result', 'state', 'completed, cancelled, expired or dead.'),
                ('column', 'result', 'result', 'What complete was given for the message, or null.'),
                ('column', 'result', 'last_error', 'What went wrong last, or null.'),
                ('column', 'schedule', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'schedule', 'schedule_name', 'Name of the schedule.'),
                ('column', 'schedule', 'cron', 'Its times as in a crontab, or null.'),
                ('column', 'schedule', 'interval_seconds', 'Seconds between its ticks, or null.'),
                ('column', 'schedule', 'time_zone', 'Whose clocks cron means.'),
                ('column', 'schedule', 'missed', 'What becomes of late ticks: skip, once or all.'),
                ('column', 'schedule', 'overlap', 'Whether a tick makes a message while that of an earlier one has not ended.'),
                ('column', 'schedule', 'starts_at', 'No tick comes before this moment; intervals are counted from it.'),
                ('column', 'schedule', 'ends_at', 'No tick comes after this moment, or null.'),
                ('column', 'schedule', 'message_type', 'The producer''s label.'),
                ('column', 'schedule', 'headers', 'The producer''s headers.'),
                ('column', 'schedule', 'priority', '0 to 9; 0 is delivered first.'),
                ('column', 'schedule', 'group_key', 'The producer''s group key.'),
                ('column', 'schedule', 'max_attempts', 'Leases before a message is dead; of a message: null for the queue''s setting.'),
                ('column', 'schedule', 'body', 'Text body, or null.'),
                ('column', 'schedule', 'body_binary', 'Binary body, or null.'),
                ('column', 'schedule', 'is_paused', 'It is stopped: a queue delivers nothing, a schedule makes no message.'),
                ('column', 'schedule', 'next_run_at', 'The next tick; null while the schedule is paused, and after its last one.'),
                ('column', 'schedule', 'last_run_at', 'When it last made a message, or null.'),
                ('column', 'schedule', 'last_message_id', 'The message that it made then, or null.'),
                ('column', 'schedule', 'last_error', 'What went wrong last, or null.'),
                ('column', 'started', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'started', 'messages', 'How many messages the dequeue leased.'),
                ('column', 'started', 'started_at', 'When the dequeue leased them.'),
                ('column', 'started', 'claim_id', 'The claim that holds the lease; pass it to the finishing routines.'),
                ('column', 'successor', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'successor', 'predecessor_id', 'The message that it waits for now; null where that is to be found out.'),
                ('column', 'successor', 'message_id', 'The message.'),
                ('column', 'topic_binding', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'topic_binding', 'word_count', 'How many words the pattern has, without #.'),
                ('column', 'topic_binding', 'has_rest', 'Whether any words may follow, or none: the pattern ends with #.'),
                ('column', 'topic_binding', 'topic_pattern', 'What of the topics the queue gets.'),
                ('column', 'topic_binding', 'literal_head', 'The words before the first * or #, which the topic has to begin with.'),
                ('column', 'topic_binding', 'like_pattern', 'What the topic''s first word_count words are compared with, ! before what is no wildcard; null where literal_head has said it.')
                -- end of comments
        ),
        object as (
            select
                'routine' as kind,
                p.proname as name,
                '' as column_name,
                p.oid::pg_catalog.regprocedure::text as full_name,
                pg_catalog.obj_description(p.oid, 'pg_proc') as comment,
                p.tableoid as classid,
                p.oid as objid
            from pg_catalog.pg_proc p
            where p.pronamespace = 'rowq'::pg_catalog.regnamespace
            union all
            select
                'table',
                c.relname,
                '',
                c.oid::pg_catalog.regclass::text,
                pg_catalog.obj_description(c.oid, 'pg_class'),
                c.tableoid,
                c.oid
            from pg_catalog.pg_class c
            where c.relnamespace = 'rowq'::pg_catalog.regnamespace
              and c.relkind in ('r', 'p')
            union all
            select
                'column',
                c.relname,
                a.attname,
                c.oid::pg_catalog.regclass::text || '.' || pg_catalog.quote_ident(a.attname),
                pg_catalog.col_description(c.oid, a.attnum),
                c.tableoid,
                c.oid
            from pg_catalog.pg_class c
            join pg_catalog.pg_attribute a on a.attrelid = c.oid
            where c.relnamespace = 'rowq'::pg_catalog.regnamespace
              and c.relkind in ('r', 'p')
              and a.attnum > 0
              and not a.attisdropped
        )
        select pg_catalog.format('comment on %s %s is %L', o.kind, o.full_name, w.comment)
        from wanted w
        join object o using (kind, name, column_name)
        where o.comment is distinct from w.comment
          and not exists (
              select 1
              from pg_catalog.pg_depend d
              where d.classid = o.classid
                and d.objid = o.objid
                and d.deptype = 'e'
          )
        order by o.kind, o.full_name
    loop
        execute v_change;
    end loop;
end;
$$;

-- [after noted]
with installed as (
    insert into rowq.migration (migration_hash, migration_id, applied_at_utc)
    values (
        'c5a3e531e0aef22143bbae4752d26bd67b5d8f8225c6a259df7d1a79c68d15fb',
        'pg-0001-first-release',
        clock_timestamp() at time zone 'utc'
    )
    on conflict (migration_hash) do nothing
    returning migration_hash, migration_id, applied_at_utc
)
insert into rowq.migration_log
    (id, migration_hash, migration_id, operation, username, hostname, created_at_utc)
select
    gen_random_uuid(), migration_hash, migration_id, 'apply', session_user, 'script', applied_at_utc
from installed;

    insert into rowq.meta (name, value)
    values ('schema_version', '1'), ('rowq_version', '0.1.0')
    on conflict (name) do update
    set value = excluded.value,
        changed_at = clock_timestamp()
    where rowq.meta.value <> excluded.value;

-- [file grants.sql]
-- This script sets roles, ownership and rights. It may run any number of times, and changes only
-- what is not right yet. A role that is missing and may not be created here is left out with a
-- warning: create the role and run the script again.

do $$
declare
    v_role         text;
    v_why          text;
    v_remedy       text;
    v_is_superuser constant boolean := (
        select r.rolsuper from pg_catalog.pg_roles r where r.rolname = current_user
    );
    v_owned_by_superuser constant boolean := (
        select r.rolsuper
        from pg_catalog.pg_namespace n
        join pg_catalog.pg_roles r on r.oid = n.nspowner
        where n.nspname = 'rowq'
    );
begin
    foreach v_role in array array[
        'rowq_owner',
        'rowq_producer',
        'rowq_consumer',
        'rowq_admin',
        'rowq_monitor'
    ] loop
        continue when v_role = 'rowq_owner' and not (v_is_superuser and v_owned_by_superuser);
        continue when exists (select 1 from pg_catalog.pg_roles r where r.rolname = v_role);
        begin
            execute pg_catalog.format('create role %I nologin', v_role);
        exception
            when duplicate_object or unique_violation then
                null; -- Another database of this server has made it a moment ago.
            when insufficient_privilege then
                raise warning 'role % is missing and % may not create it: its rights are left out; '
                    'a DBA can run "create role % nologin;", then migrate again',
                    v_role, current_user, v_role;
        end;
    end loop;

    -- A role that made one of these roles, or can act as it, can take its rights. A first
    -- installation by a superuser refuses that; otherwise it is a warning.
    for v_why, v_remedy in
        select
            pg_catalog.format('role %I ', r.rolname) || case
                when r.rolsuper then 'is a superuser'
                when r.rolcreaterole then 'may create roles'
                when r.rolcanlogin then 'may log in'
                else pg_catalog.format('can be granted by %I', a.rolname)
            end,
            case
                when r.rolsuper or r.rolcreaterole or r.rolcanlogin
                    then pg_catalog.format(
                        'alter role %I nologin nosuperuser nocreaterole;', r.rolname)
                else pg_catalog.format(
                    'revoke admin option for %I from %I cascade;', r.rolname, a.rolname)
            end
        from pg_catalog.pg_roles r
        left join lateral (
            select m.rolname
            from pg_catalog.pg_auth_members g
            join pg_catalog.pg_roles m on m.oid = g.member
            where g.roleid = r.oid
              and g.admin_option
              and not m.rolsuper
              and m.rolname <> session_user
              and m.oid not in (
                  select n.nspowner from pg_catalog.pg_namespace n where n.nspname = 'rowq'
              )
            order by m.rolname
            limit 1
        ) a on true
        where r.rolname in ('rowq_producer', 'rowq_consumer', 'rowq_admin', 'rowq_monitor')
          and (r.rolsuper or r.rolcreaterole or r.rolcanlogin or a.rolname is not null)
        order by r.rolname
    loop
        if v_is_superuser and pg_catalog.current_setting('rowq.routines', true) = '{}' then
            raise exception 'RQ803 missing_privilege: %', v_why
                using errcode = 'RQ803',
                      hint = pg_catalog.format('A DBA must run: %s Or drop the role.', v_remedy);
        end if;
        raise warning '%: if that is not meant, a DBA can run "%"', v_why, v_remedy;
    end loop;

    -- Routines run with their owner's rights, so the owner must not be a superuser. It may read all
    -- statistics, because health names who else is connected.
    if v_is_superuser and v_owned_by_superuser then
        alter schema rowq owner to rowq_owner;
        grant pg_read_all_stats to rowq_owner;
    end if;
end;
$$;

-- Give everything in the schema to the schema's owner, whoever migrated. What belongs to an
-- extension, or to a role that is neither a superuser nor migrates, is left alone.
do $$
declare
    v_owner  pg_catalog.oid;
    v_change text;
begin
    select n.nspowner
    into v_owner
    from pg_catalog.pg_namespace n
    where n.nspname = 'rowq';

    for v_change in
        with object as (
            select
                'table' as kind,
                c.oid::pg_catalog.regclass::text as name,
                c.relowner as owner,
                c.oid,
                c.tableoid
            from pg_catalog.pg_class c
            where c.relnamespace = 'rowq'::pg_catalog.regnamespace
              and c.relkind in ('r', 'p', 'v', 'm', 'S')
              and not exists ( -- A sequence of an identity column goes with its table.
                  select 1
                  from pg_catalog.pg_depend d
                  where d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
                    and d.objid = c.oid
                    and c.relkind = 'S'
                    and d.deptype in ('a', 'i')
              )
            union all
            select 'routine', p.oid::pg_catalog.regprocedure::text, p.proowner, p.oid, p.tableoid
            from pg_catalog.pg_proc p
            where p.pronamespace = 'rowq'::pg_catalog.regnamespace
        )
        select pg_catalog.format(
            'alter %s %s owner to %I', o.kind, o.name, pg_catalog.pg_get_userbyid(v_owner))
        from object o
        join pg_catalog.pg_roles r on r.oid = o.owner
        where o.owner <> v_owner
          and (r.rolsuper or r.rolname = session_user)
          and not exists (
              select 1
              from pg_catalog.pg_depend d
              where d.classid = o.tableoid
                and d.objid = o.oid
                and d.deptype = 'e'
          )
    loop
        execute v_change;
    end loop;

    if pg_catalog.pg_get_userbyid(v_owner) = 'rowq_owner' and not exists (
        select 1
        from pg_catalog.pg_default_acl a
        where a.defaclrole = v_owner
          and a.defaclnamespace = 0
          and a.defaclobjtype = 'f'
    ) then
        alter default privileges for role rowq_owner revoke execute on functions from public;
    end if;

    -- Revoke default privileges, so that no other role gets a right on what rowq_owner makes, or on
    -- what any owner makes in the schema.
    for v_change in
        select distinct pg_catalog.format(
            'alter default privileges for role %I %s revoke all on %s from %s cascade',
            pg_catalog.pg_get_userbyid(v_owner),
            case when a.defaclnamespace <> 0 then 'in schema rowq' end,
            case a.defaclobjtype
                when 'r' then 'tables'
                when 'S' then 'sequences'
                when 'f' then 'functions'
                when 'T' then 'types'
                when 'n' then 'schemas'
                else 'large objects'
            end,
            case when given.grantee = 0 then 'public' else pg_catalog.quote_ident(r.rolname) end)
        from pg_catalog.pg_default_acl a
        cross join pg_catalog.aclexplode(a.defaclacl) given
        left join pg_catalog.pg_roles r on r.oid = given.grantee
        where a.defaclrole = v_owner
          and given.grantee <> v_owner
          and (given.grantee = 0 or r.oid is not null)
          and (
              pg_catalog.pg_get_userbyid(v_owner) = 'rowq_owner' and a.defaclnamespace = 0
              or a.defaclnamespace = 'rowq'::pg_catalog.regnamespace
          )
    loop
        execute v_change;
    end loop;
end;
$$;

-- Each role of rowq's may execute its routines and nothing else, and PUBLIC may do nothing at all.
-- Another role keeps what a DBA may have granted to it: to use the schema, and to execute routines
-- of the contract. It keeps no right on what is new in this transaction, because that right comes
-- from default privileges. dequeue_wait and wait_for_result run with their caller's rights,
-- because they commit, so their callers need the helpers that they call.
do $$
declare
    v_change text;
begin
    for v_change in
        with wanted (role_name, routine_name) as (
            values
                -- rights: generated from contract.toml by make generate
                ('rowq_admin', 'create_queue'),
                ('rowq_admin', 'alter_queue'),
                ('rowq_admin', 'drop_queue'),
                ('rowq_admin', 'pause_queue'),
                ('rowq_admin', 'resume_queue'),
                ('rowq_admin', 'bind_topic'),
                ('rowq_admin', 'unbind_topic'),
                ('rowq_admin', 'purge_queue'),
                ('rowq_admin', 'enqueue'),
                ('rowq_admin', 'enqueue_batch'),
                ('rowq_admin', 'publish'),
                ('rowq_admin', 'publish_batch'),
                ('rowq_admin', 'dequeue_fast'),
                ('rowq_admin', 'dequeue_wait'),
                ('rowq_admin', 'internal_poll'),
                ('rowq_admin', 'internal_require_autocommit'),
                ('rowq_admin', 'internal_wait_until'),
                ('rowq_admin', 'peek'),
                ('rowq_admin', 'complete'),
                ('rowq_admin', 'retry_later'),
                ('rowq_admin', 'fail_now'),
                ('rowq_admin', 'release'),
                ('rowq_admin', 'extend_lease'),
                ('rowq_admin', 'cancel'),
                ('rowq_admin', 'cancel_many'),
                ('rowq_admin', 'reset'),
                ('rowq_admin', 'discard_dead'),
                ('rowq_admin', 'create_schedule'),
                ('rowq_admin', 'alter_schedule'),
                ('rowq_admin', 'drop_schedule'),
                ('rowq_admin', 'run_schedule'),
                ('rowq_admin', 'list_schedules'),
                ('rowq_admin', 'next_ticks'),
                ('rowq_admin', 'maintain'),
                ('rowq_admin', 'reap'),
                ('rowq_admin', 'promote'),
                ('rowq_admin', 'archive'),
                ('rowq_admin', 'purge_archive'),
                ('rowq_admin', 'queue_stats'),
                ('rowq_admin', 'get_message'),
                ('rowq_admin', 'find_message'),
                ('rowq_admin', 'get_result'),
                ('rowq_admin', 'wait_for_result'),
                ('rowq_admin', 'internal_poll_result'),
                ('rowq_admin', 'get_history'),
                ('rowq_admin', 'list_dead'),
                ('rowq_admin', 'list_claims'),
                ('rowq_admin', 'list_delayed'),
                ('rowq_admin', 'list_topics'),
                ('rowq_admin', 'health'),
                ('rowq_admin', 'version'),
                ('rowq_admin', 'listen'),
                ('rowq_admin', 'unlisten'),
                ('rowq_admin', 'elect_keeper'),
                ('rowq_producer', 'enqueue'),
                ('rowq_producer', 'enqueue_batch'),
                ('rowq_producer', 'publish'),
                ('rowq_producer', 'publish_batch'),
                ('rowq_producer', 'cancel'),
                ('rowq_producer', 'cancel_many'),
                ('rowq_producer', 'next_ticks'),
                ('rowq_producer', 'get_result'),
                ('rowq_producer', 'wait_for_result'),
                ('rowq_producer', 'internal_poll_result'),
                ('rowq_producer', 'internal_require_autocommit'),
                ('rowq_producer', 'internal_wait_until'),
                ('rowq_producer', 'version'),
                ('rowq_consumer', 'dequeue_fast'),
                ('rowq_consumer', 'dequeue_wait'),
                ('rowq_consumer', 'internal_poll'),
                ('rowq_consumer', 'internal_require_autocommit'),
                ('rowq_consumer', 'internal_wait_until'),
                ('rowq_consumer', 'peek'),
                ('rowq_consumer', 'complete'),
                ('rowq_consumer', 'retry_later'),
                ('rowq_consumer', 'fail_now'),
                ('rowq_consumer', 'release'),
                ('rowq_consumer', 'extend_lease'),
                ('rowq_consumer', 'maintain'),
                ('rowq_consumer', 'reap'),
                ('rowq_consumer', 'promote'),
                ('rowq_consumer', 'archive'),
                ('rowq_consumer', 'queue_stats'),
                ('rowq_consumer', 'version'),
                ('rowq_consumer', 'listen'),
                ('rowq_consumer', 'unlisten'),
                ('rowq_consumer', 'elect_keeper'),
                ('rowq_monitor', 'list_schedules'),
                ('rowq_monitor', 'next_ticks'),
                ('rowq_monitor', 'queue_stats'),
                ('rowq_monitor', 'list_dead'),
                ('rowq_monitor', 'list_claims'),
                ('rowq_monitor', 'list_delayed'),
                ('rowq_monitor', 'list_topics'),
                ('rowq_monitor', 'health'),
                ('rowq_monitor', 'version')
                -- end of rights
        ),
        member as (
            select
                r.oid,
                pg_catalog.quote_ident(r.rolname) as grantee,
                r.rolname,
                r.rolname in ('rowq_producer', 'rowq_consumer', 'rowq_admin', 'rowq_monitor')
                    as is_ours
            from pg_catalog.pg_roles r
            union all
            select 0, 'public', null, true
        ),
        object as (
            select
                'schema' as kind,
                'rowq' as name,
                null as routine_name,
                pg_catalog.current_setting('rowq.has_schema', true) is distinct from 'no'
                    as may_be_given,
                n.oid,
                n.tableoid,
                n.nspowner as owner,
                coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner)) as acl
            from pg_catalog.pg_namespace n
            where n.nspname = 'rowq'
            union all
            select
                case c.relkind when 'S' then 'sequence' else 'table' end,
                c.oid::pg_catalog.regclass::text,
                null,
                false,
                c.oid,
                c.tableoid,
                c.relowner,
                coalesce(c.relacl, pg_catalog.acldefault(
                    case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner))
            from pg_catalog.pg_class c
            where c.relnamespace = 'rowq'::pg_catalog.regnamespace
              and c.relkind in ('r', 'p', 'v', 'm', 'S')
            union all
            -- Count a right on a column as one on its table, because revoking it on the table
            -- revokes it on the columns too.
            select 'table', c.oid::pg_catalog.regclass::text, null, false,
                   c.oid, c.tableoid, c.relowner, a.attacl
            from pg_catalog.pg_class c
            join pg_catalog.pg_attribute a on a.attrelid = c.oid
            where c.relnamespace = 'rowq'::pg_catalog.regnamespace
              and c.relkind in ('r', 'p', 'v', 'm')
              and a.attacl is not null
            union all
            -- Count the row type of each table too, because a role that may use it can stop the
            -- table from being changed or dropped.
            select
                'type',
                t.oid::pg_catalog.regtype::text,
                null,
                false,
                c.oid,
                c.tableoid,
                t.typowner,
                coalesce(t.typacl, pg_catalog.acldefault('T', t.typowner))
            from pg_catalog.pg_type t
            join pg_catalog.pg_class c on c.reltype = t.oid
            where c.relnamespace = 'rowq'::pg_catalog.regnamespace
              and c.relkind in ('r', 'p', 'v', 'm')
            union all
            select
                'routine',
                p.oid::pg_catalog.regprocedure::text,
                p.proname,
                p.proname in (select w.routine_name from wanted w) and coalesce(
                    p.oid = any (nullif(
                        pg_catalog.current_setting('rowq.routines', true), '')::pg_catalog.oid[]),
                    true),
                p.oid,
                p.tableoid,
                p.proowner,
                coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))
            from pg_catalog.pg_proc p
            where p.pronamespace = 'rowq'::pg_catalog.regnamespace
        ),
        given as (
            select distinct
                o.kind,
                o.name,
                m.oid,
                right_given.privilege_type,
                right_given.is_grantable
            from object o
            cross join pg_catalog.aclexplode(o.acl) right_given
            join member m on m.oid = right_given.grantee
            where m.oid <> o.owner
              and (m.is_ours or not o.may_be_given or right_given.privilege_type = 'CREATE')
              and not exists (
                  select 1
                  from pg_catalog.pg_depend d
                  where d.classid = o.tableoid
                    and d.objid = o.oid
                    and d.deptype = 'e'
              )
        ),
        due as (
            select 'schema' as kind, 'rowq' as name, m.oid, 'USAGE' as privilege_type,
                   false as is_grantable
            from member m
            where m.is_ours
              and m.oid <> 0
            union all
            select o.kind, o.name, m.oid, 'EXECUTE', false
            from wanted w
            join member m on m.rolname = w.role_name
            join object o on o.kind = 'routine' and o.routine_name = w.routine_name
        )
        select pg_catalog.format(
            case
                when d.oid is null then 'revoke %s on %s %s from %s cascade'
                else 'grant %s on %s %s to %s'
            end,
            privilege_type, kind, name, m.grantee)
        from given g
        full join due d using (kind, name, oid, privilege_type, is_grantable)
        join member m using (oid)
        where g.oid is null or d.oid is null
        order by kind, name, m.grantee, privilege_type, d.oid is not null
    loop
        execute v_change;
    end loop;
end;
$$;

-- Name what is left to other roles, because the DBA may not have meant it.
do $$
declare
    v_grantee text;
    v_names   text;
begin
    for v_grantee, v_names in
        with object as (
            select 'schema rowq' as name, n.nspowner as owner, n.nspacl as acl
            from pg_catalog.pg_namespace n
            where n.nspname = 'rowq'
            union all
            select p.proname, p.proowner, p.proacl
            from pg_catalog.pg_proc p
            where p.pronamespace = 'rowq'::pg_catalog.regnamespace
              and not exists (
                  select 1
                  from pg_catalog.pg_depend d
                  where d.classid = p.tableoid
                    and d.objid = p.oid
                    and d.deptype = 'e'
              )
        )
        select pg_catalog.quote_ident(r.rolname), pg_catalog.string_agg(distinct o.name, ', ')
        from object o
        cross join pg_catalog.aclexplode(o.acl) given
        join pg_catalog.pg_roles r on r.oid = given.grantee
        where r.oid <> o.owner
          and r.rolname not in ('rowq_producer', 'rowq_consumer', 'rowq_admin', 'rowq_monitor')
        group by r.rolname
        order by r.rolname
    loop
        raise warning 'role % has rights of its own, on %: revoke them if they are not meant',
            v_grantee, v_names;
    end loop;
end;
$$;

-- [after committed]
commit;

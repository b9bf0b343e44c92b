-- rowq 0.1.0: install 1.
-- Run it in SQL*Plus or SQLcl, as the account that owns rowq, or shall: @script.sql. After an error
-- run all of it again: every unit may be.
set define off
set sqlblanklines on
set serveroutput on
whenever sqlerror exit failure rollback

-- [before preflight.sql]
-- This runs first in every install, upgrade and rollback. It refuses what would go wrong later,
-- before anything is changed and before anything that others have made can run.
-- RQ803: the session is in somebody else's schema. Names are looked up there then, and an object
--        that its owner has put in the place of DUAL, or of a table of rowq's, would run with the
--        rights of the account that migrates; so every name in this block says the schema SYS.
begin
    if sys.standard.sys_context('userenv', 'current_schema')
        <> sys.standard.sys_context('userenv', 'session_user')
    then
        sys.dbms_standard.raise_application_error(
            -20803,
            'RQ803 missing_privilege: this is '
            || sys.standard.sys_context('userenv', 'session_user') || ' in the schema of '
            || sys.standard.sys_context('userenv', 'current_schema')
        );
    end if;
end;
/
-- RQ801: the server is older than 19c.
-- RQ803: a package of SYS that rowq calls is out of the owner's reach. Everybody may call them,
--        unless the server was hardened; roles do not count in stored code.
-- RQ802: there are tables with rowq's names that rowq did not make (with nothing but bookkeeping it
--        is an installation of ours that was not finished), something stands in the place of a
--        table, or something would run when a table is used.
declare
    v_tables     pls_integer;
    v_known      pls_integer;
    v_bookkeeper pls_integer;
    v_why        varchar2(1000 char);
    v_packages   constant sys.odcivarchar2list := sys.odcivarchar2list(
        'DBMS_ASSERT', 'DBMS_LOB', 'DBMS_OUTPUT', 'DBMS_SESSION', 'DBMS_STATS', 'DBMS_TRANSACTION',
        'DBMS_UTILITY', 'UTL_ENCODE', 'UTL_RAW'
    );
begin
    if dbms_db_version.version < 19 then
        raise_application_error(-20801, 'RQ801 server_too_old: rowq needs Oracle 19c or newer');
    end if;

    select listagg('sys.' || lower(n.column_value), ', ') within group (order by n.column_value)
    into v_why
    from table(v_packages) n
    where not exists (
        select null
        from all_tab_privs p
        where p.table_schema = 'SYS'
          and p.table_name = n.column_value
          and p.privilege = 'EXECUTE'
          and p.grantee in (sys_context('userenv', 'session_user'), 'PUBLIC')
    );
    if v_why is not null then
        raise_application_error(
            -20803,
            'RQ803 missing_privilege: the owner may not call ' || v_why
            || ': grant execute on each to ' || sys_context('userenv', 'session_user')
        );
    end if;

    select count(*),
           count(case when t.table_name in ('ROWQ_META', 'ROWQ_QUEUE', 'ROWQ_READY') then 1 end),
           count(case when t.table_name = 'ROWQ_MIGRATION' then 1 end)
    into v_tables, v_known, v_bookkeeper
    from user_tables t
    where t.table_name like 'ROWQ\_%' escape '\';
    if v_tables > 0 and v_known < 3 and v_bookkeeper = 0 then
        v_why := 'the schema has tables ROWQ_ that rowq did not make';
    end if;

    select coalesce(v_why, min(f.why))
    into v_why
    from (
        select o.object_name || ' is a ' || lower(o.object_type) as why
        from user_objects o
        where (o.object_name = 'ROWQ' or o.object_name like 'ROWQ\_%' escape '\')
          and o.object_type in ('VIEW', 'MATERIALIZED VIEW', 'SYNONYM')
        union all
        select t.table_name || ' is a temporary table'
        from user_tables t
        where t.table_name like 'ROWQ\_%' escape '\'
          and t.temporary = 'Y'
        union all
        select t.table_name || ' has trigger ' || t.owner || '.' || t.trigger_name
               || ', which must be disabled meanwhile'
        from all_triggers t
        where t.table_owner = sys_context('userenv', 'session_user')
          and t.table_name like 'ROWQ\_%' escape '\'
          and t.status = 'ENABLED'
        union all
        select c.table_name || ' has virtual column ' || c.column_name
        from user_tab_cols c
        where c.table_name like 'ROWQ\_%' escape '\'
          and c.virtual_column = 'YES'
          and c.user_generated = 'YES'
        union all
        select i.table_name || ' has an index on a function, ' || i.owner || '.' || i.index_name
        from all_indexes i
        where i.table_owner = sys_context('userenv', 'session_user')
          and i.table_name like 'ROWQ\_%' escape '\'
          and i.index_type like 'FUNCTION-BASED%'
        union all
        select p.object_name || ' has policy ' || p.policy_name
        from user_policies p
        where p.object_name like 'ROWQ\_%' escape '\'
          and p.enable = 'YES'
    ) f;
    if v_why is not null then
        raise_application_error(-20802, 'RQ802 foreign_schema: ' || v_why);
    end if;
end;
/

-- [before bookkeeping.sql]
-- These tables say which migrations are installed, in the columns that yoyo knows. Times are UTC. A
-- session that migrates locks the last table, so that only one migrates at a time.
begin
    execute immediate q'[
create table rowq_migration (
    migration_hash varchar2(64 char) not null,
    migration_id   varchar2(255 char) not null,
    applied_at_utc timestamp(6) not null,
    constraint rowq_migration_pk primary key (migration_hash)
)
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/
begin
    execute immediate q'[
create table rowq_migration_log (
    id             varchar2(36 char) not null,
    migration_hash varchar2(64 char) not null,
    migration_id   varchar2(255 char) not null,
    operation      varchar2(10 char) not null,
    username       varchar2(255 char) not null,
    hostname       varchar2(255 char) not null,
    created_at_utc timestamp(6) not null,
    constraint rowq_migration_log_pk primary key (id)
)
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/
begin
    execute immediate q'[
create table rowq_migration_lock (
    is_locked number(1) not null
)
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [before installed]
declare
    v_count pls_integer;
begin
    select count(*) into v_count
    from rowq_migration m
    where m.migration_id not in ('ora-0001-first-release');
    if v_count > 0 then
        raise_application_error(-20804, 'RQ804 schema_newer');
    end if;
end;
/

-- [file tables/meta.sql]
-- The rows say what is installed: schema_version and rowq_version, which each migration writes.
-- For a queue whose archive could not be maintained, archive_fault.<part_id> is the last error,
-- until it succeeds.
begin
    execute immediate q'[
create table rowq_meta (
    name       varchar2(100 char) not null,
    value      varchar2(500 char) not null,
    changed_at timestamp(6) default sys_extract_utc(systimestamp) not null,
    constraint rowq_meta_pk primary key (name)
)
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/types.sql]
-- These are collections that SQL knows: lists of ids for callers in PL/SQL, and the rows that
-- routines put together before they return them. No table is made of them, so they may be replaced.
create or replace type rowq_ids force as table of number(19)
/
-- Moments, one a row of a result.
create or replace type rowq_moments force as table of timestamp(6)
/
-- A rowq_line is one message in a result; an attribute that the routine does not use is null.
create or replace type rowq_line force as object (
    place      number(10),
    message_id number(19),
    lane       number(2),
    attempt    number(5),
    outcome    varchar2(20 char),
    due_at     timestamp(6)
)
/
create or replace type rowq_lines force as table of rowq_line
/
-- Bytes of topics' first words, or of patterns.
create or replace type rowq_keys force as table of raw(400)
/
-- A rowq_topic_key is a pattern that a message's topic matches; place is that of the message in its
-- batch.
create or replace type rowq_topic_key force as object (
    place       number(10),
    pattern_key raw(400)
)
/
create or replace type rowq_topic_keys force as table of rowq_topic_key
/
-- A rowq_sent is a message that publish has handed over to a queue; line_no is its place in the
-- result.
create or replace type rowq_sent force as object (
    line_no    number(10),
    place      number(10),
    queue_name varchar2(100 char),
    message_id number(19),
    outcome    varchar2(20 char)
)
/
create or replace type rowq_sent_list force as table of rowq_sent
/
-- A rowq_kept says what maintain did for one queue.
create or replace type rowq_kept force as object (
    queue_name         varchar2(100 char),
    elected            number(1),
    promoted           number(10),
    reaped             number(10),
    died               number(10),
    archived           number(10),
    purged             number(10),
    partitions_dropped number(10),
    expired            number(10)
)
/
create or replace type rowq_kept_list force as table of rowq_kept
/
-- A rowq_count says how many messages of one queue are in each place.
create or replace type rowq_count force as object (
    part_id        number(10),
    ready_count    number(19),
    delayed_count  number(19),
    leased_count   number(19),
    dead_count     number(19),
    blocked_count  number(19),
    oldest_seconds number
)
/
create or replace type rowq_counts force as table of rowq_count
/
-- A rowq_check is one check of health, with the values at which it becomes a warning and critical.
create or replace type rowq_check force as object (
    check_name varchar2(100 char),
    queue_name varchar2(100 char),
    measured   number,
    warning    number,
    critical   number,
    detail     varchar2(500 char)
)
/
create or replace type rowq_checks force as table of rowq_check
/

-- [file tables/queue.sql]
-- A row holds the settings of a queue. part_id stands first in the key of every table below and is
-- never reused. queue_key is what is compared: the bytes of the name, so that upper case, accents
-- and trailing blanks matter whatever NLS_COMP and NLS_SORT a session has. All times are UTC. Until
-- listened_until a session waits for a ring of doorbell.sql; it is null where that was never run.
-- initrans and pctfree leave the blocks room for many lock entries, because sessions that wait at
-- many queues note it at the same time.
begin
    execute immediate q'[
create table rowq_queue (
    part_id              number(10) not null,
    queue_name           varchar2(100 char) not null,
    queue_key            raw(400) not null,
    lease_seconds        number(5) default 30 not null,
    max_attempts         number(5) default 10 not null,
    backoff_base_seconds number default 5 not null,
    backoff_factor       number default 2 not null,
    backoff_cap_seconds  number default 3600 not null,
    backoff_jitter       number default 0.2 not null,
    archive_days         number(5) default 0 not null,
    max_body_length      number(8) default 1048576 not null,
    group_limit          number(3) default 1 not null,
    group_after_dead     varchar2(10 char) default 'continue' not null,
    group_pause_seconds  number default 0 not null,
    max_leased           number(6) default 0 not null,
    rate_limit           number(6) default 0 not null,
    rate_seconds         number default 1 not null,
    result_seconds       number default 0 not null,
    history_days         number(5) default 0 not null,
    paused_at            timestamp(6),
    listened_until       timestamp(6),
    created_at           timestamp(6) not null,
    constraint rowq_queue_pk primary key (part_id),
    constraint rowq_queue_key_uq unique (queue_key),
    constraint rowq_queue_lease_ck check (lease_seconds between 1 and 86400),
    constraint rowq_queue_attempts_ck check (max_attempts between 1 and 10000),
    constraint rowq_queue_base_ck check (backoff_base_seconds between 0 and 86400),
    constraint rowq_queue_factor_ck check (backoff_factor between 1 and 10),
    constraint rowq_queue_cap_ck check (backoff_cap_seconds between 0 and 31536000),
    constraint rowq_queue_jitter_ck check (backoff_jitter between 0 and 1),
    constraint rowq_queue_archive_ck check (archive_days between 0 and 36500),
    constraint rowq_queue_body_ck check (max_body_length between 1 and 33554432),
    constraint rowq_queue_group_limit_ck check (group_limit between 1 and 100),
    constraint rowq_queue_after_dead_ck check (group_after_dead in ('continue', 'hold')),
    constraint rowq_queue_group_pause_ck check (group_pause_seconds between 0 and 86400),
    constraint rowq_queue_max_leased_ck check (max_leased between 0 and 100000),
    constraint rowq_queue_rate_limit_ck check (rate_limit between 0 and 100000),
    constraint rowq_queue_rate_seconds_ck check (rate_seconds between 0.1 and 86400),
    constraint rowq_queue_result_ck check (result_seconds between 0 and 31536000),
    constraint rowq_queue_history_ck check (history_days between 0 and 36500)
)
initrans 16 pctfree 40
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/
begin
    execute immediate q'[
create sequence rowq_part_seq start with 1 increment by 1 cache 20 noorder
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/lane.sql]
-- A row is a lane of a part. create_queue makes twenty for messages (priority * 2, plus 1 for the
-- tail). floor_seq is where the live rows of the lane begin: a hint that spares readers the emptied
-- index blocks below it. Only maintain moves it (internal_rescan_floors), never nearer than half a
-- second to now. It looks from 0, so a wrong floor delays a message and never loses one. Lanes
-- below 0 stand for the other tables that are read from their low end: -1 claim (claim_id), -2
-- delayed (due_at in microseconds since 1970), -3 finished (finish_id), -4 recheck (due_at,
-- likewise), -5 started (started_at, likewise), -6 expiry (expires_at, likewise), -7 result
-- (finished_at, likewise), -8 history (ended_at, likewise). The session that is elected to run
-- maintain for the part holds the row of lane -1. A lane that was never used is closed, and dequeue
-- does not look into it; of those below 0 only lane -4 is ever opened. There are few rows; initrans
-- and pctfree leave their blocks room for many lock entries.
begin
    execute immediate q'[
create table rowq_lane (
    part_id     number(10) not null,
    lane        number(2) not null,
    is_open     number(1) default 0 not null,
    floor_seq   number(19) default 0 not null,
    check_after timestamp(6) default timestamp '1970-01-01 00:00:00' not null,
    constraint rowq_lane_pk primary key (part_id, lane),
    constraint rowq_lane_is_open_ck check (is_open in (0, 1))
)
initrans 16 pctfree 40
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/message.sql]
-- A row is what the producer handed over. It is written once and deleted once; only a failure
-- updates last_error and due_at, and who names the message as a predecessor sets has_successors to
-- 1, each time anew: a serializable transaction that does not see who waits cannot lock or delete
-- the row then (ORA-08177). lane and seq find a message that was never given back, because they are
-- its first place in ready. due_at is the last place that the message had in delayed. The foreign
-- key needs no index of its own, because part_id stands first in the primary key; it makes an
-- insert fail that has waited for drop_queue. An empty text body is an empty CLOB, which is not
-- null. expires_at never changes, and is null for a message that does not expire. A LOB of up to
-- about 4000 bytes is kept in the row, a longer one beside it.
begin
    execute immediate q'[
create table rowq_message (
    part_id        number(10) not null,
    message_id     number(19) not null,
    max_attempts   number(5),
    lane           number(2) not null,
    seq            number(19) not null,
    enqueued_at    timestamp(6) not null,
    due_at         timestamp(6),
    message_type   varchar2(200 char),
    dedup_key      varchar2(200 char),
    headers        clob,
    body           clob,
    body_binary    blob,
    last_error     clob,
    group_key      varchar2(200 char),
    has_successors number(1),
    expires_at     timestamp(6),
    constraint rowq_message_pk primary key (part_id, message_id)
        using index (
            create unique index rowq_message_pk on rowq_message (part_id, message_id) initrans 16
        ),
    constraint rowq_message_queue_fk foreign key (part_id) references rowq_queue (part_id),
    constraint rowq_message_headers_ck check (headers is json strict)
)
initrans 16 pctfree 10
lob (headers) store as securefile rowq_message_headers (enable storage in row cache)
lob (body) store as securefile rowq_message_body (enable storage in row cache)
lob (body_binary) store as securefile rowq_message_binary (enable storage in row cache)
lob (last_error) store as securefile rowq_message_error (enable storage in row cache)
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/
begin
    execute immediate q'[
create sequence rowq_message_seq start with 1 increment by 1 cache 1000 noorder
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/ready.sql]
-- A row is a message that waits for a worker, and is never updated. The primary key is the dequeue
-- order, and there is no second index. lane is priority * 2, plus 1 for the tail: a message that is
-- released or reaped goes to the front lane. seq is the moment of entry, in microseconds since 1970
-- UTC, plus the place in its batch: no sequence orders the producers. message_id decides between
-- equal ones. The table is a heap with an index and not index-organized, because the physical rowid
-- deletes what the cursor has locked without a second search. initrans gives many sessions a lock
-- entry of their own in a block from the start, because a full block cannot add one later ("enq: TX
-- - allocate ITL entry"), and pctfree leaves room for more.
begin
    execute immediate q'[
create table rowq_ready (
    part_id    number(10) not null,
    lane       number(2) not null,
    seq        number(19) not null,
    message_id number(19) not null,
    attempt    number(5) default 0 not null,
    constraint rowq_ready_pk primary key (part_id, lane, seq, message_id)
        using index (
            create unique index rowq_ready_pk on rowq_ready (part_id, lane, seq, message_id)
            initrans 16 pctfree 10
        ),
    constraint rowq_ready_lane_ck check (lane between 0 and 19)
)
initrans 16 pctfree 20
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/delayed.sql]
-- A row is a message that waits for its time, kept apart so that dequeue does not read it. The
-- primary key is the order in which messages become due, and the only index. group_key is of one
-- that joins its group when it is due; one that is retried has its token, and none here.
begin
    execute immediate q'[
create table rowq_delayed (
    part_id    number(10) not null,
    due_at     timestamp(6) not null,
    message_id number(19) not null,
    lane       number(2) not null,
    attempt    number(5) default 0 not null,
    group_key  varchar2(200 char),
    constraint rowq_delayed_pk primary key (part_id, due_at, message_id)
        using index (
            create unique index rowq_delayed_pk on rowq_delayed (part_id, due_at, message_id)
            initrans 16 pctfree 10
        )
)
initrans 16 pctfree 20
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/claim.sql]
-- A row is one successful dequeue: the lease of a whole batch, whose messages are in rowq_leased. A
-- heartbeat changes only lease_until, which is in no index. claim_id is the fencing token, and
-- finish_id of rowq_finished comes from the same sequence. Who cancels messages of the batch sets
-- has_cancels to 1, each time anew: a heartbeat reads it, and a serializable transaction that does
-- not see what was cancelled cannot lock or delete the row then (ORA-08177). progress is null until
-- a heartbeat says it; it is a CLOB, because 2000 characters may take more bytes than a varchar2.
begin
    execute immediate q'[
create table rowq_claim (
    part_id     number(10) not null,
    claim_id    number(19) not null,
    leased_at   timestamp(6) not null,
    lease_until timestamp(6) not null,
    worker_name varchar2(200 char),
    has_cancels number(1),
    progress    clob,
    constraint rowq_claim_pk primary key (part_id, claim_id)
        using index (
            create unique index rowq_claim_pk on rowq_claim (part_id, claim_id) initrans 16
        )
)
initrans 16 pctfree 20
lob (progress) store as securefile rowq_claim_progress (enable storage in row cache)
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/
begin
    execute immediate q'[
create sequence rowq_claim_seq start with 1 increment by 1 cache 1000 noorder
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/leased.sql]
-- A row is a message of a claim, and the key is the order of delivery. A message is always taken
-- through its claim, which is locked first, so nobody waits for a row here. The table is
-- index-organized, because a row is its key and a few bytes more, and is written and deleted once.
-- is_cancelled is 1 for a message that was cancelled while the worker had it, and else null.
begin
    execute immediate q'[
create table rowq_leased (
    part_id      number(10) not null,
    claim_id     number(19) not null,
    place        number(5) not null,
    message_id   number(19) not null,
    lane         number(2) not null,
    attempt      number(5) not null,
    is_cancelled number(1),
    constraint rowq_leased_pk primary key (part_id, claim_id, place)
)
organization index initrans 16
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/dead.sql]
-- A row is a message that failed for good. It stays until it is reset, cancelled or purged. The
-- reason is in message.last_error. holds_group is 1 where it has kept the token of its group, and
-- else null.
begin
    execute immediate q'[
create table rowq_dead (
    part_id     number(10) not null,
    message_id  number(19) not null,
    lane        number(2) not null,
    attempt     number(5) not null,
    died_at     timestamp(6) not null,
    holds_group number(1),
    constraint rowq_dead_pk primary key (part_id, message_id)
)
initrans 8
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/dedup.sql]
-- A row is the dedup key of an unfinished message, kept as bytes, so that it is compared exactly
-- whatever NLS_COMP and NLS_SORT a session has. Only messages that have a key are here: in one
-- table with a nullable key, a unique index would reject a second message without one.
begin
    execute immediate q'[
create table rowq_dedup (
    part_id    number(10) not null,
    dedup_key  raw(800) not null,
    message_id number(19) not null,
    constraint rowq_dedup_pk primary key (part_id, dedup_key)
)
organization index initrans 8
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/finished.sql]
-- A row is a finished message of a queue that keeps an archive. It stays until the archive routine
-- has moved it. The messages that one call has finished have the same finish_id.
begin
    execute immediate q'[
create table rowq_finished (
    part_id     number(10) not null,
    finish_id   number(19) not null,
    message_id  number(19) not null,
    lane        number(2) not null,
    attempt     number(5) not null,
    state       varchar2(20 char) not null,
    finished_at timestamp(6) not null,
    constraint rowq_finished_pk primary key (part_id, finish_id, message_id)
)
organization index initrans 8
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/archive.sql]
-- A row is a finished message, kept for the queue's archive_days. The table is a plain one, because
-- partitions are an option that has to be paid for, and only the DBA knows whether it is.
-- partition_archive.sql turns it into a table with a partition a day; the routines look which of
-- the two they find.
begin
    execute immediate q'[
create table rowq_archive (
    part_id      number(10) not null,
    finished_at  timestamp(6) not null,
    message_id   number(19) not null,
    lane         number(2) not null,
    attempt      number(5) not null,
    enqueued_at  timestamp(6) not null,
    state        varchar2(20 char) not null,
    message_type varchar2(200 char),
    dedup_key    varchar2(200 char),
    headers      clob,
    body         clob,
    body_binary  blob,
    group_key    varchar2(200 char),
    constraint rowq_archive_pk primary key (part_id, finished_at, message_id)
)
lob (headers) store as securefile rowq_archive_headers (enable storage in row)
lob (body) store as securefile rowq_archive_body (enable storage in row)
lob (body_binary) store as securefile rowq_archive_binary (enable storage in row)
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/
begin
    execute immediate q'[
create index rowq_archive_message_ix on rowq_archive (part_id, message_id)
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/message_group.sql]
-- A row is a token: the right of one message of a group to be ready, leased or delayed for a retry.
-- It does not say whose it is: whoever finishes a message of the group passes one on or gives it
-- back, in the transaction that ends the message. A producer whose message joins the group locks
-- the rows that nobody holds, so that nobody gives the last one back while a message is coming. It
-- also sets joined_at, so that a serializable transaction, which cannot see the message, cannot
-- lock the row either (ORA-08177). The key is kept as bytes, as in rowq_dedup.
begin
    execute immediate q'[
create table rowq_message_group (
    part_id   number(10) not null,
    group_key raw(800) not null,
    token_no  number(3) not null,
    joined_at timestamp(6),
    constraint rowq_message_group_pk primary key (part_id, group_key, token_no)
)
organization index initrans 16
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/grouped.sql]
-- A row is a message that waits behind others of its group, kept apart so that dequeue does not
-- read it. Its last error is in rowq_message, and it has no attempt yet.
begin
    execute immediate q'[
create table rowq_grouped (
    part_id    number(10) not null,
    group_key  raw(800) not null,
    message_id number(19) not null,
    lane       number(2) not null,
    constraint rowq_grouped_pk primary key (part_id, group_key, message_id)
)
organization index initrans 16
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/recheck.sql]
-- A row is something that has to be looked at again, because another transaction held what was
-- looked at, or because there was too much of it. With a group_key it is a token that its last
-- owner could not pass on, or whose group rests; is_hint says that there may be no token: a message
-- waits whose producer could lock no token of the group, or the group's limit was raised. With a
-- message_id it is a blocked message that waits for nothing any more, perhaps. With a
-- predecessor_id it is a message that has ended, of which not all successors were freed; is_hint
-- says that it is dead. maintain looks at what is due, and so does a dequeue that finds nothing,
-- once lane -4 is open.
begin
    execute immediate q'[
create table rowq_recheck (
    part_id        number(10) not null,
    due_at         timestamp(6) not null,
    recheck_id     number(19) not null,
    group_key      raw(800),
    is_hint        number(1) default 0 not null,
    message_id     number(19),
    predecessor_id number(19),
    constraint rowq_recheck_pk primary key (part_id, due_at, recheck_id),
    constraint rowq_recheck_is_hint_ck check (is_hint in (0, 1))
)
organization index initrans 16
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/blocked.sql]
-- A row is a message that waits for others to end, its predecessors, kept apart so that dequeue
-- does not read it. It waits for one of them at a time, the newest that has not ended
-- (predecessor_id, with a row in successor); rest_ids are the others that it may still have to ask
-- for, newest first, as a JSON array. Rows are found by their whole keys; only purge_queue goes
-- from one to the next. The table is a heap with an index, because a row may have a long list.
begin
    execute immediate q'[
create table rowq_blocked (
    part_id        number(10) not null,
    message_id     number(19) not null,
    lane           number(2) not null,
    predecessor_id number(19),
    due_at         timestamp(6),
    on_dead        varchar2(20 char),
    group_key      varchar2(200 char),
    rest_ids       clob,
    constraint rowq_blocked_pk primary key (part_id, message_id)
        using index (
            create unique index rowq_blocked_pk on rowq_blocked (part_id, message_id) initrans 16
        )
)
initrans 16 pctfree 20
lob (rest_ids) store as securefile rowq_blocked_rest (enable storage in row cache)
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/successor.sql]
-- A row says which message waits for which other one. Whoever ends a message whose has_successors
-- is 1 deletes its rows, in the same transaction.
begin
    execute immediate q'[
create table rowq_successor (
    part_id        number(10) not null,
    predecessor_id number(19) not null,
    message_id     number(19) not null,
    constraint rowq_successor_pk primary key (part_id, predecessor_id, message_id)
)
organization index initrans 16
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/door.sql]
-- A row is one of the doors of a queue. Whoever adds a token to a group locks the group's door, the
-- one that a hash of its key names, and never changes it. A token that is not committed is visible
-- to nobody, an insert of the same one waits for its transaction, and this server has no limit for
-- that wait. So a worker, which must not wait for a producer, adds a token only where it can lock
-- the door. A producer goes on without the door: it may wait. It is the same with dedup keys that
-- are a schedule's, which maintain adds.
begin
    execute immediate q'[
create table rowq_door (
    part_id number(10) not null,
    door_no number(2) not null,
    constraint rowq_door_pk primary key (part_id, door_no)
)
organization index initrans 64 pctfree 40
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/gate.sql]
-- A row is the right to take messages of a queue that has limits: a dequeue locks it before it
-- counts what is leased, and sets taken_at, so that a serializable transaction that began before
-- cannot lock it (ORA-08177): it could not see what was leased since. Dequeues of a queue without
-- limits do not touch it.
begin
    execute immediate q'[
create table rowq_gate (
    part_id  number(10) not null,
    taken_at timestamp(6),
    constraint rowq_gate_pk primary key (part_id)
)
organization index initrans 16 pctfree 40
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/started.sql]
-- A row says when a dequeue of a queue with a rate_limit has begun deliveries, and how many. It
-- stays until maintain finds it older than rate_seconds.
begin
    execute immediate q'[
create table rowq_started (
    part_id    number(10) not null,
    started_at timestamp(6) not null,
    claim_id   number(19) not null,
    messages   number(5) not null,
    constraint rowq_started_pk primary key (part_id, started_at, claim_id)
)
organization index initrans 16
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/expiry.sql]
-- A row says when a message expires, and where it is if it is ready then. Who adds a message adds
-- one, and so does who makes it ready at a new place or gives it back: maintain can forget a row
-- whose message it does not find. A row stays until its moment, also where the message has ended
-- before.
begin
    execute immediate q'[
create table rowq_expiry (
    part_id    number(10) not null,
    expires_at timestamp(6) not null,
    expiry_id  number(19) not null,
    message_id number(19) not null,
    lane       number(2),
    seq        number(19),
    constraint rowq_expiry_pk primary key (part_id, expires_at, expiry_id)
)
organization index initrans 16
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/result.sql]
-- A row says how a message has ended, in a queue with result_seconds. It stays until maintain finds
-- it older than these, or the message, which is dead, is reset. A result is JSON text as complete
-- was given it. The server of 19c takes no text or number by itself for JSON, so nothing checks it
-- here.
begin
    execute immediate q'[
create table rowq_result (
    part_id     number(10) not null,
    message_id  number(19) not null,
    finished_at timestamp(6) not null,
    state       varchar2(20 char) not null,
    result      clob,
    last_error  clob,
    constraint rowq_result_pk primary key (part_id, message_id)
        using index (
            create unique index rowq_result_pk on rowq_result (part_id, message_id) initrans 16
        ),
    constraint rowq_result_state_ck check (state in ('completed', 'cancelled', 'expired', 'dead'))
)
initrans 16 pctfree 10
lob (result) store as securefile rowq_result_result (enable storage in row cache)
lob (last_error) store as securefile rowq_result_error (enable storage in row cache)
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/
begin
    execute immediate q'[
create index rowq_result_finished_ix on rowq_result (part_id, finished_at) initrans 16
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/history.sql]
-- A row is an attempt that has ended, in a queue with history_days. It stays until maintain finds
-- it older than these. There is no partition a day: a partition is dropped by a statement that
-- commits, and that whoever finishes messages would wait for. Rows are only added and deleted.
begin
    execute immediate q'[
create table rowq_history (
    part_id     number(10) not null,
    ended_at    timestamp(6) not null,
    message_id  number(19) not null,
    claim_id    number(19) not null,
    attempt     number(5) not null,
    leased_at   timestamp(6) not null,
    outcome     varchar2(20 char) not null,
    worker_name varchar2(200 char),
    error       clob,
    constraint rowq_history_pk primary key (part_id, ended_at, message_id, claim_id)
        using index (
            create unique index rowq_history_pk
                on rowq_history (part_id, ended_at, message_id, claim_id) initrans 16
        ),
    constraint rowq_history_outcome_ck check (
        outcome in ('completed', 'retrying', 'dead', 'released', 'lease_expired', 'cancelled')
    )
)
initrans 16 pctfree 5
lob (error) store as securefile rowq_history_error (enable storage in row cache)
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/
begin
    execute immediate q'[
create index rowq_history_message_ix on rowq_history (part_id, message_id) initrans 16
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/schedule.sql]
-- A row is a schedule: maintain adds its message to the queue in the transaction that moves
-- next_run_at on. next_run_at is null while it is paused, and after its last tick. schedule_key is
-- what is compared: the bytes of the name, whatever NLS_COMP and NLS_SORT a session has. The
-- foreign key needs no index of its own, because part_id stands first in the primary key; it makes
-- an insert fail that has waited for drop_queue.
begin
    execute immediate q'[
create table rowq_schedule (
    part_id          number(10) not null,
    schedule_key     raw(400) not null,
    schedule_name    varchar2(100 char) not null,
    cron             varchar2(200 char),
    interval_seconds number,
    time_zone        varchar2(100 char) not null,
    missed           varchar2(10 char) not null,
    overlap          number(1) not null,
    starts_at        timestamp(6) not null,
    ends_at          timestamp(6),
    message_type     varchar2(200 char),
    priority         number(1) not null,
    group_key        varchar2(200 char),
    max_attempts     number(5),
    is_paused        number(1) default 0 not null,
    next_run_at      timestamp(6),
    last_run_at      timestamp(6),
    last_message_id  number(19),
    last_error       varchar2(1000 char),
    headers          clob,
    body             clob,
    body_binary      blob,
    constraint rowq_schedule_pk primary key (part_id, schedule_key),
    constraint rowq_schedule_queue_fk foreign key (part_id) references rowq_queue (part_id),
    constraint rowq_schedule_cron_ck check (
        cron is null and interval_seconds is not null
        or cron is not null and interval_seconds is null
    ),
    constraint rowq_schedule_missed_ck check (missed in ('skip', 'once', 'all')),
    constraint rowq_schedule_overlap_ck check (overlap in (0, 1)),
    constraint rowq_schedule_is_paused_ck check (is_paused in (0, 1)),
    constraint rowq_schedule_headers_ck check (headers is json strict)
)
initrans 16 pctfree 40
lob (headers) store as securefile rowq_schedule_headers (enable storage in row cache)
lob (body) store as securefile rowq_schedule_body (enable storage in row cache)
lob (body_binary) store as securefile rowq_schedule_binary (enable storage in row cache)
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/topic_binding.sql]
-- A row says that a queue gets what is published under the topics that a pattern matches. Patterns
-- are compared as bytes, and never by "like", which follows the NLS_COMP and NLS_SORT of a session:
-- a topic matches one pattern of each shape and no other, so those that it may match are put
-- together from its words and found by their key. shape has a digit for each word of the pattern.
-- Bindings are few and seldom change, and a producer locks none of them. The foreign key needs no
-- index of its own, because part_id stands first in the primary key.
begin
    execute immediate q'[
create table rowq_topic_binding (
    part_id       number(10) not null,
    pattern_key   raw(200) not null,
    topic_pattern varchar2(200 char) not null,
    head_key      raw(200) not null,
    shape         varchar2(100 char) not null,
    constraint rowq_topic_binding_pk primary key (part_id, pattern_key),
    constraint rowq_topic_binding_queue_fk foreign key (part_id) references rowq_queue (part_id)
)
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/
begin
    execute immediate q'[
create index rowq_topic_binding_head_ix on rowq_topic_binding (head_key, shape)
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/
begin
    execute immediate q'[
create index rowq_topic_binding_key_ix on rowq_topic_binding (pattern_key, part_id)
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in (-955, -1408) then
            raise;
        end if;
end;
/

-- [file tables/statistics.sql]
-- These tables may be empty now and hold a million rows an hour later, and their plans must not
-- change with that. So they and their indexes are given the statistics of a queue at work, and keep
-- them. An index without its own would have those of the empty table that it was made on.
declare
    v_owner constant varchar2(128 char) := sys_context('userenv', 'current_schema');

    procedure pin_index(p_index_name in varchar2, p_rows in number, p_row_length in number) is
    begin
        dbms_stats.set_index_stats(
            ownname       => v_owner,
            indname       => p_index_name,
            numrows       => p_rows,
            numlblks      => ceil(p_rows * p_row_length / 6000),
            numdist       => p_rows,
            avglblk       => 1,
            avgdblk       => 1,
            clstfct       => ceil(p_rows * p_row_length / 6000),
            indlevel      => 2,
            no_invalidate => false,
            force         => true
        );
    end pin_index;

    procedure pin(
        p_table_name in varchar2, p_rows in number, p_row_length in number,
        p_second_index in varchar2 default null
    )
    is
    begin
        dbms_stats.set_table_stats(
            ownname       => v_owner,
            tabname       => p_table_name,
            numrows       => p_rows,
            numblks       => ceil(p_rows * p_row_length / 6000),
            avgrlen       => p_row_length,
            no_invalidate => false,
            force         => true
        );
        pin_index(p_table_name || '_PK', p_rows, p_row_length);
        if p_second_index is not null then
            pin_index(p_second_index, p_rows, 30);
        end if;
        dbms_stats.lock_table_stats(ownname => v_owner, tabname => p_table_name);
    end pin;
begin
    pin('ROWQ_MESSAGE', 1000000, 400);
    pin('ROWQ_READY', 1000000, 30);
    pin('ROWQ_DELAYED', 100000, 35);
    pin('ROWQ_CLAIM', 10000, 60);
    pin('ROWQ_LEASED', 100000, 35);
    pin('ROWQ_DEAD', 100000, 35);
    pin('ROWQ_DEDUP', 100000, 60);
    pin('ROWQ_FINISHED', 100000, 45);
    pin('ROWQ_BLOCKED', 100000, 80);
    pin('ROWQ_SUCCESSOR', 100000, 40);
    pin('ROWQ_GROUPED', 100000, 60);
    pin('ROWQ_MESSAGE_GROUP', 100000, 60);
    pin('ROWQ_RECHECK', 10000, 60);
    pin('ROWQ_STARTED', 10000, 40);
    pin('ROWQ_EXPIRY', 100000, 45);
    pin('ROWQ_RESULT', 100000, 100, 'ROWQ_RESULT_FINISHED_IX');
    pin('ROWQ_HISTORY', 1000000, 80, 'ROWQ_HISTORY_MESSAGE_IX');
end;
/

-- [file packages/rowq.sql]
-- Put together from routines, helpers and waiting.
create or replace package rowq authid definer as

    -- A list of ids as the JSON array that routines take: for callers in PL/SQL.
    function ids(p_ids in rowq_ids)
    return clob;

    -- What enqueue does, for callers in PL/SQL: returns the message's id, of a duplicate that of the first.
    function put(
        p_queue_name          in varchar2,
        p_body                in clob default null,
        p_body_binary         in blob default null,
        p_message_type        in varchar2 default null,
        p_headers             in clob default null,
        p_priority            in number default 5,
        p_delay_seconds       in number default null,
        p_run_at              in timestamp default null,
        p_dedup_key           in varchar2 default null,
        p_max_attempts        in number default null,
        p_group_key           in varchar2 default null,
        p_predecessor_ids     in clob default null,
        p_on_predecessor_dead in varchar2 default null,
        p_expire_seconds      in number default null
    )
    return number;

    -- One look of dequeue_wait: what dequeue_fast takes, as far as it fits one answer; a null claim when there is none.
    procedure look(
        p_queue_name     in varchar2,
        p_batch_size     in number,
        p_worker_name    in varchar2,
        p_lease_seconds  in number,
        p_listened_until in timestamp,
        p_part_id        out number,
        p_claim_id       out number,
        p_lease_until    out timestamp
    );

    -- One look of wait_for_result: how a message has ended; the first look and the last one say where it is, too.
    procedure look_for_result(
        p_queue_name  in varchar2,
        p_message_id  in number,
        p_is_first    in number,
        p_is_last     in number,
        p_part_id     out number,
        p_state       out varchar2,
        p_finished_at out timestamp
    );

    -- What dequeue_fast returns for a claim, as a JSON array; null where there is no claim.
    function messages_json(
        p_part_id     in number,
        p_claim_id    in number,
        p_lease_until in timestamp
    )
    return clob;

    -- The row of get_result as JSON object, of a message that is in this state; null without one.
    function result_json(
        p_part_id     in number,
        p_message_id  in number,
        p_state       in varchar2,
        p_finished_at in timestamp
    )
    return clob;

    -- Change settings of a queue; null leaves a setting as it is.
    procedure alter_queue(
        p_queue_name           in varchar2,
        p_lease_seconds        in number default null,
        p_max_attempts         in number default null,
        p_backoff_base_seconds in number default null,
        p_backoff_factor       in number default null,
        p_backoff_cap_seconds  in number default null,
        p_backoff_jitter       in number default null,
        p_archive_days         in number default null,
        p_max_body_length      in number default null,
        p_group_limit          in number default null,
        p_group_after_dead     in varchar2 default null,
        p_group_pause_seconds  in number default null,
        p_max_leased           in number default null,
        p_rate_limit           in number default null,
        p_rate_seconds         in number default null,
        p_result_seconds       in number default null,
        p_history_days         in number default null,
        p_rows                 out sys_refcursor
    );

    -- Change a schedule, pause it or let it go on; null leaves a setting as it is. It counts anew from now: what it has missed is not made up for.
    procedure alter_schedule(
        p_queue_name       in varchar2,
        p_schedule_name    in varchar2,
        p_cron             in varchar2 default null,
        p_interval_seconds in number default null,
        p_time_zone        in varchar2 default null,
        p_body             in clob default null,
        p_body_binary      in blob default null,
        p_message_type     in varchar2 default null,
        p_headers          in clob default null,
        p_priority         in number default null,
        p_max_attempts     in number default null,
        p_group_key        in varchar2 default null,
        p_missed           in varchar2 default null,
        p_overlap          in number default null,
        p_starts_at        in timestamp default null,
        p_ends_at          in timestamp default null,
        p_is_paused        in number default null,
        p_rows             out sys_refcursor
    );

    -- Move finished messages of a queue with archive_days above 0 to the archive.
    procedure archive(
        p_queue_name in varchar2,
        p_batch_size in number default 1000,
        p_rows       out sys_refcursor
    );

    -- Let a queue get what is published under the topics that a pattern matches.
    procedure bind_topic(
        p_queue_name    in varchar2,
        p_topic_pattern in varchar2,
        p_rows          out sys_refcursor
    );

    -- Withdraw messages that no worker holds, dead ones too.
    procedure cancel(
        p_queue_name     in varchar2,
        p_message_ids    in clob,
        p_include_leased in number default 0,
        p_rows           out sys_refcursor
    );

    -- Look at up to max_messages messages, in the order of their ids, and withdraw those that match every filter given and that no worker holds, dead ones too. At least one filter is required.
    procedure cancel_many(
        p_queue_name       in varchar2,
        p_message_type     in varchar2 default null,
        p_group_key        in varchar2 default null,
        p_header_name      in varchar2 default null,
        p_header_value     in clob default null,
        p_enqueued_before  in timestamp default null,
        p_after_message_id in number default 0,
        p_max_messages     in number default 1000,
        p_rows             out sys_refcursor
    );

    -- Finish messages: they are gone, or in the archive, and never delivered again.
    procedure complete(
        p_queue_name  in varchar2,
        p_claim_id    in number,
        p_message_ids in clob default null,
        p_results     in clob default null,
        p_rows        out sys_refcursor
    );

    -- Create a queue; an existing queue of that name is left as it is.
    procedure create_queue(
        p_queue_name           in varchar2,
        p_lease_seconds        in number default null,
        p_max_attempts         in number default null,
        p_backoff_base_seconds in number default null,
        p_backoff_factor       in number default null,
        p_backoff_cap_seconds  in number default null,
        p_backoff_jitter       in number default null,
        p_archive_days         in number default null,
        p_max_body_length      in number default null,
        p_group_limit          in number default null,
        p_group_after_dead     in varchar2 default null,
        p_group_pause_seconds  in number default null,
        p_max_leased           in number default null,
        p_rate_limit           in number default null,
        p_rate_seconds         in number default null,
        p_result_seconds       in number default null,
        p_history_days         in number default null,
        p_rows                 out sys_refcursor
    );

    -- Let maintain enqueue a message at the times of a cron expression, or every so many seconds; an existing schedule of that name is left as it is.
    procedure create_schedule(
        p_queue_name       in varchar2,
        p_schedule_name    in varchar2,
        p_cron             in varchar2 default null,
        p_interval_seconds in number default null,
        p_time_zone        in varchar2 default 'UTC',
        p_body             in clob default null,
        p_body_binary      in blob default null,
        p_message_type     in varchar2 default null,
        p_headers          in clob default null,
        p_priority         in number default 5,
        p_max_attempts     in number default null,
        p_group_key        in varchar2 default null,
        p_missed           in varchar2 default 'once',
        p_overlap          in number default 1,
        p_starts_at        in timestamp default null,
        p_ends_at          in timestamp default null,
        p_rows             out sys_refcursor
    );

    -- Lease up to batch_size ready messages to one new claim, passing over rows that another session holds.
    procedure dequeue_fast(
        p_queue_name    in varchar2,
        p_batch_size    in number default 1,
        p_worker_name   in varchar2 default null,
        p_lease_seconds in number default null,
        p_rows          out sys_refcursor
    );

    -- Do what dequeue_fast does, but wait until something is ready or the time is up; return fewer messages where they are long.
    procedure dequeue_wait(
        p_queue_name    in varchar2,
        p_batch_size    in number default 1,
        p_worker_name   in varchar2 default null,
        p_lease_seconds in number default null,
        p_wait_seconds  in number default 20,
        p_rows          out sys_refcursor
    );

    -- Delete dead messages for good, the archive keeps none of them; null takes the oldest max_messages.
    procedure discard_dead(
        p_queue_name   in varchar2,
        p_message_ids  in clob default null,
        p_max_messages in number default 1000,
        p_message_type in varchar2 default null,
        p_died_before  in timestamp default null,
        p_rows         out sys_refcursor
    );

    -- Remove an empty queue, or with force a queue and everything in it, archive included.
    procedure drop_queue(
        p_queue_name in varchar2,
        p_force      in number default 0,
        p_rows       out sys_refcursor
    );

    -- Remove a schedule; the messages that it made stay.
    procedure drop_schedule(
        p_queue_name    in varchar2,
        p_schedule_name in varchar2,
        p_rows          out sys_refcursor
    );

    -- Hand over one message.
    procedure enqueue(
        p_queue_name          in varchar2,
        p_body                in clob default null,
        p_body_binary         in blob default null,
        p_message_type        in varchar2 default null,
        p_headers             in clob default null,
        p_priority            in number default 5,
        p_delay_seconds       in number default null,
        p_run_at              in timestamp default null,
        p_dedup_key           in varchar2 default null,
        p_max_attempts        in number default null,
        p_group_key           in varchar2 default null,
        p_predecessor_ids     in clob default null,
        p_on_predecessor_dead in varchar2 default null,
        p_expire_seconds      in number default null,
        p_rows                out sys_refcursor
    );

    -- Hand over many messages in one call: all of them or, on an error, none.
    procedure enqueue_batch(
        p_queue_name in varchar2,
        p_messages   in clob,
        p_rows       out sys_refcursor
    );

    -- Heartbeat: hold all messages of a claim for lease_seconds from now; a lease is never shortened.
    procedure extend_lease(
        p_queue_name    in varchar2,
        p_claim_id      in number,
        p_lease_seconds in number default null,
        p_progress      in clob default null,
        p_rows          out sys_refcursor
    );

    -- Declare messages dead without another attempt.
    procedure fail_now(
        p_queue_name  in varchar2,
        p_claim_id    in number,
        p_message_ids in clob default null,
        p_error       in clob default null,
        p_rows        out sys_refcursor
    );

    -- Find the unfinished message that has a dedup key, and return what get_message does.
    procedure find_message(
        p_queue_name in varchar2,
        p_dedup_key  in varchar2,
        p_rows       out sys_refcursor
    );

    -- The attempts of a message: those that have ended within the queue's history_days, oldest first, then the present lease. A lease that ran out is lease_expired, also where no attempt was left; no row when rowq knows of none.
    procedure get_history(
        p_queue_name in varchar2,
        p_message_id in number,
        p_rows       out sys_refcursor
    );

    -- Where a message is and everything about it; no row when rowq does not know it.
    procedure get_message(
        p_queue_name in varchar2,
        p_message_id in number,
        p_rows       out sys_refcursor
    );

    -- How a message has ended, and its result; of one that has not ended its state; no row when rowq does not know it.
    procedure get_result(
        p_queue_name in varchar2,
        p_message_id in number,
        p_rows       out sys_refcursor
    );

    -- Report what needs attention: who holds back clean-up, overdue messages, expired leases, dead messages, a sequence behind its data.
    procedure health(p_rows out sys_refcursor);

    -- Who is at work on what: the claims of one queue or all, in the order of their ids.
    procedure list_claims(
        p_queue_name     in varchar2 default null,
        p_after_claim_id in number default 0,
        p_max_claims     in number default 100,
        p_rows           out sys_refcursor
    );

    -- Dead messages, without their bodies, in the order of their ids, or backwards before one; of one type only, if given.
    procedure list_dead(
        p_queue_name        in varchar2,
        p_after_message_id  in number default 0,
        p_max_messages      in number default 100,
        p_before_message_id in number default null,
        p_message_type      in varchar2 default null,
        p_rows              out sys_refcursor
    );

    -- Messages that wait for their time, without their bodies, in the order in which they become due.
    procedure list_delayed(
        p_queue_name       in varchar2,
        p_after_due_at     in timestamp default null,
        p_after_message_id in number default 0,
        p_max_messages     in number default 100,
        p_rows             out sys_refcursor
    );

    -- The schedules of one queue, or of all, without their bodies and headers.
    procedure list_schedules(
        p_queue_name in varchar2 default null,
        p_rows       out sys_refcursor
    );

    -- The patterns of one queue or all, in the order of the queues' names.
    procedure list_topics(
        p_queue_name in varchar2 default null,
        p_rows       out sys_refcursor
    );

    -- All housekeeping of one queue, or of every queue: schedules, promote, reap, expiry, floors, archive, results, history. Call it about once a second.
    procedure maintain(
        p_queue_name in varchar2 default null,
        p_batch_size in number default 1000,
        p_rows       out sys_refcursor
    );

    -- When a schedule with these times would run: a look before it is created. An interval counts from after.
    procedure next_ticks(
        p_cron             in varchar2 default null,
        p_interval_seconds in number default null,
        p_time_zone        in varchar2 default 'UTC',
        p_after            in timestamp default null,
        p_max_ticks        in number default 5,
        p_rows             out sys_refcursor
    );

    -- Stop delivery; enqueue and the finishing routines go on.
    procedure pause_queue(
        p_queue_name in varchar2,
        p_rows       out sys_refcursor
    );

    -- Show the next ready messages without leasing them.
    procedure peek(
        p_queue_name   in varchar2,
        p_max_messages in number default 1,
        p_rows         out sys_refcursor
    );

    -- Make delayed messages ready whose time has come.
    procedure promote(
        p_queue_name in varchar2,
        p_batch_size in number default 1000,
        p_rows       out sys_refcursor
    );

    -- Hand over one message to each queue that is bound to a topic, in the order of their names; to none where none is. Without a message_type it is the topic.
    procedure publish(
        p_topic          in varchar2,
        p_body           in clob default null,
        p_body_binary    in blob default null,
        p_message_type   in varchar2 default null,
        p_headers        in clob default null,
        p_priority       in number default 5,
        p_delay_seconds  in number default null,
        p_run_at         in timestamp default null,
        p_dedup_key      in varchar2 default null,
        p_max_attempts   in number default null,
        p_group_key      in varchar2 default null,
        p_expire_seconds in number default null,
        p_rows           out sys_refcursor
    );

    -- Do what publish does with many messages in one call, queue by queue: all of them or, on an error, none.
    procedure publish_batch(
        p_messages in clob,
        p_rows     out sys_refcursor
    );

    -- Delete archived messages older than the queue's archive_days and attempts older than its history_days, and drop partitions that no queue needs.
    procedure purge_archive(
        p_queue_name in varchar2,
        p_batch_size in number default 1000,
        p_rows       out sys_refcursor
    );

    -- Delete waiting messages: ready, delayed, blocked; leased ones stay with their workers.
    procedure purge_queue(
        p_queue_name   in varchar2,
        p_include_dead in number default 0,
        p_max_messages in number default null,
        p_rows         out sys_refcursor
    );

    -- Counts, age and settings of one queue or all.
    procedure queue_stats(
        p_queue_name in varchar2 default null,
        p_max_count  in number default 100000,
        p_rows       out sys_refcursor
    );

    -- Take unfinished messages back from claims whose lease ran out.
    procedure reap(
        p_queue_name in varchar2,
        p_batch_size in number default 1000,
        p_rows       out sys_refcursor
    );

    -- Give messages back to the front of their priority without spending the attempt.
    procedure release(
        p_queue_name  in varchar2,
        p_claim_id    in number,
        p_message_ids in clob default null,
        p_rows        out sys_refcursor
    );

    -- Make dead messages ready again, at the tail of their priority, with fresh attempts; null takes the oldest max_messages.
    procedure reset(
        p_queue_name   in varchar2,
        p_message_ids  in clob default null,
        p_max_messages in number default 1000,
        p_message_type in varchar2 default null,
        p_died_before  in timestamp default null,
        p_rows         out sys_refcursor
    );

    -- Start delivery again.
    procedure resume_queue(
        p_queue_name in varchar2,
        p_rows       out sys_refcursor
    );

    -- Give messages back for another attempt after a delay, the queue's backoff unless delay_seconds is given; without an attempt left they are dead.
    procedure retry_later(
        p_queue_name    in varchar2,
        p_claim_id      in number,
        p_message_ids   in clob default null,
        p_delay_seconds in number default null,
        p_error         in clob default null,
        p_rows          out sys_refcursor
    );

    -- Enqueue the message of a schedule now, paused or not; its next tick stays as it is.
    procedure run_schedule(
        p_queue_name    in varchar2,
        p_schedule_name in varchar2,
        p_rows          out sys_refcursor
    );

    -- Take a queue's pattern away; what it has got stays.
    procedure unbind_topic(
        p_queue_name    in varchar2,
        p_topic_pattern in varchar2,
        p_rows          out sys_refcursor
    );

    -- What is installed.
    procedure version(p_rows out sys_refcursor);

    -- Do what get_result does, but wait until the message has ended or the time is up; the queue must keep results.
    procedure wait_for_result(
        p_queue_name   in varchar2,
        p_message_id   in number,
        p_wait_seconds in number default 20,
        p_rows         out sys_refcursor
    );

end rowq;
/

-- [file packages/rowq_wait.sql]
-- Put together from the routines that wait.
create or replace package rowq_wait authid definer as

    -- Do what dequeue_fast does, but wait until something is ready or the time is up; return fewer messages where they are long.
    procedure dequeue_wait(
        p_queue_name    in varchar2,
        p_batch_size    in number default 1,
        p_worker_name   in varchar2 default null,
        p_lease_seconds in number default null,
        p_wait_seconds  in number default 20,
        p_rows          out sys_refcursor
    );

    -- Do what get_result does, but wait until the message has ended or the time is up; the queue must keep results.
    procedure wait_for_result(
        p_queue_name   in varchar2,
        p_message_id   in number,
        p_wait_seconds in number default 20,
        p_rows         out sys_refcursor
    );

end rowq_wait;
/

-- [file packages/rowq_body.sql]
-- Put together from internal, routines, helpers and waiting.
create or replace package body rowq as

-- Subprograms of the package hand these to each other. seq is a place, in a lane or in a claim.
-- group_key is set only where a message is to join its group, and is_tokenless is 1 for one that
-- comes from a place where it had no token. is_cancelled is 1 for one of a claim that was cancelled
-- meanwhile. place is that of a new message in its batch, or 0, and predecessor_ids is null for one
-- that names none. topic is null where it is not published.
type t_queue is record (
    part_id              rowq_queue.part_id%type,
    lease_seconds        rowq_queue.lease_seconds%type,
    max_attempts         rowq_queue.max_attempts%type,
    backoff_base_seconds rowq_queue.backoff_base_seconds%type,
    backoff_factor       rowq_queue.backoff_factor%type,
    backoff_cap_seconds  rowq_queue.backoff_cap_seconds%type,
    backoff_jitter       rowq_queue.backoff_jitter%type,
    archive_days         rowq_queue.archive_days%type,
    max_body_length      rowq_queue.max_body_length%type,
    group_limit          rowq_queue.group_limit%type,
    group_after_dead     rowq_queue.group_after_dead%type,
    max_leased           rowq_queue.max_leased%type,
    rate_limit           rowq_queue.rate_limit%type,
    rate_seconds         rowq_queue.rate_seconds%type,
    result_seconds       rowq_queue.result_seconds%type,
    history_days         rowq_queue.history_days%type,
    paused_at            rowq_queue.paused_at%type,
    listened_until       rowq_queue.listened_until%type
);
type t_claim is record (
    claim_id    rowq_claim.claim_id%type,
    worker_name rowq_claim.worker_name%type,
    leased_at   rowq_claim.leased_at%type
);
type t_message is record (
    message_id   rowq_message.message_id%type,
    lane         rowq_ready.lane%type,
    attempt      rowq_ready.attempt%type,
    seq          rowq_ready.seq%type,
    group_key    rowq_message.group_key%type,
    is_tokenless number(1),
    is_cancelled rowq_leased.is_cancelled%type
);
type t_messages is table of t_message index by pls_integer;
type t_locked_row is record (
    row_id     rowid,
    message_id rowq_message.message_id%type,
    lane       rowq_ready.lane%type,
    attempt    rowq_ready.attempt%type,
    seq        rowq_ready.seq%type
);
type t_locked_rows is table of t_locked_row index by pls_integer;
type t_lane is record (
    lane      rowq_lane.lane%type,
    floor_seq rowq_lane.floor_seq%type
);
type t_lanes is table of t_lane index by pls_integer;
type t_open_lane is record (
    part_id       rowq_queue.part_id%type,
    lease_seconds rowq_queue.lease_seconds%type,
    max_leased    rowq_queue.max_leased%type,
    rate_limit    rowq_queue.rate_limit%type,
    paused_at     rowq_queue.paused_at%type,
    lane          rowq_lane.lane%type,
    floor_seq     rowq_lane.floor_seq%type
);
type t_open_lanes is table of t_open_lane index by pls_integer;
type t_new_message is record (
    message_id            rowq_message.message_id%type,
    body                  clob,
    body_binary           blob,
    message_type          rowq_message.message_type%type,
    headers               clob,
    lane                  rowq_message.lane%type,
    seq                   rowq_message.seq%type,
    enqueued_at           rowq_message.enqueued_at%type,
    due_at                rowq_message.due_at%type,
    expires_at            rowq_message.expires_at%type,
    dedup_key             rowq_message.dedup_key%type,
    max_attempts          rowq_message.max_attempts%type,
    group_key             rowq_message.group_key%type,
    outcome               varchar2(20 char),
    place                 number(10),
    predecessor_ids       rowq_ids,
    predecessor_positions rowq_ids,
    on_predecessor_dead   rowq_blocked.on_dead%type,
    topic                 rowq_topic_binding.topic_pattern%type
);
type t_new_messages is table of t_new_message index by pls_integer;
-- place is that of a message, in its batch, whose topic the queue is bound to.
type t_bound_queue is record (
    place           number(10),
    part_id         rowq_queue.part_id%type,
    queue_name      rowq_queue.queue_name%type,
    queue_key       rowq_queue.queue_key%type,
    max_body_length rowq_queue.max_body_length%type,
    listened_until  rowq_queue.listened_until%type
);
type t_bound_queues is table of t_bound_queue index by pls_integer;
type t_numbers is table of number index by pls_integer;
-- Texts and numbers of a schedule are as long as a caller may pass them, so that they can be
-- checked before they are stored.
type t_schedule is record (
    part_id          rowq_schedule.part_id%type,
    schedule_key     rowq_schedule.schedule_key%type,
    schedule_name    varchar2(32767),
    cron             varchar2(32767),
    interval_seconds number,
    time_zone        varchar2(32767),
    missed           varchar2(32767),
    overlap          number,
    starts_at        rowq_schedule.starts_at%type,
    ends_at          rowq_schedule.ends_at%type,
    message_type     varchar2(32767),
    priority         number,
    group_key        varchar2(32767),
    max_attempts     number,
    is_paused        number,
    next_run_at      rowq_schedule.next_run_at%type,
    headers          clob,
    body             clob,
    body_binary      blob
);
-- first_id is the first of the messages that wait in the group; tokens are numbers, by themselves.
type t_group is record (
    group_limit    rowq_queue.group_limit%type,
    pause_seconds  rowq_queue.group_pause_seconds%type,
    listened_until rowq_queue.listened_until%type,
    first_id       rowq_grouped.message_id%type,
    tokens         t_numbers
);
type t_group_row is record (
    group_limit    rowq_queue.group_limit%type,
    pause_seconds  rowq_queue.group_pause_seconds%type,
    listened_until rowq_queue.listened_until%type,
    first_id       rowq_grouped.message_id%type,
    token_no       rowq_message_group.token_no%type
);
type t_group_rows is table of t_group_row index by pls_integer;
-- A t_expiring is a row of expiry that is due. place is the table in which its message waits; null
-- where it waits nowhere.
type t_expiring is record (
    expires_at rowq_expiry.expires_at%type,
    expiry_id  rowq_expiry.expiry_id%type,
    message_id rowq_expiry.message_id%type,
    lane       rowq_expiry.lane%type,
    seq        rowq_expiry.seq%type,
    due_at     rowq_message.due_at%type,
    group_key  rowq_message.group_key%type,
    place      varchar2(20 char)
);
type t_expiring_list is table of t_expiring index by pls_integer;
type t_clobs is table of clob index by pls_integer;
type t_moments is table of timestamp(6) index by pls_integer;
type t_row_ids is table of rowid index by pls_integer;
type t_keys is table of raw(800) index by pls_integer;
type t_key_lists is table of rowq_keys index by pls_integer;
type t_texts is table of rowq_message.dedup_key%type index by pls_integer;
-- A t_places finds a position by the text of an id, or by what internal_dedup_order returns.
type t_places is table of pls_integer index by varchar2(4000);

procedure internal_add_part(p_part_id in number);
function internal_add_token(
    p_part_id   in number,
    p_group_key in raw,
    p_group     in t_group
)
return boolean;
function internal_admit(p_part_id in number, p_wanted in number)
return number;
function internal_archive(p_part_id in number, p_limit in number)
return number;
procedure internal_as_front(p_messages in out nocopy t_messages, p_spent in number);
procedure internal_await_predecessor(
    p_part_id        in number,
    p_message_id     in number,
    p_ids            in rowq_ids,
    p_on_dead        in varchar2,
    p_state          out varchar2,
    p_predecessor_id out number,
    p_rest_ids       out nocopy rowq_ids
);
function internal_awaited_of(p_part_id in number, p_ids in rowq_ids)
return rowq_ids;
procedure internal_back_off(
    p_queue         in t_queue,
    p_messages      in t_messages,
    p_delay_seconds in number,
    p_due_at        out nocopy t_moments
);
procedure internal_begin_work(p_has_savepoint out boolean);
function internal_block(
    p_part_id         in number,
    p_message_id      in number,
    p_place           in number,
    p_lane            in number,
    p_due_at          in timestamp,
    p_group_key       in varchar2,
    p_predecessor_ids in rowq_ids,
    p_on_dead         in varchar2
)
return boolean;
procedure internal_block_batch(
    p_part_id in number,
    p_new     in t_new_messages,
    p_ready   in out nocopy t_numbers,
    p_later   in out nocopy t_numbers
);
function internal_body_fault(
    p_body        in clob,
    p_body_binary in blob,
    p_max_length  in number
)
return varchar2;
function internal_bound_queues(p_new in t_new_messages)
return t_bound_queues;
function internal_can_send(
    p_part_id  in number,
    p_schedule in t_schedule,
    p_owner_id out number
)
return boolean;
procedure internal_check_batch_size(p_batch_size in number);
procedure internal_check_claim(p_claim_id in number);
procedure internal_check_header_name(p_name in varchar2);
procedure internal_check_name(p_name in varchar2, p_value in varchar2);
procedure internal_check_range(
    p_name  in varchar2,
    p_value in number,
    p_low   in number,
    p_high  in number
);
procedure internal_check_schedule(p_schedule in t_schedule, p_queue in t_queue);
procedure internal_check_settings(
    p_queue_name           in varchar2,
    p_lease_seconds        in number,
    p_max_attempts         in number,
    p_backoff_base_seconds in number,
    p_backoff_factor       in number,
    p_backoff_cap_seconds  in number,
    p_backoff_jitter       in number,
    p_archive_days         in number,
    p_max_body_length      in number,
    p_group_limit          in number,
    p_group_after_dead     in varchar2,
    p_group_pause_seconds  in number,
    p_max_leased           in number,
    p_rate_limit           in number,
    p_rate_seconds         in number,
    p_result_seconds       in number,
    p_history_days         in number
);
procedure internal_check_time_zone(p_time_zone in varchar2);
procedure internal_check_whole(
    p_name        in varchar2,
    p_value       in number,
    p_low         in number,
    p_high        in number,
    p_is_required in boolean default false
);
function internal_claimed_messages(p_part_id in number, p_claim_id in number)
return t_messages;
function internal_clob_part(p_text in clob, p_place in number, p_length in number)
return varchar2;
function internal_count_messages(p_part_id in number, p_limit in number)
return rowq_count;
procedure internal_cut_headers(
    p_messages in clob,
    p_headers  out nocopy t_clobs,
    p_rest     out nocopy clob
);
procedure internal_cut_ties(
    p_part_id    in number,
    p_messages   in t_messages,
    p_ids        in t_numbers,
    p_dedup_keys in t_texts,
    p_group_keys in t_texts,
    p_awaited    in t_numbers
);
function internal_dedup_order(p_dedup_key in varchar2, p_number in number)
return varchar2;
procedure internal_delete_dead(p_locked in t_locked_rows, p_messages in out nocopy t_messages);
procedure internal_delete_delayed(p_locked in t_locked_rows, p_messages in out nocopy t_messages);
procedure internal_delete_messages(p_part_id in number, p_messages in t_messages);
procedure internal_delete_queue(p_part_id in number);
procedure internal_delete_ready(p_locked in t_locked_rows, p_messages in out nocopy t_messages);
procedure internal_dequeue(
    p_queue_name    in varchar2,
    p_batch_size    in number,
    p_worker_name   in varchar2,
    p_lease_seconds in number,
    p_part_id       out number,
    p_claim_id      out number,
    p_lease_until   out timestamp
);
function internal_drop_days
return number;
function internal_enter_group(
    p_part_id   in number,
    p_group_key in raw,
    p_may_wait  in boolean
)
return boolean;
function internal_expire(p_queue in t_queue, p_limit in number)
return number;
procedure internal_fail_with(
    p_part_id        in number,
    p_message_id     in number,
    p_lane           in number,
    p_predecessor_id in number
);
procedure internal_finish(
    p_queue    in t_queue,
    p_messages in t_messages,
    p_state    in varchar2
);
function internal_first_key(p_part_id in number, p_lane in number, p_from in number)
return number;
procedure internal_first_lane(
    p_part_id in number,
    p_from    in number,
    p_to      in number,
    p_lane    out number,
    p_seq     out number
);
procedure internal_follow_death(
    p_part_id in number,
    p_dead_id in number,
    p_failed  in out nocopy rowq_ids
);
procedure internal_follow_deaths(p_part_id in number, p_dead_ids in rowq_ids);
procedure internal_free_successors(p_part_id in number, p_predecessor_id in number);
function internal_from_base64(p_text in clob)
return blob;
function internal_from_microseconds(p_microseconds in number)
return timestamp;
procedure internal_give_up_tick(
    p_schedule in t_schedule,
    p_now      in timestamp,
    p_error    in varchar2
);
function internal_has_header(p_headers in clob, p_name in varchar2, p_value in clob)
return boolean;
function internal_head_key(p_head in varchar2)
return raw;
procedure internal_health_queue(
    p_part_id        in number,
    p_queue_name     in varchar2,
    p_is_paused      in boolean,
    p_result_seconds in number,
    p_history_days   in number,
    p_checks         in out nocopy rowq_checks
);
procedure internal_health_server(p_checks in out nocopy rowq_checks);
procedure internal_hint_groups(p_part_id in number);
function internal_ids_of(p_messages in t_messages)
return rowq_ids;
function internal_is_id_list(p_list in clob, p_ids out nocopy rowq_ids)
return boolean;
function internal_is_json(p_text in clob)
return boolean;
function internal_iso_text(p_moment in timestamp)
return varchar2;
procedure internal_join_groups(
    p_part_id  in number,
    p_messages in t_messages,
    p_waiting  out nocopy t_numbers
);
procedure internal_json_fault(
    p_name    in varchar2,
    p_json    in clob,
    p_kind    in varchar2,
    p_deepest in number,
    p_longest in number,
    p_cuts    out nocopy t_numbers,
    p_fault   out varchar2
);
procedure internal_json_limit(
    p_name    in varchar2,
    p_json    in clob,
    p_kind    in varchar2,
    p_deepest in number,
    p_longest in number,
    p_cuts    in out nocopy t_numbers,
    p_fault   out varchar2
);
procedure internal_leave_groups(p_part_id in number, p_group_keys in t_keys);
procedure internal_let_go(
    p_part_id     in number,
    p_message_ids in rowq_ids,
    p_ended_id    in number,
    p_again       out nocopy rowq_ids
);
function internal_local_of(p_moment in timestamp, p_time_zone in varchar2)
return timestamp;
procedure internal_locate_messages(
    p_part_id     in number,
    p_message_id  in number,
    p_group_key   in varchar2,
    p_due_at      in out timestamp,
    p_state       out varchar2,
    p_lane        out number,
    p_attempt     out number,
    p_claim_id    out number,
    p_worker_name out varchar2,
    p_lease_until out timestamp,
    p_finished_at out timestamp,
    p_waits_for   out number,
    p_leased_at   out timestamp
);
function internal_lock_bindings(p_queue_name in varchar2)
return t_queue;
procedure internal_lock_blocked(p_part_id in number, p_message_id in number, p_state out varchar2);
procedure internal_lock_dead(
    p_queue_name   in varchar2,
    p_message_ids  in clob,
    p_max_messages in number,
    p_message_type in varchar2,
    p_died_before  in timestamp,
    p_queue        out t_queue,
    p_ids          out rowq_ids,
    p_locked       out nocopy t_locked_rows
);
function internal_lock_door(p_part_id in number, p_key in raw)
return boolean;
procedure internal_lock_expiring(
    p_part_id  in number,
    p_expiring in t_expiring,
    p_row      out t_locked_row
);
function internal_lock_gate(p_part_id in number)
return boolean;
procedure internal_lock_messages(
    p_part_id in number,
    p_ids     in rowq_ids,
    p_locked  out nocopy rowq_ids,
    p_held    out nocopy rowq_ids
);
function internal_lock_token(
    p_part_id   in number,
    p_group_key in raw,
    p_group     in t_group,
    p_from      in number,
    p_to        in number
)
return number;
function internal_lock_tokens(p_part_id in number, p_group_key in raw)
return t_numbers;
procedure internal_maintain_archive(
    p_queue    in t_queue,
    p_limit    in number,
    p_archived out number,
    p_purged   out number,
    p_dropped  out number
);
function internal_maintain_kept(
    p_queue in t_queue,
    p_what  in varchar2,
    p_limit in number,
    p_until in timestamp
)
return number;
procedure internal_maintain_queue(
    p_queue_name in varchar2,
    p_queue      in t_queue,
    p_limit      in number,
    p_until      in timestamp,
    p_kept       out nocopy rowq_kept
);
procedure internal_mark_leased(p_part_id in number, p_lines in out nocopy rowq_lines);
procedure internal_mark_lines(
    p_lines   in out nocopy rowq_lines,
    p_ids     in rowq_ids,
    p_outcome in varchar2
);
function internal_message_fault(
    p_body                in clob,
    p_body_binary         in blob,
    p_message_type        in varchar2,
    p_headers             in clob,
    p_priority            in number,
    p_delay_seconds       in number,
    p_run_at              in timestamp,
    p_dedup_key           in varchar2,
    p_max_attempts        in number,
    p_group_key           in varchar2,
    p_on_predecessor_dead in varchar2,
    p_expire_seconds      in number
)
return varchar2;
function internal_microseconds(p_moment in timestamp)
return number;
function internal_moment_of_local(p_local in timestamp, p_time_zone in varchar2)
return timestamp;
procedure internal_move_floor(
    p_part_id in number,
    p_lane    in number,
    p_from    in number,
    p_to      in number
);
function internal_new_message(
    p_now                 in timestamp,
    p_place               in number,
    p_body                in clob,
    p_body_binary         in blob,
    p_message_type        in varchar2,
    p_headers             in clob,
    p_priority            in number,
    p_delay_seconds       in number,
    p_run_at              in timestamp,
    p_dedup_key           in varchar2,
    p_max_attempts        in number,
    p_group_key           in varchar2,
    p_predecessor_ids     in rowq_ids,
    p_on_predecessor_dead in varchar2,
    p_expire_seconds      in number
)
return t_new_message;
function internal_next_cron(
    p_bits      in varchar2,
    p_time_zone in varchar2,
    p_after     in timestamp
)
return timestamp;
function internal_next_cron_local(p_bits in varchar2, p_from in timestamp)
return timestamp;
function internal_next_shown(p_part_id in number, p_ids in rowq_ids, p_from in number)
return number;
function internal_next_tick(p_schedule in t_schedule, p_after in timestamp)
return timestamp;
procedure internal_note_cancels(
    p_part_id in number,
    p_ids     in rowq_ids,
    p_noted   out nocopy rowq_ids,
    p_rest    out nocopy rowq_ids
);
procedure internal_note_error(
    p_part_id    in number,
    p_messages   in t_messages,
    p_error      in clob,
    p_is_waiting in boolean
);
procedure internal_note_expiry(
    p_part_id  in number,
    p_messages in t_messages,
    p_seqs     in t_numbers
);
procedure internal_note_fault(p_part_id in number, p_fault in varchar2);
procedure internal_note_listener(p_part_id in number, p_listened_until in timestamp);
procedure internal_note_start(
    p_part_id    in number,
    p_claim_id   in number,
    p_started_at in timestamp,
    p_messages   in number
);
function internal_number_text(p_value in number)
return varchar2;
function internal_offset_change(
    p_from      in timestamp,
    p_to        in timestamp,
    p_time_zone in varchar2
)
return timestamp;
function internal_offset_of(p_moment in timestamp, p_time_zone in varchar2)
return number;
function internal_oldest_ready(p_part_id in number)
return timestamp;
procedure internal_open_lanes(p_part_id in number, p_lane in number);
procedure internal_open_lanes_for(p_part_id in number, p_new in t_new_messages);
function internal_open_lanes_of(p_part_id in number)
return t_lanes;
function internal_outcomes(
    p_ids      in rowq_ids,
    p_messages in t_messages,
    p_outcome  in varchar2,
    p_other    in varchar2 default 'stale'
)
return rowq_lines;
function internal_parse_cron(p_cron in varchar2)
return varchar2;
function internal_parse_cron_field(
    p_field in varchar2,
    p_name  in varchar2,
    p_low   in number,
    p_high  in number,
    p_words in varchar2 default null
)
return varchar2;
function internal_parse_message(
    p_message      in json_element_t,
    p_headers      in clob,
    p_now          in timestamp,
    p_place        in number,
    p_max_length   in number,
    p_is_published in boolean,
    p_fault        out varchar2
)
return t_new_message;
function internal_parse_messages(
    p_messages     in clob,
    p_max_length   in number,
    p_is_published in boolean default false
)
return t_new_messages;
function internal_parse_moment(p_text in varchar2)
return timestamp;
procedure internal_pass_group(
    p_part_id       in number,
    p_group_key     in raw,
    p_is_over       in boolean,
    p_is_left       out boolean,
    p_pause_seconds out number
);
function internal_peek_ready(p_part_id in number, p_limit in number)
return rowq_lines;
procedure internal_pop_blocked(
    p_part_id  in number,
    p_ids      in t_numbers,
    p_lanes    in t_numbers,
    p_messages in out nocopy t_messages
);
procedure internal_pop_claimed(
    p_part_id  in number,
    p_claim_id in number,
    p_ids      in rowq_ids,
    p_claim    out nocopy t_claim,
    p_messages out nocopy t_messages
);
procedure internal_pop_dead(
    p_part_id  in number,
    p_ids      in rowq_ids,
    p_locked   in t_locked_rows,
    p_messages out nocopy t_messages,
    p_lines    out nocopy rowq_lines
);
procedure internal_pop_expired(
    p_part_id  in number,
    p_due      in t_expiring_list,
    p_messages out nocopy t_messages
);
procedure internal_pop_grouped(
    p_part_id  in number,
    p_wanted   in t_messages,
    p_messages in out nocopy t_messages
);
function internal_pop_next_grouped(
    p_part_id   in number,
    p_group_key in raw,
    p_group     in t_group
)
return t_messages;
procedure internal_pop_ready(
    p_part_id  in number,
    p_lanes    in t_lanes,
    p_limit    in number,
    p_messages out nocopy t_messages
);
function internal_pop_waiting(p_part_id in number, p_ids in rowq_ids)
return t_messages;
function internal_promote(p_part_id in number, p_limit in number)
return number;
procedure internal_promote_grouped(
    p_part_id  in number,
    p_messages in out nocopy t_messages,
    p_joined   out number
);
procedure internal_publish(
    p_new  in t_new_messages,
    p_sent out nocopy rowq_sent_list
);
function internal_purge_archive(
    p_part_id in number,
    p_before  in timestamp,
    p_limit   in number
)
return number;
function internal_purge_blocked(p_queue in t_queue, p_limit in number)
return number;
function internal_purge_grouped(p_queue in t_queue, p_limit in number)
return number;
function internal_purge_history(p_queue in t_queue, p_limit in number)
return number;
function internal_purge_ready(p_queue in t_queue, p_limit in number)
return number;
function internal_purge_results(p_queue in t_queue, p_limit in number)
return number;
procedure internal_purge_started(p_queue in t_queue, p_limit in number);
function internal_purge_waiting(p_queue in t_queue, p_of_dead in boolean, p_limit in number)
return number;
procedure internal_push_dead(
    p_queue      in t_queue,
    p_messages   in t_messages,
    p_error      in clob,
    p_is_waiting in boolean
);
procedure internal_push_delayed(
    p_part_id  in number,
    p_messages in t_messages,
    p_due_at   in t_moments,
    p_error    in clob
);
procedure internal_push_history(
    p_part_id  in number,
    p_claim    in t_claim,
    p_messages in t_messages,
    p_outcome  in varchar2,
    p_error    in clob
);
procedure internal_push_ready(p_part_id in number, p_messages in t_messages);
procedure internal_push_recheck(
    p_part_id   in number,
    p_group_key in raw,
    p_seconds   in number,
    p_is_hint   in number
);
procedure internal_push_result(
    p_part_id  in number,
    p_messages in t_messages,
    p_state    in varchar2,
    p_error    in clob,
    p_results  in t_clobs
);
procedure internal_put_off(p_part_id in number, p_messages in t_messages);
function internal_random_fraction
return number;
function internal_read_end(p_part_id in number, p_message_id in number)
return varchar2;
function internal_read_floor(p_part_id in number, p_lane in number)
return number;
procedure internal_read_group(
    p_part_id   in number,
    p_group_key in raw,
    p_group     out nocopy t_group
);
function internal_read_id_list(p_message_ids in clob)
return rowq_ids;
procedure internal_read_pattern(
    p_pattern in varchar2,
    p_head    out varchar2,
    p_shape   out varchar2
);
procedure internal_read_result(
    p_part_id     in number,
    p_message_id  in number,
    p_state       out varchar2,
    p_finished_at out timestamp
);
procedure internal_read_results(
    p_results in clob,
    p_count   in number,
    p_queue   in t_queue,
    p_values  out nocopy t_clobs
);
function internal_read_schedule(p_part_id in number, p_schedule_key in raw)
return t_schedule;
procedure internal_read_ties(
    p_part_id    in number,
    p_messages   in t_messages,
    p_ids        out nocopy t_numbers,
    p_dedup_keys out nocopy t_texts,
    p_group_keys out nocopy t_texts,
    p_awaited    out nocopy t_numbers
);
procedure internal_reap(
    p_queue  in t_queue,
    p_limit  in number,
    p_reaped out number,
    p_died   out number
);
function internal_recheck(p_part_id in number, p_limit in number)
return number;
function internal_recheck_death(p_part_id in number, p_message_id in number)
return boolean;
procedure internal_recheck_later(
    p_part_id         in number,
    p_message_ids     in rowq_ids,
    p_predecessor_ids in rowq_ids,
    p_are_dead        in number
);
procedure internal_refuse(p_fault in varchar2);
procedure internal_refuse_claim(p_claim_id in number);
procedure internal_refuse_not_empty(p_part_id in number, p_queue_name in varchar2);
procedure internal_refuse_queue(p_queue_name in varchar2);
procedure internal_refuse_unknown(
    p_message_id in number,
    p_place      in number,
    p_newest_id  in number
);
procedure internal_remove_queue(
    p_part_id    in number,
    p_queue_name in varchar2,
    p_force      in boolean
);
procedure internal_require_lanes(
    p_queue_name  in varchar2,
    p_queue       out nocopy t_queue,
    p_lanes       out nocopy t_lanes,
    p_has_recheck out boolean
);
function internal_require_queue(p_queue_name in varchar2)
return t_queue;
function internal_require_schedule(p_part_id in number, p_schedule_name in varchar2)
return t_schedule;
procedure internal_rescan_floors(
    p_part_id     in number,
    p_has_recheck out boolean,
    p_has_started out boolean,
    p_has_expiry  out boolean,
    p_has_results out boolean,
    p_has_history out boolean
);
procedure internal_reserve_dedup_keys(p_part_id in number, p_new in out nocopy t_new_messages);
procedure internal_rest_lane(p_part_id in number, p_lane in number, p_took in number);
function internal_rest_of_ids(
    p_part_id  in number,
    p_ids      in rowq_ids,
    p_messages in t_messages
)
return t_messages;
function internal_rest_unfinished(p_part_id in number, p_ids in rowq_ids, p_from in number)
return rowq_ids;
function internal_results_of(p_messages in t_messages, p_ids in rowq_ids, p_given in t_clobs)
return t_clobs;
function internal_retry_outcomes(
    p_ids      in rowq_ids,
    p_messages in t_messages,
    p_alive    in t_messages,
    p_due_at   in t_moments
)
return rowq_lines;
procedure internal_ring_doorbell(p_part_id in number, p_listened_until in timestamp);
procedure internal_roll_back(p_has_savepoint in boolean);
function internal_room(p_part_id in number, p_wanted in number)
return number;
function internal_run_due(
    p_queue      in t_queue,
    p_queue_name in varchar2,
    p_schedule   in t_schedule
)
return number;
function internal_run_schedules(p_queue in t_queue, p_queue_name in varchar2)
return number;
function internal_seconds_since(p_moment in timestamp, p_now in timestamp)
return number;
procedure internal_send_tick(
    p_queue      in t_queue,
    p_queue_name in varchar2,
    p_schedule   in t_schedule,
    p_tick       in timestamp,
    p_message_id out number,
    p_outcome    out varchar2
);
procedure internal_split_by_attempts(
    p_queue    in t_queue,
    p_messages in t_messages,
    p_alive    out nocopy t_messages,
    p_dead     out nocopy t_messages
);
procedure internal_split_by_cancel(
    p_messages  in t_messages,
    p_rest      out nocopy t_messages,
    p_cancelled out nocopy t_messages
);
procedure internal_store(
    p_part_id    in number,
    p_queue_name in varchar2,
    p_new        in out nocopy t_new_messages
);
procedure internal_store_bound(
    p_queue in t_bound_queue,
    p_new   in out nocopy t_new_messages,
    p_sent  in out nocopy rowq_sent_list
);
procedure internal_store_grouped(
    p_part_id in number,
    p_new     in t_new_messages,
    p_ready   in out nocopy t_numbers
);
function internal_text_length(p_text in clob)
return number;
function internal_tick_headers(p_schedule in t_schedule, p_tick in timestamp)
return clob;
function internal_tick_key(p_schedule in t_schedule)
return varchar2;
function internal_to_base64(p_bytes in blob)
return clob;
function internal_to_minute(p_moment in timestamp)
return timestamp;
function internal_topic_fault(
    p_name       in varchar2,
    p_topic      in varchar2,
    p_is_pattern in boolean
)
return varchar2;
function internal_topic_patterns(p_topic in varchar2)
return rowq_keys;
procedure internal_trim_claim(p_part_id in number, p_claim_id in number);
function internal_try_recheck(
    p_part_id        in number,
    p_group_key      in raw,
    p_message_id     in number,
    p_predecessor_id in number,
    p_is_hint        in number
)
return boolean;
function internal_try_schedule(p_part_id in number, p_schedule_key in raw)
return boolean;
procedure internal_try_unblock(
    p_part_id    in number,
    p_message_id in number,
    p_ended_id   in number,
    p_state      out varchar2,
    p_lane       out number
);
procedure internal_unblock(
    p_part_id     in number,
    p_message_ids in rowq_ids,
    p_ended_id    in number,
    p_again       out nocopy rowq_ids,
    p_failed      out nocopy rowq_ids
);
function internal_waiting_of(p_part_id in number, p_ids in rowq_ids)
return rowq_ids;
function internal_widen_group(p_part_id in number, p_group_key in raw)
return boolean;
function internal_words_of(p_text in varchar2)
return t_texts;

procedure internal_add_part(p_part_id in number)
is
-- routine   internal_add_part
-- purpose   Insert the lanes, the doors and the gate of a new queue.
-- promise   P13
-- locks     new rows only
-- differs   no such helper on PostgreSQL; no part, as the queue row itself is what a drop locks
    c_lanes constant pls_integer := 28;
    c_doors constant pls_integer := 64;
    v_lanes t_numbers;
    v_open  t_numbers;
    v_doors t_numbers;
begin
    for i in 1 .. c_lanes loop
        v_lanes(i) := i - 9;
        -- The lanes of the default priority are open from the start, because most queues use no
        -- others.
        v_open(i) := case when v_lanes(i) in (10, 11) then 1 else 0 end;
    end loop;
    forall i in 1 .. c_lanes
        insert into rowq_lane (part_id, lane, is_open)
        values (p_part_id, v_lanes(i), v_open(i));

    for i in 1 .. c_doors loop
        v_doors(i) := i - 1;
    end loop;
    forall i in 1 .. c_doors
        insert into rowq_door (part_id, door_no)
        values (p_part_id, v_doors(i));
    insert into rowq_gate (part_id)
    values (p_part_id);
end internal_add_part;

function internal_add_token(
    p_part_id   in number,
    p_group_key in raw,
    p_group     in t_group
)
return boolean
is
-- routine   internal_add_token
-- purpose   Give a group the first token that it does not have; return false where another session has just done that, or has lowered the limit.
-- promise   P22
-- locks     the new message_group row; waits for a session that adds the same one
-- differs   no such helper elsewhere: part of internal_enter_group
    v_token_no pls_integer := 1;
    v_newest   rowq_queue.group_limit%type;
begin
    while p_group.tokens.exists(v_token_no) loop
        v_token_no := v_token_no + 1;
    end loop;
    insert into rowq_message_group (part_id, group_key, token_no)
    values (p_part_id, p_group_key, v_token_no);

    -- That may have waited, so what counts is the limit that is read after it. Any leaves room for
    -- one.
    if p_group.group_limit = 1 then
        return true;
    end if;
    select q.group_limit into v_newest
    from rowq_queue q
    where q.part_id = p_part_id;
    if v_newest >= p_group.group_limit then
        return true;
    end if;
    delete from rowq_message_group t
    where t.part_id = p_part_id
      and t.group_key = p_group_key
      and t.token_no = v_token_no;
    return false;
exception
    when dup_val_on_index then
        return false;
end internal_add_token;

function internal_admit(p_part_id in number, p_wanted in number)
return number
is
-- routine   internal_admit
-- purpose   Return how many messages a dequeue may lease under its queue's limits; from then on it is alone until its transaction ends.
-- promise   P28 P29
-- locks     the gate of the queue
-- errors    RQ713
-- differs   a serializable transaction is refused only where others have leased since it began:
--           nothing tells its level
begin
    -- Look first, because a poll of a queue without room shall neither wait nor write.
    if internal_room(p_part_id, p_wanted) = 0 then
        return 0;
    end if;
    if not internal_lock_gate(p_part_id) then
        return 0;
    end if;
    -- Look again, in a statement of its own: it is younger than the lock, so it sees what the
    -- session leased that held the gate before, and settings that were changed meanwhile.
    return internal_room(p_part_id, p_wanted);
end internal_admit;

function internal_archive(p_part_id in number, p_limit in number)
return number
is
-- routine   internal_archive
-- purpose   Move up to p_limit finished messages to the archive, oldest first.
-- promise   P19 P26
-- locks     finished and message rows, passing over locked ones; new archive rows; as
--           internal_free_successors
    type t_finished is record (
        finish_id   rowq_finished.finish_id%type,
        message_id  rowq_finished.message_id%type,
        lane        rowq_finished.lane%type,
        attempt     rowq_finished.attempt%type,
        state       rowq_finished.state%type,
        finished_at rowq_finished.finished_at%type
    );
    type t_finished_list is table of t_finished index by pls_integer;
    v_floor rowq_lane.floor_seq%type := internal_read_floor(p_part_id, -3);
    v_found   t_finished_list;
    v_some    t_finished_list;
    v_ids     rowq_ids := rowq_ids();
    v_locked  rowq_ids;
    v_held    rowq_ids;
    v_places  t_places;
    v_awaited rowq_ids;
    cursor finished_rows is
        select /*+ index_rs_asc(f rowq_finished_pk) */
               f.finish_id, f.message_id, f.lane, f.attempt, f.state, f.finished_at
        from rowq_finished f
        where f.part_id = p_part_id
          and f.finish_id >= v_floor
        order by f.part_id, f.finish_id, f.message_id
        for update skip locked;
begin
    open finished_rows;
    fetch finished_rows bulk collect into v_found limit p_limit;
    close finished_rows;
    if v_found.count = 0 then
        return 0;
    end if;

    -- Leave a message alone while a producer is adding one that waits for it.
    v_ids.extend(v_found.count);
    for i in 1 .. v_found.count loop
        v_ids(i) := v_found(i).message_id;
    end loop;
    internal_lock_messages(p_part_id, v_ids, v_locked, v_held);
    v_awaited := internal_awaited_of(p_part_id, v_locked);
    for i in 1 .. v_held.count loop
        v_places(internal_number_text(v_held(i))) := i;
    end loop;
    for i in 1 .. v_found.count loop
        if not v_places.exists(internal_number_text(v_found(i).message_id)) then
            v_some(v_some.count + 1) := v_found(i);
        end if;
    end loop;

    forall i in 1 .. v_some.count
        insert into rowq_archive (
            part_id, finished_at, message_id, lane, attempt, enqueued_at, state, message_type,
            dedup_key, group_key, headers, body, body_binary
        )
        select m.part_id, v_some(i).finished_at, m.message_id, v_some(i).lane,
               v_some(i).attempt, m.enqueued_at, v_some(i).state, m.message_type,
               m.dedup_key, m.group_key, m.headers, m.body, m.body_binary
        from rowq_message m
        where m.part_id = p_part_id
          and m.message_id = v_some(i).message_id;
    forall i in 1 .. v_some.count
        delete from rowq_message m
        where m.part_id = p_part_id
          and m.message_id = v_some(i).message_id;
    forall i in 1 .. v_some.count
        delete from rowq_finished f
        where f.part_id = p_part_id
          and f.finish_id = v_some(i).finish_id
          and f.message_id = v_some(i).message_id;
    -- The end of a message did not see what its producer had not committed then.
    for i in 1 .. v_awaited.count loop
        internal_free_successors(p_part_id, v_awaited(i));
    end loop;
    return v_some.count;
end internal_archive;

procedure internal_as_front(p_messages in out nocopy t_messages, p_spent in number)
is
-- routine   internal_as_front
-- purpose   Prepare messages for the front of their priority, with p_spent attempts fewer.
-- promise   P09
begin
    for i in 1 .. p_messages.count loop
        p_messages(i).lane := trunc(p_messages(i).lane / 2) * 2;
        p_messages(i).attempt := p_messages(i).attempt - p_spent;
    end loop;
end internal_as_front;

procedure internal_await_predecessor(
    p_part_id        in number,
    p_message_id     in number,
    p_ids            in rowq_ids,
    p_on_dead        in varchar2,
    p_state          out varchar2,
    p_predecessor_id out number,
    p_rest_ids       out nocopy rowq_ids
)
is
-- routine   internal_await_predecessor
-- purpose   Let a message wait for the first of these, newest first, that has not ended: waiting, free, failed, or unsure where others are at work.
-- promise   P25 P26 P27
-- locks     the predecessor's message row, tried only; a new successor row
    v_ids    rowq_ids := p_ids;
    v_place  pls_integer := 1;
    v_locked rowq_ids;
    v_held   rowq_ids;
    v_end    varchar2(20 char);
begin
    p_state := null;
    p_rest_ids := rowq_ids();
    while p_state is null loop
        v_place := internal_next_shown(p_part_id, v_ids, v_place);
        exit when v_place is null;
        p_predecessor_id := v_ids(v_place);
        -- Hold the row to the end of the transaction: whoever ends the predecessor waits for this
        -- one, or leaves a note to look again. This one waits for nobody.
        v_end := null;
        internal_lock_messages(p_part_id, rowq_ids(p_predecessor_id), v_locked, v_held);
        if v_held.count > 0 then
            p_state := 'unsure';
        elsif v_locked.count > 0 then
            -- The archive keeps the message row for a while. Where the end is not seen here, the
            -- archiver frees what waits when it deletes the row.
            v_end := internal_read_end(p_part_id, p_predecessor_id);
            if v_end = 'dead' and p_on_dead = 'fail' then
                p_state := 'failed';
            elsif v_end is null
                  or (v_end = 'dead' and coalesce(p_on_dead, 'hold') = 'hold') then
                p_state := 'waiting';
            end if;
        end if;
        if p_state is null and v_end = 'finished' then
            -- Thousands may have ended since the archiver was here: leave all of them out at once.
            v_ids := internal_rest_unfinished(p_part_id, v_ids, v_place + 1);
            v_place := 1;
        elsif p_state is null then
            v_place := v_place + 1;
        end if;
    end loop;
    p_state := coalesce(p_state, 'free');

    if p_state = 'waiting' then
        update rowq_message m
        set m.has_successors = 1
        where m.part_id = p_part_id
          and m.message_id = p_predecessor_id;
        -- A message that is looked at again may have its row there already. Nobody else inserts
        -- this row, because who does holds the row of the predecessor.
        insert into rowq_successor (part_id, predecessor_id, message_id)
        select p_part_id, p_predecessor_id, p_message_id
        from dual
        where not exists (
            select null
            from rowq_successor s
            where s.part_id = p_part_id
              and s.predecessor_id = p_predecessor_id
              and s.message_id = p_message_id
        );
        v_place := v_place + 1;
    elsif p_state = 'unsure' then
        p_predecessor_id := null;
    end if;
    if p_state in ('waiting', 'unsure') then
        for i in v_place .. v_ids.count loop
            p_rest_ids.extend;
            p_rest_ids(p_rest_ids.last) := v_ids(i);
        end loop;
    end if;
end internal_await_predecessor;

function internal_awaited_of(p_part_id in number, p_ids in rowq_ids)
return rowq_ids
is
-- routine   internal_awaited_of
-- purpose   Return those of these messages, whose rows the caller has locked, that others wait for, perhaps.
-- promise   P26 P27
-- differs   no such helper elsewhere: part of internal_archive and internal_follow_deaths
    v_awaited rowq_ids;
begin
    -- A statement of its own sees who has come to wait until the rows were locked.
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id
    bulk collect into v_awaited
    from table(p_ids) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value
    where m.has_successors = 1;
    return v_awaited;
end internal_awaited_of;

procedure internal_back_off(
    p_queue         in t_queue,
    p_messages      in t_messages,
    p_delay_seconds in number,
    p_due_at        out nocopy t_moments
)
is
-- routine   internal_back_off
-- purpose   Compute when failed messages are due again, one moment for each.
-- promise   P10
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_delay number;
begin
    for i in 1 .. p_messages.count loop
        v_delay := coalesce(
            p_delay_seconds,
            least(
                p_queue.backoff_cap_seconds,
                p_queue.backoff_base_seconds
                * power(p_queue.backoff_factor, least(p_messages(i).attempt - 1, 60))
            ) * (1 - p_queue.backoff_jitter * internal_random_fraction)
        );
        p_due_at(i) := v_now + numtodsinterval(v_delay, 'second');
    end loop;
end internal_back_off;

procedure internal_begin_work(p_has_savepoint out boolean)
is
-- routine   internal_begin_work
-- purpose   Set a savepoint in the caller's transaction, unless the caller is a trigger or another database.
-- promise   P15 P17
-- differs   needed where a procedure opens a transaction or, as here, a trigger may call it
    -- ORA-04092: no savepoint in a trigger. ORA-02074: none in a session that another database has
    -- opened. There the failing statement, or the other database, takes back what was done.
    e_in_trigger exception;
    pragma exception_init(e_in_trigger, -4092);
    e_distributed exception;
    pragma exception_init(e_distributed, -2074);
begin
    savepoint rowq_call;
    p_has_savepoint := true;
exception
    when e_in_trigger or e_distributed then
        p_has_savepoint := false;
end internal_begin_work;

function internal_block(
    p_part_id         in number,
    p_message_id      in number,
    p_place           in number,
    p_lane            in number,
    p_due_at          in timestamp,
    p_group_key       in varchar2,
    p_predecessor_ids in rowq_ids,
    p_on_dead         in varchar2
)
return boolean
is
-- routine   internal_block
-- purpose   Let a new message wait for its predecessors, or fail with one; false where all have ended. p_place is its place in a batch, or 0.
-- promise   P15 P25 P26 P27
-- locks     as internal_await_predecessor; new blocked, recheck and dead rows
-- errors    RQ711
    v_ids            rowq_ids;
    v_rest_ids       rowq_ids;
    v_rest           clob;
    v_predecessor_id rowq_message.message_id%type;
    v_state          varchar2(20 char);
begin
    select distinct a.column_value
    bulk collect into v_ids
    from table(p_predecessor_ids) a
    where a.column_value > 0
    order by a.column_value desc;
    if v_ids.count = 0 then
        return false;
    end if;
    internal_refuse_unknown(p_message_id, p_place, v_ids(1));
    internal_await_predecessor(
        p_part_id, p_message_id, v_ids, p_on_dead, v_state, v_predecessor_id, v_rest_ids
    );
    if v_state = 'free' then
        return false;
    end if;
    if v_state = 'failed' then
        internal_fail_with(p_part_id, p_message_id, p_lane, v_predecessor_id);
        return true;
    end if;

    v_rest := case when v_rest_ids.count > 0 then ids(v_rest_ids) end;
    insert into rowq_blocked (
        part_id, message_id, lane, predecessor_id, due_at, on_dead, group_key, rest_ids
    )
    values (
        p_part_id, p_message_id, p_lane, v_predecessor_id, p_due_at, p_on_dead, p_group_key,
        v_rest
    );
    if v_state = 'unsure' then
        internal_recheck_later(p_part_id, rowq_ids(p_message_id), null, 0);
    end if;
    return true;
end internal_block;

procedure internal_block_batch(
    p_part_id in number,
    p_new     in t_new_messages,
    p_ready   in out nocopy t_numbers,
    p_later   in out nocopy t_numbers
)
is
-- routine   internal_block_batch
-- purpose   Let new messages wait for their predecessors; p_ready and p_later have the places of those that are due and of those that are not, and keep those that wait for nothing.
-- promise   P15 P25 P26 P27
-- locks     as internal_block
-- errors    RQ711
    v_ids        rowq_ids;
    v_places     rowq_ids;
    v_is_blocked boolean;
begin
    for i in 1 .. p_new.count loop
        if p_new(i).outcome = 'enqueued' and p_new(i).predecessor_ids is not null then
            v_ids := p_new(i).predecessor_ids;
            v_places := p_new(i).predecessor_positions;
            if v_places is not null then
                for k in 1 .. v_places.count loop
                    v_ids.extend;
                    v_ids(v_ids.last) := p_new(v_places(k)).message_id;
                end loop;
            end if;
            v_is_blocked := internal_block(
                p_part_id, p_new(i).message_id, p_new(i).place, p_new(i).lane, p_new(i).due_at,
                p_new(i).group_key, v_ids, p_new(i).on_predecessor_dead
            );
            if v_is_blocked then
                p_ready.delete(i);
                p_later.delete(i);
            end if;
        end if;
    end loop;
end internal_block_batch;

function internal_body_fault(
    p_body        in clob,
    p_body_binary in blob,
    p_max_length  in number
)
return varchar2
is
-- routine   internal_body_fault
-- purpose   Return what is wrong with the length of a body; null means nothing.
-- promise   P15
    e_never_stored exception;
    pragma exception_init(e_never_stored, -22275);
    v_length number;
begin
    v_length := coalesce(dbms_lob.getlength(p_body), dbms_lob.getlength(p_body_binary), 0);
    -- getlength counts an emoji as two. Counting it as one takes long, so do it only where the body
    -- seems too long.
    if p_body is not null and v_length > p_max_length then
        v_length := internal_text_length(p_body);
    end if;
    if v_length > p_max_length then
        return 'body is ' || internal_number_text(v_length) || ' long, and the queue takes '
            || internal_number_text(p_max_length) || ': max_body_length';
    end if;
    return null;
exception
    when e_never_stored then
        -- An empty_clob() or empty_blob() of the caller's is a locator of no LOB: it has no length.
        return null;
end internal_body_fault;

function internal_bound_queues(p_new in t_new_messages)
return t_bound_queues
is
-- routine   internal_bound_queues
-- purpose   Return the queues that are bound to the topics of messages, in the order of their names, with the places of the messages; and keep them from being dropped.
-- promise   P35
-- locks     the table of messages against drop_queue; waits for one that is under way
    v_found    t_bound_queues;
    v_topic    varchar2(400 char);
    v_first    t_places;
    v_lists    t_key_lists;
    v_patterns rowq_keys;
    v_keys     rowq_topic_keys := rowq_topic_keys();
begin
    -- A drop_queue holds all tables. The statements after this one see what it has left, and no
    -- other drop can begin before this transaction ends.
    lock table rowq_message in row exclusive mode;

    for i in 1 .. p_new.count loop
        -- The digits and letters of bytes are different ones to every NLS_SORT.
        v_topic := rawtohex(utl_raw.cast_to_raw(p_new(i).topic));
        if not v_first.exists(v_topic) then
            v_first(v_topic) := i;
            v_lists(i) := internal_topic_patterns(p_new(i).topic);
        end if;
        v_patterns := v_lists(v_first(v_topic));
        for n in 1 .. v_patterns.count loop
            v_keys.extend;
            v_keys(v_keys.last) := rowq_topic_key(i, v_patterns(n));
        end loop;
    end loop;

    select /*+ leading(k b q) use_nl(b) use_nl(q) cardinality(k 10)
               index(b rowq_topic_binding_key_ix) index(q rowq_queue_pk) */
           distinct k.place, q.part_id, q.queue_name, q.queue_key, q.max_body_length,
           q.listened_until
    bulk collect into v_found
    from table(v_keys) k
    join rowq_topic_binding b on b.pattern_key = k.pattern_key
    join rowq_queue q on q.part_id = b.part_id
    order by q.queue_key, k.place;
    return v_found;
end internal_bound_queues;

function internal_can_send(
    p_part_id  in number,
    p_schedule in t_schedule,
    p_owner_id out number
)
return boolean
is
-- routine   internal_can_send
-- purpose   Return whether a tick can be run without a wait for the end of another transaction. p_owner_id is the message of an earlier tick that must end first, or null.
-- promise   P30
-- locks     the doors of the group and of the dedup key, passed over when locked; a dedup row,
--           likewise, and given back
-- differs   this engine's own: elsewhere the wait of an insert has a limit
    v_group_key constant raw(800) := utl_raw.cast_to_raw(p_schedule.group_key);
    v_dedup_key constant raw(800) := utl_raw.cast_to_raw(internal_tick_key(p_schedule));
    v_is_free   boolean := true;
    v_held_id   rowq_dedup.message_id%type;
    cursor owner_row is
        select d.message_id
        from rowq_dedup d
        where d.part_id = p_part_id
          and d.dedup_key = v_dedup_key
        for update skip locked;
begin
    if v_group_key is not null then
        v_is_free := internal_lock_door(p_part_id, v_group_key);
    end if;
    if v_dedup_key is not null and v_is_free then
        v_is_free := internal_lock_door(p_part_id, v_dedup_key);
    end if;
    if v_dedup_key is null or not v_is_free then
        return v_is_free;
    end if;
    select max(d.message_id) into p_owner_id
    from rowq_dedup d
    where d.part_id = p_part_id
      and d.dedup_key = v_dedup_key;
    if p_owner_id is null then
        return true;
    end if;

    -- A row that is locked is deleted by a transaction that is ending its message, and an insert
    -- would wait for that. Do not keep the lock, so that no worker waits for this transaction.
    savepoint rowq_owner_part;
    open owner_row;
    fetch owner_row into v_held_id;
    close owner_row;
    rollback to savepoint rowq_owner_part;
    return v_held_id is not null;
end internal_can_send;

procedure internal_check_batch_size(p_batch_size in number)
is
-- routine   internal_check_batch_size
-- purpose   Refuse a housekeeping batch_size outside 1 to 10000.
-- promise   P15
-- errors    RQ711
begin
    internal_check_whole('batch_size', p_batch_size, 1, 10000, p_is_required => true);
end internal_check_batch_size;

procedure internal_check_claim(p_claim_id in number)
is
-- routine   internal_check_claim
-- purpose   Refuse a claim_id that is missing.
-- promise   P15
-- errors    RQ711
-- differs   no such helper elsewhere: part of the routines
begin
    if p_claim_id is null then
        internal_refuse('claim_id is missing');
    end if;
end internal_check_claim;

procedure internal_check_header_name(p_name in varchar2)
is
-- routine   internal_check_header_name
-- purpose   Refuse a bad name of a header to look for; null passes.
-- promise   P15
-- errors    RQ711
-- differs   no such helper elsewhere: part of cancel_many
    v_code    pls_integer;
    v_is_good boolean := true;
begin
    -- The code of a character of four bytes may be greater than any integer of PL/SQL.
    if length(p_name) > 200 or lengthb(p_name) <> length(p_name) then
        v_is_good := false;
    else
        -- Compare the codes of characters, because regular expressions follow the session's
        -- NLS_SORT.
        for i in 1 .. coalesce(length(p_name), 0) loop
            v_code := ascii(substr(p_name, i, 1));
            v_is_good := v_is_good
                and v_code between 32 and 126
                and v_code not in (ascii('"'), ascii('\'))
                and (i > 1 or v_code <> ascii('-'));
        end loop;
    end if;
    if not v_is_good then
        internal_refuse(
            'header_name must have 1 to 200 printable ASCII characters, no ", \ or leading -'
        );
    end if;
end internal_check_header_name;

procedure internal_check_name(p_name in varchar2, p_value in varchar2)
is
-- routine   internal_check_name
-- purpose   Refuse a bad name of a queue or a schedule; p_name is that of the parameter.
-- promise   P15
-- errors    RQ711
begin
    if p_value is null or length(p_value) > 100 or regexp_like(p_value, '[[:cntrl:]]') then
        internal_refuse(p_name || ' must be 1 to 100 characters, none of them control');
    end if;
end internal_check_name;

procedure internal_check_range(
    p_name  in varchar2,
    p_value in number,
    p_low   in number,
    p_high  in number
)
is
-- routine   internal_check_range
-- purpose   Refuse a number outside its range; null passes.
-- promise   P15
-- errors    RQ711
begin
    if p_value not between p_low and p_high then
        internal_refuse(
            p_name || ' must be between ' || internal_number_text(p_low) || ' and '
            || internal_number_text(p_high) || ', got ' || internal_number_text(p_value)
        );
    end if;
end internal_check_range;

procedure internal_check_schedule(p_schedule in t_schedule, p_queue in t_queue)
is
-- routine   internal_check_schedule
-- purpose   Refuse a schedule with a bad name, time or message, or without a tick to come.
-- promise   P15
-- errors    RQ711
    c_first constant timestamp(6) := timestamp '2000-01-01 00:00:00';
    c_last  constant timestamp(6) := timestamp '2100-01-01 00:00:00';
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_fault varchar2(32767);
    v_cuts  t_numbers;
begin
    internal_check_name('schedule_name', p_schedule.schedule_name);
    v_fault := case
        when p_schedule.cron is null and p_schedule.interval_seconds is null
             or p_schedule.cron is not null and p_schedule.interval_seconds is not null
            then 'a schedule has either cron or interval_seconds'
        -- Compare bytes, because texts are compared as the session's NLS_COMP and NLS_SORT say.
        when p_schedule.missed is null
             or utl_raw.cast_to_raw(p_schedule.missed) not in (
                 utl_raw.cast_to_raw('skip'), utl_raw.cast_to_raw('once'),
                 utl_raw.cast_to_raw('all')
             )
            then 'missed must be skip, once or all, got '
                || coalesce(substr(p_schedule.missed, 1, 100), 'null')
        when p_schedule.overlap not in (0, 1)
            then 'overlap must be 0 or 1'
        when p_schedule.is_paused not in (0, 1)
            then 'is_paused must be 0 or 1'
        when p_schedule.starts_at not between c_first and c_last
             or p_schedule.ends_at not between c_first and c_last
            then 'starts_at and ends_at must be moments between the years 2000 and 2100'
    end;
    if v_fault is null then
        internal_json_fault(
            'headers', p_schedule.headers, 'object', 20, 65536, v_cuts, v_fault
        );
    end if;
    if v_fault is null then
        v_fault := coalesce(
            internal_message_fault(
                p_schedule.body, p_schedule.body_binary, p_schedule.message_type,
                internal_tick_headers(p_schedule, v_now), p_schedule.priority, null, null, null,
                p_schedule.max_attempts, p_schedule.group_key, null, null
            ),
            internal_body_fault(
                p_schedule.body, p_schedule.body_binary, p_queue.max_body_length
            )
        );
    end if;
    if v_fault is not null then
        internal_refuse(v_fault);
    end if;
    internal_check_range('interval_seconds', p_schedule.interval_seconds, 1, 315360000);
    internal_check_time_zone(p_schedule.time_zone);
    if internal_next_tick(p_schedule, v_now) is null then
        internal_refuse('the schedule has no tick within ten years or before ends_at');
    end if;
end internal_check_schedule;

procedure internal_check_settings(
    p_queue_name           in varchar2,
    p_lease_seconds        in number,
    p_max_attempts         in number,
    p_backoff_base_seconds in number,
    p_backoff_factor       in number,
    p_backoff_cap_seconds  in number,
    p_backoff_jitter       in number,
    p_archive_days         in number,
    p_max_body_length      in number,
    p_group_limit          in number,
    p_group_after_dead     in varchar2,
    p_group_pause_seconds  in number,
    p_max_leased           in number,
    p_rate_limit           in number,
    p_rate_seconds         in number,
    p_result_seconds       in number,
    p_history_days         in number
)
is
-- routine   internal_check_settings
-- purpose   Refuse a bad queue name or a setting out of range; null passes for settings.
-- promise   P15
-- errors    RQ711
begin
    internal_check_name('queue_name', p_queue_name);
    internal_check_whole('lease_seconds', p_lease_seconds, 1, 86400);
    internal_check_whole('max_attempts', p_max_attempts, 1, 10000);
    internal_check_range('backoff_base_seconds', p_backoff_base_seconds, 0, 86400);
    internal_check_range('backoff_factor', p_backoff_factor, 1, 10);
    internal_check_range('backoff_cap_seconds', p_backoff_cap_seconds, 0, 31536000);
    internal_check_range('backoff_jitter', p_backoff_jitter, 0, 1);
    internal_check_whole('archive_days', p_archive_days, 0, 36500);
    internal_check_whole('max_body_length', p_max_body_length, 1, 33554432);
    internal_check_whole('group_limit', p_group_limit, 1, 100);
    -- Compare bytes, because texts are compared as the session's NLS_COMP and NLS_SORT say.
    if utl_raw.cast_to_raw(p_group_after_dead) not in (
        utl_raw.cast_to_raw('continue'), utl_raw.cast_to_raw('hold')
    ) then
        internal_refuse(
            'group_after_dead must be continue or hold, got ' || substr(p_group_after_dead, 1, 100)
        );
    end if;
    internal_check_range('group_pause_seconds', p_group_pause_seconds, 0, 86400);
    internal_check_whole('max_leased', p_max_leased, 0, 100000);
    internal_check_whole('rate_limit', p_rate_limit, 0, 100000);
    internal_check_range('rate_seconds', p_rate_seconds, 0.1, 86400);
    internal_check_range('result_seconds', p_result_seconds, 0, 31536000);
    internal_check_whole('history_days', p_history_days, 0, 36500);
end internal_check_settings;

procedure internal_check_time_zone(p_time_zone in varchar2)
is
-- routine   internal_check_time_zone
-- purpose   Refuse a time zone that the server does not know by this name.
-- promise   P15
-- errors    RQ711
    v_local timestamp(6);
begin
    begin
        -- A name begins with a letter, which an offset does not, and has no blank, behind which
        -- stands an abbreviation, such as CEST.
        if length(p_time_zone) <= 64
           and ascii(lower(p_time_zone)) between ascii('a') and ascii('z')
           and instr(p_time_zone, chr(32)) = 0 then
            v_local := internal_local_of(sys_extract_utc(systimestamp), p_time_zone);
        end if;
    exception
        when others then
            -- ORA-01882 is the error for an unknown name. A strange one may raise another of its
            -- kind (ORA-018xx).
            if sqlcode not between -1899 and -1800 then
                raise;
            end if;
    end;
    if v_local is null then
        internal_refuse(
            'time_zone must be a name such as Europe/Berlin that the server knows, got '
            || coalesce(substr(p_time_zone, 1, 100), 'null')
        );
    end if;
end internal_check_time_zone;

procedure internal_check_whole(
    p_name        in varchar2,
    p_value       in number,
    p_low         in number,
    p_high        in number,
    p_is_required in boolean default false
)
is
-- routine   internal_check_whole
-- purpose   Refuse a number outside its range, or with a fraction, or missing where it is required.
-- promise   P15
-- errors    RQ711
-- differs   elsewhere the type of a parameter keeps fractions out
begin
    if p_value is null and p_is_required then
        internal_refuse(
            p_name || ' must be between ' || internal_number_text(p_low) || ' and '
            || internal_number_text(p_high) || ', got null'
        );
    end if;
    internal_check_range(p_name, p_value, p_low, p_high);
    if p_value <> trunc(p_value) then
        internal_refuse(
            p_name || ' must be a whole number, got ' || internal_number_text(p_value)
        );
    end if;
end internal_check_whole;

function internal_claimed_messages(p_part_id in number, p_claim_id in number)
return t_messages
is
-- routine   internal_claimed_messages
-- purpose   Return the messages that a claim holds, in the order in which they were given out.
-- promise   P08
-- differs   no such helper elsewhere: other engines read them from the claim
    v_held t_messages;
begin
    select l.message_id, l.lane, l.attempt, l.place, null as group_key, 0 as is_tokenless,
           l.is_cancelled
    bulk collect into v_held
    from rowq_leased l
    where l.part_id = p_part_id
      and l.claim_id = p_claim_id
    order by l.part_id, l.claim_id, l.place;
    return v_held;
end internal_claimed_messages;

function internal_clob_part(p_text in clob, p_place in number, p_length in number)
return varchar2
is
-- routine   internal_clob_part
-- purpose   Return up to p_length units of a text from a place on; null behind its end.
-- promise   P15 P20
-- differs   no such helper elsewhere: place and length are UTF-16 units, in which a CLOB counts
    e_split exception;
    pragma exception_init(e_split, -22831);
    e_never_stored exception;
    pragma exception_init(e_never_stored, -22275);
begin
    return dbms_lob.substr(p_text, p_length, p_place);
exception
    when e_split then
        -- The part would end inside an emoji, which is two units, so it ends one unit earlier. The
        -- caller goes on after length2 of the part.
        return dbms_lob.substr(p_text, p_length - 1, p_place);
    when e_never_stored then
        -- An empty_clob() of the caller's is a locator of no LOB: it has no text.
        return null;
end internal_clob_part;

function internal_count_messages(p_part_id in number, p_limit in number)
return rowq_count
is
-- routine   internal_count_messages
-- purpose   Count the messages of a queue by where they are, each up to p_limit.
-- promise   P13
-- differs   PostgreSQL counts in queue_stats itself
    v_count rowq_count := rowq_count(p_part_id, 0, 0, 0, 0, 0, null);
begin
    -- Count from the first row and not from the floor, so that messages that were committed late
    -- count too.
    select count(*) into v_count.ready_count
    from (
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.message_id
        from rowq_ready r
        where r.part_id = p_part_id
        fetch first p_limit rows only
    ) h;
    select count(*) into v_count.delayed_count
    from (
        select /*+ index_rs_asc(d rowq_delayed_pk) */ d.message_id
        from rowq_delayed d
        where d.part_id = p_part_id
        fetch first p_limit rows only
    ) h;
    select count(*) into v_count.leased_count
    from (
        select /*+ index_rs_asc(l rowq_leased_pk) */ l.place
        from rowq_leased l
        where l.part_id = p_part_id
        fetch first p_limit rows only
    ) h;
    select count(*) into v_count.dead_count
    from (
        select /*+ index_rs_asc(d rowq_dead_pk) */ d.message_id
        from rowq_dead d
        where d.part_id = p_part_id
        fetch first p_limit rows only
    ) h;
    select count(*) into v_count.blocked_count
    from (
        select /*+ index_rs_asc(g rowq_grouped_pk) */ g.message_id
        from rowq_grouped g
        where g.part_id = p_part_id
        union all
        select /*+ index_rs_asc(b rowq_blocked_pk) */ b.message_id
        from rowq_blocked b
        where b.part_id = p_part_id
        fetch first p_limit rows only
    ) h;
    v_count.oldest_seconds := internal_seconds_since(
        internal_oldest_ready(p_part_id), sys_extract_utc(systimestamp)
    );
    return v_count;
end internal_count_messages;

procedure internal_cut_headers(
    p_messages in clob,
    p_headers  out nocopy t_clobs,
    p_rest     out nocopy clob
)
is
-- routine   internal_cut_headers
-- purpose   Cut the headers out of a batch as text; {} takes their place in p_rest.
-- promise   P15 P20
-- differs   no such helper elsewhere: an object of JSON has values here, and rounds numbers
    c_quote  constant pls_integer := ascii('"');
    c_blanks constant varchar2(4 char) := chr(9) || chr(10) || chr(13) || chr(32);
    v_part      varchar2(32767);
    v_char      varchar2(4 char);
    v_code      pls_integer;
    v_place     pls_integer := 1;
    v_from      pls_integer;
    v_depth     pls_integer := 0;
    v_message   pls_integer := 1;
    v_word      varchar2(20 char);
    v_in_text   boolean := false;
    v_escaped   boolean := false;
    v_is_inside boolean := false;

    procedure put(p_text in varchar2)
    is
    begin
        if v_is_inside then
            p_headers(v_message) := p_headers(v_message) || p_text;
        elsif p_text is not null then
            dbms_lob.append(p_rest, p_text);
        end if;
    end put;
begin
    p_rest := ' ';
    -- Compare the codes of characters, because a session can have its own order (NLS_SORT).
    loop
        v_part := internal_clob_part(p_messages, v_place, 500);
        exit when v_part is null;
        v_place := v_place + length2(v_part);
        v_from := 1;
        for i in 1 .. length(v_part) loop
            v_char := substr(v_part, i, 1);
            v_code := case when lengthb(v_char) = 1 then ascii(v_char) else 128 end;
            if v_in_text then
                v_in_text := v_escaped or v_code <> c_quote;
                v_escaped := v_code = ascii('\') and not v_escaped;
                v_word := substr(v_word || v_char, 1, 20);
            elsif v_code = c_quote then
                v_in_text := true;
                v_word := null;
            else
                if v_is_inside and v_depth = 2 and v_code in (ascii(','), ascii('}')) then
                    put(substr(v_part, v_from, i - v_from));
                    v_from := i;
                    v_is_inside := false;
                    -- A value that begins with an n is null: the message has no headers.
                    if instr(ltrim(p_headers(v_message), c_blanks), 'n') = 1 then
                        p_headers.delete(v_message);
                        put('null');
                    else
                        put('{}');
                    end if;
                end if;
                v_depth := v_depth + case
                    when v_code in (ascii('{'), ascii('[')) then 1
                    when v_code in (ascii('}'), ascii(']')) then -1
                    else 0
                end;
                if v_depth = 1 and v_code = ascii(',') then
                    v_message := v_message + 1;
                elsif v_depth = 2 and v_code = ascii(':') and instr(v_word, 'headers"') = 1 then
                    put(substr(v_part, v_from, i - v_from + 1));
                    v_from := i + 1;
                    v_is_inside := true;
                    p_headers(v_message) := null;
                end if;
            end if;
        end loop;
        put(substr(v_part, v_from));
    end loop;
end internal_cut_headers;

procedure internal_cut_ties(
    p_part_id    in number,
    p_messages   in t_messages,
    p_ids        in t_numbers,
    p_dedup_keys in t_texts,
    p_group_keys in t_texts,
    p_awaited    in t_numbers
)
is
-- routine   internal_cut_ties
-- purpose   Free what messages had that have ended: their dedup keys, their tokens but for those that are tokenless, and what waits for those that p_awaited has as 1. Each place of the lists is one message; null where it has no such tie.
-- promise   P12 P22 P26
-- locks     dedup rows; as internal_leave_groups and internal_free_successors
    v_ids        t_numbers;
    v_keys       t_keys;
    v_tokenless  t_places;
    v_group_keys t_keys;
begin
    for i in 1 .. p_ids.count loop
        if p_dedup_keys(i) is not null then
            v_ids(v_ids.count + 1) := p_ids(i);
            v_keys(v_keys.count + 1) := utl_raw.cast_to_raw(p_dedup_keys(i));
        end if;
    end loop;
    -- Compare message_id too, because another message may have the key by now: a dead message gives
    -- its key up.
    forall i in 1 .. v_keys.count
        delete from rowq_dedup d
        where d.part_id = p_part_id
          and d.dedup_key = v_keys(i)
          and d.message_id = v_ids(i);

    for i in 1 .. p_messages.count loop
        if p_messages(i).is_tokenless = 1 then
            v_tokenless(internal_number_text(p_messages(i).message_id)) := i;
        end if;
    end loop;
    for i in 1 .. p_ids.count loop
        if p_group_keys(i) is not null
           and not v_tokenless.exists(internal_number_text(p_ids(i))) then
            v_group_keys(v_group_keys.count + 1) := utl_raw.cast_to_raw(p_group_keys(i));
        end if;
    end loop;
    internal_leave_groups(p_part_id, v_group_keys);
    for i in 1 .. p_ids.count loop
        if p_awaited(i) = 1 then
            internal_free_successors(p_part_id, p_ids(i));
        end if;
    end loop;
end internal_cut_ties;

function internal_dedup_order(p_dedup_key in varchar2, p_number in number)
return varchar2
is
-- routine   internal_dedup_order
-- purpose   Return the place of a dedup key among others, as an index of t_places; p_number tells equal keys apart.
-- promise   P12
-- differs   no such helper elsewhere: there no session chooses the order of texts
    v_hex varchar2(1600 char);
begin
    -- Use digits only: two sessions that reserve the same keys must do so in the same order, and
    -- each session's NLS_SORT decides where letters stand.
    v_hex := rawtohex(utl_raw.cast_to_raw(p_dedup_key));
    return translate(v_hex, 'ABCDEF', '999999')
        || translate(v_hex, '0123456789ABCDEF', '0000000000123456')
        || to_char(p_number, 'fm0000000000000000000');
end internal_dedup_order;

procedure internal_delete_dead(p_locked in t_locked_rows, p_messages in out nocopy t_messages)
is
-- routine   internal_delete_dead
-- purpose   Delete dead rows that are locked, and append their messages.
-- promise   P03
-- locks     dead rows, which the caller holds already
-- differs   no such helper elsewhere: part of reset and pop_waiting
    v_next  pls_integer := p_messages.count;
    v_hit   pls_integer := 0;
    v_holds t_numbers;
begin
    forall i in 1 .. p_locked.count
        delete from rowq_dead d
        where d.rowid = p_locked(i).row_id
          and d.message_id = p_locked(i).message_id
        returning d.holds_group bulk collect into v_holds;
    -- Take a message only if this statement has deleted its row, so that no other session has the
    -- message too.
    for i in 1 .. p_locked.count loop
        if sql%bulk_rowcount(i) = 1 then
            v_next := v_next + 1;
            v_hit := v_hit + 1;
            p_messages(v_next).message_id := p_locked(i).message_id;
            p_messages(v_next).lane := p_locked(i).lane;
            p_messages(v_next).attempt := p_locked(i).attempt;
            p_messages(v_next).seq := p_locked(i).seq;
            p_messages(v_next).is_tokenless := case when v_holds(v_hit) = 1 then 0 else 1 end;
        end if;
    end loop;
end internal_delete_dead;

procedure internal_delete_delayed(p_locked in t_locked_rows, p_messages in out nocopy t_messages)
is
-- routine   internal_delete_delayed
-- purpose   Delete delayed rows that are locked, and append their messages.
-- promise   P03
-- locks     delayed rows, which the caller holds already
-- differs   no such helper elsewhere: part of promote and pop_waiting
    v_next   pls_integer := p_messages.count;
    v_hit    pls_integer := 0;
    v_groups t_texts;
begin
    forall i in 1 .. p_locked.count
        delete from rowq_delayed d
        where d.rowid = p_locked(i).row_id
          and d.message_id = p_locked(i).message_id
        returning d.group_key bulk collect into v_groups;
    -- Take a message only if this statement has deleted its row, so that no other session has the
    -- message too.
    for i in 1 .. p_locked.count loop
        if sql%bulk_rowcount(i) = 1 then
            v_next := v_next + 1;
            v_hit := v_hit + 1;
            p_messages(v_next).message_id := p_locked(i).message_id;
            p_messages(v_next).lane := p_locked(i).lane;
            p_messages(v_next).attempt := p_locked(i).attempt;
            p_messages(v_next).seq := p_locked(i).seq;
            p_messages(v_next).group_key := v_groups(v_hit);
            p_messages(v_next).is_tokenless := case
                when v_groups(v_hit) is null then 0
                else 1
            end;
        end if;
    end loop;
end internal_delete_delayed;

procedure internal_delete_messages(p_part_id in number, p_messages in t_messages)
is
-- routine   internal_delete_messages
-- purpose   Delete messages for good, with their ties.
-- promise   P04 P12 P22 P26
-- locks     message rows, waiting for who has just named one as a predecessor; as internal_cut_ties
    v_ids        t_numbers;
    v_dedup_keys t_texts;
    v_group_keys t_texts;
    v_awaited    t_numbers;
begin
    forall i in 1 .. p_messages.count
        delete from rowq_message m
        where m.part_id = p_part_id
          and m.message_id = p_messages(i).message_id
        returning m.message_id, m.dedup_key, m.group_key, m.has_successors
        bulk collect into v_ids, v_dedup_keys, v_group_keys, v_awaited;
    internal_cut_ties(p_part_id, p_messages, v_ids, v_dedup_keys, v_group_keys, v_awaited);
end internal_delete_messages;

procedure internal_delete_queue(p_part_id in number)
is
-- routine   internal_delete_queue
-- purpose   Delete everything that belongs to a queue, and the queue.
-- promise   P15
-- locks     all rows of the queue
-- differs   no such helper elsewhere: part of drop_queue
begin
    delete from rowq_schedule s where s.part_id = p_part_id;
    delete from rowq_topic_binding b where b.part_id = p_part_id;
    delete from rowq_ready r where r.part_id = p_part_id;
    delete from rowq_delayed d where d.part_id = p_part_id;
    delete from rowq_leased l where l.part_id = p_part_id;
    delete from rowq_claim c where c.part_id = p_part_id;
    delete from rowq_dead d where d.part_id = p_part_id;
    delete from rowq_dedup d where d.part_id = p_part_id;
    delete from rowq_blocked b where b.part_id = p_part_id;
    delete from rowq_successor s where s.part_id = p_part_id;
    delete from rowq_grouped g where g.part_id = p_part_id;
    delete from rowq_message_group t where t.part_id = p_part_id;
    delete from rowq_recheck r where r.part_id = p_part_id;
    delete from rowq_expiry e where e.part_id = p_part_id;
    delete from rowq_result r where r.part_id = p_part_id;
    delete from rowq_history h where h.part_id = p_part_id;
    delete from rowq_finished f where f.part_id = p_part_id;
    delete from rowq_message m where m.part_id = p_part_id;
    delete from rowq_archive a where a.part_id = p_part_id;
    delete from rowq_started s where s.part_id = p_part_id;
    delete from rowq_gate g where g.part_id = p_part_id;
    delete from rowq_door d where d.part_id = p_part_id;
    delete from rowq_lane l where l.part_id = p_part_id;
    delete from rowq_queue q where q.part_id = p_part_id;
end internal_delete_queue;

procedure internal_delete_ready(p_locked in t_locked_rows, p_messages in out nocopy t_messages)
is
-- routine   internal_delete_ready
-- purpose   Delete ready rows that are locked, and append their messages.
-- promise   P03
-- locks     ready rows, which the caller holds already
    v_next pls_integer := p_messages.count;
begin
    forall i in 1 .. p_locked.count
        delete from rowq_ready r
        where r.rowid = p_locked(i).row_id
          and r.message_id = p_locked(i).message_id;
    -- Take a message only if this statement has deleted its row, so that no other session has the
    -- message too.
    for i in 1 .. p_locked.count loop
        if sql%bulk_rowcount(i) = 1 then
            v_next := v_next + 1;
            p_messages(v_next).message_id := p_locked(i).message_id;
            p_messages(v_next).lane := p_locked(i).lane;
            p_messages(v_next).attempt := p_locked(i).attempt;
            p_messages(v_next).seq := p_locked(i).seq;
        end if;
    end loop;
end internal_delete_ready;

procedure internal_dequeue(
    p_queue_name    in varchar2,
    p_batch_size    in number,
    p_worker_name   in varchar2,
    p_lease_seconds in number,
    p_part_id       out number,
    p_claim_id      out number,
    p_lease_until   out timestamp
)
is
-- routine   internal_dequeue
-- purpose   Lease up to p_batch_size ready messages to one new claim; a null claim when there is none.
-- promise   P02 P03 P05 P06 P07 P13 P18 P28 P29
-- locks     ready rows, passing over locked ones; the new claim row; of a limited queue the gate
-- errors    RQ701 RQ711 RQ713
-- differs   two routines share it; an empty look takes no lock and begins no transaction
    v_queue       t_queue;
    v_lanes       t_lanes;
    v_has_recheck boolean;
    v_messages    t_messages;
    v_found       pls_integer;
    v_batch_size  number := p_batch_size;
    v_is_limited  boolean;
    v_now         timestamp(6);
begin
    p_claim_id := null;
    p_lease_until := null;
    internal_check_whole('batch_size', p_batch_size, 1, 1000, p_is_required => true);
    internal_check_whole('lease_seconds', p_lease_seconds, 1, 86400);
    if length(p_worker_name) > 200 then
        internal_refuse('worker_name is longer than 200 characters');
    end if;
    internal_require_lanes(p_queue_name, v_queue, v_lanes, v_has_recheck);
    p_part_id := v_queue.part_id;

    if v_queue.paused_at is not null then
        return;
    end if;
    v_is_limited := v_queue.max_leased + v_queue.rate_limit > 0;
    if v_is_limited then
        v_batch_size := internal_admit(v_queue.part_id, p_batch_size);
        if v_batch_size = 0 then
            return;
        end if;
    end if;

    internal_pop_ready(v_queue.part_id, v_lanes, v_batch_size, v_messages);
    -- Nothing is ready, so promote what is due by now: it need not wait for the next maintain, nor
    -- need what was left to be looked at again.
    if v_messages.count = 0 then
        v_found := internal_promote(v_queue.part_id, v_batch_size);
        if v_found = 0 and v_has_recheck then
            v_found := internal_recheck(v_queue.part_id, 10);
        end if;
        if v_found > 0 then
            v_lanes := internal_open_lanes_of(v_queue.part_id);
            internal_pop_ready(v_queue.part_id, v_lanes, v_batch_size, v_messages);
        end if;
    end if;
    if v_messages.count = 0 then
        return;
    end if;

    v_now := sys_extract_utc(systimestamp);
    p_lease_until := v_now
        + numtodsinterval(coalesce(p_lease_seconds, v_queue.lease_seconds), 'second');
    insert into rowq_claim (part_id, claim_id, leased_at, lease_until, worker_name)
    values (v_queue.part_id, rowq_claim_seq.nextval, v_now, p_lease_until, p_worker_name)
    returning claim_id into p_claim_id;
    forall i in 1 .. v_messages.count
        insert into rowq_leased (part_id, claim_id, place, message_id, lane, attempt)
        values (
            v_queue.part_id, p_claim_id, v_messages(i).seq, v_messages(i).message_id,
            v_messages(i).lane, v_messages(i).attempt
        );
    if v_is_limited then
        internal_note_start(v_queue.part_id, p_claim_id, v_now, v_messages.count);
    end if;
end internal_dequeue;

function internal_drop_days
return number
is
-- routine   internal_drop_days
-- purpose   Drop partitions of the archive that are too old for every queue; returns how many.
-- promise   P19
-- locks     the archive's partition, tried
-- commits   a transaction of its own, as DDL commits; never the caller's
-- differs   PostgreSQL drops them in the transaction of the caller
    pragma autonomous_transaction;
    -- Another session, or the caller's own open transaction, uses the partition: it is dropped
    -- another time.
    e_busy exception;
    e_deadlock exception;
    pragma exception_init(e_busy, -54);
    pragma exception_init(e_deadlock, -60);
    v_keep_from timestamp(6);
    v_bound     varchar2(4000 char);
    v_ends_at   timestamp(6);
    v_dropped   pls_integer := 0;
begin
    select cast(trunc(sys_extract_utc(systimestamp), 'dd') as timestamp)
           - numtodsinterval(max(q.archive_days), 'day')
    into v_keep_from
    from rowq_queue q;

    for each_day in (
        select p.partition_name, p.high_value
        from user_tab_partitions p
        where p.table_name = 'ROWQ_ARCHIVE'
          and p.interval = 'YES'
        order by p.partition_position
    ) loop
        -- high_value is a LONG, such as TIMESTAMP' 2026-11-22 00:00:00'.
        v_bound := each_day.high_value;
        v_ends_at := to_timestamp(
            regexp_substr(v_bound, '[0-9]{4}-[0-9]{2}-[0-9]{2}'), 'yyyy-mm-dd',
            'nls_calendar=gregorian'
        );
        exit when v_ends_at > v_keep_from or v_keep_from is null;
        begin
            execute immediate 'alter table rowq_archive drop partition '
                || dbms_assert.enquote_name(each_day.partition_name) || ' update indexes';
            v_dropped := v_dropped + 1;
        exception
            when e_busy or e_deadlock then
                exit;
        end;
    end loop;
    commit;
    return v_dropped;
end internal_drop_days;

function internal_enter_group(
    p_part_id   in number,
    p_group_key in raw,
    p_may_wait  in boolean
)
return boolean
is
-- routine   internal_enter_group
-- purpose   Take a token of a group: true with one, false where the message has to wait behind others, null where it must not wait and another session may be opening the group.
-- promise   P21 P22 P24
-- locks     the group's door and its message_group rows, passing over locked ones; a new
--           message_group row, which waits for who opens the group; a new recheck row
-- differs   no row can be locked shared here: who can lock no token leaves a hint for maintain
    -- The tries are limited for a serializable transaction, which never sees the token that it
    -- collides with.
    c_most_tries constant pls_integer := 3;
    v_now      constant timestamp(6) := sys_extract_utc(systimestamp);
    v_group    t_group;
    v_locked   t_numbers;
    v_has_door boolean;
    v_is_taken boolean;
begin
    for turn in 1 .. c_most_tries loop
        internal_read_group(p_part_id, p_group_key, v_group);
        if v_group.tokens.count >= v_group.group_limit then
            v_locked := internal_lock_tokens(p_part_id, p_group_key);
            if v_locked.count > 0 then
                -- Nobody gives back a token that is locked to the end of this transaction, so who
                -- ends its message sees this one, or leaves the token to maintain.
                forall i in 1 .. v_locked.count
                    update rowq_message_group t
                    set t.joined_at = v_now
                    where t.part_id = p_part_id
                      and t.group_key = p_group_key
                      and t.token_no = v_locked(i);
                return false;
            end if;
            exit;
        end if;

        -- A message that waits although there is room comes before this one, and has a hint: it
        -- will have its turn. With a limit above 1 their order is not kept.
        exit when v_group.first_id is not null and v_group.group_limit = 1;
        v_has_door := internal_lock_door(p_part_id, p_group_key);
        if not (v_has_door or p_may_wait) then
            return null;
        end if;
        v_is_taken := internal_add_token(p_part_id, p_group_key, v_group);
        if v_is_taken then
            return true;
        end if;
    end loop;

    -- This transaction holds no token, so the last one may be given back by a session that has not
    -- seen the message. Let maintain look whether it waits behind nobody.
    internal_push_recheck(p_part_id, p_group_key, 0, 1);
    return false;
end internal_enter_group;

function internal_expire(p_queue in t_queue, p_limit in number)
return number
is
-- routine   internal_expire
-- purpose   Withdraw messages whose time has come, until p_limit is passed; return how many there were.
-- promise   P13 P36
-- locks     expiry rows; as internal_pop_expired; then as complete
-- differs   under each isolation level: a statement shows one moment, and a row whose message is in
--           no place at that moment is of no use from then on, however old it is
    c_steps     constant pls_integer := 10;
    c_long_walk constant number := 20000;
    v_started constant timestamp(6) := sys_extract_utc(systimestamp);
    v_now   timestamp(6) := v_started;
    v_since timestamp(6) := internal_from_microseconds(internal_read_floor(p_queue.part_id, -6));
    v_due      t_expiring_list;
    v_messages t_messages;
    v_ended    t_places;
    v_gone     t_expiring_list;
    v_kept     t_expiring_list;
    v_took     number;
    v_seen     pls_integer := 0;
    v_expired  pls_integer := 0;
    -- One statement looks for the message in all places, so that none is missed on its way from one
    -- to another.
    cursor due_rows is
        select /*+ leading(e m) use_nl(m) index_rs_asc(e rowq_expiry_pk) index(m rowq_message_pk) */
               e.expires_at, e.expiry_id, e.message_id, e.lane, e.seq, m.due_at, m.group_key,
               case
                   when m.message_id is null then null
                   when exists (
                       select /*+ no_unnest index(r rowq_ready_pk) */ null
                       from rowq_ready r
                       where r.part_id = e.part_id
                         and r.lane = e.lane
                         and r.seq = e.seq
                         and r.message_id = e.message_id
                   ) then 'ready'
                   when exists (
                       select /*+ no_unnest index(d rowq_delayed_pk) */ null
                       from rowq_delayed d
                       where d.part_id = m.part_id
                         and d.due_at = m.due_at
                         and d.message_id = m.message_id
                   ) then 'delayed'
                   when exists (
                       select /*+ no_unnest index(b rowq_blocked_pk) */ null
                       from rowq_blocked b
                       where b.part_id = e.part_id
                         and b.message_id = e.message_id
                   ) then 'blocked'
                   when exists (
                       select /*+ no_unnest index(g rowq_grouped_pk) */ null
                       from rowq_grouped g
                       where g.part_id = m.part_id
                         and g.group_key = hextoraw(rawtohex(m.group_key))
                         and g.message_id = m.message_id
                   ) then 'grouped'
               end as place
        from rowq_expiry e
        left join rowq_message m
          on m.part_id = e.part_id
         and m.message_id = e.message_id
        where e.part_id = p_queue.part_id
          and e.expires_at >= v_since
          and e.expires_at <= v_now
        order by e.part_id, e.expires_at, e.expiry_id;
begin
    open due_rows;
    while v_seen < c_steps * p_limit and v_expired < p_limit loop
        fetch due_rows bulk collect into v_due limit p_limit;
        exit when v_due.count = 0;
        v_seen := v_seen + v_due.count;
        internal_pop_expired(p_queue.part_id, v_due, v_messages);
        internal_finish(p_queue, v_messages, 'expired');
        v_expired := v_expired + v_messages.count;

        -- A message that is in no place has ended, is dead, or is held by a claim, and who gives it
        -- back adds a row. One that another session holds now is looked for again.
        v_ended.delete;
        v_gone.delete;
        for i in 1 .. v_messages.count loop
            v_ended(internal_number_text(v_messages(i).message_id)) := i;
        end loop;
        for i in 1 .. v_due.count loop
            if v_due(i).place is null
               or v_ended.exists(internal_number_text(v_due(i).message_id)) then
                v_gone(v_gone.count + 1) := v_due(i);
            else
                v_kept(v_kept.count + 1) := v_due(i);
            end if;
        end loop;
        forall i in 1 .. v_gone.count
            delete from rowq_expiry e
            where e.part_id = p_queue.part_id
              and e.expires_at = v_gone(i).expires_at
              and e.expiry_id = v_gone(i).expiry_id;
        -- Look anew, because what the end of a message has let go on has a row of a later moment.
        if v_messages.count > 0 and v_due.count = p_limit then
            close due_rows;
            v_since := v_due(v_due.count).expires_at;
            v_now := sys_extract_utc(systimestamp);
            open due_rows;
        end if;
    end loop;
    close due_rows;

    -- Put what is kept behind the others that are due, once it could stand in front of them: else a
    -- session that is idle in its transaction must not make every look write.
    v_took := internal_microseconds(sys_extract_utc(systimestamp))
        - internal_microseconds(v_started);
    if v_seen >= c_steps * p_limit or v_took > c_long_walk then
        forall i in 1 .. v_kept.count
            update rowq_expiry e
            set e.expires_at = v_now
            where e.part_id = p_queue.part_id
              and e.expires_at = v_kept(i).expires_at
              and e.expiry_id = v_kept(i).expiry_id;
    end if;
    return v_expired;
end internal_expire;

procedure internal_fail_with(
    p_part_id        in number,
    p_message_id     in number,
    p_lane           in number,
    p_predecessor_id in number
)
is
-- routine   internal_fail_with
-- purpose   Keep a message as dead whose predecessor is dead; free its dedup key. It has made no attempt, and has no token of a group.
-- promise   P12 P27 P32
-- locks     a new dead row; the message row, which the caller holds already; a dedup row; a result
--           row
-- differs   no such helper elsewhere: part of internal_block and internal_follow_deaths
    v_error     constant varchar2(100 char) :=
        'predecessor ' || internal_number_text(p_predecessor_id) || ' is dead';
    v_dedup_key rowq_message.dedup_key%type;
    v_key       raw(800);
    v_seconds   rowq_queue.result_seconds%type;
    v_failed    t_messages;
    v_results   t_clobs;
begin
    insert into rowq_dead (part_id, message_id, lane, attempt, died_at)
    values (p_part_id, p_message_id, p_lane, 0, sys_extract_utc(systimestamp));
    update rowq_message m
    set m.last_error = v_error
    where m.part_id = p_part_id
      and m.message_id = p_message_id
    returning m.dedup_key into v_dedup_key;
    if v_dedup_key is not null then
        v_key := utl_raw.cast_to_raw(v_dedup_key);
        delete from rowq_dedup d
        where d.part_id = p_part_id
          and d.dedup_key = v_key
          and d.message_id = p_message_id;
    end if;

    select max(q.result_seconds) into v_seconds
    from rowq_queue q
    where q.part_id = p_part_id;
    if v_seconds > 0 then
        v_failed(1).message_id := p_message_id;
        internal_push_result(p_part_id, v_failed, 'dead', v_error, v_results);
    end if;
end internal_fail_with;

procedure internal_finish(
    p_queue    in t_queue,
    p_messages in t_messages,
    p_state    in varchar2
)
is
-- routine   internal_finish
-- purpose   Remove finished messages, or note them for the archive; keep how they have ended where their queue wants that.
-- promise   P04 P12 P22 P26 P32
-- locks     message rows; new finished rows; as internal_cut_ties; result rows
    v_now        constant timestamp(6) := sys_extract_utc(systimestamp);
    v_finish_id  rowq_finished.finish_id%type;
    v_ids        t_numbers;
    v_dedup_keys t_texts;
    v_group_keys t_texts;
    v_awaited    t_numbers;
    v_results    t_clobs;
begin
    if p_messages.count = 0 then
        return;
    end if;
    if p_queue.archive_days = 0 then
        internal_delete_messages(p_queue.part_id, p_messages);
    else
        v_finish_id := rowq_claim_seq.nextval;
        forall i in 1 .. p_messages.count
            insert into rowq_finished (
                part_id, finish_id, message_id, lane, attempt, state, finished_at
            )
            values (
                p_queue.part_id, v_finish_id, p_messages(i).message_id, p_messages(i).lane,
                p_messages(i).attempt, p_state, v_now
            );
        -- What waits for one of them and is not committed yet is left to internal_archive.
        internal_read_ties(
            p_queue.part_id, p_messages, v_ids, v_dedup_keys, v_group_keys, v_awaited
        );
        internal_cut_ties(
            p_queue.part_id, p_messages, v_ids, v_dedup_keys, v_group_keys, v_awaited
        );
    end if;
    if p_queue.result_seconds > 0 and p_state <> 'completed' then
        internal_push_result(p_queue.part_id, p_messages, p_state, null, v_results);
    end if;
end internal_finish;

function internal_first_key(p_part_id in number, p_lane in number, p_from in number)
return number
is
-- routine   internal_first_key
-- purpose   Return the first live key of a lane from p_from on; null where there is none.
-- promise   P13 P14
    v_since  constant timestamp(6) :=
        internal_from_microseconds(
            case when p_lane in (-2, -4, -5, -6, -7, -8) then p_from else 0 end
        );
    v_first  number;
    v_moment timestamp(6);
    -- Each cursor is ordered and fetched once, so the walk ends at the first row.
    cursor claims is
        select /*+ index_rs_asc(c rowq_claim_pk) */ c.claim_id
        from rowq_claim c
        where c.part_id = p_part_id
          and c.claim_id >= p_from
        order by c.part_id, c.claim_id;
    cursor delayed_rows is
        select /*+ index_rs_asc(d rowq_delayed_pk) */ d.due_at
        from rowq_delayed d
        where d.part_id = p_part_id
          and d.due_at >= v_since
        order by d.part_id, d.due_at, d.message_id;
    cursor finished_rows is
        select /*+ index_rs_asc(f rowq_finished_pk) */ f.finish_id
        from rowq_finished f
        where f.part_id = p_part_id
          and f.finish_id >= p_from
        order by f.part_id, f.finish_id, f.message_id;
    cursor recheck_rows is
        select /*+ index_rs_asc(r rowq_recheck_pk) */ r.due_at
        from rowq_recheck r
        where r.part_id = p_part_id
          and r.due_at >= v_since
        order by r.part_id, r.due_at, r.recheck_id;
    cursor started_rows is
        select /*+ index_rs_asc(s rowq_started_pk) */ s.started_at
        from rowq_started s
        where s.part_id = p_part_id
          and s.started_at >= v_since
        order by s.part_id, s.started_at, s.claim_id;
    cursor expiry_rows is
        select /*+ index_rs_asc(e rowq_expiry_pk) */ e.expires_at
        from rowq_expiry e
        where e.part_id = p_part_id
          and e.expires_at >= v_since
        order by e.part_id, e.expires_at, e.expiry_id;
    cursor result_rows is
        select /*+ index_rs_asc(r rowq_result_finished_ix) */ r.finished_at
        from rowq_result r
        where r.part_id = p_part_id
          and r.finished_at >= v_since
        order by r.part_id, r.finished_at;
    cursor history_rows is
        select /*+ index_rs_asc(h rowq_history_pk) */ h.ended_at
        from rowq_history h
        where h.part_id = p_part_id
          and h.ended_at >= v_since
        order by h.part_id, h.ended_at, h.message_id, h.claim_id;
    cursor ready_rows is
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.seq
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane = p_lane
          and r.seq >= p_from
        order by r.part_id, r.lane, r.seq, r.message_id;
begin
    case p_lane
        when -1 then
            open claims;
            fetch claims into v_first;
            close claims;
        when -2 then
            open delayed_rows;
            fetch delayed_rows into v_moment;
            close delayed_rows;
            v_first := internal_microseconds(v_moment);
        when -3 then
            open finished_rows;
            fetch finished_rows into v_first;
            close finished_rows;
        when -4 then
            open recheck_rows;
            fetch recheck_rows into v_moment;
            close recheck_rows;
            v_first := internal_microseconds(v_moment);
        when -5 then
            open started_rows;
            fetch started_rows into v_moment;
            close started_rows;
            v_first := internal_microseconds(v_moment);
        when -6 then
            open expiry_rows;
            fetch expiry_rows into v_moment;
            close expiry_rows;
            v_first := internal_microseconds(v_moment);
        when -7 then
            open result_rows;
            fetch result_rows into v_moment;
            close result_rows;
            v_first := internal_microseconds(v_moment);
        when -8 then
            open history_rows;
            fetch history_rows into v_moment;
            close history_rows;
            v_first := internal_microseconds(v_moment);
        else
            open ready_rows;
            fetch ready_rows into v_first;
            close ready_rows;
    end case;
    return v_first;
end internal_first_key;

procedure internal_first_lane(
    p_part_id in number,
    p_from    in number,
    p_to      in number,
    p_lane    out number,
    p_seq     out number
)
is
-- routine   internal_first_lane
-- purpose   Find the first lane from p_from to p_to that has messages, and its first place; p_to + 1 where none has.
-- promise   P13 P14
-- differs   this engine's own: one look in place of one for each empty lane
    cursor ready_rows is
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.lane, r.seq
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane between p_from and p_to
        order by r.part_id, r.lane, r.seq, r.message_id;
begin
    p_lane := p_to + 1;
    p_seq := null;
    open ready_rows;
    fetch ready_rows into p_lane, p_seq;
    close ready_rows;
end internal_first_lane;

procedure internal_follow_death(
    p_part_id in number,
    p_dead_id in number,
    p_failed  in out nocopy rowq_ids
)
is
-- routine   internal_follow_death
-- purpose   Let the messages go on that wait for a dead one and do not mind; those that fail with it are dead now, and are added to p_failed.
-- promise   P27
-- locks     successor rows, passing over locked ones; as internal_unblock; new recheck rows
-- differs   part of internal_follow_deaths on PostgreSQL
    c_most constant pls_integer := 1000;
    v_ids   rowq_ids;
    v_again rowq_ids;
    v_some  rowq_ids;
    cursor asking_rows is
        select /*+ index_rs_asc(s rowq_successor_pk) */ s.message_id
        from rowq_successor s
        where s.part_id = p_part_id
          and s.predecessor_id = p_dead_id
          and exists (
              select null
              from rowq_blocked b
              where b.part_id = s.part_id
                and b.message_id = s.message_id
                and b.on_dead in ('continue', 'fail')
          )
        order by s.part_id, s.predecessor_id, s.message_id
        for update skip locked;
begin
    open asking_rows;
    fetch asking_rows bulk collect into v_ids limit c_most;
    close asking_rows;
    if v_ids.count = 0 then
        return;
    end if;
    if v_ids.count = c_most then
        internal_recheck_later(p_part_id, null, rowq_ids(p_dead_id), 1);
    end if;
    forall i in 1 .. v_ids.count
        delete from rowq_successor s
        where s.part_id = p_part_id
          and s.predecessor_id = p_dead_id
          and s.message_id = v_ids(i);
    internal_unblock(p_part_id, v_ids, null, v_again, v_some);
    if v_again.count > 0 then
        internal_recheck_later(p_part_id, v_again, null, 0);
    end if;
    for i in 1 .. v_some.count loop
        p_failed.extend;
        p_failed(p_failed.last) := v_some(i);
    end loop;
end internal_follow_death;

procedure internal_follow_deaths(p_part_id in number, p_dead_ids in rowq_ids)
is
-- routine   internal_follow_deaths
-- purpose   Let what waits for dead messages do as it asked, and so on down the tree.
-- promise   P27
-- locks     message rows, tried only; as internal_follow_death; new recheck rows
    -- A long tree dies in steps, and a wide one too, so that no transaction grows without end.
    c_most constant pls_integer := 1000;
    v_count   pls_integer := 0;
    v_dead    rowq_ids := p_dead_ids;
    v_locked  rowq_ids;
    v_held    rowq_ids;
    v_awaited rowq_ids;
    v_failed  rowq_ids;
begin
    while v_dead.count > 0 loop
        -- Where a row is held, a producer is adding a message that waits: look again when it is
        -- there.
        internal_lock_messages(p_part_id, v_dead, v_locked, v_held);
        if v_held.count > 0 then
            internal_recheck_later(p_part_id, null, v_held, 1);
        end if;
        v_awaited := internal_awaited_of(p_part_id, v_locked);
        v_failed := rowq_ids();
        for i in 1 .. v_awaited.count loop
            if v_count + v_failed.count > c_most then
                internal_recheck_later(p_part_id, null, rowq_ids(v_awaited(i)), 1);
            else
                internal_follow_death(p_part_id, v_awaited(i), v_failed);
            end if;
        end loop;
        v_count := v_count + v_failed.count;
        v_dead := v_failed;
    end loop;
end internal_follow_deaths;

procedure internal_free_successors(p_part_id in number, p_predecessor_id in number)
is
-- routine   internal_free_successors
-- purpose   Let the messages go on that have waited for this one, which has ended; leave to maintain those that cannot go on now.
-- promise   P26
-- locks     successor rows, passing over locked ones; as internal_let_go; new recheck rows
    c_most constant pls_integer := 1000;
    v_ids   rowq_ids;
    v_again rowq_ids;
    cursor waiting_rows is
        select /*+ index_rs_asc(s rowq_successor_pk) */ s.message_id
        from rowq_successor s
        where s.part_id = p_part_id
          and s.predecessor_id = p_predecessor_id
        order by s.part_id, s.predecessor_id, s.message_id
        for update skip locked;
begin
    open waiting_rows;
    fetch waiting_rows bulk collect into v_ids limit c_most;
    close waiting_rows;
    if v_ids.count = 0 then
        return;
    end if;
    if v_ids.count = c_most then
        internal_recheck_later(p_part_id, null, rowq_ids(p_predecessor_id), 0);
    end if;
    forall i in 1 .. v_ids.count
        delete from rowq_successor s
        where s.part_id = p_part_id
          and s.predecessor_id = p_predecessor_id
          and s.message_id = v_ids(i);
    internal_let_go(p_part_id, v_ids, p_predecessor_id, v_again);
    if v_again.count > 0 then
        internal_recheck_later(p_part_id, v_again, null, 0);
    end if;
end internal_free_successors;

function internal_from_base64(p_text in clob)
return blob
is
-- routine   internal_from_base64
-- purpose   Return the bytes of a base64 text, line breaks allowed; null when it is none.
-- promise   P15 P20
-- differs   no such helper elsewhere: other engines have a function for it
    -- 8000 letters are a whole number of groups of four, and few enough bytes even where a
    -- character takes four.
    c_step constant pls_integer := 8000;
    c_alphabet constant varchar2(64 char) :=
        'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
    v_text   clob := replace(replace(p_text, chr(10)), chr(13));
    v_length pls_integer := coalesce(dbms_lob.getlength(v_text), 0);
    v_bytes  blob;
    v_chunk  varchar2(32767);
    v_digits varchar2(32767);
    v_raw    raw(32767);
    v_place  pls_integer := 1;
begin
    if mod(v_length, 4) <> 0 then
        return null;
    end if;
    dbms_lob.createtemporary(v_bytes, true, dbms_lob.call);
    while v_place <= v_length loop
        v_chunk := internal_clob_part(v_text, v_place, c_step);
        v_place := v_place + length2(v_chunk);
        v_digits := case when v_place > v_length then rtrim(v_chunk, '=') else v_chunk end;
        -- Use ltrim and not a regular expression, whose ranges follow the session's NLS_SORT.
        if ltrim(v_digits, c_alphabet) is not null
           or coalesce(length(v_digits), 0) < length(v_chunk) - 2
        then
            return null;
        end if;
        v_raw := utl_encode.base64_decode(utl_raw.cast_to_raw(v_chunk));
        dbms_lob.writeappend(v_bytes, utl_raw.length(v_raw), v_raw);
    end loop;
    return v_bytes;
end internal_from_base64;

function internal_from_microseconds(p_microseconds in number)
return timestamp
is
-- routine   internal_from_microseconds
-- purpose   Return the moment that is so many microseconds after the beginning of 1970; null stays null.
-- differs   no such helper elsewhere: other engines have a function for it
begin
    -- Days are added by themselves, because numtodsinterval takes 2147483647 seconds at most and
    -- for more gives that many: the moment would stand still from the year 2038 on.
    return timestamp '1970-01-01 00:00:00'
        + numtodsinterval(trunc(p_microseconds / 86400000000), 'day')
        + numtodsinterval(mod(p_microseconds, 86400000000) / 1000000, 'second');
end internal_from_microseconds;

procedure internal_give_up_tick(
    p_schedule in t_schedule,
    p_now      in timestamp,
    p_error    in varchar2
)
is
-- routine   internal_give_up_tick
-- purpose   Note why a tick of a schedule made no message, and let the schedule go on with the next one after p_now.
-- promise   P30
-- locks     the schedule row, which is held
-- differs   no such helper elsewhere: part of run_due
    -- ORA-01882: the server does not know the time zone any more.
    e_no_zone exception;
    pragma exception_init(e_no_zone, -1882);
    c_line constant varchar2(1 char) := chr(10);
    v_error varchar2(1000 char) := substr(p_error, 1, instr(p_error || c_line, c_line) - 1);
    v_tick  timestamp(6);
begin
    begin
        v_tick := internal_next_tick(p_schedule, p_now);
    exception
        when e_no_zone then
            -- The schedule stands still until it is altered.
            v_tick := null;
    end;
    -- Before a refusal stands the number that this server has for it, such as ORA-20711.
    if instr(v_error, 'RQ') = 12 then
        v_error := substr(v_error, 12);
    end if;
    update rowq_schedule s
    set s.next_run_at = v_tick,
        s.last_error  = v_error
    where s.part_id = p_schedule.part_id
      and s.schedule_key = p_schedule.schedule_key;
end internal_give_up_tick;

function internal_has_header(p_headers in clob, p_name in varchar2, p_value in clob)
return boolean
is
-- routine   internal_has_header
-- purpose   Return whether headers have one of this name on their first level that is this text, or a whole number, true or false that is written so.
-- promise   P15
-- differs   no such helper elsewhere: part of cancel_many
    v_object  json_object_t;
    v_element json_element_t;
    v_number  number;
    v_text    clob;
    v_part    varchar2(32767);
    v_other   varchar2(32767);
    v_place   pls_integer := 1;
begin
    if p_headers is null then
        return false;
    end if;
    -- A path of JSON in SQL must be a literal, so only an object of JSON finds any name.
    v_object := json_object_t.parse(p_headers);
    if not v_object.has(p_name) then
        return false;
    end if;
    v_element := v_object.get(p_name);
    if v_element.is_string() then
        v_text := v_object.get_clob(p_name);
    elsif v_element.is_number() then
        v_number := v_object.get_number(p_name);
        -- A number greater than any that NUMBER holds is read as null, and one of more than 38
        -- digits is rounded.
        if v_number is null or v_number <> trunc(v_number) or abs(v_number) >= 1e38 then
            return false;
        end if;
        v_text := internal_number_text(v_number);
    elsif v_element.is_true() then
        v_text := 'true';
    elsif v_element.is_false() then
        v_text := 'false';
    else
        return false;
    end if;

    -- Compare bytes, part by part: two texts that end at the same place are equal, empty ones too.
    loop
        v_part := internal_clob_part(v_text, v_place, 8000);
        v_other := internal_clob_part(p_value, v_place, 8000);
        if v_part is null or v_other is null then
            return v_part is null and v_other is null;
        end if;
        if utl_raw.cast_to_raw(v_part) <> utl_raw.cast_to_raw(v_other) then
            return false;
        end if;
        v_place := v_place + length2(v_part);
    end loop;
end internal_has_header;

function internal_head_key(p_head in varchar2)
return raw
is
-- routine   internal_head_key
-- purpose   Return the first words of a topic or a pattern as bytes.
-- promise   P35
-- differs   no such helper elsewhere: there an empty text is not null
begin
    -- Where there is no such word, a dot stands for it, because an empty text is null. No head is a
    -- dot.
    return utl_raw.cast_to_raw(coalesce(p_head, '.'));
end internal_head_key;

procedure internal_health_queue(
    p_part_id        in number,
    p_queue_name     in varchar2,
    p_is_paused      in boolean,
    p_result_seconds in number,
    p_history_days   in number,
    p_checks         in out nocopy rowq_checks
)
is
-- routine   internal_health_queue
-- purpose   Append the checks of a queue.
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_dead        pls_integer;
    v_waiting     pls_integer;
    v_failed      pls_integer;
    v_due_at      timestamp(6);
    v_lease_until timestamp(6);
    v_finished_at timestamp(6);
    v_ended_at    timestamp(6);
    v_history_from constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_part_id, -8));

    procedure note(
        p_name in varchar2, p_value in number, p_warning in number, p_critical in number,
        p_detail in varchar2
    )
    is
    begin
        p_checks.extend;
        p_checks(p_checks.last) := rowq_check(
            p_name, p_queue_name, coalesce(p_value, 0), p_warning, p_critical, p_detail
        );
    end note;
begin
    note(
        'oldest_ready', internal_seconds_since(internal_oldest_ready(p_part_id), v_now), 300, 3600,
        'seconds that the oldest ready message has waited'
        || case when p_is_paused then '; the queue is paused' end
    );

    select count(*) into v_dead
    from (
        select d.message_id
        from rowq_dead d
        where d.part_id = p_part_id
        fetch first 1000 rows only
    ) h;
    note(
        'dead_messages', v_dead, 1, 1000,
        'dead messages, counted up to 1000; see list_dead and reset'
    );

    select min(d.due_at) into v_due_at
    from rowq_delayed d
    where d.part_id = p_part_id
      and d.due_at <= v_now;
    note(
        'overdue_delayed', internal_seconds_since(v_due_at, v_now), 30, 300,
        'seconds that the oldest due message has not been promoted; call maintain every second'
    );

    select min(c.lease_until) into v_lease_until
    from rowq_claim c
    where c.part_id = p_part_id
      and c.lease_until <= v_now;
    note(
        'expired_leases', internal_seconds_since(v_lease_until, v_now), 30, 300,
        'seconds that the oldest expired lease has not been reaped; call maintain every second'
    );

    select count(*) into v_waiting
    from (
        select /*+ leading(d s b) use_nl(s) use_nl(b) index(s rowq_successor_pk)
                   index(b rowq_blocked_pk) */
               s.message_id
        from rowq_dead d
        join rowq_successor s
          on s.part_id = d.part_id
         and s.predecessor_id = d.message_id
        join rowq_blocked b
          on b.part_id = s.part_id
         and b.message_id = s.message_id
        where d.part_id = p_part_id
        fetch first 1000 rows only
    ) h;
    note(
        'waits_for_dead', v_waiting, 1, 1000,
        'messages that wait for dead ones, counted up to 1000; reset or cancel these'
    );

    select min(r.due_at) into v_due_at
    from rowq_recheck r
    where r.part_id = p_part_id
      and r.due_at <= v_now;
    note(
        'overdue_groups', internal_seconds_since(v_due_at, v_now), 30, 300,
        'seconds that a group has waited for a transaction of a producer to end, or for maintain'
    );

    select min(e.expires_at) into v_due_at
    from rowq_expiry e
    where e.part_id = p_part_id
      and e.expires_at <= v_now;
    note(
        'overdue_expiries', internal_seconds_since(v_due_at, v_now), 30, 300,
        'seconds that a message whose time has come has waited for maintain, or for who holds it'
    );

    select min(r.finished_at) into v_finished_at
    from rowq_result r
    where r.part_id = p_part_id
      and r.finished_at <= v_now;
    note(
        'overdue_results',
        greatest(internal_seconds_since(v_finished_at, v_now) - p_result_seconds, 0), 300, 3600,
        'seconds that the oldest result has been kept beyond result_seconds; call maintain every'
        || ' second'
    );

    select /*+ index(h rowq_history_pk) */ min(h.ended_at) into v_ended_at
    from rowq_history h
    where h.part_id = p_part_id
      and h.ended_at >= v_history_from
      and h.ended_at <= v_now;
    note(
        'overdue_history',
        greatest(internal_seconds_since(v_ended_at, v_now) - p_history_days * 86400, 0), 3600,
        86400,
        'seconds that the oldest attempt has been kept beyond history_days; call maintain every'
        || ' second'
    );

    select min(case when s.next_run_at <= v_now then s.next_run_at end), count(s.last_error)
    into v_due_at, v_failed
    from rowq_schedule s
    where s.part_id = p_part_id;
    note(
        'overdue_schedules', internal_seconds_since(v_due_at, v_now), 30, 300,
        'seconds that a tick of a schedule has not been run; call maintain every second'
    );
    note(
        'failed_schedules', v_failed, 1, 1000,
        'schedules whose last tick made no message; list_schedules says why'
    );
end internal_health_queue;

procedure internal_health_server(p_checks in out nocopy rowq_checks)
is
-- routine   internal_health_server
-- purpose   Append the checks that concern all queues: old transactions, the archive, the sequence.
-- differs   this engine's own
    -- ORA-00942 (no such table or view), ORA-01031 (no privilege) and ORA-41900 (the same of 23ai,
    -- which names the privilege) mean that it may not look.
    e_no_view exception;
    e_no_right exception;
    pragma exception_init(e_no_view, -942);
    pragma exception_init(e_no_right, -1031);
    e_no_right_named exception;
    pragma exception_init(e_no_right_named, -41900);
    v_seconds  number;
    v_session  varchar2(200 char);
    v_horizon  varchar2(500 char) := 'no transaction is older than a second';
    v_fault    rowq_meta.value%type;
    v_fault_at rowq_meta.changed_at%type;
    v_newest   number := 0;
    v_last     number := 0;
    v_some     number;
    v_parts    t_numbers;
begin
    begin
        -- This is dynamic SQL, so that the package compiles without a right to these views.
        execute immediate q'[
            select max((sysdate - t.start_date) * 86400),
                   max(s.sid || ',' || s.serial#) keep (dense_rank first order by t.start_date)
            from v$transaction t
            join v$session s on s.taddr = t.addr
            where s.sid <> to_number(sys_context('userenv', 'sid'))
        ]' into v_seconds, v_session;
        if v_seconds >= 1 then
            v_horizon := 'session ' || v_session
                || ' has the oldest open transaction; what it has taken or sent stays with it';
        end if;
    exception
        when e_no_view or e_no_right or e_no_right_named then
            v_horizon := 'unknown: the owner of rowq has no right to v_$transaction and v_$session';
    end;
    p_checks.extend;
    p_checks(p_checks.last) := rowq_check(
        'clean_up_horizon', null, coalesce(v_seconds, 0), 300, 3600, v_horizon
    );

    select max(m.value) keep (dense_rank last order by m.changed_at), max(m.changed_at)
    into v_fault, v_fault_at
    from rowq_meta m
    where m.name like 'archive_fault.%';
    p_checks.extend;
    p_checks(p_checks.last) := rowq_check(
        'archive_fault', null, case when v_fault is null then 0 else 1 end, 1, 1,
        case
            when v_fault is null then 'the archive had no fault'
            else substr(
                to_char(v_fault_at, 'yyyy-mm-dd"T"hh24:mi:ss', 'nls_calendar=gregorian') || 'Z '
                || v_fault, 1, 500
            )
        end
    );

    select q.part_id bulk collect into v_parts
    from rowq_queue q;
    for i in 1 .. v_parts.count loop
        select max(m.message_id) into v_some
        from rowq_message m
        where m.part_id = v_parts(i);
        v_newest := greatest(v_newest, coalesce(v_some, 0));
    end loop;
    -- last_number is the first number that no session has in its cache.
    select max(s.last_number) into v_last
    from user_sequences s
    where s.sequence_name = 'ROWQ_MESSAGE_SEQ';
    p_checks.extend;
    p_checks(p_checks.last) := rowq_check(
        'sequence_behind', null, greatest(v_newest - v_last + 1, 0), 1, 1,
        case
            when v_newest >= v_last
                then 'rowq_message_seq is behind the data: alter sequence rowq_message_seq restart'
                    || ' start with ' || internal_number_text(v_newest + 1)
            else 'rowq_message_seq is ahead of every message'
        end
    );
end internal_health_server;

procedure internal_hint_groups(p_part_id in number)
is
-- routine   internal_hint_groups
-- purpose   Have maintain look whether each group in which messages wait may have more of them in work.
-- promise   P24
-- locks     new recheck rows
    -- v_from is the least key that is greater than the last group's: that one and a zero byte.
    v_from raw(801) := hextoraw('00');
    v_key  rowq_grouped.group_key%type;
    cursor next_rows is
        select /*+ index_rs_asc(g rowq_grouped_pk) */ g.group_key
        from rowq_grouped g
        where g.part_id = p_part_id
          and g.group_key >= v_from
        order by g.part_id, g.group_key, g.message_id;
begin
    -- Go from group to group and not from message to message.
    loop
        v_key := null;
        open next_rows;
        fetch next_rows into v_key;
        close next_rows;
        exit when v_key is null;
        internal_push_recheck(p_part_id, v_key, 0, 1);
        v_from := utl_raw.concat(v_key, hextoraw('00'));
    end loop;
end internal_hint_groups;

function internal_ids_of(p_messages in t_messages)
return rowq_ids
is
-- routine   internal_ids_of
-- purpose   Return the ids of messages, as SQL knows a list.
-- differs   no such helper elsewhere: other engines keep messages as a list already
    v_ids rowq_ids := rowq_ids();
begin
    v_ids.extend(p_messages.count);
    for i in 1 .. p_messages.count loop
        v_ids(i) := p_messages(i).message_id;
    end loop;
    return v_ids;
end internal_ids_of;

function internal_is_id_list(p_list in clob, p_ids out nocopy rowq_ids)
return boolean
is
-- routine   internal_is_id_list
-- purpose   Read the ids in a JSON array; return false where the text is no array of at most 10000 ids, none of them null.
-- promise   P15
-- differs   other engines read the list where they need it
    v_list    json_element_t;
    v_array   json_array_t;
    v_element json_element_t;
    v_id      number;
begin
    p_ids := rowq_ids();
    if not internal_is_json(p_list) then
        return false;
    end if;
    v_list := json_element_t.parse(p_list);
    if not v_list.is_array() then
        return false;
    end if;
    v_array := treat(v_list as json_array_t);
    if v_array.get_size() > 10000 then
        return false;
    end if;

    p_ids.extend(v_array.get_size());
    for i in 1 .. p_ids.count loop
        v_element := v_array.get(i - 1);
        if not v_element.is_number() then
            return false;
        end if;
        v_id := v_array.get_number(i - 1);
        -- A number greater than any that NUMBER holds is read as null.
        if v_id is null or v_id <> trunc(v_id) or abs(v_id) >= 1e19 then
            return false;
        end if;
        p_ids(i) := v_id;
    end loop;
    return true;
end internal_is_id_list;

function internal_is_json(p_text in clob)
return boolean
is
-- routine   internal_is_json
-- purpose   Return whether a text is JSON in the strict sense; false for null.
-- promise   P15
-- differs   no such helper elsewhere: other engines have a function for it
    v_count pls_integer;
begin
    -- Only SQL knows the condition "is json"; PL/SQL does not.
    select count(*) into v_count
    from dual
    where p_text is json strict;
    return v_count = 1;
end internal_is_json;

function internal_iso_text(p_moment in timestamp)
return varchar2
is
-- routine   internal_iso_text
-- purpose   Return a moment in ISO 8601, UTC, with microseconds; null stays null.
-- promise   P20
-- differs   no such helper elsewhere: other engines have a function for it
begin
    return case when p_moment is not null then
        to_char(p_moment, 'yyyy-mm-dd"T"hh24:mi:ss.ff6', 'nls_calendar=gregorian') || '+00:00'
    end;
end internal_iso_text;

procedure internal_join_groups(
    p_part_id  in number,
    p_messages in t_messages,
    p_waiting  out nocopy t_numbers
)
is
-- routine   internal_join_groups
-- purpose   Let messages that have a group_key join their groups. p_waiting has the places of those that wait there, each by itself; the others are for the caller to make ready.
-- promise   P21 P22
-- locks     as internal_enter_group, in the order of the keys; new grouped rows
    v_order    t_places;
    v_at       varchar2(4000 char);
    v_place    pls_integer := p_messages.first;
    v_key      raw(800);
    v_full_key raw(800);
    v_is_full  boolean;
    v_keys     t_keys;
    v_behind   t_messages;
begin
    p_waiting.delete;
    while v_place is not null loop
        if p_messages(v_place).group_key is not null then
            v_order(
                internal_dedup_order(
                    p_messages(v_place).group_key, p_messages(v_place).message_id
                )
            ) := v_place;
        end if;
        v_place := p_messages.next(v_place);
    end loop;

    v_at := v_order.first;
    while v_at is not null loop
        v_place := v_order(v_at);
        v_key := utl_raw.cast_to_raw(p_messages(v_place).group_key);
        -- A group that is full stays so until the end of this transaction.
        v_is_full := v_key = v_full_key;
        if v_is_full is null or not v_is_full then
            v_is_full := not internal_enter_group(p_part_id, v_key, true);
        end if;
        if v_is_full then
            v_full_key := v_key;
            p_waiting(v_place) := v_place;
            v_keys(v_keys.count + 1) := v_key;
            v_behind(v_keys.count) := p_messages(v_place);
        end if;
        v_at := v_order.next(v_at);
    end loop;

    forall i in 1 .. v_keys.count
        insert into rowq_grouped (part_id, group_key, message_id, lane)
        values (p_part_id, v_keys(i), v_behind(i).message_id, v_behind(i).lane);
end internal_join_groups;

procedure internal_json_fault(
    p_name    in varchar2,
    p_json    in clob,
    p_kind    in varchar2,
    p_deepest in number,
    p_longest in number,
    p_cuts    out nocopy t_numbers,
    p_fault   out varchar2
)
is
-- routine   internal_json_fault
-- purpose   Return what is wrong with headers or results: p_kind is what they must be, p_deepest how deep 20 levels are, from the outside; null means nothing. p_cuts are the places of the brackets of the first level, and of the commas between.
-- promise   P15
begin
    p_fault := null;
    p_cuts.delete;
    if p_json is null then
        return;
    end if;
    if internal_is_json(p_json) then
        internal_json_limit(p_name, p_json, p_kind, p_deepest, p_longest, p_cuts, p_fault);
    else
        p_fault := p_name || ' must be a JSON ' || p_kind;
    end if;
end internal_json_fault;

procedure internal_json_limit(
    p_name    in varchar2,
    p_json    in clob,
    p_kind    in varchar2,
    p_deepest in number,
    p_longest in number,
    p_cuts    in out nocopy t_numbers,
    p_fault   out varchar2
)
is
-- routine   internal_json_limit
-- purpose   Return what in valid JSON not every JSON reader would accept, or null; the rest is internal_json_fault's.
-- promise   P15
-- differs   no such helper elsewhere: part of json_fault
    c_quote   constant pls_integer := ascii('"');
    c_opening constant pls_integer := case p_kind when 'array' then ascii('[') else ascii('{') end;
    v_part     varchar2(32767);
    v_char     varchar2(4 char);
    v_code     pls_integer;
    v_place    pls_integer := 1;
    v_from     pls_integer;
    v_length   pls_integer := 0;
    v_depth    pls_integer := 0;
    v_before   pls_integer;
    v_digits   pls_integer := 0;
    v_exponent pls_integer;
    v_in_text  boolean := false;
    v_escaped  boolean := false;
begin
    -- Compare the codes of characters, because a session can have its own order (NLS_SORT).
    loop
        -- Read short parts, because substr counts from the start of a part each time.
        v_part := internal_clob_part(p_json, v_place, 500);
        exit when v_part is null;
        v_from := v_place;
        v_place := v_place + length2(v_part);
        v_length := v_length + length(v_part);
        if v_length > p_longest then
            p_fault := p_name || ' are longer than ' || internal_number_text(p_longest)
                || ' characters';
            return;
        end if;
        for i in 1 .. length(v_part) loop
            -- For an emoji, ascii returns its four bytes as a number, too large for a pls_integer.
            v_char := substr(v_part, i, 1);
            v_code := case when lengthb(v_char) = 1 then ascii(v_char) else 128 end;
            if v_depth = 0 and v_code not in (9, 10, 13, 32, c_opening) then
                p_fault := p_name || ' must be a JSON ' || p_kind;
                return;
            end if;
            if v_in_text then
                v_in_text := v_escaped or v_code <> c_quote;
                v_escaped := v_code = ascii('\') and not v_escaped;
            elsif v_code between ascii('0') and ascii('9') then
                if v_exponent is null then
                    v_digits := v_digits + 1;
                else
                    v_exponent := v_exponent * 10 + v_code - ascii('0');
                end if;
                if v_digits > 100 or v_exponent > 200 then
                    p_fault := p_name || ' have a number of too many digits';
                    return;
                end if;
            elsif v_code in (ascii('e'), ascii('E')) and v_digits > 0 then
                v_exponent := 0;
            elsif v_code not in (ascii('.'), ascii('+'), ascii('-')) then
                v_digits := 0;
                v_exponent := null;
                v_in_text := v_code = c_quote;
                v_before := v_depth;
                v_depth := v_depth + case
                    when v_code in (ascii('{'), ascii('[')) then 1
                    when v_code in (ascii('}'), ascii(']')) then -1
                    else 0
                end;
                if v_before + v_depth = 1 or v_depth = 1 and v_code = ascii(',') then
                    p_cuts(p_cuts.count + 1) := v_from + length2(substr(v_part, 1, i)) - 1;
                end if;
            end if;
            -- A value inside counts as one level deeper. The codes here are blanks, commas, colons
            -- and brackets, which are no values.
            if v_depth > p_deepest
               or v_depth = p_deepest
                  and v_code not in (9, 10, 13, 32, 44, 58, 91, 93, 123, 125) then
                p_fault := p_name || ' are nested more than 20 deep';
                return;
            end if;
        end loop;
    end loop;
end internal_json_limit;

procedure internal_leave_groups(p_part_id in number, p_group_keys in t_keys)
is
-- routine   internal_leave_groups
-- purpose   Pass on the tokens of messages that have ended, one for each element; leave to maintain those that cannot be passed on now.
-- promise   P22 P24
-- locks     as internal_pass_group; new recheck rows
    v_is_left       boolean;
    v_pause_seconds number;
begin
    for i in 1 .. p_group_keys.count loop
        internal_pass_group(p_part_id, p_group_keys(i), false, v_is_left, v_pause_seconds);
        if v_is_left then
            internal_push_recheck(p_part_id, p_group_keys(i), v_pause_seconds, 0);
        end if;
    end loop;
end internal_leave_groups;

procedure internal_let_go(
    p_part_id     in number,
    p_message_ids in rowq_ids,
    p_ended_id    in number,
    p_again       out nocopy rowq_ids
)
is
-- routine   internal_let_go
-- purpose   Let blocked messages go on that wait for nothing any more; those that fail with a predecessor are dead. p_again are those that need another look.
-- promise   P25 P26 P27
-- locks     as internal_unblock and internal_follow_deaths
    v_failed rowq_ids;
begin
    internal_unblock(p_part_id, p_message_ids, p_ended_id, p_again, v_failed);
    if v_failed.count > 0 then
        internal_follow_deaths(p_part_id, v_failed);
    end if;
end internal_let_go;

function internal_local_of(p_moment in timestamp, p_time_zone in varchar2)
return timestamp
is
-- routine   internal_local_of
-- purpose   Return what the clocks of a time zone show at a moment.
-- differs   no such helper elsewhere: other engines have an expression for it
begin
    return cast(from_tz(p_moment, '+00:00') at time zone p_time_zone as timestamp);
end internal_local_of;

procedure internal_locate_messages(
    p_part_id     in number,
    p_message_id  in number,
    p_group_key   in varchar2,
    p_due_at      in out timestamp,
    p_state       out varchar2,
    p_lane        out number,
    p_attempt     out number,
    p_claim_id    out number,
    p_worker_name out varchar2,
    p_lease_until out timestamp,
    p_finished_at out timestamp,
    p_waits_for   out number,
    p_leased_at   out timestamp
)
is
-- routine   internal_locate_messages
-- purpose   Find where a message is that still has a body; p_due_at is passed in as its last place in delayed.
    v_due_at constant timestamp(6) := p_due_at;
    v_key    constant raw(800) := utl_raw.cast_to_raw(p_group_key);
    cursor waiting is
        select 'delayed' as state, d.lane, d.attempt, d.due_at,
               cast(null as timestamp) as finished_at, cast(null as number) as waits_for
        from rowq_delayed d
        where d.part_id = p_part_id
          and d.due_at = v_due_at
          and d.message_id = p_message_id
        union all
        select 'dead' as state, d.lane, d.attempt, cast(null as timestamp) as due_at,
               d.died_at as finished_at, cast(null as number) as waits_for
        from rowq_dead d
        where d.part_id = p_part_id
          and d.message_id = p_message_id
        union all
        select f.state, f.lane, f.attempt, cast(null as timestamp) as due_at,
               f.finished_at, cast(null as number) as waits_for
        from rowq_finished f
        where f.part_id = p_part_id
          and f.message_id = p_message_id
        union all
        select 'blocked' as state, b.lane, 0 as attempt, b.due_at,
               cast(null as timestamp) as finished_at, b.predecessor_id as waits_for
        from rowq_blocked b
        where b.part_id = p_part_id
          and b.message_id = p_message_id;
    cursor grouped is
        select 'blocked' as state, g.lane, 0 as attempt, (
                   select max(x.message_id)
                   from rowq_grouped x
                   where x.part_id = p_part_id
                     and x.group_key = v_key
                     and x.message_id < p_message_id
               ) as waits_for
        from rowq_grouped g
        where g.part_id = p_part_id
          and g.group_key = v_key
          and g.message_id = p_message_id;
    cursor held is
        select 'leased' as state, l.lane, l.attempt, c.claim_id, c.worker_name, c.lease_until,
               c.leased_at
        from rowq_claim c
        join rowq_leased l
          on l.part_id = c.part_id
         and l.claim_id = c.claim_id
        where c.part_id = p_part_id
          and l.message_id = p_message_id;
    -- first_place finds a message that was never given back, by its whole key; any_place looks
    -- among all ready messages of the queue.
    cursor first_place is
        select 'ready' as state, r.lane, r.attempt
        from rowq_message m
        join rowq_ready r
          on r.part_id = m.part_id
         and r.lane = m.lane
         and r.seq = m.seq
         and r.message_id = m.message_id
        where m.part_id = p_part_id
          and m.message_id = p_message_id;
    cursor any_place is
        select 'ready' as state, r.lane, r.attempt
        from rowq_ready r
        where r.part_id = p_part_id
          and r.message_id = p_message_id;
begin
    p_due_at := null;
    p_state := null;
    open waiting;
    fetch waiting into p_state, p_lane, p_attempt, p_due_at, p_finished_at, p_waits_for;
    close waiting;
    if p_state is null and v_key is not null then
        open grouped;
        fetch grouped into p_state, p_lane, p_attempt, p_waits_for;
        close grouped;
    end if;
    if p_state is null then
        open held;
        fetch held into p_state, p_lane, p_attempt, p_claim_id, p_worker_name, p_lease_until,
            p_leased_at;
        close held;
    end if;
    if p_state is null then
        open first_place;
        fetch first_place into p_state, p_lane, p_attempt;
        close first_place;
    end if;
    if p_state is null then
        open any_place;
        fetch any_place into p_state, p_lane, p_attempt;
        close any_place;
    end if;
    if p_state is null then
        -- Another session has moved the message from one place to another between these looks, so
        -- it is in that session's hands: report it as leased.
        p_state := 'leased';
    end if;
end internal_locate_messages;

function internal_lock_bindings(p_queue_name in varchar2)
return t_queue
is
-- routine   internal_lock_bindings
-- purpose   Return the settings of a queue, and keep it from being dropped.
-- promise   P15
-- locks     the table of bindings against drop_queue; waits for one that is under way
-- errors    RQ701 RQ711
-- differs   this engine's own: elsewhere a row of the queue or of its part is locked
begin
    -- The look after this one sees what a drop has left that this session has waited for.
    lock table rowq_topic_binding in row exclusive mode;
    return internal_require_queue(p_queue_name);
end internal_lock_bindings;

procedure internal_lock_blocked(p_part_id in number, p_message_id in number, p_state out varchar2)
is
-- routine   internal_lock_blocked
-- purpose   Lock the row of a blocked message: locked, again where somebody holds it, or gone.
-- promise   P26
-- locks     a blocked row, passed over when locked
-- differs   no such helper elsewhere: part of internal_unblock
    -- ORA-08177: this transaction is serializable, and another has written to the row since then.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    v_shown pls_integer;
    v_id    rowq_blocked.message_id%type;
    cursor blocked_row is
        select b.message_id
        from rowq_blocked b
        where b.part_id = p_part_id
          and b.message_id = p_message_id
        for update skip locked;
begin
    begin
        open blocked_row;
        fetch blocked_row into v_id;
        close blocked_row;
    exception
        when e_not_serial then
            v_id := null;
    end;
    -- Look again, in a statement of its own: somebody is cancelling the message, perhaps, or it has
    -- gone on.
    select count(*) into v_shown
    from rowq_blocked b
    where b.part_id = p_part_id
      and b.message_id = p_message_id;
    p_state := case
        when v_shown = 0 then 'gone'
        when v_id is null then 'again'
        else 'locked'
    end;
end internal_lock_blocked;

procedure internal_lock_dead(
    p_queue_name   in varchar2,
    p_message_ids  in clob,
    p_max_messages in number,
    p_message_type in varchar2,
    p_died_before  in timestamp,
    p_queue        out t_queue,
    p_ids          out rowq_ids,
    p_locked       out nocopy t_locked_rows
)
is
-- routine   internal_lock_dead
-- purpose   Refuse bad arguments of reset and discard_dead, and lock the dead messages that they mean; p_ids are those that were named, or null.
-- locks     dead rows, passing over locked ones
    -- No type is longer than 200 characters, and SQL takes no more than 2000 bytes. Compare bytes,
    -- because texts are compared by the session's NLS_COMP and NLS_SORT.
    v_type  constant raw(804) := utl_raw.cast_to_raw(substr(p_message_type, 1, 201));
    v_limit pls_integer;
    cursor asked_for is
        select /*+ leading(a@asked d) use_nl(d) index(d rowq_dead_pk) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.part_id = p_queue.part_id
          and d.message_id in (
              select /*+ qb_name(asked) unnest cardinality(a 10) */ a.column_value
              from table(p_ids) a
          )
        order by d.part_id, d.message_id
        for update skip locked;
    cursor oldest is
        select /*+ index_rs_asc(d rowq_dead_pk) no_batch_table_access_by_rowid(d) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.part_id = p_queue.part_id
          and (p_died_before is null or d.died_at < p_died_before)
          and (v_type is null or v_type = (
              select /*+ index(m rowq_message_pk) */ hextoraw(rawtohex(m.message_type))
              from rowq_message m
              where m.part_id = d.part_id
                and m.message_id = d.message_id
          ))
        order by d.part_id, d.message_id
        for update skip locked;
begin
    p_ids := internal_read_id_list(p_message_ids);
    internal_check_whole('max_messages', p_max_messages, 1, 10000, p_is_required => true);
    if p_message_ids is not null and (p_message_type is not null or p_died_before is not null) then
        internal_refuse('message_type and died_before go together with no message_ids');
    end if;
    p_queue := internal_require_queue(p_queue_name);

    if p_ids is null then
        v_limit := p_max_messages;
        open oldest;
        fetch oldest bulk collect into p_locked limit v_limit;
        close oldest;
    else
        v_limit := 10000;
        open asked_for;
        fetch asked_for bulk collect into p_locked limit v_limit;
        close asked_for;
    end if;
end internal_lock_dead;

function internal_lock_door(p_part_id in number, p_key in raw)
return boolean
is
-- routine   internal_lock_door
-- purpose   Lock the door of a group, or of the dedup key of a schedule; return false where another session holds it.
-- promise   P22 P30
-- locks     a row of door, passed over when locked
-- differs   this engine's own: elsewhere the wait of an insert has a limit
    -- ORA-08177: this transaction is serializable, and somebody held the row after it began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    c_doors   constant pls_integer := 64;
    v_door_no constant rowq_door.door_no%type :=
        dbms_utility.get_hash_value(rawtohex(p_key), 0, c_doors);
    v_held    rowq_door.door_no%type;
    cursor door_row is
        select d.door_no
        from rowq_door d
        where d.part_id = p_part_id
          and d.door_no = v_door_no
        for update skip locked;
begin
    open door_row;
    fetch door_row into v_held;
    close door_row;
    return v_held is not null;
exception
    when e_not_serial then
        return false;
end internal_lock_door;

procedure internal_lock_expiring(
    p_part_id  in number,
    p_expiring in t_expiring,
    p_row      out t_locked_row
)
is
-- routine   internal_lock_expiring
-- purpose   Lock the row of the place in which a message that expires was seen; p_row is empty where somebody holds it, or it is gone.
-- promise   P03 P36
-- locks     a ready, delayed, blocked or grouped row, passed over when locked
-- differs   no such helper elsewhere: part of internal_pop_expired
    v_key constant raw(800) := utl_raw.cast_to_raw(p_expiring.group_key);
    cursor ready_row is
        select r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane = p_expiring.lane
          and r.seq = p_expiring.seq
          and r.message_id = p_expiring.message_id
        for update skip locked;
    cursor delayed_row is
        select d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_delayed d
        where d.part_id = p_part_id
          and d.due_at = p_expiring.due_at
          and d.message_id = p_expiring.message_id
        for update skip locked;
    cursor blocked_row is
        select b.message_id, b.lane
        from rowq_blocked b
        where b.part_id = p_part_id
          and b.message_id = p_expiring.message_id
        for update skip locked;
    cursor grouped_row is
        select g.message_id, g.lane
        from rowq_grouped g
        where g.part_id = p_part_id
          and g.group_key = v_key
          and g.message_id = p_expiring.message_id
        for update skip locked;
begin
    p_row := null;
    case p_expiring.place
        when 'ready' then
            open ready_row;
            fetch ready_row into p_row;
            close ready_row;
        when 'delayed' then
            open delayed_row;
            fetch delayed_row into p_row;
            close delayed_row;
        when 'blocked' then
            open blocked_row;
            fetch blocked_row into p_row.message_id, p_row.lane;
            close blocked_row;
        else
            open grouped_row;
            fetch grouped_row into p_row.message_id, p_row.lane;
            close grouped_row;
    end case;
end internal_lock_expiring;

function internal_lock_gate(p_part_id in number)
return boolean
is
-- routine   internal_lock_gate
-- purpose   Lock the gate of a limited queue; return whether that was done in a tenth of a second.
-- promise   P28 P29
-- locks     the gate of the queue, tried for a tenth of a second
-- errors    RQ713
-- differs   the row is written, so that a serializable transaction that is older is refused
    -- ORA-08177: this transaction is serializable, and the gate was taken after it began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    c_most_tries constant pls_integer := 10;
    v_tries pls_integer := 0;
    v_held  rowq_gate.part_id%type;
    cursor gate_row is
        select g.part_id
        from rowq_gate g
        where g.part_id = p_part_id
        for update skip locked;
begin
    loop
        open gate_row;
        fetch gate_row into v_held;
        close gate_row;
        exit when v_held is not null or v_tries = c_most_tries;
        v_tries := v_tries + 1;
        dbms_session.sleep(0.01);
    end loop;
    if v_held is null then
        return false;
    end if;
    update rowq_gate g
    set g.taken_at = sys_extract_utc(systimestamp)
    where g.part_id = p_part_id;
    return true;
exception
    when e_not_serial then
        raise_application_error(
            -20713,
            'RQ713 wrong_transaction_state: a queue with max_leased or rate_limit delivers under'
            || ' read committed only'
        );
end internal_lock_gate;

procedure internal_lock_messages(
    p_part_id in number,
    p_ids     in rowq_ids,
    p_locked  out nocopy rowq_ids,
    p_held    out nocopy rowq_ids
)
is
-- routine   internal_lock_messages
-- purpose   Lock those of these message rows that nobody holds (p_locked); p_held are those that are there and that others hold.
-- promise   P25 P26 P27
-- locks     message rows, passing over locked ones
-- differs   no such helper elsewhere: part of the statements that need it
    -- ORA-08177: this transaction is serializable, and another has written to a row since it began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    c_most constant pls_integer := 10000;
    v_places t_places;
    v_shown  t_numbers;
    cursor message_rows is
        select /*+ leading(a@asked m) use_nl(m) index(m rowq_message_pk) */ m.message_id
        from rowq_message m
        where m.part_id = p_part_id
          and m.message_id in (
              select /*+ qb_name(asked) unnest cardinality(a 10) */ a.column_value
              from table(p_ids) a
          )
        for update skip locked;
begin
    p_locked := rowq_ids();
    p_held := rowq_ids();
    begin
        open message_rows;
        fetch message_rows bulk collect into p_locked limit c_most;
        close message_rows;
    exception
        when e_not_serial then
            p_locked := rowq_ids();
    end;
    if p_locked.count = p_ids.count then
        return;
    end if;

    for i in 1 .. p_locked.count loop
        v_places(internal_number_text(p_locked(i))) := i;
    end loop;
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id
    bulk collect into v_shown
    from table(p_ids) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value;
    for i in 1 .. v_shown.count loop
        if not v_places.exists(internal_number_text(v_shown(i))) then
            p_held.extend;
            p_held(p_held.last) := v_shown(i);
        end if;
    end loop;
end internal_lock_messages;

function internal_lock_token(
    p_part_id   in number,
    p_group_key in raw,
    p_group     in t_group,
    p_from      in number,
    p_to        in number
)
return number
is
-- routine   internal_lock_token
-- purpose   Lock the highest token of a group from p_from to p_to that nobody holds; return its number, or null.
-- promise   P22 P24
-- locks     a message_group row, passing over locked ones
-- differs   no such helper elsewhere: part of internal_pass_group
    -- ORA-08177: this transaction is serializable, and a message has joined the group since then.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    v_token_no number := p_group.tokens.last;
    v_held     rowq_message_group.token_no%type;
    cursor token_row is
        select t.token_no
        from rowq_message_group t
        where t.part_id = p_part_id
          and t.group_key = p_group_key
          and t.token_no = v_token_no
        for update skip locked;
begin
    while v_held is null and v_token_no >= p_from loop
        if v_token_no <= p_to then
            open token_row;
            fetch token_row into v_held;
            close token_row;
        end if;
        v_token_no := p_group.tokens.prior(v_token_no);
    end loop;
    return v_held;
exception
    when e_not_serial then
        return null;
end internal_lock_token;

function internal_lock_tokens(p_part_id in number, p_group_key in raw)
return t_numbers
is
-- routine   internal_lock_tokens
-- purpose   Lock those tokens of a group that nobody holds; return their numbers.
-- promise   P24
-- locks     message_group rows, passing over locked ones
-- differs   no such helper elsewhere: part of internal_enter_group, which locks them shared
    -- ORA-08177: this transaction is serializable, and a message has joined the group since then.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    c_most constant pls_integer := 100;
    v_locked t_numbers;
    cursor token_rows is
        select /*+ index_rs_asc(t rowq_message_group_pk) */ t.token_no
        from rowq_message_group t
        where t.part_id = p_part_id
          and t.group_key = p_group_key
        order by t.part_id, t.group_key, t.token_no
        for update skip locked;
begin
    open token_rows;
    fetch token_rows bulk collect into v_locked limit c_most;
    close token_rows;
    return v_locked;
exception
    when e_not_serial then
        v_locked.delete;
        return v_locked;
end internal_lock_tokens;

procedure internal_maintain_archive(
    p_queue    in t_queue,
    p_limit    in number,
    p_archived out number,
    p_purged   out number,
    p_dropped  out number
)
is
-- routine   internal_maintain_archive
-- purpose   Run the archive part of maintain: move, purge whole days, drop partitions; an error in it is noted, not raised.
-- promise   P09 P19
-- locks     as archive and purge_archive; with a fault a row of meta
-- commits   as internal_drop_days; never the caller's transaction
-- differs   a fault is noted in meta, where health reads it: this engine's calls have no warnings
    -- ORA-01013: the user has cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
    v_today constant timestamp(6) := cast(
        trunc(sys_extract_utc(systimestamp), 'dd') as timestamp
    );
    v_fault rowq_meta.value%type;
    v_kept  rowq_archive.message_id%type;
    cursor kept is
        select a.message_id
        from rowq_archive a
        where a.part_id = p_queue.part_id;
begin
    p_archived := 0;
    p_purged := 0;
    p_dropped := 0;
    savepoint rowq_archive_part;
    if p_queue.archive_days = 0 then
        -- A queue without an archive may have rows from a time when it had one, so look for them.
        open kept;
        fetch kept into v_kept;
        close kept;
        if v_kept is null and internal_first_key(p_queue.part_id, -3, 0) is null then
            internal_note_fault(p_queue.part_id, null);
            return;
        end if;
    end if;

    -- Drop partitions before this transaction has touched the archive, because its own locks would
    -- be in the way.
    p_dropped := internal_drop_days;
    p_archived := internal_archive(p_queue.part_id, p_limit);
    -- Purge whole days, because dropping a partition costs less than deleting its rows. A queue
    -- that keeps no archive any more is purged up to now.
    p_purged := internal_purge_archive(
        p_queue.part_id,
        case
            when p_queue.archive_days > 0
                then v_today - numtodsinterval(p_queue.archive_days, 'day')
            else sys_extract_utc(systimestamp)
        end,
        p_limit
    );
    internal_note_fault(p_queue.part_id, null);
exception
    when e_cancelled then
        raise;
    when others then
        -- An error in the archive, such as a full disk, is only noted, because promoting and
        -- reaping must go on.
        v_fault := substr(sqlerrm, 1, 500);
        rollback to savepoint rowq_archive_part;
        p_archived := 0;
        p_purged := 0;
        internal_note_fault(p_queue.part_id, v_fault);
end internal_maintain_archive;

function internal_maintain_kept(
    p_queue in t_queue,
    p_what  in varchar2,
    p_limit in number,
    p_until in timestamp
)
return number
is
-- routine   internal_maintain_kept
-- purpose   Purge 'results' or 'history' in maintain, a queue's first p_limit old rows, and till p_until up to ten times as many; an error in it is noted, not raised.
-- promise   P13 P32 P37
-- locks     as internal_purge_results or internal_purge_history; with a fault a row of meta
-- differs   a fault is noted in meta, where health reads it: this engine's calls have no warnings
    -- ORA-01013: the user has cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
    c_most_batches constant pls_integer := 10;
    v_fault  rowq_meta.value%type;
    v_batch  number;
    v_purged number := 0;
begin
    savepoint rowq_kept_part;
    for i in 1 .. c_most_batches loop
        if p_what = 'results' then
            v_batch := internal_purge_results(p_queue, p_limit);
        else
            v_batch := internal_purge_history(p_queue, p_limit);
        end if;
        v_purged := v_purged + v_batch;
        exit when v_batch < p_limit or sys_extract_utc(systimestamp) > p_until;
    end loop;
    return v_purged;
exception
    when e_cancelled then
        raise;
    when others then
        -- An error is only noted, because housekeeping must go on. The archive has noted its own
        -- state before, and does so again before the next one of these.
        v_fault := substr(p_what || ': ' || sqlerrm, 1, 500);
        rollback to savepoint rowq_kept_part;
        internal_note_fault(p_queue.part_id, v_fault);
        return 0;
end internal_maintain_kept;

procedure internal_maintain_queue(
    p_queue_name in varchar2,
    p_queue      in t_queue,
    p_limit      in number,
    p_until      in timestamp,
    p_kept       out nocopy rowq_kept
)
is
-- routine   internal_maintain_queue
-- purpose   Run the housekeeping of one queue in the one session that is elected for it.
-- promise   P09 P11 P13 P14 P19 P24 P26 P27 P30 P31 P32 P36 P37
-- locks     a row of lane, passed over when locked, to the end of the transaction; as what it calls
-- differs   elected by a row and not by a named lock, as dbms_lock would need a right of its own
    v_lane        rowq_lane.lane%type;
    v_has_recheck boolean;
    v_has_started boolean;
    v_has_expiry  boolean;
    v_has_results boolean;
    v_has_history boolean;
    v_sent        pls_integer;
    v_solved      pls_integer := 0;
    -- Results leave history half of the time.
    c_results_until constant timestamp(6) := p_until - numtodsinterval(0.05, 'second');
    cursor seat is
        select l.lane
        from rowq_lane l
        where l.part_id = p_queue.part_id
          and l.lane = -1
        for update skip locked;
begin
    p_kept := rowq_kept(p_queue_name, 0, 0, 0, 0, 0, 0, 0, 0);
    open seat;
    fetch seat into v_lane;
    close seat;
    if v_lane is null then
        return;
    end if;

    p_kept.elected := 1;
    -- Put the floors right first, so that the steps below find what was committed late.
    internal_rescan_floors(
        p_queue.part_id, v_has_recheck, v_has_started, v_has_expiry, v_has_results,
        v_has_history
    );
    if v_has_expiry then
        p_kept.expired := internal_expire(p_queue, p_limit);
    end if;
    p_kept.promoted := internal_promote(p_queue.part_id, p_limit);
    v_sent := internal_run_schedules(p_queue, p_queue_name);
    if v_has_recheck then
        v_solved := internal_recheck(p_queue.part_id, p_limit);
    end if;
    internal_reap(p_queue, p_limit, p_kept.reaped, p_kept.died);
    if p_kept.promoted + v_sent + p_kept.reaped + v_solved > 0 then
        internal_ring_doorbell(p_queue.part_id, p_queue.listened_until);
    end if;
    if v_has_started then
        internal_purge_started(p_queue, p_limit);
    end if;
    internal_maintain_archive(
        p_queue, p_limit, p_kept.archived, p_kept.purged, p_kept.partitions_dropped
    );
    if v_has_results then
        p_kept.purged := p_kept.purged
            + internal_maintain_kept(p_queue, 'results', p_limit, c_results_until);
    end if;
    if v_has_history then
        p_kept.purged := p_kept.purged
            + internal_maintain_kept(p_queue, 'history', p_limit, p_until);
    end if;
end internal_maintain_queue;

procedure internal_mark_leased(p_part_id in number, p_lines in out nocopy rowq_lines)
is
-- routine   internal_mark_leased
-- purpose   Mark as leased what was not found but still has a body: a worker holds it.
-- differs   no such helper elsewhere: part of cancel
    v_asked  rowq_ids := rowq_ids();
    v_leased rowq_ids;
begin
    for i in 1 .. p_lines.count loop
        if p_lines(i).outcome = 'not_found' then
            v_asked.extend;
            v_asked(v_asked.last) := p_lines(i).message_id;
        end if;
    end loop;
    if v_asked.count = 0 then
        return;
    end if;

    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id
    bulk collect into v_leased
    from table(v_asked) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value
    where not exists (
        select null
        from rowq_finished f
        where f.part_id = p_part_id
          and f.message_id = m.message_id
    );
    internal_mark_lines(p_lines, v_leased, 'leased');
end internal_mark_leased;

procedure internal_mark_lines(
    p_lines   in out nocopy rowq_lines,
    p_ids     in rowq_ids,
    p_outcome in varchar2
)
is
-- routine   internal_mark_lines
-- purpose   Give the lines of these messages another outcome.
-- differs   no such helper elsewhere: other engines return a query
    v_places t_places;
begin
    for i in 1 .. p_ids.count loop
        v_places(internal_number_text(p_ids(i))) := i;
    end loop;
    for i in 1 .. p_lines.count loop
        if v_places.exists(internal_number_text(p_lines(i).message_id)) then
            p_lines(i).outcome := p_outcome;
        end if;
    end loop;
end internal_mark_lines;

function internal_message_fault(
    p_body                in clob,
    p_body_binary         in blob,
    p_message_type        in varchar2,
    p_headers             in clob,
    p_priority            in number,
    p_delay_seconds       in number,
    p_run_at              in timestamp,
    p_dedup_key           in varchar2,
    p_max_attempts        in number,
    p_group_key           in varchar2,
    p_on_predecessor_dead in varchar2,
    p_expire_seconds      in number
)
return varchar2
is
-- routine   internal_message_fault
-- purpose   Return what is wrong with the arguments of enqueue; null means nothing.
-- promise   P15
    v_cuts  t_numbers;
    v_fault varchar2(32767);
begin
    v_fault := case
        when p_priority is null
             or p_priority not between 0 and 9
             or p_priority <> trunc(p_priority)
            then 'priority must be between 0 and 9, got ' || internal_number_text(p_priority)
        when p_body is not null and p_body_binary is not null
            then 'body and body_binary exclude each other'
        when length(p_message_type) > 200
            then 'message_type is longer than 200 characters'
        when p_delay_seconds is not null and p_run_at is not null
            then 'delay_seconds and run_at exclude each other'
        when p_delay_seconds not between 0 and 315360000
            then 'delay_seconds must be between 0 and 315360000, got '
                || internal_number_text(p_delay_seconds)
        when p_run_at > sys_extract_utc(systimestamp) + numtodsinterval(3650, 'day')
            then 'run_at must be a moment within the next ten years'
        when length(p_dedup_key) > 200
            then 'dedup_key must be 1 to 200 characters'
        when length(p_group_key) > 200
            then 'group_key must be 1 to 200 characters'
        when p_max_attempts not between 1 and 10000 or p_max_attempts <> trunc(p_max_attempts)
            then 'max_attempts must be between 1 and 10000, got '
                || internal_number_text(p_max_attempts)
        -- Compare bytes, because texts are compared as the session's NLS_COMP and NLS_SORT say.
        when utl_raw.cast_to_raw(p_on_predecessor_dead) not in (
            utl_raw.cast_to_raw('hold'), utl_raw.cast_to_raw('continue'),
            utl_raw.cast_to_raw('fail')
        )
            then 'on_predecessor_dead must be hold, continue or fail'
        when p_expire_seconds not between 0.001 and 315360000
            then 'expire_seconds must be between 0.001 and 315360000, got '
                || internal_number_text(p_expire_seconds)
    end;
    if p_headers is not null and v_fault is null then
        internal_json_fault('headers', p_headers, 'object', 20, 65536, v_cuts, v_fault);
    end if;
    return v_fault;
end internal_message_fault;

function internal_microseconds(p_moment in timestamp)
return number
is
-- routine   internal_microseconds
-- purpose   Return a moment as microseconds since 1970; null stays null.
-- differs   no such helper elsewhere: other engines have a function for it
    v_since interval day(9) to second(6);
begin
    v_since := p_moment - timestamp '1970-01-01 00:00:00';
    return extract(day from v_since) * 86400000000
        + extract(hour from v_since) * 3600000000
        + extract(minute from v_since) * 60000000
        + round(extract(second from v_since) * 1000000);
end internal_microseconds;

function internal_moment_of_local(p_local in timestamp, p_time_zone in varchar2)
return timestamp
is
-- routine   internal_moment_of_local
-- purpose   Return when the clocks of a time zone show a time: the first of two moments where they are set back over it, and the end of the gap where they are set forward over it.
    c_day constant interval day to second := numtodsinterval(1, 'day');
    -- The moment by the offset of the day before, and by that of the day after.
    v_before timestamp(6);
    v_after  timestamp(6);
begin
    -- Only moments are converted, because the server refuses a time in a gap (ORA-01878).
    v_before := p_local
        - numtodsinterval(internal_offset_of(p_local - c_day, p_time_zone), 'minute');
    if internal_local_of(v_before, p_time_zone) = p_local then
        return v_before;
    end if;
    v_after := p_local
        - numtodsinterval(internal_offset_of(p_local + c_day, p_time_zone), 'minute');
    if internal_local_of(v_after, p_time_zone) = p_local then
        return v_after;
    end if;
    return internal_offset_change(
        least(v_before, v_after), greatest(v_before, v_after), p_time_zone
    );
end internal_moment_of_local;

procedure internal_move_floor(
    p_part_id in number,
    p_lane    in number,
    p_from    in number,
    p_to      in number
)
is
-- routine   internal_move_floor
-- purpose   Move the floor of a lane down, or up if it still is where the caller saw it.
-- promise   P13 P14
-- locks     the row of the lane, passed over when locked
    v_row_id rowid;
    v_floor  rowq_lane.floor_seq%type;
    cursor lane_row is
        select l.rowid, l.floor_seq
        from rowq_lane l
        where l.part_id = p_part_id
          and l.lane = p_lane
        for update skip locked;
begin
    open lane_row;
    fetch lane_row into v_row_id, v_floor;
    close lane_row;
    if v_floor = p_from or p_to < v_floor then
        update rowq_lane l
        set l.floor_seq = p_to
        where l.rowid = v_row_id;
    end if;
end internal_move_floor;

function internal_new_message(
    p_now                 in timestamp,
    p_place               in number,
    p_body                in clob,
    p_body_binary         in blob,
    p_message_type        in varchar2,
    p_headers             in clob,
    p_priority            in number,
    p_delay_seconds       in number,
    p_run_at              in timestamp,
    p_dedup_key           in varchar2,
    p_max_attempts        in number,
    p_group_key           in varchar2,
    p_predecessor_ids     in rowq_ids,
    p_on_predecessor_dead in varchar2,
    p_expire_seconds      in number
)
return t_new_message
is
-- routine   internal_new_message
-- purpose   Return a message as it will be stored, from arguments that are already checked.
-- promise   P05 P11
-- differs   no such helper elsewhere: part of store
    v_new t_new_message;
begin
    v_new.body := p_body;
    v_new.body_binary := p_body_binary;
    v_new.message_type := p_message_type;
    v_new.headers := p_headers;
    v_new.lane := p_priority * 2 + 1;
    v_new.seq := internal_microseconds(p_now) + p_place;
    v_new.enqueued_at := p_now + numtodsinterval(p_place / 1000000, 'second');
    v_new.due_at := coalesce(p_run_at, p_now + numtodsinterval(p_delay_seconds, 'second'));
    if v_new.due_at <= p_now then
        v_new.due_at := null;
    end if;
    v_new.expires_at := v_new.enqueued_at + numtodsinterval(p_expire_seconds, 'second');
    v_new.dedup_key := p_dedup_key;
    v_new.max_attempts := p_max_attempts;
    v_new.group_key := p_group_key;
    v_new.place := p_place;
    v_new.predecessor_ids := p_predecessor_ids;
    v_new.on_predecessor_dead := p_on_predecessor_dead;
    return v_new;
end internal_new_message;

function internal_next_cron(
    p_bits      in varchar2,
    p_time_zone in varchar2,
    p_after     in timestamp
)
return timestamp
is
-- routine   internal_next_cron
-- purpose   Return the first moment after p_after that a parsed cron expression names; null where the next ten years have none.
-- promise   P31
    c_day    constant interval day to second := numtodsinterval(26, 'hour');
    c_minute constant interval day to second := numtodsinterval(1, 'minute');
    v_local  timestamp(6);
    v_next   timestamp(6);
    v_from   timestamp(6);
    v_moment timestamp(6);
    v_change timestamp(6);
begin
    if substr(p_bits, 135, 1) = '1' then
        -- A minute and an hour that are given fire once for each local time.
        v_local := internal_to_minute(internal_local_of(p_after, p_time_zone));
        loop
            v_local := internal_next_cron_local(p_bits, v_local + c_minute);
            if v_local is null then
                return null;
            end if;
            v_moment := internal_moment_of_local(v_local, p_time_zone);
            if v_moment > p_after then
                return v_moment;
            end if;
        end loop;
    end if;

    -- Any other one fires in each hour that there is, also in one that the clocks show twice. A
    -- time is as far away as the clocks say unless they are changed on the way. The look for that
    -- goes no further than a day, because local times that do not match are none later either.
    v_from := internal_to_minute(p_after) + c_minute;
    loop
        v_local := internal_local_of(v_from, p_time_zone);
        v_next := internal_next_cron_local(p_bits, v_local);
        if v_next is null then
            return null;
        end if;
        v_moment := v_from + (v_next - v_local);
        v_change := internal_offset_change(
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
end internal_next_cron;

function internal_next_cron_local(p_bits in varchar2, p_from in timestamp)
return timestamp
is
-- routine   internal_next_cron_local
-- purpose   Return the first minute from p_from on, in local time, that a parsed cron expression names; null where the next ten years have none.
    v_day        date := trunc(p_from, 'dd');
    v_end        constant date := v_day + 3660;
    v_hour       pls_integer := extract(hour from p_from);
    v_minute     pls_integer := extract(minute from p_from);
    v_weekday    pls_integer;
    v_is_day     boolean;
    v_is_weekday boolean;
    v_steps      pls_integer;
begin
    while v_day < v_end loop
        if substr(p_bits, 115 + extract(month from v_day), 1) = '0' then
            v_day := add_months(trunc(v_day, 'mm'), 1);
        else
            v_is_day := substr(p_bits, 84 + extract(day from v_day), 1) = '1';
            -- A week of ISO begins on Monday, whatever the session's territory; Sunday is 0 here.
            v_weekday := mod(v_day - trunc(v_day, 'iw') + 1, 7);
            v_is_weekday := substr(p_bits, 128 + v_weekday, 1) = '1';
            if v_is_day and v_is_weekday
               or substr(p_bits, 136, 1) = '1' and (v_is_day or v_is_weekday) then
                -- Look for the first hour, and in that hour for the first minute.
                while v_hour < 24 loop
                    v_steps := instr(substr(p_bits, 61 + v_hour, 24 - v_hour), '1');
                    exit when v_steps = 0;
                    if v_steps > 1 then
                        v_hour := v_hour + v_steps - 1;
                        v_minute := 0;
                    end if;
                    v_steps := instr(substr(p_bits, 1 + v_minute, 60 - v_minute), '1');
                    if v_steps > 0 then
                        return cast(v_day as timestamp) + numtodsinterval(
                            v_hour * 60 + v_minute + v_steps - 1, 'minute'
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
end internal_next_cron_local;

function internal_next_shown(p_part_id in number, p_ids in rowq_ids, p_from in number)
return number
is
-- routine   internal_next_shown
-- purpose   Return the place of the first of these messages, from p_from on, that has a body; null where none has.
-- promise   P25
-- differs   no such helper elsewhere: part of internal_await_predecessor
    -- Look for some at a time, because the first one is nearly always there.
    c_step   constant pls_integer := 100;
    v_from   pls_integer := p_from;
    v_to     pls_integer;
    v_some   rowq_ids;
    v_shown  t_numbers;
    v_places t_places;
begin
    while v_from <= p_ids.count loop
        v_to := least(v_from + c_step - 1, p_ids.count);
        v_some := rowq_ids();
        for i in v_from .. v_to loop
            v_some.extend;
            v_some(v_some.last) := p_ids(i);
        end loop;
        select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id
        bulk collect into v_shown
        from table(v_some) a
        join rowq_message m
          on m.part_id = p_part_id
         and m.message_id = a.column_value;
        for i in 1 .. v_shown.count loop
            v_places(internal_number_text(v_shown(i))) := i;
        end loop;
        for i in v_from .. v_to loop
            if v_places.exists(internal_number_text(p_ids(i))) then
                return i;
            end if;
        end loop;
        v_from := v_to + 1;
    end loop;
    return null;
end internal_next_shown;

function internal_next_tick(p_schedule in t_schedule, p_after in timestamp)
return timestamp
is
-- routine   internal_next_tick
-- purpose   Return the first tick of a schedule after a moment; null where there is none.
-- promise   P31
-- errors    RQ711
    -- The last microsecond of the year 9999, which is the last year that the server has.
    c_most constant number := 253402300799999999;
    v_after  timestamp(6) := p_after;
    v_start  number;
    v_step   number;
    v_passed number;
    v_next   number;
    v_tick   timestamp(6);
begin
    if v_after < p_schedule.starts_at then
        v_after := p_schedule.starts_at - numtodsinterval(0.000001, 'second');
    end if;
    if p_schedule.cron is not null then
        v_tick := internal_next_cron(
            internal_parse_cron(p_schedule.cron), p_schedule.time_zone, v_after
        );
    else
        -- Count in microseconds from starts_at, so that the ticks do not drift.
        v_start := internal_microseconds(p_schedule.starts_at);
        v_step := round(p_schedule.interval_seconds * 1000000);
        v_passed := internal_microseconds(v_after) - v_start;
        v_next := v_start + (floor(v_passed / v_step) + 1) * v_step;
        if v_next <= c_most then
            v_tick := internal_from_microseconds(v_next);
        end if;
    end if;
    return case when v_tick > p_schedule.ends_at then null else v_tick end;
end internal_next_tick;

procedure internal_note_cancels(
    p_part_id in number,
    p_ids     in rowq_ids,
    p_noted   out nocopy rowq_ids,
    p_rest    out nocopy rowq_ids
)
is
-- routine   internal_note_cancels
-- purpose   Note for those of these messages that claims hold that they were cancelled (p_noted); p_rest are the others.
-- promise   P34
-- locks     claim rows, passing over locked ones; then leased rows
    c_most constant pls_integer := 10000;
    v_claim_ids t_numbers;
    v_places    t_numbers;
    v_held_ids  t_numbers;
    v_claims    rowq_ids := rowq_ids();
    v_row_ids   t_row_ids;
    v_locked    t_numbers;
    v_known     t_places;
    v_of        t_numbers;
    v_at        t_numbers;
    v_ids       t_numbers;
    v_next      pls_integer := 0;
    cursor claim_rows is
        select /*+ leading(a@asked c) use_nl(c) index(c rowq_claim_pk) */ c.rowid, c.claim_id
        from rowq_claim c
        where c.part_id = p_part_id
          and c.claim_id in (
              select /*+ qb_name(asked) unnest cardinality(a 10) */ a.column_value
              from table(v_claims) a
          )
        for update skip locked;
begin
    p_noted := rowq_ids();
    p_rest := p_ids;
    -- Find the claims without locks, so that none is locked that holds none of the messages. Begin
    -- before the floor, because a claim that was committed late may hold one of them.
    select /*+ leading(l a@asked) use_hash(a@asked) index_rs_asc(l rowq_leased_pk) */
           l.claim_id, l.place, l.message_id
    bulk collect into v_claim_ids, v_places, v_held_ids
    from rowq_leased l
    where l.part_id = p_part_id
      and l.message_id in (
          select /*+ qb_name(asked) unnest */ a.column_value
          from table(p_ids) a
      );
    for i in 1 .. v_claim_ids.count loop
        if not v_known.exists(internal_number_text(v_claim_ids(i))) then
            v_known(internal_number_text(v_claim_ids(i))) := i;
            v_claims.extend;
            v_claims(v_claims.last) := v_claim_ids(i);
        end if;
    end loop;
    if v_claims.count = 0 then
        return;
    end if;

    open claim_rows;
    fetch claim_rows bulk collect into v_row_ids, v_locked limit c_most;
    close claim_rows;
    v_known.delete;
    for i in 1 .. v_locked.count loop
        v_known(internal_number_text(v_locked(i))) := i;
    end loop;
    for i in 1 .. v_claim_ids.count loop
        if v_known.exists(internal_number_text(v_claim_ids(i))) then
            v_next := v_next + 1;
            v_of(v_next) := v_claim_ids(i);
            v_at(v_next) := v_places(i);
            v_ids(v_next) := v_held_ids(i);
        end if;
    end loop;

    forall i in 1 .. v_row_ids.count
        update rowq_claim c
        set c.has_cancels = 1
        where c.rowid = v_row_ids(i);
    forall i in 1 .. v_ids.count
        update rowq_leased l
        set l.is_cancelled = 1
        where l.part_id = p_part_id
          and l.claim_id = v_of(i)
          and l.place = v_at(i)
          and l.message_id = v_ids(i);
    -- A message that was finished before its claim was locked is not there any more.
    v_known.delete;
    for i in 1 .. v_ids.count loop
        if sql%bulk_rowcount(i) = 1 then
            v_known(internal_number_text(v_ids(i))) := i;
            p_noted.extend;
            p_noted(p_noted.last) := v_ids(i);
        end if;
    end loop;
    p_rest := rowq_ids();
    for i in 1 .. p_ids.count loop
        if not v_known.exists(internal_number_text(p_ids(i))) then
            p_rest.extend;
            p_rest(p_rest.last) := p_ids(i);
        end if;
    end loop;
end internal_note_cancels;

procedure internal_note_error(
    p_part_id    in number,
    p_messages   in t_messages,
    p_error      in clob,
    p_is_waiting in boolean
)
is
-- routine   internal_note_error
-- purpose   Store the error that messages failed with; without p_is_waiting not of those whose rows a producer holds.
-- promise   P10
-- locks     message rows, without p_is_waiting passing over locked ones
-- differs   the last error stands beside the body, and not where the message waits
    -- A CLOB counts an emoji as two, and a varchar2 counts it as one. What is stored is a CLOB,
    -- because SQL takes no varchar2 of more than 4000 bytes for many rows (ORA-01461).
    v_error constant clob := substr(internal_clob_part(p_error, 1, 4000), 1, 2000);
    v_wanted rowq_ids := internal_ids_of(p_messages);
    v_ids    rowq_ids;
    v_held   rowq_ids;
begin
    if p_is_waiting then
        v_ids := v_wanted;
    else
        internal_lock_messages(p_part_id, v_wanted, v_ids, v_held);
    end if;
    if p_error is not null and v_error is null then
        -- An empty text is not a missing one, but Oracle takes '' as null: store an empty CLOB.
        forall i in 1 .. v_ids.count
            update rowq_message m
            set m.last_error = empty_clob()
            where m.part_id = p_part_id
              and m.message_id = v_ids(i);
        return;
    end if;
    forall i in 1 .. v_ids.count
        update rowq_message m
        set m.last_error = v_error
        where m.part_id = p_part_id
          and m.message_id = v_ids(i);
end internal_note_error;

procedure internal_note_expiry(
    p_part_id  in number,
    p_messages in t_messages,
    p_seqs     in t_numbers
)
is
-- routine   internal_note_expiry
-- purpose   Let maintain look again for those of the messages that expire. p_seqs are their places in ready, and empty where they wait elsewhere.
-- promise   P36
-- locks     new expiry rows
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_wanted  rowq_ids := internal_ids_of(p_messages);
    v_ids     t_numbers;
    v_moments t_moments;
    v_places  t_places;
    v_place   pls_integer;
    v_lanes   t_numbers;
    v_seqs    t_numbers;
begin
    if p_messages.count = 0 then
        return;
    end if;
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */
           m.message_id, greatest(m.expires_at, v_now) as expires_at
    bulk collect into v_ids, v_moments
    from table(v_wanted) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value
    where m.expires_at is not null;
    if v_ids.count = 0 then
        return;
    end if;

    for i in 1 .. p_messages.count loop
        v_places(internal_number_text(p_messages(i).message_id)) := i;
    end loop;
    for i in 1 .. v_ids.count loop
        v_lanes(i) := null;
        v_seqs(i) := null;
        if p_seqs.count > 0 then
            v_place := v_places(internal_number_text(v_ids(i)));
            v_lanes(i) := p_messages(v_place).lane;
            v_seqs(i) := p_seqs(v_place);
        end if;
    end loop;
    forall i in 1 .. v_ids.count
        insert into rowq_expiry (part_id, expires_at, expiry_id, message_id, lane, seq)
        values (
            p_part_id, v_moments(i), rowq_claim_seq.nextval, v_ids(i), v_lanes(i), v_seqs(i)
        );
end internal_note_expiry;

procedure internal_note_fault(p_part_id in number, p_fault in varchar2)
is
-- routine   internal_note_fault
-- purpose   Remember the last fault of a queue's archive or history for health; null forgets it.
-- promise   P19
-- locks     a row of meta
-- differs   no such helper elsewhere: other engines warn
    v_name constant rowq_meta.name%type := 'archive_fault.' || internal_number_text(p_part_id);
begin
    if p_fault is null then
        delete from rowq_meta m
        where m.name = v_name;
        return;
    end if;
    merge into rowq_meta m
    using (select v_name as name from dual) n on (m.name = n.name)
    when matched then update
        set m.value      = p_fault,
            m.changed_at = sys_extract_utc(systimestamp)
    when not matched then insert (name, value, changed_at)
        values (n.name, p_fault, sys_extract_utc(systimestamp));
end internal_note_fault;

procedure internal_note_listener(p_part_id in number, p_listened_until in timestamp)
is
-- routine   internal_note_listener
-- purpose   Note until when somebody listens at a queue; null when nobody does any more.
-- locks     the queue row, passed over when locked
-- differs   this engine's own
    v_row_id rowid;
    cursor queue_row is
        select q.rowid
        from rowq_queue q
        where q.part_id = p_part_id
        for update skip locked;
begin
    open queue_row;
    fetch queue_row into v_row_id;
    close queue_row;
    if v_row_id is not null then
        update rowq_queue q
        set q.listened_until = p_listened_until
        where q.rowid = v_row_id;
    end if;
end internal_note_listener;

procedure internal_note_start(
    p_part_id    in number,
    p_claim_id   in number,
    p_started_at in timestamp,
    p_messages   in number
)
is
-- routine   internal_note_start
-- purpose   Note the deliveries that a claim has begun, where the queue has a rate_limit.
-- promise   P29
-- locks     the new started row
begin
    insert into rowq_started (part_id, started_at, claim_id, messages)
    select p_part_id, p_started_at, p_claim_id, p_messages
    from rowq_queue q
    where q.part_id = p_part_id
      and q.rate_limit > 0;
end internal_note_start;

function internal_number_text(p_value in number)
return varchar2
is
-- routine   internal_number_text
-- purpose   Return a number as text, with a point whatever the session's NLS_NUMERIC_CHARACTERS are.
-- differs   no such helper elsewhere: other engines have no such setting
begin
    return coalesce(to_char(p_value, 'tm9', 'nls_numeric_characters=''.,'''), 'null');
end internal_number_text;

function internal_offset_change(
    p_from      in timestamp,
    p_to        in timestamp,
    p_time_zone in varchar2
)
return timestamp
is
-- routine   internal_offset_change
-- purpose   Return the first moment after p_from, up to p_to, when the clocks of a time zone were changed; null where they were not. Both moments are whole minutes at most two days apart.
    v_offset constant number := internal_offset_of(p_from, p_time_zone);
    -- Minutes after p_from.
    v_low    pls_integer := 0;
    v_high   pls_integer :=
        (internal_microseconds(p_to) - internal_microseconds(p_from)) / 60000000;
    v_middle pls_integer;
begin
    if internal_offset_of(p_to, p_time_zone) = v_offset then
        return null;
    end if;
    while v_high - v_low > 1 loop
        v_middle := trunc((v_low + v_high) / 2);
        if internal_offset_of(p_from + numtodsinterval(v_middle, 'minute'), p_time_zone)
            = v_offset
        then
            v_low := v_middle;
        else
            v_high := v_middle;
        end if;
    end loop;
    return p_from + numtodsinterval(v_high, 'minute');
end internal_offset_change;

function internal_offset_of(p_moment in timestamp, p_time_zone in varchar2)
return number
is
-- routine   internal_offset_of
-- purpose   Return how many minutes the clocks of a time zone are ahead of UTC at a moment.
-- differs   no such helper elsewhere: other engines have an expression for it
begin
    return (
        internal_microseconds(internal_local_of(p_moment, p_time_zone))
        - internal_microseconds(p_moment)
    ) / 60000000;
end internal_offset_of;

function internal_oldest_ready(p_part_id in number)
return timestamp
is
-- routine   internal_oldest_ready
-- purpose   Find when the oldest message at the head of a lane was enqueued; null where there is none.
-- promise   P13
    v_lanes  t_lanes := internal_open_lanes_of(p_part_id);
    v_id     rowq_ready.message_id%type;
    v_head   timestamp(6);
    v_oldest timestamp(6);
    cursor lane_rows(p_lane in number, p_floor in number) is
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.message_id
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane = p_lane
          and r.seq >= p_floor
        order by r.part_id, r.lane, r.seq, r.message_id;
begin
    for i in 1 .. v_lanes.count loop
        v_id := null;
        open lane_rows(v_lanes(i).lane, v_lanes(i).floor_seq);
        fetch lane_rows into v_id;
        close lane_rows;
        select min(m.enqueued_at) into v_head
        from rowq_message m
        where m.part_id = p_part_id
          and m.message_id = v_id;
        v_oldest := least(coalesce(v_oldest, v_head), coalesce(v_head, v_oldest));
    end loop;
    return v_oldest;
end internal_oldest_ready;

procedure internal_open_lanes(p_part_id in number, p_lane in number)
is
-- routine   internal_open_lanes
-- purpose   Let dequeue look into a lane and its front companion.
-- promise   P02
-- locks     the rows of the two lanes, passing over locked ones
    v_row_ids t_row_ids;
    -- Skip locked rows, so that no producer waits: their session is usually opening the lanes too.
    -- If the lanes stay closed, the next maintain finds the messages and opens them.
    cursor closed_lanes is
        select l.rowid
        from rowq_lane l
        where l.part_id = p_part_id
          and l.lane in (p_lane, trunc(p_lane / 2) * 2)
          and l.is_open = 0
        for update skip locked;
begin
    open closed_lanes;
    fetch closed_lanes bulk collect into v_row_ids limit 2;
    close closed_lanes;
    forall i in 1 .. v_row_ids.count
        update rowq_lane l
        set l.is_open = 1
        where l.rowid = v_row_ids(i);
end internal_open_lanes;

procedure internal_open_lanes_for(p_part_id in number, p_new in t_new_messages)
is
-- routine   internal_open_lanes_for
-- purpose   Let dequeue look into the lanes of new messages.
-- promise   P02
-- locks     as internal_open_lanes, only for a lane that was never used
-- differs   no such helper elsewhere: part of store
    -- The lane of the default priority is open from the start.
    c_default_lane constant pls_integer := 11;
    v_lanes t_lanes;
    v_open  t_numbers;
begin
    v_open(c_default_lane) := 1;
    for i in 1 .. p_new.count loop
        if not v_open.exists(p_new(i).lane) then
            if v_lanes.count = 0 then
                v_lanes := internal_open_lanes_of(p_part_id);
                for l in 1 .. v_lanes.count loop
                    v_open(v_lanes(l).lane) := 1;
                end loop;
            end if;
            if not v_open.exists(p_new(i).lane) then
                internal_open_lanes(p_part_id, p_new(i).lane);
                v_open(p_new(i).lane) := 1;
            end if;
        end if;
    end loop;
end internal_open_lanes_for;

function internal_open_lanes_of(p_part_id in number)
return t_lanes
is
-- routine   internal_open_lanes_of
-- purpose   Return the lanes that dequeue looks into, best first, with their floors.
-- promise   P05 P13
-- differs   no such helper elsewhere: other engines read them one by one
    v_lanes t_lanes;
begin
    select l.lane, l.floor_seq
    bulk collect into v_lanes
    from rowq_lane l
    where l.part_id = p_part_id
      and l.lane >= 0
      and l.is_open = 1
    order by l.part_id, l.lane;
    return v_lanes;
end internal_open_lanes_of;

function internal_outcomes(
    p_ids      in rowq_ids,
    p_messages in t_messages,
    p_outcome  in varchar2,
    p_other    in varchar2 default 'stale'
)
return rowq_lines
is
-- routine   internal_outcomes
-- purpose   Return a line for each message: p_outcome for p_messages, p_other for the others that were asked for.
-- promise   P08
-- differs   no such helper elsewhere: other engines return a query
    v_lines rowq_lines := rowq_lines();
    v_done  t_places;
begin
    if p_ids is null then
        v_lines.extend(p_messages.count);
        for i in 1 .. p_messages.count loop
            v_lines(i) := rowq_line(
                i, p_messages(i).message_id, p_messages(i).lane, p_messages(i).attempt,
                p_outcome, null
            );
        end loop;
        return v_lines;
    end if;

    for i in 1 .. p_messages.count loop
        v_done(internal_number_text(p_messages(i).message_id)) := i;
    end loop;
    v_lines.extend(p_ids.count);
    for i in 1 .. p_ids.count loop
        v_lines(i) := rowq_line(
            i, p_ids(i), null, null,
            case
                when v_done.exists(internal_number_text(p_ids(i))) then p_outcome
                else p_other
            end,
            null
        );
    end loop;
    return v_lines;
end internal_outcomes;

function internal_parse_cron(p_cron in varchar2)
return varchar2
is
-- routine   internal_parse_cron
-- purpose   Turn a cron expression into a text of 0 and 1: 60 for minutes, 24 hours, 31 days, 12 months, 7 weekdays from Sunday on, one for a minute and an hour that are given, one for a day and a weekday that are both given.
-- promise   P15
-- errors    RQ711
    c_star constant pls_integer := ascii('*');
    v_word     raw(800);
    v_rest     varchar2(200 char);
    v_blank    pls_integer;
    v_fields   t_texts;
    v_weekdays varchar2(8 char);
begin
    if length(p_cron) <= 200 then
        -- Compare bytes, because texts are compared as the session's NLS_COMP and NLS_SORT say.
        v_word := utl_raw.cast_to_raw(lower(p_cron));
        v_rest := trim(
            replace(
                case
                    when v_word = utl_raw.cast_to_raw('@hourly') then '0 * * * *'
                    when v_word = utl_raw.cast_to_raw('@daily') then '0 0 * * *'
                    when v_word = utl_raw.cast_to_raw('@midnight') then '0 0 * * *'
                    when v_word = utl_raw.cast_to_raw('@weekly') then '0 0 * * 0'
                    when v_word = utl_raw.cast_to_raw('@monthly') then '0 0 1 * *'
                    when v_word = utl_raw.cast_to_raw('@yearly') then '0 0 1 1 *'
                    when v_word = utl_raw.cast_to_raw('@annually') then '0 0 1 1 *'
                    else p_cron
                end,
                chr(9), chr(32)
            )
        );
    end if;
    while v_rest is not null loop
        v_blank := instr(v_rest || chr(32), chr(32));
        v_fields(v_fields.count + 1) := substr(v_rest, 1, v_blank - 1);
        v_rest := ltrim(substr(v_rest, v_blank));
    end loop;
    if v_fields.count <> 5 then
        internal_refuse(
            'cron must be five fields (minute, hour, day, month, weekday) or a word such as'
            || ' @daily, got ' || substr(p_cron, 1, 60)
        );
    end if;

    -- Sunday is 0 and 7.
    v_weekdays := internal_parse_cron_field(
        v_fields(5), 'weekday', 0, 7, 'sun mon tue wed thu fri sat '
    );
    return internal_parse_cron_field(v_fields(1), 'minute', 0, 59)
        || internal_parse_cron_field(v_fields(2), 'hour', 0, 23)
        || internal_parse_cron_field(v_fields(3), 'day', 1, 31)
        || internal_parse_cron_field(
            v_fields(4), 'month', 1, 12, 'jan feb mar apr may jun jul aug sep oct nov dec '
        )
        || case
            when substr(v_weekdays, 8, 1) = '1' then '1'
            else substr(v_weekdays, 1, 1)
        end
        || substr(v_weekdays, 2, 6)
        || case
            when ascii(v_fields(1)) = c_star or ascii(v_fields(2)) = c_star then '0'
            else '1'
        end
        || case
            when ascii(v_fields(3)) = c_star or ascii(v_fields(5)) = c_star then '0'
            else '1'
        end;
end internal_parse_cron;

function internal_parse_cron_field(
    p_field in varchar2,
    p_name  in varchar2,
    p_low   in number,
    p_high  in number,
    p_words in varchar2 default null
)
return varchar2
is
-- routine   internal_parse_cron_field
-- purpose   Turn a field of a cron expression into a text of 0 and 1, one for each value from p_low on. p_words are names of three letters for these values.
-- promise   P15
-- errors    RQ711
    v_rest  varchar2(1000 char) := lower(p_field) || ',';
    v_item  varchar2(1000 char);
    v_range varchar2(1000 char);
    v_slash pls_integer;
    v_dash  pls_integer;
    v_first number;
    v_last  number;
    v_step  number;
    v_bits  varchar2(60 char) := rpad('0', p_high - p_low + 1, '0');

    -- A value or a step is one or two digits. Compare the codes of characters, because a session
    -- can have its own order (NLS_SORT).
    function number_of(p_text in varchar2)
    return number
    is
        v_number number := 0;
    begin
        if p_text is null or length(p_text) > 2 then
            return null;
        end if;
        for i in 1 .. length(p_text) loop
            if ascii(substr(p_text, i, 1)) not between ascii('0') and ascii('9') then
                return null;
            end if;
            v_number := v_number * 10 + ascii(substr(p_text, i, 1)) - ascii('0');
        end loop;
        return v_number;
    end number_of;

    function value_of(p_text in varchar2)
    return number
    is
        v_place pls_integer;
    begin
        if p_text is null or length(p_text) <> 3 then
            return number_of(p_text);
        end if;
        for i in 1 .. 3 loop
            if ascii(substr(p_text, i, 1)) not between ascii('a') and ascii('z') then
                return null;
            end if;
        end loop;
        v_place := instr(p_words, p_text);
        return case when mod(v_place, 4) = 1 then p_low + trunc(v_place / 4) end;
    end value_of;
begin
    while v_rest is not null loop
        v_item := substr(v_rest, 1, instr(v_rest, ',') - 1);
        v_rest := substr(v_rest, instr(v_rest, ',') + 1);
        v_slash := coalesce(instr(v_item, '/'), 0);
        v_range := case when v_slash > 0 then substr(v_item, 1, v_slash - 1) else v_item end;
        v_step := case when v_slash > 0 then number_of(substr(v_item, v_slash + 1)) else 1 end;
        v_dash := coalesce(instr(v_range, '-'), 0);
        if ascii(v_range) = ascii('*') and length(v_range) = 1 then
            v_first := p_low;
            v_last := p_high;
        elsif v_dash > 0 then
            v_first := value_of(substr(v_range, 1, v_dash - 1));
            v_last := value_of(substr(v_range, v_dash + 1));
        else
            v_first := value_of(v_range);
            v_last := case when v_slash > 0 then p_high else v_first end;
        end if;
        if v_first is null
           or v_last is null
           or v_step is null
           or v_step = 0
           or v_first < p_low
           or v_last > p_high
           or v_first > v_last then
            internal_refuse(
                'the ' || p_name || ' of cron must be *, values from '
                || internal_number_text(p_low) || ' to ' || internal_number_text(p_high)
                || ', ranges or steps of these, got ' || substr(p_field, 1, 60)
            );
        end if;
        while v_first <= v_last loop
            v_bits := substr(v_bits, 1, v_first - p_low) || '1'
                || substr(v_bits, v_first - p_low + 2);
            v_first := v_first + v_step;
        end loop;
    end loop;
    return v_bits;
end internal_parse_cron_field;

function internal_parse_message(
    p_message      in json_element_t,
    p_headers      in clob,
    p_now          in timestamp,
    p_place        in number,
    p_max_length   in number,
    p_is_published in boolean,
    p_fault        out varchar2
)
return t_new_message
is
-- routine   internal_parse_message
-- purpose   Read and check one message of enqueue_batch, or of publish_batch, where it has a topic and no predecessors; p_fault is what is wrong with it, or null.
-- promise   P15 P20
    c_keys constant varchar2(300 char) := '|body|body_base64|message_type|headers|priority'
        || '|delay_seconds|run_at|dedup_key|max_attempts|group_key|expire_seconds|'
        || case
            when p_is_published then 'topic|'
            else 'predecessor_ids|predecessor_positions|on_predecessor_dead|'
        end;
    c_places constant varchar2(100 char) :=
        ' must be a flat list of places before the message''s own';
    v_object  json_object_t;
    v_keys    json_key_list;
    v_new     t_new_message;
    v_known   pls_integer := 0;
    v_body    clob;
    v_headers clob;
    v_bytes   blob;
    v_type    varchar2(32767);
    v_topic   varchar2(32767);
    v_key     varchar2(32767);
    v_group   varchar2(32767);
    v_on_dead varchar2(32767);
    v_ids     rowq_ids;
    v_places  rowq_ids;
    v_moment  varchar2(32767);
    v_numbers t_numbers;
    v_run_at  timestamp(6);

    -- has says whether a key is there and not null. It counts each key that is there as known.
    function has(p_key in varchar2)
    return boolean
    is
    begin
        if not v_object.has(p_key) then
            return false;
        end if;
        v_known := v_known + 1;
        return not v_object.get(p_key).is_null();
    end has;

    function text_of(p_key in varchar2)
    return varchar2
    is
    begin
        if not has(p_key) then
            return null;
        end if;
        if not v_object.get(p_key).is_string() then
            p_fault := p_key || ' must be a string';
            return null;
        end if;
        -- No valid text here is longer than 200 characters, so 201 are enough to refuse it.
        return substr(internal_clob_part(v_object.get_clob(p_key), 1, 402), 1, 201);
    end text_of;

    function list_of(p_key in varchar2, p_meaning in varchar2)
    return rowq_ids
    is
        v_list    rowq_ids;
        v_is_good boolean;
    begin
        if not has(p_key) then
            return null;
        end if;
        v_is_good := internal_is_id_list(v_object.get(p_key).to_clob(), v_list);
        if not v_is_good then
            p_fault := p_key || p_meaning;
        end if;
        return v_list;
    end list_of;

    -- key_of refuses an empty text, which Oracle takes as null.
    function key_of(p_key in varchar2)
    return varchar2
    is
        v_text varchar2(32767) := text_of(p_key);
    begin
        if v_text is null and v_object.has(p_key) then
            if v_object.get(p_key).is_string() then
                p_fault := p_key || ' must be 1 to 200 characters';
            end if;
        end if;
        return v_text;
    end key_of;

    function number_of(p_key in varchar2, p_default in number default null)
    return number
    is
        v_number number;
    begin
        if not has(p_key) then
            return p_default;
        end if;
        if not v_object.get(p_key).is_number() then
            p_fault := p_key || ' must be a number';
            return null;
        end if;
        v_number := v_object.get_number(p_key);
        if v_number is null then
            -- The number is greater than any that NUMBER holds.
            p_fault := p_key || ' is out of range';
        end if;
        return v_number;
    end number_of;
begin
    p_fault := null;
    if not p_message.is_object() then
        p_fault := 'a message must be a JSON object';
        return v_new;
    end if;
    v_object := treat(p_message as json_object_t);

    if has('body') then
        -- A value that is no string is kept as JSON text. An empty text is not a missing one, but
        -- Oracle takes '' as null: keep an empty CLOB.
        v_body := case
            when v_object.get('body').is_string() then v_object.get_clob('body')
            else v_object.get('body').to_clob()
        end;
        v_body := coalesce(v_body, empty_clob());
    end if;
    if has('body_base64') then
        if v_object.get('body_base64').is_string() then
            v_bytes := internal_from_base64(v_object.get_clob('body_base64'));
        end if;
        if v_bytes is null then
            p_fault := 'body_base64 is not base64';
        end if;
    end if;
    if has('headers') then
        -- p_headers is given if the headers were cut out of the message (internal_cut_headers).
        v_headers := coalesce(p_headers, v_object.get('headers').to_clob());
    end if;
    v_type := text_of('message_type');
    v_key := key_of('dedup_key');
    v_group := key_of('group_key');
    if p_is_published then
        v_topic := text_of('topic');
        p_fault := coalesce(p_fault, internal_topic_fault('topic', v_topic, false));
        v_type := coalesce(v_type, v_topic);
    else
        v_ids := list_of(
            'predecessor_ids', ' must be a flat list of at most 10000 ids, no null'
        );
        v_places := list_of('predecessor_positions', c_places);
        v_on_dead := text_of('on_predecessor_dead');
        if v_on_dead is null and v_object.has('on_predecessor_dead') then
            if v_object.get('on_predecessor_dead').is_string() then
                p_fault := 'on_predecessor_dead must be hold, continue or fail';
            end if;
        end if;
    end if;
    v_moment := text_of('run_at');
    v_run_at := internal_parse_moment(v_moment);
    if v_moment is not null and v_run_at is null then
        p_fault := 'run_at is no moment: ' || substr(v_moment, 1, 40);
    end if;
    v_numbers(1) := number_of('priority', 5);
    v_numbers(2) := number_of('delay_seconds');
    v_numbers(3) := number_of('max_attempts');
    v_numbers(4) := number_of('expire_seconds');

    if v_known < v_object.get_size() then
        p_fault := 'unknown key';
        begin
            v_keys := v_object.get_keys();
            for i in 1 .. v_keys.count loop
                if instr(c_keys, '|' || v_keys(i) || '|') = 0 then
                    p_fault := 'unknown key ' || substr(v_keys(i), 1, 60);
                end if;
            end loop;
        exception
            when value_error then
                -- ORA-06502: json_key_list holds no key of more than 4000 bytes.
                p_fault := 'unknown key of more than 4000 bytes';
        end;
    end if;
    if v_places is not null and p_fault is null then
        for i in 1 .. v_places.count loop
            if v_places(i) not between 1 and p_place - 1 then
                p_fault := 'predecessor_positions' || c_places;
            end if;
        end loop;
        if v_ids is null then
            v_ids := rowq_ids();
        end if;
    end if;
    p_fault := coalesce(
        p_fault,
        internal_message_fault(
            v_body, v_bytes, v_type, v_headers, v_numbers(1), v_numbers(2), v_run_at, v_key,
            v_numbers(3), v_group, v_on_dead, v_numbers(4)
        ),
        internal_body_fault(v_body, v_bytes, p_max_length)
    );
    if p_fault is null then
        v_new := internal_new_message(
            p_now, p_place, v_body, v_bytes, v_type, v_headers, v_numbers(1), v_numbers(2),
            v_run_at, v_key, v_numbers(3), v_group, v_ids, v_on_dead, v_numbers(4)
        );
        v_new.predecessor_positions := v_places;
        v_new.topic := v_topic;
    end if;
    return v_new;
end internal_parse_message;

function internal_parse_messages(
    p_messages     in clob,
    p_max_length   in number,
    p_is_published in boolean default false
)
return t_new_messages
is
-- routine   internal_parse_messages
-- purpose   Read and check the messages of enqueue_batch, or of publish_batch, where p_max_length is null.
-- promise   P15
-- errors    RQ711
    c_fault constant varchar2(100 char) :=
        'messages must be a JSON array of at most 10000 objects';
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_rest    clob := p_messages;
    v_headers t_clobs;
    v_list    json_element_t;
    v_array   json_array_t;
    v_new     t_new_messages;
    v_fault   varchar2(32767);
begin
    if not internal_is_json(p_messages) then
        internal_refuse(c_fault);
    end if;
    -- A JSON object would round a number of many digits or with an exponent, so cut the headers out
    -- as text. The pattern lists the digits, because a range would follow the session's NLS_SORT.
    if regexp_like(p_messages, '[[:space:],:[]-?[0123456789.]+[eE]|[0123456789.]{38}') then
        internal_cut_headers(p_messages, v_headers, v_rest);
    end if;
    v_list := json_element_t.parse(v_rest);
    if not v_list.is_array() then
        internal_refuse(c_fault);
    end if;
    v_array := treat(v_list as json_array_t);
    if v_array.get_size() > 10000 then
        internal_refuse(c_fault);
    end if;

    for i in 1 .. v_array.get_size() loop
        v_new(i) := internal_parse_message(
            v_array.get(i - 1), case when v_headers.exists(i) then v_headers(i) end, v_now, i,
            p_max_length, p_is_published, v_fault
        );
        if v_fault is not null then
            internal_refuse(v_fault || ' (message ' || internal_number_text(i) || ')');
        end if;
    end loop;
    return v_new;
end internal_parse_messages;

function internal_parse_moment(p_text in varchar2)
return timestamp
is
-- routine   internal_parse_moment
-- purpose   Read a moment in ISO 8601, UTC without a zone; null when it is none.
-- promise   P15
    c_shape constant varchar2(200 char) :=
        '^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(:[0-9]{2})?(\.[0-9]{1,6})?'
        || '(Z|[+-][0-9]{2}:?[0-9]{2})?$';
    v_zone    varchar2(10 char);
    v_minutes pls_integer := 0;
    v_moment  timestamp(6);
begin
    if p_text is null or not regexp_like(p_text, c_shape, 'c') then
        return null;
    end if;
    v_moment := to_timestamp(
        regexp_substr(p_text, c_shape, 1, 1, 'c', 1) || ' '
        || regexp_substr(p_text, c_shape, 1, 1, 'c', 2)
        || coalesce(regexp_substr(p_text, c_shape, 1, 1, 'c', 3), ':00')
        || coalesce(regexp_substr(p_text, c_shape, 1, 1, 'c', 4), '.0'),
        'yyyy-mm-dd hh24:mi:ss.ff6', 'nls_calendar=gregorian'
    );
    v_zone := regexp_substr(p_text, c_shape, 1, 1, 'c', 5);
    if length(v_zone) > 1 then
        v_minutes := to_number(substr(v_zone, 2, 2), '99') * 60
            + to_number(substr(v_zone, -2), '99');
        -- Compare the code of the sign: NLS_COMP and NLS_SORT may make '-' equal to '+'.
        if ascii(v_zone) = 45 then
            v_minutes := -v_minutes;
        end if;
    end if;
    return v_moment - numtodsinterval(v_minutes, 'minute');
exception
    when others then
        -- A date such as the thirtieth of February raises one of a dozen errors (ORA-018xx): it is
        -- no moment.
        if sqlcode between -1899 and -1800 then
            return null;
        end if;
        raise;
end internal_parse_moment;

procedure internal_pass_group(
    p_part_id       in number,
    p_group_key     in raw,
    p_is_over       in boolean,
    p_is_left       out boolean,
    p_pause_seconds out number
)
is
-- routine   internal_pass_group
-- purpose   Pass one token of a group on to its next message, or give it back. p_is_left says that this cannot be done now, p_pause_seconds how long the group rests then; p_is_over is true where it has rested.
-- promise   P21 P22 P23 P24
-- locks     grouped and message_group rows, passing over locked ones; new ready rows
    v_group    t_group;
    v_token_no number;
    v_kept_no  number;
    v_next     t_messages;
begin
    p_is_left := false;
    internal_read_group(p_part_id, p_group_key, v_group);
    p_pause_seconds := v_group.pause_seconds;
    if v_group.pause_seconds > 0 and not p_is_over then
        p_is_left := true;
        return;
    end if;

    -- A token beyond a limit that was lowered is given back, whoever waits, as long as another one
    -- stays: one that can be locked is not being given back by somebody else.
    if v_group.tokens.last > v_group.group_limit then
        v_kept_no := internal_lock_token(
            p_part_id, p_group_key, v_group, 1, v_group.group_limit
        );
        if v_kept_no is not null then
            v_token_no := internal_lock_token(
                p_part_id, p_group_key, v_group, v_group.group_limit + 1, v_group.tokens.last
            );
        end if;
    end if;
    if v_token_no is null and v_group.first_id is null then
        -- Nobody waits. Where a token can be locked, nobody is coming either, and who was coming a
        -- moment ago is there by now, so look once more, in a statement of its own.
        v_token_no := internal_lock_token(
            p_part_id, p_group_key, v_group, 1, v_group.tokens.last
        );
        if v_token_no is null then
            p_is_left := true;
            return;
        end if;
        internal_read_group(p_part_id, p_group_key, v_group);
        if v_group.first_id is not null then
            v_token_no := null;
        end if;
    end if;
    if v_token_no is not null then
        delete from rowq_message_group t
        where t.part_id = p_part_id
          and t.group_key = p_group_key
          and t.token_no = v_token_no;
        return;
    end if;

    v_next := internal_pop_next_grouped(p_part_id, p_group_key, v_group);
    p_is_left := v_next.count = 0;
    internal_push_ready(p_part_id, v_next);
    if v_next.count > 0 then
        internal_ring_doorbell(p_part_id, v_group.listened_until);
    end if;
end internal_pass_group;

function internal_peek_ready(p_part_id in number, p_limit in number)
return rowq_lines
is
-- routine   internal_peek_ready
-- purpose   Return the next p_limit ready messages, best lane first.
-- promise   P05 P13
-- differs   no such helper elsewhere: part of peek
    v_lanes t_lanes := internal_open_lanes_of(p_part_id);
    v_left  pls_integer;
    v_some  t_messages;
    v_lines rowq_lines := rowq_lines();
    cursor lane_rows(p_lane in number, p_floor in number) is
        select /*+ index_rs_asc(r rowq_ready_pk) */
               r.message_id, r.lane, r.attempt, r.seq, null as group_key, 0 as is_tokenless
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane = p_lane
          and r.seq >= p_floor
        order by r.part_id, r.lane, r.seq, r.message_id;
begin
    for i in 1 .. v_lanes.count loop
        exit when v_lines.count >= p_limit;
        v_left := p_limit - v_lines.count;
        open lane_rows(v_lanes(i).lane, v_lanes(i).floor_seq);
        fetch lane_rows bulk collect into v_some limit v_left;
        close lane_rows;
        for j in 1 .. v_some.count loop
            v_lines.extend;
            v_lines(v_lines.last) := rowq_line(
                v_lines.last, v_some(j).message_id, v_some(j).lane, v_some(j).attempt, null, null
            );
        end loop;
    end loop;
    return v_lines;
end internal_peek_ready;

procedure internal_pop_blocked(
    p_part_id  in number,
    p_ids      in t_numbers,
    p_lanes    in t_numbers,
    p_messages in out nocopy t_messages
)
is
-- routine   internal_pop_blocked
-- purpose   Delete blocked rows that are locked, and append their messages.
-- promise   P03
-- locks     blocked rows, which the caller holds already
-- differs   no such helper on PostgreSQL: part of purge_queue and internal_pop_waiting
    v_next pls_integer := p_messages.count;
begin
    forall i in 1 .. p_ids.count
        delete from rowq_blocked b
        where b.part_id = p_part_id
          and b.message_id = p_ids(i);
    -- Take a message only if this statement has deleted its row, so that no other session has the
    -- message too.
    for i in 1 .. p_ids.count loop
        if sql%bulk_rowcount(i) = 1 then
            v_next := v_next + 1;
            p_messages(v_next).message_id := p_ids(i);
            p_messages(v_next).lane := p_lanes(i);
            p_messages(v_next).attempt := 0;
            p_messages(v_next).is_tokenless := 1;
        end if;
    end loop;
end internal_pop_blocked;

procedure internal_pop_claimed(
    p_part_id  in number,
    p_claim_id in number,
    p_ids      in rowq_ids,
    p_claim    out nocopy t_claim,
    p_messages out nocopy t_messages
)
is
-- routine   internal_pop_claimed
-- purpose   Take messages out of a claim: those asked for that it still holds, or all of them. p_claim says who had them.
-- promise   P08
-- locks     the claim row, first of all
-- errors    RQ721
    v_row_id rowid;
    v_held   t_messages;
    v_wanted t_places;
    cursor claim_row is
        select c.rowid, c.worker_name, c.leased_at
        from rowq_claim c
        where c.part_id = p_part_id
          and c.claim_id = p_claim_id
        for update;
begin
    p_messages.delete;
    p_claim.claim_id := p_claim_id;
    -- Both ways wait for a session that is finishing the same claim; afterwards the claim is as it
    -- was, smaller, or gone.
    if p_ids is null then
        delete from rowq_claim c
        where c.part_id = p_part_id
          and c.claim_id = p_claim_id
        returning c.worker_name, c.leased_at into p_claim.worker_name, p_claim.leased_at;
        if sql%rowcount = 0 then
            internal_refuse_claim(p_claim_id);
        end if;
        p_messages := internal_claimed_messages(p_part_id, p_claim_id);
        delete from rowq_leased l
        where l.part_id = p_part_id
          and l.claim_id = p_claim_id;
        return;
    end if;

    open claim_row;
    fetch claim_row into v_row_id, p_claim.worker_name, p_claim.leased_at;
    close claim_row;
    if v_row_id is null then
        return;
    end if;

    v_held := internal_claimed_messages(p_part_id, p_claim_id);
    for i in 1 .. p_ids.count loop
        v_wanted(internal_number_text(p_ids(i))) := i;
    end loop;
    for i in 1 .. v_held.count loop
        if v_wanted.exists(internal_number_text(v_held(i).message_id)) then
            p_messages(p_messages.count + 1) := v_held(i);
        end if;
    end loop;

    forall i in 1 .. p_messages.count
        delete from rowq_leased l
        where l.part_id = p_part_id
          and l.claim_id = p_claim_id
          and l.place = p_messages(i).seq;
    if p_messages.count = v_held.count then
        delete from rowq_claim c
        where c.rowid = v_row_id;
    end if;
end internal_pop_claimed;

procedure internal_pop_dead(
    p_part_id  in number,
    p_ids      in rowq_ids,
    p_locked   in t_locked_rows,
    p_messages out nocopy t_messages,
    p_lines    out nocopy rowq_lines
)
is
-- routine   internal_pop_dead
-- purpose   Take locked dead messages out of their place; one whose dedup key another message has stays dead. Those without a token get their group_key, as they are to join their groups.
-- promise   P12 P21
-- locks     dead rows, which the caller holds already; new dedup rows, in key order
-- differs   no such helper elsewhere: part of reset
    v_found  t_messages;
    v_wanted rowq_ids;
    v_ids    t_numbers;
    v_keys   t_texts;
    v_groups t_texts;
    v_flags  t_numbers;
    v_tied   t_places;
    v_order  t_places;
    v_taken  t_places;
    v_at     varchar2(4000 char);
    v_text   varchar2(50 char);
    v_key    raw(800);
    v_free   t_locked_rows;
begin
    for i in 1 .. p_locked.count loop
        v_found(i).message_id := p_locked(i).message_id;
    end loop;
    v_wanted := internal_ids_of(v_found);
    internal_read_ties(p_part_id, v_found, v_ids, v_keys, v_groups, v_flags);
    for i in 1 .. v_ids.count loop
        v_tied(internal_number_text(v_ids(i))) := i;
        if v_keys(i) is not null then
            v_order(internal_dedup_order(v_keys(i), v_ids(i))) := i;
        end if;
    end loop;

    v_at := v_order.first;
    while v_at is not null loop
        v_key := utl_raw.cast_to_raw(v_keys(v_order(v_at)));
        begin
            insert into rowq_dedup (part_id, dedup_key, message_id)
            values (p_part_id, v_key, v_ids(v_order(v_at)));
        exception
            when dup_val_on_index then
                v_taken(internal_number_text(v_ids(v_order(v_at)))) := 1;
        end;
        v_at := v_order.next(v_at);
    end loop;

    for i in 1 .. p_locked.count loop
        if not v_taken.exists(internal_number_text(p_locked(i).message_id)) then
            v_free(v_free.count + 1) := p_locked(i);
        end if;
    end loop;
    p_messages.delete;
    internal_delete_dead(v_free, p_messages);
    if p_ids is not null then
        v_wanted := p_ids;
    end if;
    p_lines := internal_outcomes(v_wanted, p_messages, 'reset', 'not_found');
    for i in 1 .. p_lines.count loop
        if v_taken.exists(internal_number_text(p_lines(i).message_id)) then
            p_lines(i).outcome := 'duplicate';
        end if;
    end loop;
    for i in 1 .. p_messages.count loop
        p_messages(i).lane := trunc(p_messages(i).lane / 2) * 2 + 1;
        p_messages(i).attempt := 0;
        v_text := internal_number_text(p_messages(i).message_id);
        if p_messages(i).is_tokenless = 1 and v_tied.exists(v_text) then
            p_messages(i).group_key := v_groups(v_tied(v_text));
        end if;
    end loop;
end internal_pop_dead;

procedure internal_pop_expired(
    p_part_id  in number,
    p_due      in t_expiring_list,
    p_messages out nocopy t_messages
)
is
-- routine   internal_pop_expired
-- purpose   Take messages out of the places where they were seen, unless another session holds them.
-- promise   P03 P36
-- locks     as internal_lock_expiring; then message rows, tried only
    -- ORA-08177: this transaction is serializable, and another has changed a row since it began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    v_row     t_locked_row;
    v_rows    t_locked_rows;
    v_ids     rowq_ids := rowq_ids();
    v_locked  rowq_ids;
    v_held    rowq_ids;
    v_free    t_places;
    v_at      pls_integer;
    v_ready   t_locked_rows;
    v_delayed t_locked_rows;
    v_blocked t_numbers;
    v_lanes   t_numbers;
    v_grouped t_messages;
begin
    p_messages.delete;
    begin
        for i in 1 .. p_due.count loop
            if p_due(i).place is not null then
                internal_lock_expiring(p_part_id, p_due(i), v_row);
                if v_row.message_id is not null then
                    v_rows(i) := v_row;
                    v_ids.extend;
                    v_ids(v_ids.last) := v_row.message_id;
                end if;
            end if;
        end loop;
    exception
        when e_not_serial then
            return;
    end;
    if v_ids.count = 0 then
        return;
    end if;

    -- The end of a message waits for a producer that has just named it as a predecessor, and
    -- maintain must not.
    internal_lock_messages(p_part_id, v_ids, v_locked, v_held);
    for i in 1 .. v_locked.count loop
        v_free(internal_number_text(v_locked(i))) := i;
    end loop;
    v_at := v_rows.first;
    while v_at is not null loop
        if v_free.exists(internal_number_text(v_rows(v_at).message_id)) then
            case p_due(v_at).place
                when 'ready' then
                    v_ready(v_ready.count + 1) := v_rows(v_at);
                when 'delayed' then
                    v_delayed(v_delayed.count + 1) := v_rows(v_at);
                when 'blocked' then
                    v_blocked(v_blocked.count + 1) := v_rows(v_at).message_id;
                    v_lanes(v_blocked.count) := v_rows(v_at).lane;
                else
                    v_grouped(v_grouped.count + 1).message_id := v_rows(v_at).message_id;
                    v_grouped(v_grouped.count).group_key := p_due(v_at).group_key;
            end case;
        end if;
        v_at := v_rows.next(v_at);
    end loop;

    internal_delete_ready(v_ready, p_messages);
    internal_delete_delayed(v_delayed, p_messages);
    internal_pop_blocked(p_part_id, v_blocked, v_lanes, p_messages);
    internal_pop_grouped(p_part_id, v_grouped, p_messages);
end internal_pop_expired;

procedure internal_pop_grouped(
    p_part_id  in number,
    p_wanted   in t_messages,
    p_messages in out nocopy t_messages
)
is
-- routine   internal_pop_grouped
-- purpose   Take those of the wanted messages out of their groups that wait there and that nobody holds, and append them.
-- promise   P03
-- locks     grouped rows, passing over locked ones
-- differs   no such helper on PostgreSQL: part of internal_pop_waiting
    v_key  raw(800);
    v_id   rowq_grouped.message_id%type;
    v_lane rowq_grouped.lane%type;
    v_next pls_integer := p_messages.count;
    cursor grouped_row is
        select g.lane
        from rowq_grouped g
        where g.part_id = p_part_id
          and g.group_key = v_key
          and g.message_id = v_id
        for update skip locked;
begin
    for i in 1 .. p_wanted.count loop
        v_lane := null;
        if p_wanted(i).group_key is not null then
            v_key := utl_raw.cast_to_raw(p_wanted(i).group_key);
            v_id := p_wanted(i).message_id;
            open grouped_row;
            fetch grouped_row into v_lane;
            close grouped_row;
        end if;
        if v_lane is not null then
            delete from rowq_grouped g
            where g.part_id = p_part_id
              and g.group_key = v_key
              and g.message_id = v_id;
            v_next := v_next + 1;
            p_messages(v_next).message_id := v_id;
            p_messages(v_next).lane := v_lane;
            p_messages(v_next).attempt := 0;
            p_messages(v_next).is_tokenless := 1;
        end if;
    end loop;
end internal_pop_grouped;

function internal_pop_next_grouped(
    p_part_id   in number,
    p_group_key in raw,
    p_group     in t_group
)
return t_messages
is
-- routine   internal_pop_next_grouped
-- purpose   Take the first message that waits in a group out of it; with a limit above 1, where another session holds that one, the next one that nobody holds. None where that cannot be done.
-- promise   P21 P22
-- locks     a grouped row, passing over locked ones
-- differs   no such helper elsewhere: part of internal_pass_group
    -- ORA-08177: this transaction is serializable, and another has held the row since it began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    c_greatest constant number := 9999999999999999999;
    -- With a limit of 1 nobody is taken instead, because a message that is being cancelled may
    -- stay, and must not be overtaken.
    v_last_id  constant number := case
        when p_group.group_limit = 1 then p_group.first_id
        else c_greatest
    end;
    v_next     t_messages;
    v_id       rowq_grouped.message_id%type;
    v_lane     rowq_grouped.lane%type;
    cursor next_rows is
        select /*+ index_rs_asc(g rowq_grouped_pk) */ g.message_id, g.lane
        from rowq_grouped g
        where g.part_id = p_part_id
          and g.group_key = p_group_key
          and g.message_id between p_group.first_id and v_last_id
        order by g.part_id, g.group_key, g.message_id
        for update skip locked;
begin
    begin
        open next_rows;
        fetch next_rows into v_id, v_lane;
        close next_rows;
    exception
        when e_not_serial then
            return v_next;
    end;
    if v_id is null then
        return v_next;
    end if;

    delete from rowq_grouped g
    where g.part_id = p_part_id
      and g.group_key = p_group_key
      and g.message_id = v_id;
    v_next(1).message_id := v_id;
    v_next(1).lane := v_lane;
    v_next(1).attempt := 0;
    return v_next;
end internal_pop_next_grouped;

procedure internal_pop_ready(
    p_part_id  in number,
    p_lanes    in t_lanes,
    p_limit    in number,
    p_messages out nocopy t_messages
)
is
-- routine   internal_pop_ready
-- purpose   Take up to p_limit messages from the lanes, in the order of p_lanes.
-- promise   P05 P06 P13
-- locks     ready rows, passing over locked ones
-- differs   a cursor bounds the batch: rownum would count before the skip, fetch first is refused
    v_probe  rowq_ready.message_id%type;
    v_left   pls_integer;
    v_locked t_locked_rows;
    cursor lane_head(p_lane in number, p_floor in number) is
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.message_id
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane = p_lane
          and r.seq >= p_floor
        order by r.part_id, r.lane, r.seq, r.message_id;
    -- The order is that of the index, so nothing is sorted and a row is locked only when it is
    -- fetched: one fetch of n rows locks n rows. Batched table access would break that order.
    cursor lane_rows(p_lane in number, p_floor in number) is
        select /*+ index_rs_asc(r rowq_ready_pk) no_batch_table_access_by_rowid(r) */
               r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane = p_lane
          and r.seq >= p_floor
        order by r.part_id, r.lane, r.seq, r.message_id
        for update skip locked;
begin
    p_messages.delete;
    for i in 1 .. p_lanes.count loop
        exit when p_messages.count >= p_limit;
        -- Look without a lock first, so that a call that finds nothing begins no transaction.
        v_probe := null;
        open lane_head(p_lanes(i).lane, p_lanes(i).floor_seq);
        fetch lane_head into v_probe;
        close lane_head;
        if v_probe is not null then
            v_left := p_limit - p_messages.count;
            open lane_rows(p_lanes(i).lane, p_lanes(i).floor_seq);
            fetch lane_rows bulk collect into v_locked limit v_left;
            close lane_rows;
            internal_delete_ready(v_locked, p_messages);
        end if;
    end loop;

    -- From here on seq is the place in the claim.
    for i in 1 .. p_messages.count loop
        p_messages(i).attempt := p_messages(i).attempt + 1;
        p_messages(i).seq := i;
    end loop;
end internal_pop_ready;

function internal_pop_waiting(p_part_id in number, p_ids in rowq_ids)
return t_messages
is
-- routine   internal_pop_waiting
-- purpose   Take messages out of wherever they wait; those that a worker holds stay.
-- promise   P03
-- locks     blocked, delayed, ready, grouped and dead rows, passing over locked ones
    c_most constant pls_integer := 10000;
    v_locked   t_locked_rows;
    v_messages t_messages;
    v_rest     t_messages;
    v_popped   pls_integer;
    v_ids      t_numbers;
    v_lanes    t_numbers;
    -- The ids lead and the rows are found by key, one by one: the server takes a list for 8168 ids,
    -- and would read the table whole for one of them.
    cursor blocked_rows is
        select /*+ leading(a@asked b) use_nl(b) index(b rowq_blocked_pk) */ b.message_id, b.lane
        from rowq_blocked b
        where b.part_id = p_part_id
          and b.message_id in (
              select /*+ qb_name(asked) unnest cardinality(a 10) */ a.column_value
              from table(p_ids) a
          )
        for update skip locked;
    cursor dead_rows is
        select /*+ leading(a@asked d) use_nl(d) index(d rowq_dead_pk) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.part_id = p_part_id
          and d.message_id in (
              select /*+ qb_name(asked) unnest cardinality(a 10) */ a.column_value
              from table(p_ids) a
          )
        for update skip locked;
    -- Find a delayed message by message.due_at, which is its place in delayed.
    cursor delayed_rows is
        select /*+ leading(a@asked m@asked d) use_nl(d) index(d rowq_delayed_pk) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_delayed d
        where (d.part_id, d.due_at, d.message_id) in (
            select /*+ qb_name(asked) unnest cardinality(a 10) use_nl(m)
                       index(m rowq_message_pk) */
                   m.part_id, m.due_at, m.message_id
            from table(p_ids) a
            join rowq_message m
              on m.part_id = p_part_id
             and m.message_id = a.column_value
        )
        for update skip locked;
    -- A message that was never given back is at its first place (lane and seq of message). The
    -- others that have a body are looked for among all ready messages.
    cursor first_places is
        select /*+ leading(a@asked m@asked r) use_nl(r) index(r rowq_ready_pk) */
               r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where (r.part_id, r.lane, r.seq, r.message_id) in (
            select /*+ qb_name(asked) unnest cardinality(a 10) use_nl(m)
                       index(m rowq_message_pk) */
                   m.part_id, m.lane, m.seq, m.message_id
            from table(p_ids) a
            join rowq_message m
              on m.part_id = p_part_id
             and m.message_id = a.column_value
        )
        for update skip locked;
    cursor other_places is
        select /*+ index_rs_asc(r rowq_ready_pk) */
               r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.part_id = p_part_id
          and r.message_id in (select a.column_value from table(p_ids) a)
        for update skip locked;
begin
    -- A message that waits for others goes to each of the other places from there, so look for it
    -- first.
    open blocked_rows;
    fetch blocked_rows bulk collect into v_ids, v_lanes limit c_most;
    close blocked_rows;
    internal_pop_blocked(p_part_id, v_ids, v_lanes, v_messages);

    open dead_rows;
    fetch dead_rows bulk collect into v_locked limit c_most;
    close dead_rows;
    internal_delete_dead(v_locked, v_messages);

    open delayed_rows;
    fetch delayed_rows bulk collect into v_locked limit c_most;
    close delayed_rows;
    internal_delete_delayed(v_locked, v_messages);

    open first_places;
    fetch first_places bulk collect into v_locked limit c_most;
    close first_places;
    internal_delete_ready(v_locked, v_messages);

    if v_messages.count < p_ids.count then
        -- A message goes from its group to the ready ones, so look for it there first.
        v_popped := v_messages.count;
        v_rest := internal_rest_of_ids(p_part_id, p_ids, v_messages);
        internal_pop_grouped(p_part_id, v_rest, v_messages);
        v_popped := v_messages.count - v_popped;
        if v_popped < v_rest.count then
            open other_places;
            fetch other_places bulk collect into v_locked limit c_most;
            close other_places;
            internal_delete_ready(v_locked, v_messages);
        end if;
    end if;
    return v_messages;
end internal_pop_waiting;

function internal_promote(p_part_id in number, p_limit in number)
return number
is
-- routine   internal_promote
-- purpose   Move up to p_limit due messages to the tails of their lanes, or into their groups, earliest first.
-- promise   P11 P21
-- locks     delayed rows, passing over locked ones; new ready rows; as internal_promote_grouped
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_since constant timestamp(6) := internal_from_microseconds(internal_read_floor(p_part_id, -2));
    v_probe    rowq_delayed.message_id%type;
    v_locked   t_locked_rows;
    v_messages t_messages;
    v_joined   number;
    cursor due is
        select /*+ index_rs_asc(d rowq_delayed_pk) */ d.message_id
        from rowq_delayed d
        where d.part_id = p_part_id
          and d.due_at >= v_since
          and d.due_at <= v_now
        order by d.part_id, d.due_at, d.message_id;
    cursor due_rows is
        select /*+ index_rs_asc(d rowq_delayed_pk) no_batch_table_access_by_rowid(d) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_delayed d
        where d.part_id = p_part_id
          and d.due_at >= v_since
          and d.due_at <= v_now
        order by d.part_id, d.due_at, d.message_id
        for update skip locked;
begin
    -- Look without a lock first, so that a call that finds nothing begins no transaction.
    open due;
    fetch due into v_probe;
    close due;
    if v_probe is null then
        return 0;
    end if;

    open due_rows;
    fetch due_rows bulk collect into v_locked limit p_limit;
    close due_rows;
    internal_delete_delayed(v_locked, v_messages);
    internal_promote_grouped(p_part_id, v_messages, v_joined);
    internal_push_ready(p_part_id, v_messages);
    return v_messages.count + v_joined;
end internal_promote;

procedure internal_promote_grouped(
    p_part_id  in number,
    p_messages in out nocopy t_messages,
    p_joined   out number
)
is
-- routine   internal_promote_grouped
-- purpose   Let due messages join their groups: p_messages are afterwards those for the caller to make ready, p_joined is how many of the others wait in their groups now. What must not wait for a producer is due again in half a second.
-- promise   P11 P21 P22
-- locks     as internal_enter_group and internal_put_off; new grouped rows
-- differs   no such helper on PostgreSQL: part of internal_promote
    v_key       raw(800);
    v_has_token boolean;
    v_ready     t_messages;
    v_late      t_messages;
begin
    p_joined := 0;
    for i in 1 .. p_messages.count loop
        v_has_token := true;
        if p_messages(i).group_key is not null then
            v_key := utl_raw.cast_to_raw(p_messages(i).group_key);
            v_has_token := internal_enter_group(p_part_id, v_key, false);
        end if;
        if v_has_token is null then
            v_late(v_late.count + 1) := p_messages(i);
        elsif v_has_token then
            v_ready(v_ready.count + 1) := p_messages(i);
        else
            insert into rowq_grouped (part_id, group_key, message_id, lane)
            values (p_part_id, v_key, p_messages(i).message_id, p_messages(i).lane);
            p_joined := p_joined + 1;
        end if;
    end loop;
    p_messages := v_ready;
    internal_put_off(p_part_id, v_late);
end internal_promote_grouped;

procedure internal_publish(
    p_new  in t_new_messages,
    p_sent out nocopy rowq_sent_list
)
is
-- routine   internal_publish
-- purpose   Store messages, which are checked but for the lengths of their bodies, in each queue that is bound to their topics, queue by queue.
-- promise   P01 P05 P12 P15 P35
-- locks     as internal_bound_queues; as internal_store, queue by queue in the order of their names
-- errors    RQ711
-- differs   no such helper elsewhere: part of publish and publish_batch
    v_bound t_bound_queues;
    v_place pls_integer;
    v_fault varchar2(32767);
    v_own   t_new_messages;
begin
    p_sent := rowq_sent_list();
    v_bound := internal_bound_queues(p_new);
    -- Check all before anything is stored, because a trigger has no savepoint.
    for i in 1 .. v_bound.count loop
        v_place := v_bound(i).place;
        v_fault := internal_body_fault(
            p_new(v_place).body, p_new(v_place).body_binary, v_bound(i).max_body_length
        );
        if v_fault is not null then
            v_fault := v_fault || ' of ' || v_bound(i).queue_name;
            -- What publish itself hands over has no place.
            if p_new(v_place).place > 0 then
                v_fault := v_fault || ' (message ' || internal_number_text(v_place) || ')';
            end if;
            internal_refuse(v_fault);
        end if;
    end loop;

    for i in 1 .. v_bound.count loop
        v_own(v_own.count + 1) := p_new(v_bound(i).place);
        if i = v_bound.count or v_bound(i).part_id <> v_bound(i + 1).part_id then
            internal_store_bound(v_bound(i), v_own, p_sent);
            v_own.delete;
        end if;
    end loop;
end internal_publish;

function internal_purge_archive(
    p_part_id in number,
    p_before  in timestamp,
    p_limit   in number
)
return number
is
-- routine   internal_purge_archive
-- purpose   Delete up to p_limit of a queue's archived messages that finished before p_before.
-- promise   P19
-- locks     archive rows, passing over locked ones
    v_row_ids t_row_ids;
    v_purged  pls_integer := 0;
    cursor old_rows is
        select /*+ index_rs_asc(a rowq_archive_pk) no_batch_table_access_by_rowid(a) */ a.rowid
        from rowq_archive a
        where a.part_id = p_part_id
          and a.finished_at < p_before
        order by a.part_id, a.finished_at, a.message_id
        for update skip locked;
begin
    open old_rows;
    fetch old_rows bulk collect into v_row_ids limit p_limit;
    close old_rows;
    -- Ask again for what the cursor asked for, because a row may be another one by now where
    -- somebody else has purged it since the cursor was opened.
    forall i in 1 .. v_row_ids.count
        delete from rowq_archive a
        where a.rowid = v_row_ids(i)
          and a.part_id = p_part_id
          and a.finished_at < p_before;
    for i in 1 .. v_row_ids.count loop
        v_purged := v_purged + sql%bulk_rowcount(i);
    end loop;
    return v_purged;
end internal_purge_archive;

function internal_purge_blocked(p_queue in t_queue, p_limit in number)
return number
is
-- routine   internal_purge_blocked
-- purpose   Delete up to p_limit messages that wait for others to end; null means all.
-- promise   P15 P32
-- locks     blocked rows, passing over locked ones; then as internal_finish
-- differs   no such helper on PostgreSQL: part of purge_queue
    c_step constant pls_integer := 5000;
    v_removed  number := 0;
    v_step     pls_integer;
    v_ids      t_numbers;
    v_lanes    t_numbers;
    v_messages t_messages;
    cursor waiting_rows is
        select /*+ index_rs_asc(b rowq_blocked_pk) no_batch_table_access_by_rowid(b) */
               b.message_id, b.lane
        from rowq_blocked b
        where b.part_id = p_queue.part_id
        order by b.part_id, b.message_id
        for update skip locked;
begin
    open waiting_rows;
    while p_limit is null or v_removed < p_limit loop
        v_step := least(c_step, coalesce(p_limit - v_removed, c_step));
        fetch waiting_rows bulk collect into v_ids, v_lanes limit v_step;
        exit when v_ids.count = 0;
        v_messages.delete;
        internal_pop_blocked(p_queue.part_id, v_ids, v_lanes, v_messages);
        internal_finish(p_queue, v_messages, 'cancelled');
        v_removed := v_removed + v_messages.count;
    end loop;
    close waiting_rows;
    return v_removed;
end internal_purge_blocked;

function internal_purge_grouped(p_queue in t_queue, p_limit in number)
return number
is
-- routine   internal_purge_grouped
-- purpose   Delete up to p_limit messages that wait in groups; null means all.
-- promise   P15 P32
-- locks     grouped rows, passing over locked ones; then as internal_finish
-- differs   no such helper on PostgreSQL: part of purge_queue
    type t_grouped_row is record (
        group_key  rowq_grouped.group_key%type,
        message_id rowq_grouped.message_id%type
    );
    type t_grouped_rows is table of t_grouped_row index by pls_integer;
    c_step constant pls_integer := 5000;
    v_removed  number := 0;
    v_step     pls_integer;
    v_locked   t_grouped_rows;
    v_messages t_messages;
    cursor waiting_rows is
        select /*+ index_rs_asc(g rowq_grouped_pk) */ g.group_key, g.message_id
        from rowq_grouped g
        where g.part_id = p_queue.part_id
        order by g.part_id, g.group_key, g.message_id
        for update skip locked;
begin
    open waiting_rows;
    while p_limit is null or v_removed < p_limit loop
        v_step := least(c_step, coalesce(p_limit - v_removed, c_step));
        fetch waiting_rows bulk collect into v_locked limit v_step;
        exit when v_locked.count = 0;
        forall i in 1 .. v_locked.count
            delete from rowq_grouped g
            where g.part_id = p_queue.part_id
              and g.group_key = v_locked(i).group_key
              and g.message_id = v_locked(i).message_id;
        v_messages.delete;
        for i in 1 .. v_locked.count loop
            v_messages(i).message_id := v_locked(i).message_id;
            v_messages(i).is_tokenless := 1;
        end loop;
        internal_finish(p_queue, v_messages, 'cancelled');
        v_removed := v_removed + v_messages.count;
    end loop;
    close waiting_rows;
    return v_removed;
end internal_purge_grouped;

function internal_purge_history(p_queue in t_queue, p_limit in number)
return number
is
-- routine   internal_purge_history
-- purpose   Delete up to p_limit attempts that ended too long ago; returns how many there were.
-- promise   P13 P37
-- locks     history rows, passing over locked ones
    v_before  constant timestamp(6) :=
        sys_extract_utc(systimestamp) - numtodsinterval(p_queue.history_days, 'day');
    v_since   constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_queue.part_id, -8));
    v_probe   rowq_history.ended_at%type;
    v_row_ids t_row_ids;
    v_purged  number := 0;
    cursor old is
        select /*+ index_rs_asc(h rowq_history_pk) */ h.ended_at
        from rowq_history h
        where h.part_id = p_queue.part_id
          and h.ended_at >= v_since
          and h.ended_at < v_before
        order by h.part_id, h.ended_at, h.message_id, h.claim_id;
    cursor old_rows is
        select /*+ index_rs_asc(h rowq_history_pk) no_batch_table_access_by_rowid(h) */ h.rowid
        from rowq_history h
        where h.part_id = p_queue.part_id
          and h.ended_at >= v_since
          and h.ended_at < v_before
        order by h.part_id, h.ended_at, h.message_id, h.claim_id
        for update skip locked;
begin
    -- Look without a lock first, so that a call that finds nothing begins no transaction.
    open old;
    fetch old into v_probe;
    close old;
    if v_probe is null then
        return 0;
    end if;

    open old_rows;
    fetch old_rows bulk collect into v_row_ids limit p_limit;
    close old_rows;
    -- Ask again for what the cursor asked for, because a row may be another one by now where
    -- somebody else has purged it since the cursor was opened.
    forall i in 1 .. v_row_ids.count
        delete from rowq_history h
        where h.rowid = v_row_ids(i)
          and h.part_id = p_queue.part_id
          and h.ended_at < v_before;
    for i in 1 .. v_row_ids.count loop
        v_purged := v_purged + sql%bulk_rowcount(i);
    end loop;
    return v_purged;
end internal_purge_history;

function internal_purge_ready(p_queue in t_queue, p_limit in number)
return number
is
-- routine   internal_purge_ready
-- purpose   Delete up to p_limit ready messages, lane by lane; null means all.
-- promise   P15 P32
-- locks     ready rows, passing over locked ones; then as internal_finish
    c_step constant pls_integer := 5000;
    v_removed  number := 0;
    v_step     pls_integer;
    v_locked   t_locked_rows;
    v_messages t_messages;
    cursor ready_rows is
        select /*+ index_rs_asc(r rowq_ready_pk) no_batch_table_access_by_rowid(r) */
               r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.part_id = p_queue.part_id
        order by r.part_id, r.lane, r.seq, r.message_id
        for update skip locked;
begin
    open ready_rows;
    while p_limit is null or v_removed < p_limit loop
        v_step := least(c_step, coalesce(p_limit - v_removed, c_step));
        fetch ready_rows bulk collect into v_locked limit v_step;
        exit when v_locked.count = 0;
        v_messages.delete;
        internal_delete_ready(v_locked, v_messages);
        internal_finish(p_queue, v_messages, 'cancelled');
        v_removed := v_removed + v_messages.count;
    end loop;
    close ready_rows;
    return v_removed;
end internal_purge_ready;

function internal_purge_results(p_queue in t_queue, p_limit in number)
return number
is
-- routine   internal_purge_results
-- purpose   Delete up to p_limit results of messages that ended too long ago; returns how many there were.
-- promise   P13 P32
-- locks     result rows, passing over locked ones
    v_before  constant timestamp(6) :=
        sys_extract_utc(systimestamp) - numtodsinterval(p_queue.result_seconds, 'second');
    v_since   constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_queue.part_id, -7));
    v_probe   rowq_result.finished_at%type;
    v_row_ids t_row_ids;
    v_purged  number := 0;
    cursor due is
        select /*+ index_rs_asc(r rowq_result_finished_ix) */ r.finished_at
        from rowq_result r
        where r.part_id = p_queue.part_id
          and r.finished_at >= v_since
          and r.finished_at < v_before
        order by r.part_id, r.finished_at;
    -- The order of the index is enough: no statement sorts, and a row is locked when it is fetched.
    cursor due_rows is
        select /*+ index_rs_asc(r rowq_result_finished_ix) no_batch_table_access_by_rowid(r) */
               r.rowid
        from rowq_result r
        where r.part_id = p_queue.part_id
          and r.finished_at >= v_since
          and r.finished_at < v_before
        for update skip locked;
begin
    -- Look without a lock first, so that a call that finds nothing begins no transaction.
    open due;
    fetch due into v_probe;
    close due;
    if v_probe is null then
        return 0;
    end if;

    open due_rows;
    fetch due_rows bulk collect into v_row_ids limit p_limit;
    close due_rows;
    -- Ask again for what the cursor asked for, because a row may be another one by now, or a newer
    -- end of its message, where somebody has changed it since the cursor was opened.
    forall i in 1 .. v_row_ids.count
        delete from rowq_result r
        where r.rowid = v_row_ids(i)
          and r.part_id = p_queue.part_id
          and r.finished_at < v_before;
    for i in 1 .. v_row_ids.count loop
        v_purged := v_purged + sql%bulk_rowcount(i);
    end loop;
    return v_purged;
end internal_purge_results;

procedure internal_purge_started(p_queue in t_queue, p_limit in number)
is
-- routine   internal_purge_started
-- purpose   Delete up to p_limit notes of deliveries that began too long ago to count.
-- promise   P13 P29
-- locks     started rows, passing over locked ones
    type t_start is record (
        started_at rowq_started.started_at%type,
        claim_id   rowq_started.claim_id%type
    );
    type t_starts is table of t_start index by pls_integer;
    -- Those of a queue that has no rate_limit any more are all too old.
    v_seconds constant number :=
        case when p_queue.rate_limit > 0 then p_queue.rate_seconds else 0 end;
    v_before  constant timestamp(6) :=
        sys_extract_utc(systimestamp) - numtodsinterval(v_seconds, 'second');
    v_since   constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_queue.part_id, -5));
    v_old     t_starts;
    cursor old_rows is
        select /*+ index_rs_asc(s rowq_started_pk) */ s.started_at, s.claim_id
        from rowq_started s
        where s.part_id = p_queue.part_id
          and s.started_at >= v_since
          and s.started_at < v_before
        order by s.part_id, s.started_at, s.claim_id
        for update skip locked;
begin
    open old_rows;
    fetch old_rows bulk collect into v_old limit p_limit;
    close old_rows;
    forall i in 1 .. v_old.count
        delete from rowq_started s
        where s.part_id = p_queue.part_id
          and s.started_at = v_old(i).started_at
          and s.claim_id = v_old(i).claim_id;
end internal_purge_started;

function internal_purge_waiting(p_queue in t_queue, p_of_dead in boolean, p_limit in number)
return number
is
-- routine   internal_purge_waiting
-- purpose   Delete up to p_limit delayed messages, or dead ones; null means all.
-- promise   P15 P32
-- locks     delayed or dead rows, passing over locked ones; then as internal_finish
    c_step constant pls_integer := 5000;
    v_removed  number := 0;
    v_step     pls_integer;
    v_locked   t_locked_rows;
    v_messages t_messages;
    cursor delayed_rows is
        select /*+ index_rs_asc(d rowq_delayed_pk) no_batch_table_access_by_rowid(d) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_delayed d
        where d.part_id = p_queue.part_id
        order by d.part_id, d.due_at, d.message_id
        for update skip locked;
    cursor dead_rows is
        select /*+ index_rs_asc(d rowq_dead_pk) no_batch_table_access_by_rowid(d) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.part_id = p_queue.part_id
        order by d.part_id, d.message_id
        for update skip locked;
begin
    if p_of_dead then
        open dead_rows;
    else
        open delayed_rows;
    end if;
    while p_limit is null or v_removed < p_limit loop
        v_step := least(c_step, coalesce(p_limit - v_removed, c_step));
        v_messages.delete;
        if p_of_dead then
            fetch dead_rows bulk collect into v_locked limit v_step;
            exit when v_locked.count = 0;
            internal_delete_dead(v_locked, v_messages);
        else
            fetch delayed_rows bulk collect into v_locked limit v_step;
            exit when v_locked.count = 0;
            internal_delete_delayed(v_locked, v_messages);
        end if;
        internal_finish(p_queue, v_messages, 'cancelled');
        v_removed := v_removed + v_messages.count;
    end loop;
    if p_of_dead then
        close dead_rows;
    else
        close delayed_rows;
    end if;
    return v_removed;
end internal_purge_waiting;

procedure internal_push_dead(
    p_queue      in t_queue,
    p_messages   in t_messages,
    p_error      in clob,
    p_is_waiting in boolean
)
is
-- routine   internal_push_dead
-- purpose   Keep messages as dead with the last error; free their dedup keys, and their groups unless they are to wait; then what waits for them does as it asked. p_is_waiting is that of internal_note_error.
-- promise   P10 P12 P21 P27 P32
-- locks     new dead rows; as internal_note_error, internal_cut_ties and internal_follow_deaths;
--           result rows
    v_now        constant timestamp(6) := sys_extract_utc(systimestamp);
    v_ids        t_numbers;
    v_dedup_keys t_texts;
    v_group_keys t_texts;
    v_flags      t_numbers;
    v_awaited    rowq_ids := rowq_ids();
    v_holders    t_numbers;
    v_results    t_clobs;
begin
    if p_messages.count = 0 then
        return;
    end if;
    forall i in 1 .. p_messages.count
        insert into rowq_dead (part_id, message_id, lane, attempt, died_at)
        values (
            p_queue.part_id, p_messages(i).message_id, p_messages(i).lane,
            p_messages(i).attempt, v_now
        );
    internal_note_error(p_queue.part_id, p_messages, p_error, p_is_waiting);
    if p_queue.result_seconds > 0 then
        internal_push_result(p_queue.part_id, p_messages, 'dead', p_error, v_results);
    end if;

    internal_read_ties(
        p_queue.part_id, p_messages, v_ids, v_dedup_keys, v_group_keys, v_flags
    );
    for i in 1 .. v_ids.count loop
        if v_flags(i) = 1 then
            v_awaited.extend;
            v_awaited(v_awaited.last) := v_ids(i);
            v_flags(i) := null;
        end if;
    end loop;
    if p_queue.group_after_dead = 'hold' then
        for i in 1 .. v_ids.count loop
            if v_group_keys(i) is not null then
                v_holders(v_holders.count + 1) := v_ids(i);
                v_group_keys(i) := null;
            end if;
        end loop;
        forall i in 1 .. v_holders.count
            update rowq_dead d
            set d.holds_group = 1
            where d.part_id = p_queue.part_id
              and d.message_id = v_holders(i);
    end if;
    internal_cut_ties(
        p_queue.part_id, p_messages, v_ids, v_dedup_keys, v_group_keys, v_flags
    );
    if not p_is_waiting then
        -- A producer that comes to wait for one of them may hold its row: the flag does not show
        -- that yet.
        v_awaited := internal_ids_of(p_messages);
    end if;
    if v_awaited.count > 0 then
        internal_follow_deaths(p_queue.part_id, v_awaited);
    end if;
end internal_push_dead;

procedure internal_push_delayed(
    p_part_id  in number,
    p_messages in t_messages,
    p_due_at   in t_moments,
    p_error    in clob
)
is
-- routine   internal_push_delayed
-- purpose   Let messages wait for their time; those that are due are ready at once.
-- promise   P10 P11 P36
-- locks     message rows; new delayed, ready and expiry rows
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_later   t_messages;
    v_moments t_moments;
    v_due     t_messages;
    v_message t_message;
    v_seqs    t_numbers;
begin
    internal_note_error(p_part_id, p_messages, p_error, true);
    for i in 1 .. p_messages.count loop
        v_message := p_messages(i);
        v_message.lane := trunc(v_message.lane / 2) * 2 + 1;
        if p_due_at(i) > v_now then
            v_later(v_later.count + 1) := v_message;
            v_moments(v_later.count) := p_due_at(i);
        else
            v_due(v_due.count + 1) := v_message;
        end if;
    end loop;

    forall i in 1 .. v_later.count
        insert into rowq_delayed (part_id, due_at, message_id, lane, attempt)
        values (
            p_part_id, v_moments(i), v_later(i).message_id, v_later(i).lane, v_later(i).attempt
        );
    forall i in 1 .. v_later.count
        update rowq_message m
        set m.due_at = v_moments(i)
        where m.part_id = p_part_id
          and m.message_id = v_later(i).message_id;
    internal_note_expiry(p_part_id, v_later, v_seqs);
    internal_push_ready(p_part_id, v_due);
end internal_push_delayed;

procedure internal_push_history(
    p_part_id  in number,
    p_claim    in t_claim,
    p_messages in t_messages,
    p_outcome  in varchar2,
    p_error    in clob
)
is
-- routine   internal_push_history
-- purpose   Keep how attempts of a claim have ended, all in one way.
-- promise   P37
-- locks     new history rows
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    -- A CLOB, because SQL takes no varchar2 of more than 4000 bytes for many rows (ORA-01461).
    v_error clob := substr(internal_clob_part(p_error, 1, 4000), 1, 2000);
begin
    if p_error is not null and v_error is null then
        v_error := empty_clob();
    end if;
    forall i in 1 .. p_messages.count
        insert into rowq_history (
            part_id, ended_at, message_id, claim_id, attempt, leased_at, outcome, worker_name,
            error
        )
        values (
            p_part_id, v_now, p_messages(i).message_id, p_claim.claim_id, p_messages(i).attempt,
            p_claim.leased_at, p_outcome, p_claim.worker_name, v_error
        );
end internal_push_history;

procedure internal_push_ready(p_part_id in number, p_messages in t_messages)
is
-- routine   internal_push_ready
-- purpose   Append messages to lanes, in their order, under new places.
-- promise   P02 P14 P36
-- locks     new ready and expiry rows
    v_seq   constant number := internal_microseconds(sys_extract_utc(systimestamp));
    v_places t_numbers;
begin
    for i in 1 .. p_messages.count loop
        v_places(i) := v_seq + i;
    end loop;
    forall i in 1 .. p_messages.count
        insert into rowq_ready (part_id, lane, seq, message_id, attempt)
        values (
            p_part_id, p_messages(i).lane, v_places(i), p_messages(i).message_id,
            p_messages(i).attempt
        );
    internal_note_expiry(p_part_id, p_messages, v_places);
end internal_push_ready;

procedure internal_push_recheck(
    p_part_id   in number,
    p_group_key in raw,
    p_seconds   in number,
    p_is_hint   in number
)
is
-- routine   internal_push_recheck
-- purpose   Have maintain, and each dequeue that finds nothing, look at a group in p_seconds.
-- promise   P24
-- locks     the new recheck row; the first time the row of lane -4, passed over when locked
-- differs   no such helper elsewhere: part of leave_groups and hint_groups
begin
    internal_open_lanes(p_part_id, -4);
    insert into rowq_recheck (part_id, due_at, recheck_id, group_key, is_hint)
    values (
        p_part_id, sys_extract_utc(systimestamp) + numtodsinterval(p_seconds, 'second'),
        rowq_claim_seq.nextval, p_group_key, p_is_hint
    );
end internal_push_recheck;

procedure internal_push_result(
    p_part_id  in number,
    p_messages in t_messages,
    p_state    in varchar2,
    p_error    in clob,
    p_results  in t_clobs
)
is
-- routine   internal_push_result
-- purpose   Keep how messages have ended; p_results has those of the messages, null for one without, by their places in p_messages; it is empty where no message has one.
-- promise   P32
-- locks     result rows
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_error clob := substr(internal_clob_part(p_error, 1, 4000), 1, 2000);
begin
    if p_error is not null and v_error is null then
        v_error := empty_clob();
    end if;
    if p_results.count > 0 then
        -- What was completed has no row yet. A merge is not for LOBs of many rows.
        forall i in 1 .. p_messages.count
            insert into rowq_result (part_id, message_id, finished_at, state, result)
            values (p_part_id, p_messages(i).message_id, v_now, p_state, p_results(i));
        return;
    end if;

    -- A dead message that is cancelled or purged has its row already, and keeps its error.
    forall i in 1 .. p_messages.count
        merge into rowq_result r
        using (
            select p_part_id as part_id, p_messages(i).message_id as message_id
            from dual
        ) n on (r.part_id = n.part_id and r.message_id = n.message_id)
        when matched then update
            set r.finished_at = v_now,
                r.state       = p_state
        when not matched then insert (
            part_id, message_id, finished_at, state, last_error
        )
        values (n.part_id, n.message_id, v_now, p_state, v_error);
end internal_push_result;

procedure internal_put_off(p_part_id in number, p_messages in t_messages)
is
-- routine   internal_put_off
-- purpose   Let due messages that cannot join their groups yet be due again in half a second; those whose rows a producer holds stay due.
-- promise   P11 P21
-- locks     message rows, passing over locked ones; new delayed rows
-- differs   no such helper elsewhere: part of internal_promote_grouped
    v_later   constant timestamp(6) :=
        sys_extract_utc(systimestamp) + numtodsinterval(0.5, 'second');
    v_wanted  rowq_ids := internal_ids_of(p_messages);
    v_locked  rowq_ids;
    v_held    rowq_ids;
    v_ids     t_numbers;
    v_due_ats t_moments;
    v_own     t_places;
    v_moments t_moments;
    v_text    varchar2(50 char);
begin
    if p_messages.count = 0 then
        return;
    end if;
    -- A producer that has named one of them as a predecessor holds its row, and nobody waits for it
    -- here.
    internal_lock_messages(p_part_id, v_wanted, v_locked, v_held);
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id, m.due_at
    bulk collect into v_ids, v_due_ats
    from table(v_held) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value;
    for i in 1 .. v_ids.count loop
        v_own(internal_number_text(v_ids(i))) := i;
    end loop;
    for i in 1 .. p_messages.count loop
        v_text := internal_number_text(p_messages(i).message_id);
        v_moments(i) := case
            when v_own.exists(v_text) then v_due_ats(v_own(v_text))
            else v_later
        end;
    end loop;

    forall i in 1 .. p_messages.count
        insert into rowq_delayed (part_id, due_at, message_id, lane, attempt, group_key)
        values (
            p_part_id, v_moments(i), p_messages(i).message_id, p_messages(i).lane,
            p_messages(i).attempt, p_messages(i).group_key
        );
    forall i in 1 .. v_locked.count
        update rowq_message m
        set m.due_at = v_later
        where m.part_id = p_part_id
          and m.message_id = v_locked(i);
end internal_put_off;

function internal_random_fraction
return number
is
-- routine   internal_random_fraction
-- purpose   Return a number from 0 up to 1, a different one each time; not for secrets.
-- differs   no such helper elsewhere: hardened servers give no right to dbms_random
    c_parts constant number := 1000000;
begin
    return dbms_utility.get_hash_value(rawtohex(sys_guid()), 0, c_parts) / c_parts;
end internal_random_fraction;

function internal_read_end(p_part_id in number, p_message_id in number)
return varchar2
is
-- routine   internal_read_end
-- purpose   Return whether a message that still has a body is finished or dead; null where it is neither.
-- promise   P25 P27
-- differs   no such helper elsewhere: part of internal_await_predecessor
    v_state varchar2(20 char);
    cursor ends is
        select 'dead' as state
        from rowq_dead d
        where d.part_id = p_part_id
          and d.message_id = p_message_id
        union all
        select /*+ index_rs_asc(f rowq_finished_pk) */ 'finished' as state
        from rowq_finished f
        where f.part_id = p_part_id
          and f.finish_id >= (
              select l.floor_seq
              from rowq_lane l
              where l.part_id = p_part_id
                and l.lane = -3
          )
          and f.message_id = p_message_id;
begin
    open ends;
    fetch ends into v_state;
    close ends;
    return v_state;
end internal_read_end;

function internal_read_floor(p_part_id in number, p_lane in number)
return number
is
-- routine   internal_read_floor
-- purpose   Return where the live rows of a lane begin; 0 for a lane that is not there.
-- promise   P13
    v_floor rowq_lane.floor_seq%type;
begin
    select coalesce(max(l.floor_seq), 0) into v_floor
    from rowq_lane l
    where l.part_id = p_part_id
      and l.lane = p_lane;
    return v_floor;
end internal_read_floor;

procedure internal_read_group(
    p_part_id   in number,
    p_group_key in raw,
    p_group     out nocopy t_group
)
is
-- routine   internal_read_group
-- purpose   Read the tokens of a group, the first message that waits in it, and the settings that concern it.
-- promise   P21 P22
-- differs   no such helper elsewhere: part of internal_enter_group and internal_pass_group
    v_found t_group_rows;
begin
    select /*+ leading(q t) use_nl(t) index(t rowq_message_group_pk) */
           q.group_limit, q.group_pause_seconds, q.listened_until,
           (
               select min(g.message_id)
               from rowq_grouped g
               where g.part_id = p_part_id
                 and g.group_key = p_group_key
           ) as first_id,
           t.token_no
    bulk collect into v_found
    from rowq_queue q
    left join rowq_message_group t
      on t.part_id = q.part_id
     and t.group_key = p_group_key
    where q.part_id = p_part_id;

    p_group.tokens.delete;
    for i in 1 .. v_found.count loop
        p_group.group_limit := v_found(i).group_limit;
        p_group.pause_seconds := v_found(i).pause_seconds;
        p_group.listened_until := v_found(i).listened_until;
        p_group.first_id := v_found(i).first_id;
        if v_found(i).token_no is not null then
            p_group.tokens(v_found(i).token_no) := v_found(i).token_no;
        end if;
    end loop;
end internal_read_group;

function internal_read_id_list(p_message_ids in clob)
return rowq_ids
is
-- routine   internal_read_id_list
-- purpose   Return the ids in a JSON array; null stays null, anything else is refused.
-- promise   P15
-- errors    RQ711
-- differs   other engines check a list in check_ids and read it where they need it
    v_ids     rowq_ids;
    v_is_good boolean;
begin
    if p_message_ids is null then
        return null;
    end if;
    v_is_good := internal_is_id_list(p_message_ids, v_ids);
    if not v_is_good then
        internal_refuse(
            'message_ids must be a JSON array of at most 10000 ids, none of them null'
        );
    end if;
    return v_ids;
end internal_read_id_list;

procedure internal_read_pattern(
    p_pattern in varchar2,
    p_head    out varchar2,
    p_shape   out varchar2
)
is
-- routine   internal_read_pattern
-- purpose   Return the words of a pattern before its first * or #, and its shape: a digit for each word, 1 for *, 2 for #, 0 for any other.
-- promise   P35
-- differs   no such helper elsewhere: part of bind_topic
    c_star constant pls_integer := ascii('*');
    c_hash constant pls_integer := ascii('#');
    v_words constant t_texts := internal_words_of(p_pattern);
    v_is_head boolean := true;
begin
    for i in 1 .. v_words.count loop
        v_is_head := v_is_head and ascii(v_words(i)) not in (c_star, c_hash);
        p_shape := p_shape
            || case ascii(v_words(i)) when c_star then '1' when c_hash then '2' else '0' end;
        if v_is_head then
            p_head := p_head || case when i > 1 then '.' end || v_words(i);
        end if;
    end loop;
end internal_read_pattern;

procedure internal_read_result(
    p_part_id     in number,
    p_message_id  in number,
    p_state       out varchar2,
    p_finished_at out timestamp
)
is
-- routine   internal_read_result
-- purpose   Return how a message has ended; of one that has not ended its state; nulls when rowq does not know it.
-- promise   P32
-- differs   part of get_result on PostgreSQL; the result is read by who returns it, as a LOB of a
--           variable ends with its block
    v_is_known    pls_integer;
    v_group_key   rowq_message.group_key%type;
    v_due_at      timestamp(6);
    v_lane        number;
    v_attempt     number;
    v_claim_id    number;
    v_worker_name rowq_claim.worker_name%type;
    v_leased_at   timestamp(6);
    v_lease_until timestamp(6);
    v_waits_for   number;
    v_place       varchar2(20 char);
    v_ended_at    timestamp(6);
    cursor results is
        select r.state, r.finished_at
        from rowq_result r
        where r.part_id = p_part_id
          and r.message_id = p_message_id;
    cursor archived is
        select a.state, a.finished_at
        from rowq_archive a
        where a.part_id = p_part_id
          and a.message_id = p_message_id;
begin
    select count(*), max(m.due_at), max(m.group_key) into v_is_known, v_due_at, v_group_key
    from rowq_message m
    where m.part_id = p_part_id
      and m.message_id = p_message_id;
    if v_is_known = 1 then
        internal_locate_messages(
            p_part_id, p_message_id, v_group_key, v_due_at, v_place, v_lane, v_attempt,
            v_claim_id, v_worker_name, v_lease_until, v_ended_at, v_waits_for, v_leased_at
        );
    end if;

    p_state := null;
    p_finished_at := null;
    if v_place is not null and v_ended_at is null then
        p_state := v_place;
        return;
    end if;
    -- Look for the result last, because it is committed together with the end that was seen.
    open results;
    fetch results into p_state, p_finished_at;
    close results;
    if p_state is null and v_place is not null then
        p_state := v_place;
        p_finished_at := v_ended_at;
    elsif p_state is null then
        open archived;
        fetch archived into p_state, p_finished_at;
        close archived;
    end if;
end internal_read_result;

procedure internal_read_results(
    p_results in clob,
    p_count   in number,
    p_queue   in t_queue,
    p_values  out nocopy t_clobs
)
is
-- routine   internal_read_results
-- purpose   Return results by their places, without those that are null; refuse what are not p_count good ones, or what the queue does not keep.
-- promise   P15 P32
-- errors    RQ711
-- differs   check_results elsewhere, where SQL finds a result in the array; here it would round
--           numbers
    c_longest constant pls_integer := 1048576;
    v_cuts    t_numbers;
    v_fault   varchar2(32767);
    v_from    number;
    v_to      number;
    v_given   pls_integer := 0;
    v_firsts  t_numbers;
    v_lengths t_numbers;

    -- What JSON has around its values is ASCII, so a place is never in the middle of an emoji.
    function is_blank(p_place in number)
    return boolean
    is
    begin
        return ascii(dbms_lob.substr(p_results, 1, p_place)) in (9, 10, 13, 32);
    end is_blank;
begin
    p_values.delete;
    if p_queue.result_seconds = 0 then
        internal_refuse('the queue keeps no results: its result_seconds is 0');
    end if;
    internal_json_fault('results', p_results, 'array', 21, null, v_cuts, v_fault);
    if v_fault is not null then
        internal_refuse(v_fault);
    end if;

    -- Find the values by their places first, so that each is copied once and no function of SQL
    -- makes a LOB of its own. Only an array without any value has nothing but blanks between two
    -- cuts.
    for i in 1 .. v_cuts.count - 1 loop
        v_from := v_cuts(i) + 1;
        v_to := v_cuts(i + 1) - 1;
        while v_from <= v_to and is_blank(v_from) loop
            v_from := v_from + 1;
        end loop;
        while v_from <= v_to and is_blank(v_to) loop
            v_to := v_to - 1;
        end loop;
        if v_from <= v_to then
            v_given := v_given + 1;
            v_firsts(v_given) := v_from;
            v_lengths(v_given) := v_to - v_from + 1;
        end if;
    end loop;
    if v_given <> p_count then
        internal_refuse(
            'results are ' || internal_number_text(v_given) || ', and message_ids are '
            || internal_number_text(p_count)
        );
    end if;

    for i in 1 .. v_given loop
        -- A value that begins with an n is null.
        if ascii(dbms_lob.substr(p_results, 1, v_firsts(i))) = ascii('n') then
            continue;
        end if;
        p_values(i) := null;
        dbms_lob.createtemporary(p_values(i), true, dbms_lob.call);
        dbms_lob.copy(p_values(i), p_results, v_lengths(i), 1, v_firsts(i));
        -- A length in a CLOB counts an emoji as two. Counting it as one takes long, so do it only
        -- where the result seems too long.
        if v_lengths(i) > c_longest then
            if internal_text_length(p_values(i)) > c_longest then
                internal_refuse(
                    'a result is longer than ' || internal_number_text(c_longest) || ' characters'
                );
            end if;
        end if;
    end loop;
end internal_read_results;

function internal_read_schedule(p_part_id in number, p_schedule_key in raw)
return t_schedule
is
-- routine   internal_read_schedule
-- purpose   Return a schedule; its part_id is null where there is none.
-- differs   no such helper elsewhere: part of require_schedule and run_schedules
    v_schedule t_schedule;
    cursor keyed is
        select s.part_id, s.schedule_key, s.schedule_name, s.cron, s.interval_seconds,
               s.time_zone, s.missed, s.overlap, s.starts_at, s.ends_at, s.message_type,
               s.priority, s.group_key, s.max_attempts, s.is_paused, s.next_run_at, s.headers,
               s.body, s.body_binary
        from rowq_schedule s
        where s.part_id = p_part_id
          and s.schedule_key = p_schedule_key;
begin
    open keyed;
    fetch keyed into v_schedule;
    close keyed;
    return v_schedule;
end internal_read_schedule;

procedure internal_read_ties(
    p_part_id    in number,
    p_messages   in t_messages,
    p_ids        out nocopy t_numbers,
    p_dedup_keys out nocopy t_texts,
    p_group_keys out nocopy t_texts,
    p_awaited    out nocopy t_numbers
)
is
-- routine   internal_read_ties
-- purpose   Read the ties of those messages that have any, as internal_cut_ties takes them.
-- promise   P12 P22 P26
    v_wanted rowq_ids := internal_ids_of(p_messages);
begin
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */
           m.message_id, m.dedup_key, m.group_key, m.has_successors
    bulk collect into p_ids, p_dedup_keys, p_group_keys, p_awaited
    from table(v_wanted) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value
    where m.dedup_key is not null
       or m.group_key is not null
       or m.has_successors = 1;
end internal_read_ties;

procedure internal_reap(
    p_queue  in t_queue,
    p_limit  in number,
    p_reaped out number,
    p_died   out number
)
is
-- routine   internal_reap
-- purpose   Take messages back from expired claims to the front of their lanes, until p_limit is passed.
-- promise   P03 P09 P27 P34 P37
-- locks     expired claim rows and message rows, passing over locked ones; as internal_push_dead;
--           for cancelled messages as internal_finish; new history rows
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_floor constant number := internal_read_floor(p_queue.part_id, -1);
    v_row_id      rowid;
    v_claim       t_claim;
    v_messages    t_messages;
    v_rest        t_messages;
    v_cancelled   t_messages;
    v_locked      rowq_ids;
    v_held        rowq_ids;
    v_ended       pls_integer := 0;
    v_alive       t_messages;
    v_dead        t_messages;
    v_error       varchar2(300 char);
    -- Claims are fetched one by one, so that a claim is locked only when it is reaped. Pass over a
    -- claim whose heartbeat or finish came first: its lease is longer by then, or its row is locked
    -- or gone.
    cursor expired is
        select /*+ index_rs_asc(c rowq_claim_pk) no_batch_table_access_by_rowid(c) */
               c.rowid, c.claim_id, c.worker_name, c.leased_at
        from rowq_claim c
        where c.part_id = p_queue.part_id
          and c.claim_id >= v_floor
          and c.lease_until <= v_now
        order by c.part_id, c.claim_id
        for update skip locked;
begin
    p_reaped := 0;
    p_died := 0;
    open expired;
    while p_reaped + p_died + v_ended < p_limit loop
        fetch expired into v_row_id, v_claim.claim_id, v_claim.worker_name, v_claim.leased_at;
        exit when expired%notfound;
        v_messages := internal_claimed_messages(p_queue.part_id, v_claim.claim_id);
        internal_split_by_cancel(v_messages, v_rest, v_cancelled);
        if v_cancelled.count > 0 then
            -- Leave the claim alone while a producer is adding a message that waits for one of
            -- these, because the end of a message would wait for that transaction.
            internal_lock_messages(
                p_queue.part_id, internal_ids_of(v_cancelled), v_locked, v_held
            );
            continue when v_held.count > 0;
        end if;
        delete from rowq_leased l
        where l.part_id = p_queue.part_id
          and l.claim_id = v_claim.claim_id;
        delete from rowq_claim c
        where c.rowid = v_row_id;

        internal_finish(p_queue, v_cancelled, 'cancelled');
        v_ended := v_ended + v_cancelled.count;
        internal_split_by_attempts(p_queue, v_rest, v_alive, v_dead);
        v_error := 'lease expired';
        if v_claim.worker_name is not null then
            v_error := v_error || ': ' || v_claim.worker_name;
        end if;
        if p_queue.history_days > 0 then
            internal_push_history(p_queue.part_id, v_claim, v_cancelled, 'cancelled', null);
            internal_push_history(p_queue.part_id, v_claim, v_rest, 'lease_expired', v_error);
        end if;
        internal_as_front(v_alive, 0);
        internal_push_ready(p_queue.part_id, v_alive);
        internal_note_error(p_queue.part_id, v_alive, v_error, false);
        internal_push_dead(p_queue, v_dead, v_error, false);
        p_reaped := p_reaped + v_alive.count;
        p_died := p_died + v_dead.count;
    end loop;
    close expired;
end internal_reap;

function internal_recheck(p_part_id in number, p_limit in number)
return number
is
-- routine   internal_recheck
-- purpose   Look again at up to p_limit tokens and messages that were left; return for how many that was enough.
-- promise   P22 P24 P26 P27
-- locks     recheck rows, passing over locked ones; as internal_try_recheck
    type t_note is record (
        due_at         rowq_recheck.due_at%type,
        recheck_id     rowq_recheck.recheck_id%type,
        group_key      rowq_recheck.group_key%type,
        is_hint        rowq_recheck.is_hint%type,
        message_id     rowq_recheck.message_id%type,
        predecessor_id rowq_recheck.predecessor_id%type
    );
    type t_notes is table of t_note index by pls_integer;
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_since constant timestamp(6) := internal_from_microseconds(internal_read_floor(p_part_id, -4));
    v_probe     rowq_recheck.recheck_id%type;
    v_notes     t_notes;
    v_is_solved boolean;
    v_solved    pls_integer := 0;
    cursor due is
        select /*+ index_rs_asc(r rowq_recheck_pk) */ r.recheck_id
        from rowq_recheck r
        where r.part_id = p_part_id
          and r.due_at >= v_since
          and r.due_at <= v_now
        order by r.part_id, r.due_at, r.recheck_id;
    cursor due_rows is
        select /*+ index_rs_asc(r rowq_recheck_pk) */
               r.due_at, r.recheck_id, r.group_key, r.is_hint, r.message_id, r.predecessor_id
        from rowq_recheck r
        where r.part_id = p_part_id
          and r.due_at >= v_since
          and r.due_at <= v_now
        order by r.part_id, r.due_at, r.recheck_id
        for update skip locked;
begin
    -- Look without a lock first, so that a call that finds nothing begins no transaction.
    open due;
    fetch due into v_probe;
    close due;
    if v_probe is null then
        return 0;
    end if;

    open due_rows;
    fetch due_rows bulk collect into v_notes limit p_limit;
    close due_rows;
    for i in 1 .. v_notes.count loop
        v_is_solved := internal_try_recheck(
            p_part_id, v_notes(i).group_key, v_notes(i).message_id, v_notes(i).predecessor_id,
            v_notes(i).is_hint
        );
        -- A row that is not solved stays as it is: a producer that is idle in its transaction must
        -- not make every look write.
        if v_is_solved then
            delete from rowq_recheck r
            where r.part_id = p_part_id
              and r.due_at = v_notes(i).due_at
              and r.recheck_id = v_notes(i).recheck_id;
            v_solved := v_solved + 1;
        end if;
    end loop;
    return v_solved;
end internal_recheck;

function internal_recheck_death(p_part_id in number, p_message_id in number)
return boolean
is
-- routine   internal_recheck_death
-- purpose   Look again what waits for a dead message; false where a producer is still adding something that does.
-- promise   P27
-- locks     the message row, tried only; as internal_follow_deaths
    v_locked rowq_ids;
    v_held   rowq_ids;
begin
    internal_lock_messages(p_part_id, rowq_ids(p_message_id), v_locked, v_held);
    if v_held.count > 0 then
        return false;
    end if;
    -- One that was reset meanwhile is waited for as before.
    if v_locked.count > 0 and internal_read_end(p_part_id, p_message_id) = 'dead' then
        internal_follow_deaths(p_part_id, v_locked);
    end if;
    return true;
end internal_recheck_death;

procedure internal_recheck_later(
    p_part_id         in number,
    p_message_ids     in rowq_ids,
    p_predecessor_ids in rowq_ids,
    p_are_dead        in number
)
is
-- routine   internal_recheck_later
-- purpose   Have maintain look again at blocked messages, or at what waits for predecessors that have ended.
-- promise   P26
-- locks     new recheck rows; the first time the row of lane -4, passed over when locked
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
begin
    internal_open_lanes(p_part_id, -4);
    if p_message_ids is not null then
        forall i in 1 .. p_message_ids.count
            insert into rowq_recheck (part_id, due_at, recheck_id, message_id)
            values (p_part_id, v_now, rowq_claim_seq.nextval, p_message_ids(i));
    else
        forall i in 1 .. p_predecessor_ids.count
            insert into rowq_recheck (part_id, due_at, recheck_id, predecessor_id, is_hint)
            values (p_part_id, v_now, rowq_claim_seq.nextval, p_predecessor_ids(i), p_are_dead);
    end if;
end internal_recheck_later;

procedure internal_refuse(p_fault in varchar2)
is
-- routine   internal_refuse
-- purpose   Raise the error for an invalid argument.
-- promise   P15
-- errors    RQ711
-- differs   no such helper elsewhere: other engines raise with an expression
begin
    raise_application_error(-20711, 'RQ711 invalid_argument: ' || substr(p_fault, 1, 400));
end internal_refuse;

procedure internal_refuse_claim(p_claim_id in number)
is
-- routine   internal_refuse_claim
-- purpose   Raise the error for a claim that is gone.
-- promise   P08
-- errors    RQ721
begin
    raise_application_error(
        -20721,
        'RQ721 stale_claim: claim ' || internal_number_text(p_claim_id)
        || ' holds nothing any more'
    );
end internal_refuse_claim;

procedure internal_refuse_not_empty(p_part_id in number, p_queue_name in varchar2)
is
-- routine   internal_refuse_not_empty
-- purpose   Raise an error if a queue still has messages or an archive.
-- promise   P15
-- errors    RQ704
-- differs   no such helper elsewhere: part of drop_queue
    v_id number;
    cursor kept is
        select m.message_id
        from rowq_message m
        where m.part_id = p_part_id
        union all
        select a.message_id
        from rowq_archive a
        where a.part_id = p_part_id;
begin
    open kept;
    fetch kept into v_id;
    close kept;
    if v_id is not null then
        raise_application_error(
            -20704,
            'RQ704 queue_not_empty: ' || p_queue_name
            || ' has messages or an archive; force drops them too'
        );
    end if;
end internal_refuse_not_empty;

procedure internal_refuse_queue(p_queue_name in varchar2)
is
-- routine   internal_refuse_queue
-- purpose   Raise the error for a queue name that is missing or unknown.
-- promise   P15
-- errors    RQ701 RQ711
begin
    if p_queue_name is null then
        internal_refuse('queue_name is missing');
    end if;
    raise_application_error(-20701, 'RQ701 queue_not_found: ' || substr(p_queue_name, 1, 100));
end internal_refuse_queue;

procedure internal_refuse_unknown(
    p_message_id in number,
    p_place      in number,
    p_newest_id  in number
)
is
-- routine   internal_refuse_unknown
-- purpose   Refuse a message whose newest predecessor has an id that was not given out yet.
-- promise   P15
-- errors    RQ711
-- differs   no such helper elsewhere: part of block
    v_given pls_integer;
begin
    -- An id that another instance has given out may be above the message's own. Those that the
    -- server keeps at hand count as given out: last_number is behind them.
    if p_newest_id < p_message_id then
        return;
    end if;
    select count(*) into v_given
    from user_sequences s
    where s.sequence_name = 'ROWQ_MESSAGE_SEQ'
      and s.last_number > p_newest_id;
    if v_given = 0 then
        internal_refuse(
            'predecessor_ids must name messages that are there'
            || case when p_place > 0 then ' (message ' || internal_number_text(p_place) || ')' end
        );
    end if;
end internal_refuse_unknown;

procedure internal_remove_queue(
    p_part_id    in number,
    p_queue_name in varchar2,
    p_force      in boolean
)
is
-- routine   internal_remove_queue
-- purpose   Remove an empty queue, or with p_force a full one, when for a moment nobody writes.
-- promise   P02 P15
-- locks     the tables against writers, waiting for a second at most; all rows of the queue
-- errors    RQ704 RQ705
-- differs   nothing: as on PostgreSQL, tables are locked, as a row cannot be locked in share mode
    e_busy exception;
    e_timeout exception;
    e_deadlock exception;
    pragma exception_init(e_busy, -54);
    pragma exception_init(e_timeout, -30006);
    pragma exception_init(e_deadlock, -60);
begin
    -- Wait for open enqueues, because their messages are not visible yet. Lock all tables at once,
    -- in the order in which workers lock, so that no delete below has to wait.
    begin
        lock table rowq_schedule, rowq_topic_binding, rowq_gate, rowq_claim, rowq_leased,
            rowq_ready, rowq_delayed, rowq_message, rowq_door, rowq_grouped, rowq_message_group,
            rowq_recheck, rowq_successor, rowq_blocked, rowq_dead, rowq_finished, rowq_archive,
            rowq_started, rowq_expiry, rowq_result, rowq_history, rowq_lane, rowq_queue
            in share row exclusive mode wait 1;
    exception
        when e_busy or e_timeout or e_deadlock then
            raise_application_error(
                -20705, 'RQ705 queue_busy: open transactions hold the tables; try again'
            );
    end;
    if not p_force then
        internal_refuse_not_empty(p_part_id, p_queue_name);
    end if;
    internal_delete_queue(p_part_id);
    internal_note_fault(p_part_id, null);
end internal_remove_queue;

procedure internal_require_lanes(
    p_queue_name  in varchar2,
    p_queue       out nocopy t_queue,
    p_lanes       out nocopy t_lanes,
    p_has_recheck out boolean
)
is
-- routine   internal_require_lanes
-- purpose   Read what a dequeue needs of a queue, and the lanes to look into, best first; raise an error if there is none. p_has_recheck says whether recheck may have rows.
-- promise   P05 P13 P15
-- errors    RQ701 RQ711
-- differs   no such helper elsewhere: one statement in place of two
    v_key   raw(400);
    v_found t_open_lanes;
    v_next  pls_integer;
begin
    if length(p_queue_name) <= 100 then
        v_key := utl_raw.cast_to_raw(p_queue_name);
        -- Every queue has open lanes: those of the default priority, which nothing closes. Of the
        -- lanes below 0 only that of recheck may be open.
        select /*+ leading(q l) use_nl(l) index(l rowq_lane_pk) */
               q.part_id, q.lease_seconds, q.max_leased, q.rate_limit, q.paused_at, l.lane,
               l.floor_seq
        bulk collect into v_found
        from rowq_queue q
        join rowq_lane l
          on l.part_id = q.part_id
         and l.is_open = 1
        where q.queue_key = v_key
        order by l.part_id, l.lane;
    end if;
    if v_found.count = 0 then
        internal_refuse_queue(p_queue_name);
    end if;

    p_lanes.delete;
    p_has_recheck := false;
    p_queue.part_id := v_found(1).part_id;
    p_queue.lease_seconds := v_found(1).lease_seconds;
    p_queue.max_leased := v_found(1).max_leased;
    p_queue.rate_limit := v_found(1).rate_limit;
    p_queue.paused_at := v_found(1).paused_at;
    for i in 1 .. v_found.count loop
        if v_found(i).lane = -4 then
            p_has_recheck := true;
        else
            v_next := p_lanes.count + 1;
            p_lanes(v_next).lane := v_found(i).lane;
            p_lanes(v_next).floor_seq := v_found(i).floor_seq;
        end if;
    end loop;
end internal_require_lanes;

function internal_require_queue(p_queue_name in varchar2)
return t_queue
is
-- routine   internal_require_queue
-- purpose   Return the settings of a queue; raise an error if it does not exist.
-- promise   P15
-- errors    RQ701 RQ711
    v_key   raw(400);
    v_queue t_queue;
    cursor named is
        select q.part_id, q.lease_seconds, q.max_attempts, q.backoff_base_seconds,
               q.backoff_factor, q.backoff_cap_seconds, q.backoff_jitter, q.archive_days,
               q.max_body_length, q.group_limit, q.group_after_dead, q.max_leased,
               q.rate_limit, q.rate_seconds, q.result_seconds, q.history_days, q.paused_at,
               q.listened_until
        from rowq_queue q
        where q.queue_key = v_key;
begin
    if length(p_queue_name) <= 100 then
        v_key := utl_raw.cast_to_raw(p_queue_name);
        open named;
        fetch named into v_queue;
        close named;
    end if;
    if v_queue.part_id is null then
        internal_refuse_queue(p_queue_name);
    end if;
    return v_queue;
end internal_require_queue;

function internal_require_schedule(p_part_id in number, p_schedule_name in varchar2)
return t_schedule
is
-- routine   internal_require_schedule
-- purpose   Return a schedule and hold it to the end of the transaction; raise an error if there is none.
-- promise   P15
-- locks     the schedule row
-- errors    RQ702 RQ711
    v_key      raw(400);
    v_held     rowq_schedule.schedule_key%type;
    v_schedule t_schedule;
    cursor named is
        select s.schedule_key
        from rowq_schedule s
        where s.part_id = p_part_id
          and s.schedule_key = v_key
        for update;
begin
    if p_schedule_name is null then
        internal_refuse('schedule_name is missing');
    end if;
    if length(p_schedule_name) <= 100 then
        v_key := utl_raw.cast_to_raw(p_schedule_name);
        open named;
        fetch named into v_held;
        close named;
    end if;
    if v_held is null then
        raise_application_error(
            -20702, 'RQ702 schedule_not_found: ' || substr(p_schedule_name, 1, 100)
        );
    end if;
    -- Read it once it is locked, so that what another session has just changed is seen.
    v_schedule := internal_read_schedule(p_part_id, v_held);
    return v_schedule;
end internal_require_schedule;

procedure internal_rescan_floors(
    p_part_id     in number,
    p_has_recheck out boolean,
    p_has_started out boolean,
    p_has_expiry  out boolean,
    p_has_results out boolean,
    p_has_history out boolean
)
is
-- routine   internal_rescan_floors
-- purpose   Look for the first live row of every lane from its very start, and put the floors right. p_has_recheck and the others say whether these tables may have rows.
-- promise   P13 P14
-- locks     rows of lanes, passing over locked ones
-- differs   only maintain moves floors: dead rows cost nothing here, emptied index blocks little
    -- Times are in microseconds. A look that takes longer than c_short_walk has walked over emptied
    -- blocks. After one longer than c_long_walk the lane rests.
    c_short_walk constant number := 300;
    c_long_walk constant number := 20000;
    c_not_yet_committed constant number := 500000;
    type t_due_lane is record (
        lane       rowq_lane.lane%type,
        floor_seq  rowq_lane.floor_seq%type,
        is_open    rowq_lane.is_open%type,
        is_resting number(1)
    );
    type t_due_lanes is table of t_due_lane index by pls_integer;
    v_now      constant timestamp(6) := sys_extract_utc(systimestamp);
    v_lanes    t_due_lanes;
    v_started  timestamp(6);
    v_first    number;
    v_latest   number;
    v_worth_it number;
    v_took     number;
    -- The lanes of messages before v_next_lane were found empty; it begins at v_next_seq. A look
    -- that passes over empty lanes ends at v_last, because the lane behind it rests.
    v_next_lane pls_integer;
    v_next_seq  number;
    v_last      pls_integer;
    v_is_slow   boolean := false;
begin
    select l.lane, l.floor_seq, l.is_open,
           case when l.check_after > v_now then 1 else 0 end as is_resting
    bulk collect into v_lanes
    from rowq_lane l
    where l.part_id = p_part_id
      and (l.check_after <= v_now or l.lane in (-4, -6, -7, -8))
      -- Only a queue that has left a token, or a hint, has rows there.
      and (
          l.lane <> -4
          or l.is_open = 1
          or exists (select null from rowq_recheck r where r.part_id = p_part_id)
      )
      -- Only a queue that has a rate_limit, or had one, has rows there.
      and (
          l.lane <> -5
          or exists (select null from rowq_started s where s.part_id = p_part_id)
      )
      -- Only a queue that has messages which expire, or had some, has rows there.
      and (
          l.lane <> -6
          or exists (select null from rowq_expiry e where e.part_id = p_part_id)
      )
      -- Only a queue that has result_seconds, or had some, has rows there.
      and (
          l.lane <> -7
          or l.check_after > v_now
          or exists (
              select /*+ index(r rowq_result_finished_ix) */ null
              from rowq_result r
              where r.part_id = p_part_id
          )
      )
      -- Only a queue that has history_days, or had some, has rows there.
      and (
          l.lane <> -8
          or l.check_after > v_now
          or exists (
              select /*+ index(h rowq_history_pk) */ null
              from rowq_history h
              where h.part_id = p_part_id
          )
      )
    order by l.part_id, l.lane;

    p_has_recheck := false;
    p_has_started := false;
    p_has_expiry := false;
    p_has_results := false;
    p_has_history := false;
    for i in 1 .. v_lanes.count loop
        p_has_recheck := p_has_recheck or v_lanes(i).lane = -4;
        p_has_started := p_has_started or v_lanes(i).lane = -5;
        p_has_expiry := p_has_expiry or v_lanes(i).lane = -6;
        p_has_results := p_has_results or v_lanes(i).lane = -7;
        p_has_history := p_has_history or v_lanes(i).lane = -8;
        -- What is purged or expires goes on from its floor also while nobody moves that.
        continue when v_lanes(i).lane in (-6, -7, -8) and v_lanes(i).is_resting = 1;
        v_started := sys_extract_utc(systimestamp);
        v_first := null;
        if v_lanes(i).lane < 0 or v_is_slow then
            v_first := internal_first_key(p_part_id, v_lanes(i).lane, 0);
        else
            if v_next_lane is null or v_next_lane < v_lanes(i).lane then
                v_last := i;
                while v_last < v_lanes.count
                    and v_lanes(v_last + 1).lane = v_lanes(v_last).lane + 1
                loop
                    v_last := v_last + 1;
                end loop;
                internal_first_lane(
                    p_part_id, v_lanes(i).lane, v_lanes(v_last).lane, v_next_lane, v_next_seq
                );
            end if;
            if v_next_lane = v_lanes(i).lane then
                v_first := v_next_seq;
            end if;
        end if;
        v_took := internal_microseconds(sys_extract_utc(systimestamp))
            - internal_microseconds(v_started);
        if not v_is_slow and v_next_lane > v_lanes(i).lane and v_took > c_short_walk then
            -- Emptied blocks were walked over, and nobody knows of which lane: look at this lane
            -- alone, and at each one behind it.
            v_is_slow := true;
            v_started := sys_extract_utc(systimestamp);
            v_first := internal_first_key(p_part_id, v_lanes(i).lane, 0);
            v_took := internal_microseconds(sys_extract_utc(systimestamp))
                - internal_microseconds(v_started);
        end if;

        if (v_lanes(i).lane >= 0 or v_lanes(i).lane = -4)
           and v_first is not null
           and v_lanes(i).is_open = 0
        then
            -- The lane has messages but is closed: the transaction that was to open it has rolled
            -- back, or is still open.
            internal_open_lanes(p_part_id, v_lanes(i).lane);
        end if;
        if v_lanes(i).lane in (-1, -3) then
            v_first := coalesce(v_first, v_lanes(i).floor_seq);
            v_worth_it := 400;
        elsif v_first is null and v_took <= c_short_walk then
            -- The lane is empty and the walk was short, so a dequeue loses no time before its
            -- floor. Leave the floor, so that an idle queue writes nothing.
            v_first := v_lanes(i).floor_seq;
            v_worth_it := 0;
        else
            -- The floor stays half a second behind now, because messages of the last moments may
            -- not be committed yet.
            v_latest := internal_microseconds(v_started) - c_not_yet_committed;
            v_first := least(coalesce(v_first, v_latest), v_latest);
            v_worth_it := case when v_lanes(i).lane in (-6, -7, -8) then 60000000 else 1000000 end;
        end if;
        if v_took > c_short_walk then
            v_worth_it := 0;
        end if;
        if v_first < v_lanes(i).floor_seq
           or (
               v_first > v_lanes(i).floor_seq + v_worth_it
               and (v_lanes(i).is_open = 1 or v_lanes(i).lane < 0)
           ) then
            internal_move_floor(p_part_id, v_lanes(i).lane, v_lanes(i).floor_seq, v_first);
        end if;

        if v_took > c_long_walk then
            internal_rest_lane(p_part_id, v_lanes(i).lane, v_took);
        end if;
    end loop;
end internal_rescan_floors;

procedure internal_reserve_dedup_keys(p_part_id in number, p_new in out nocopy t_new_messages)
is
-- routine   internal_reserve_dedup_keys
-- purpose   Give each message an id and reserve its dedup key; where another message has the key, return that one's id.
-- promise   P12
-- locks     new dedup rows; waits for open enqueues of the same keys, in key order; the door of a
--           schedule's key, passed over when locked
    c_most_tries constant pls_integer := 100;
    v_count constant pls_integer := p_new.count;
    v_ids      t_numbers;
    v_order    t_places;
    v_at       varchar2(4000 char);
    v_key      raw(800);
    v_has_door boolean;
    v_tries    pls_integer;
    v_other    rowq_dedup.message_id%type;
begin
    -- One statement takes all numbers, because each statement is a change from PL/SQL to SQL.
    select rowq_message_seq.nextval
    bulk collect into v_ids
    from dual
    connect by level <= v_count;

    for i in 1 .. v_count loop
        p_new(i).outcome := 'enqueued';
        p_new(i).message_id := v_ids(i);
        if p_new(i).dedup_key is not null then
            v_order(internal_dedup_order(p_new(i).dedup_key, i)) := i;
        end if;
    end loop;

    -- Reserve the keys in key order, so that batches with the same keys cannot wait for each other.
    v_at := v_order.first;
    while v_at is not null loop
        v_key := utl_raw.cast_to_raw(p_new(v_order(v_at)).dedup_key);
        if instr(p_new(v_order(v_at)).dedup_key, 'schedule:') = 1 then
            -- This session goes on without the door: it may wait for the key.
            v_has_door := internal_lock_door(p_part_id, v_key);
        end if;
        v_tries := 0;
        loop
            begin
                insert into rowq_dedup (part_id, dedup_key, message_id)
                values (p_part_id, v_key, p_new(v_order(v_at)).message_id);
                exit;
            exception
                when dup_val_on_index then
                    -- Another producer had the key before, or has committed it while this one
                    -- waited for it.
                    select max(d.message_id) into v_other
                    from rowq_dedup d
                    where d.part_id = p_part_id
                      and d.dedup_key = v_key;
                    if v_other is not null then
                        p_new(v_order(v_at)).message_id := v_other;
                        p_new(v_order(v_at)).outcome := 'duplicate';
                        exit;
                    end if;
                    -- The key is free by now, so try again. The tries are limited for a
                    -- serializable transaction, which never sees the row that it collides with.
                    v_tries := v_tries + 1;
                    if v_tries = c_most_tries then
                        raise;
                    end if;
            end;
        end loop;
        v_at := v_order.next(v_at);
    end loop;
end internal_reserve_dedup_keys;

procedure internal_rest_lane(p_part_id in number, p_lane in number, p_took in number)
is
-- routine   internal_rest_lane
-- purpose   Look at a lane no more for fifty times as long as the last look took, p_took microseconds.
-- promise   P13 P14
-- locks     the row of the lane, passed over when locked
-- differs   no such helper elsewhere: part of rescan_floors
    c_duty          constant number := 50;
    c_longest_pause constant number := 3600000000;
    v_row_id rowid;
    cursor lane_row is
        select l.rowid
        from rowq_lane l
        where l.part_id = p_part_id
          and l.lane = p_lane
        for update skip locked;
begin
    open lane_row;
    fetch lane_row into v_row_id;
    close lane_row;
    update rowq_lane l
    set l.check_after = sys_extract_utc(systimestamp)
        + numtodsinterval(least(p_took * c_duty, c_longest_pause) / 1000000, 'second')
    where l.rowid = v_row_id;
end internal_rest_lane;

function internal_rest_of_ids(
    p_part_id  in number,
    p_ids      in rowq_ids,
    p_messages in t_messages
)
return t_messages
is
-- routine   internal_rest_of_ids
-- purpose   Return the messages with these ids that are there and not among p_messages, with their group_key.
-- differs   no such helper elsewhere: part of internal_pop_waiting
    v_ids    t_numbers;
    v_groups t_texts;
    v_found  t_places;
    v_rest   t_messages;
    v_next   pls_integer := 0;
begin
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id, m.group_key
    bulk collect into v_ids, v_groups
    from table(p_ids) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value;
    for i in 1 .. p_messages.count loop
        v_found(internal_number_text(p_messages(i).message_id)) := i;
    end loop;
    for i in 1 .. v_ids.count loop
        if not v_found.exists(internal_number_text(v_ids(i))) then
            v_next := v_next + 1;
            v_rest(v_next).message_id := v_ids(i);
            v_rest(v_next).group_key := v_groups(i);
        end if;
    end loop;
    return v_rest;
end internal_rest_of_ids;

function internal_rest_unfinished(p_part_id in number, p_ids in rowq_ids, p_from in number)
return rowq_ids
is
-- routine   internal_rest_unfinished
-- purpose   Return those of these messages, from the place p_from on, that the archiver has not still to move, newest first.
-- promise   P25
-- differs   no such helper elsewhere: part of internal_await_predecessor
    v_rest rowq_ids := rowq_ids();
    v_kept rowq_ids;
begin
    for i in p_from .. p_ids.count loop
        v_rest.extend;
        v_rest(v_rest.last) := p_ids(i);
    end loop;
    select a.column_value
    bulk collect into v_kept
    from table(v_rest) a
    where a.column_value not in (
        select /*+ hash_aj index_rs_asc(f rowq_finished_pk) */ f.message_id
        from rowq_finished f
        where f.part_id = p_part_id
          and f.finish_id >= (
              select l.floor_seq
              from rowq_lane l
              where l.part_id = p_part_id
                and l.lane = -3
          )
    )
    order by a.column_value desc;
    return v_kept;
end internal_rest_unfinished;

function internal_results_of(p_messages in t_messages, p_ids in rowq_ids, p_given in t_clobs)
return t_clobs
is
-- routine   internal_results_of
-- purpose   Return the results of messages by their places, null for one without; none where nobody has one. p_given goes along p_ids, or, where these are null, along p_messages. Of a message named twice the first one counts.
-- promise   P32
-- differs   no such helper elsewhere: part of push_result
    v_places  t_places;
    v_place   pls_integer;
    v_results t_clobs;
begin
    if p_ids is null or p_given.count = 0 then
        return p_given;
    end if;
    for i in reverse 1 .. p_ids.count loop
        v_places(internal_number_text(p_ids(i))) := i;
    end loop;
    for i in 1 .. p_messages.count loop
        v_place := v_places(internal_number_text(p_messages(i).message_id));
        v_results(i) := null;
        if p_given.exists(v_place) then
            v_results(i) := p_given(v_place);
        end if;
    end loop;
    return v_results;
end internal_results_of;

function internal_retry_outcomes(
    p_ids      in rowq_ids,
    p_messages in t_messages,
    p_alive    in t_messages,
    p_due_at   in t_moments
)
return rowq_lines
is
-- routine   internal_retry_outcomes
-- purpose   Return the lines of retry_later: retrying with due_at, dead, or stale.
-- promise   P08 P10
-- differs   no such helper elsewhere: part of retry_later
    v_lines rowq_lines := internal_outcomes(p_ids, p_messages, 'retrying');
    v_alive t_places;
    v_text  varchar2(50 char);
begin
    for i in 1 .. p_alive.count loop
        v_alive(internal_number_text(p_alive(i).message_id)) := i;
    end loop;
    for i in 1 .. v_lines.count loop
        if v_lines(i).outcome = 'retrying' then
            v_text := internal_number_text(v_lines(i).message_id);
            if v_alive.exists(v_text) then
                v_lines(i).due_at := p_due_at(v_alive(v_text));
            else
                v_lines(i).outcome := 'dead';
            end if;
        end if;
    end loop;
    return v_lines;
end internal_retry_outcomes;

procedure internal_ring_doorbell(p_part_id in number, p_listened_until in timestamp)
is
-- routine   internal_ring_doorbell
-- purpose   Ring for the sessions that wait at a queue, if doorbell.sql was run and somebody listens.
-- locks     none that another could wait for
-- commits   never; the ring is heard when the caller's transaction commits
-- differs   this engine's own
    -- ORA-01013: the user has cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
begin
    if p_listened_until is null or p_listened_until < sys_extract_utc(systimestamp) then
        return;
    end if;
    -- This is dynamic SQL, because the package exists only where the owner has run doorbell.sql.
    execute immediate 'begin rowq_doorbell.ring(:1); end;' using p_part_id;
exception
    when e_cancelled then
        raise;
    when others then
        -- Never fail a call because its ring failed: listeners look once a second anyway. The
        -- statement that failed has left nothing to roll back.
        return;
end internal_ring_doorbell;

procedure internal_roll_back(p_has_savepoint in boolean)
is
-- routine   internal_roll_back
-- purpose   Take back what was done since internal_begin_work, where it has set a savepoint.
-- promise   P15 P17
-- commits   never; rolls back to where internal_begin_work was called
-- differs   needed where a procedure opens a transaction or, as here, a trigger may call it
begin
    if p_has_savepoint then
        rollback to savepoint rowq_call;
    end if;
end internal_roll_back;

function internal_room(p_part_id in number, p_wanted in number)
return number
is
-- routine   internal_room
-- purpose   Return how many of the wanted messages a queue's limits leave room for at this moment; none while it is paused.
-- promise   P28 P29
    v_now  constant timestamp(6) := sys_extract_utc(systimestamp);
    v_room number := 0;
    -- Count from the first row and not from a floor, because a claim that was committed late
    -- counts, too.
    cursor room_row is
        select least(
                   p_wanted,
                   case
                       when q.max_leased > 0 then q.max_leased - (
                           select /*+ index_rs_asc(l rowq_leased_pk) */ count(*)
                           from rowq_leased l
                           where l.part_id = p_part_id
                       )
                       else p_wanted
                   end,
                   case
                       when q.rate_limit > 0 then q.rate_limit - (
                           select /*+ index_rs_asc(s rowq_started_pk) */
                                  coalesce(sum(s.messages), 0)
                           from rowq_started s
                           where s.part_id = p_part_id
                             and s.started_at
                                 > v_now - numtodsinterval(q.rate_seconds, 'second')
                       )
                       else p_wanted
                   end
               ) as messages
        from rowq_queue q
        where q.part_id = p_part_id
          and q.paused_at is null;
begin
    open room_row;
    fetch room_row into v_room;
    close room_row;
    return greatest(v_room, 0);
end internal_room;

function internal_run_due(
    p_queue      in t_queue,
    p_queue_name in varchar2,
    p_schedule   in t_schedule
)
return number
is
-- routine   internal_run_due
-- purpose   Add the messages of a schedule's due ticks, a hundred at most, and move it on; return how many were added.
-- promise   P30 P31
-- locks     as internal_can_send and internal_send_tick
-- commits   never; an error takes back what was done for this schedule
    -- ORA-01013: the user has cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
    c_most_ticks constant pls_integer := 100;
    v_now  constant timestamp(6) := sys_extract_utc(systimestamp);
    v_late constant timestamp(6) := v_now - numtodsinterval(60, 'second');
    v_tick     timestamp(6) := p_schedule.next_run_at;
    v_can_send boolean;
    v_id       number;
    v_last_id  number;
    v_outcome  varchar2(20 char);
    v_error    varchar2(1000 char);
    v_code     pls_integer;
    v_count    pls_integer := 0;
    v_sent     pls_integer := 0;
begin
    savepoint rowq_schedule_part;
    while v_tick <= v_now and v_count < c_most_ticks loop
        if v_tick < v_late and p_schedule.missed = 'skip' then
            v_tick := internal_next_tick(p_schedule, v_late);
            continue;
        end if;
        v_can_send := internal_can_send(p_queue.part_id, p_schedule, v_id);
        if not v_can_send then
            rollback to savepoint rowq_schedule_part;
            return 0;
        end if;
        v_outcome := 'duplicate';
        if v_id is null then
            internal_send_tick(p_queue, p_queue_name, p_schedule, v_tick, v_id, v_outcome);
        end if;
        v_error := null;
        if v_outcome = 'enqueued' then
            v_sent := v_sent + 1;
            v_last_id := v_id;
        else
            v_error := 'message ' || internal_number_text(v_id)
                || ' of an earlier tick has not ended';
        end if;
        v_tick := internal_next_tick(
            p_schedule,
            case when v_tick < v_late and p_schedule.missed = 'once' then v_now else v_tick end
        );
        v_count := v_count + 1;
    end loop;

    update rowq_schedule s
    set s.next_run_at     = v_tick,
        s.last_run_at     = nvl2(v_last_id, v_now, s.last_run_at),
        s.last_message_id = coalesce(v_last_id, s.last_message_id),
        s.last_error      = v_error
    where s.part_id = p_schedule.part_id
      and s.schedule_key = p_schedule.schedule_key;
    return v_sent;
exception
    when e_cancelled then
        raise;
    when others then
        v_code := sqlcode;
        v_error := substr(sqlerrm, 1, 1000);
        rollback to savepoint rowq_schedule_part;
        -- What comes of locks or of the server's state is tried again by the next call. What would
        -- be refused again is noted, and its tick is given up: a refusal (ORA-20xxx), a value that
        -- does not fit (ORA-01400, 01438, 02290, 06502, 12899), a time zone that the server has
        -- lost (ORA-01882).
        if v_code between -20999 and -20000
           or v_code in (-1400, -1438, -2290, -6502, -12899, -1882) then
            internal_give_up_tick(p_schedule, v_now, v_error);
        end if;
        return 0;
end internal_run_due;

function internal_run_schedules(p_queue in t_queue, p_queue_name in varchar2)
return number
is
-- routine   internal_run_schedules
-- purpose   Run the schedules of a queue that are due and that no other session is running; return how many messages were added.
-- promise   P30 P31
-- locks     as internal_try_schedule and internal_run_due
    v_now    constant timestamp(6) := sys_extract_utc(systimestamp);
    v_keys   t_keys;
    v_is_due boolean;
    v_sent   pls_integer := 0;
begin
    select /*+ index_rs_asc(s rowq_schedule_pk) */ s.schedule_key
    bulk collect into v_keys
    from rowq_schedule s
    where s.part_id = p_queue.part_id
      and s.next_run_at <= v_now;
    for i in 1 .. v_keys.count loop
        v_is_due := internal_try_schedule(p_queue.part_id, v_keys(i));
        if v_is_due then
            v_sent := v_sent + internal_run_due(
                p_queue, p_queue_name, internal_read_schedule(p_queue.part_id, v_keys(i))
            );
        end if;
    end loop;
    return v_sent;
end internal_run_schedules;

function internal_seconds_since(p_moment in timestamp, p_now in timestamp)
return number
is
-- routine   internal_seconds_since
-- purpose   Return the seconds from a moment to p_now; null stays null.
-- differs   no such helper elsewhere: other engines have a function for it
begin
    return (internal_microseconds(p_now) - internal_microseconds(p_moment)) / 1000000;
end internal_seconds_since;

procedure internal_send_tick(
    p_queue      in t_queue,
    p_queue_name in varchar2,
    p_schedule   in t_schedule,
    p_tick       in timestamp,
    p_message_id out number,
    p_outcome    out varchar2
)
is
-- routine   internal_send_tick
-- purpose   Add the message of a schedule to its queue; the outcome is enqueue's.
-- promise   P30
-- locks     as internal_store
-- errors    RQ701 RQ711
-- differs   does not call enqueue, which would move the savepoint of the routine that runs
    v_fault varchar2(32767);
    v_new   t_new_messages;
begin
    -- Only the length of the body can have become wrong since the schedule was checked.
    v_fault := internal_body_fault(
        p_schedule.body, p_schedule.body_binary, p_queue.max_body_length
    );
    if v_fault is not null then
        internal_refuse(v_fault);
    end if;
    v_new(1) := internal_new_message(
        sys_extract_utc(systimestamp), 0, p_schedule.body, p_schedule.body_binary,
        p_schedule.message_type, internal_tick_headers(p_schedule, p_tick), p_schedule.priority,
        null, null, internal_tick_key(p_schedule), p_schedule.max_attempts,
        p_schedule.group_key, null, null, null
    );
    internal_store(p_queue.part_id, p_queue_name, v_new);
    p_message_id := v_new(1).message_id;
    p_outcome := v_new(1).outcome;
end internal_send_tick;

procedure internal_split_by_attempts(
    p_queue    in t_queue,
    p_messages in t_messages,
    p_alive    out nocopy t_messages,
    p_dead     out nocopy t_messages
)
is
-- routine   internal_split_by_attempts
-- purpose   Divide messages into those with an attempt left and those without.
-- promise   P10
    v_wanted rowq_ids := internal_ids_of(p_messages);
    v_ids    t_numbers;
    v_limits t_numbers;
    v_own    t_places;
    v_limit  number;
begin
    p_alive.delete;
    p_dead.delete;
    -- Read only the messages that have a limit of their own, because they are few.
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id, m.max_attempts
    bulk collect into v_ids, v_limits
    from table(v_wanted) a
    join rowq_message m
      on m.part_id = p_queue.part_id
     and m.message_id = a.column_value
    where m.max_attempts is not null;
    for i in 1 .. v_ids.count loop
        v_own(internal_number_text(v_ids(i))) := v_limits(i);
    end loop;

    for i in 1 .. p_messages.count loop
        v_limit := case
            when v_own.exists(internal_number_text(p_messages(i).message_id))
                then v_own(internal_number_text(p_messages(i).message_id))
            else p_queue.max_attempts
        end;
        if p_messages(i).attempt < v_limit then
            p_alive(p_alive.count + 1) := p_messages(i);
        else
            p_dead(p_dead.count + 1) := p_messages(i);
        end if;
    end loop;
end internal_split_by_attempts;

procedure internal_split_by_cancel(
    p_messages  in t_messages,
    p_rest      out nocopy t_messages,
    p_cancelled out nocopy t_messages
)
is
-- routine   internal_split_by_cancel
-- purpose   Divide messages of a claim into those that were cancelled and the rest.
-- promise   P34
-- differs   no such helper elsewhere: other engines keep a claim's cancelled messages as a list
begin
    p_rest.delete;
    p_cancelled.delete;
    for i in 1 .. p_messages.count loop
        if p_messages(i).is_cancelled = 1 then
            p_cancelled(p_cancelled.count + 1) := p_messages(i);
        else
            p_rest(p_rest.count + 1) := p_messages(i);
        end if;
    end loop;
end internal_split_by_cancel;

procedure internal_store(
    p_part_id    in number,
    p_queue_name in varchar2,
    p_new        in out nocopy t_new_messages
)
is
-- routine   internal_store
-- purpose   Store messages that are already checked in the places where they belong.
-- promise   P01 P02 P05 P11 P12 P20 P21 P22 P25 P27 P36
-- locks     new rows; with dedup keys, waits for open enqueues of the same keys, in key order; with
--           group keys as internal_join_groups; with predecessors as internal_block_batch
-- errors    RQ701 RQ711
    -- ORA-02291 (parent key not found): the queue was dropped while this insert waited for it.
    e_no_queue exception;
    pragma exception_init(e_no_queue, -2291);
    v_fresh      t_numbers;
    v_ready      t_numbers;
    v_later      t_numbers;
    v_expiring   t_numbers;
    v_is_waiting boolean := false;
begin
    internal_reserve_dedup_keys(p_part_id, p_new);
    for i in 1 .. p_new.count loop
        if p_new(i).outcome = 'enqueued' then
            v_fresh(i) := i;
            v_is_waiting := v_is_waiting or p_new(i).predecessor_ids is not null;
            if p_new(i).expires_at is not null then
                v_expiring(i) := i;
            end if;
            if p_new(i).due_at is null then
                v_ready(i) := i;
            else
                v_later(i) := i;
            end if;
        end if;
    end loop;
    internal_open_lanes_for(p_part_id, p_new);

    forall i in indices of v_fresh
        insert into rowq_message (
            part_id, message_id, max_attempts, lane, seq, enqueued_at, due_at, message_type,
            dedup_key, group_key, expires_at, headers, body, body_binary
        )
        values (
            p_part_id, p_new(i).message_id, p_new(i).max_attempts, p_new(i).lane, p_new(i).seq,
            p_new(i).enqueued_at, p_new(i).due_at, p_new(i).message_type,
            p_new(i).dedup_key, p_new(i).group_key, p_new(i).expires_at, p_new(i).headers,
            p_new(i).body, p_new(i).body_binary
        );
    forall i in indices of v_expiring
        insert into rowq_expiry (part_id, expires_at, expiry_id, message_id, lane, seq)
        values (
            p_part_id, p_new(i).expires_at, rowq_claim_seq.nextval, p_new(i).message_id,
            p_new(i).lane, p_new(i).seq
        );
    if v_is_waiting then
        internal_block_batch(p_part_id, p_new, v_ready, v_later);
    end if;
    internal_store_grouped(p_part_id, p_new, v_ready);
    forall i in indices of v_ready
        insert into rowq_ready (part_id, lane, seq, message_id)
        values (p_part_id, p_new(i).lane, p_new(i).seq, p_new(i).message_id);
    forall i in indices of v_later
        insert into rowq_delayed (part_id, due_at, message_id, lane, group_key)
        values (
            p_part_id, p_new(i).due_at, p_new(i).message_id, p_new(i).lane, p_new(i).group_key
        );
exception
    when e_no_queue then
        internal_refuse_queue(p_queue_name);
end internal_store;

procedure internal_store_bound(
    p_queue in t_bound_queue,
    p_new   in out nocopy t_new_messages,
    p_sent  in out nocopy rowq_sent_list
)
is
-- routine   internal_store_bound
-- purpose   Store messages in a queue that is bound to their topics, and append a row for each to the result.
-- promise   P01 P05 P12 P35
-- locks     as internal_store
-- differs   no such helper elsewhere: other engines call enqueue or a helper of it
    -- ORA-20701 (queue_not_found): the queue was dropped since a serializable transaction began,
    -- which sees it still.
    e_no_queue exception;
    pragma exception_init(e_no_queue, -20701);
    e_cannot_serialize exception;
    pragma exception_init(e_cannot_serialize, -8177);
begin
    internal_store(p_queue.part_id, p_queue.queue_name, p_new);
    internal_ring_doorbell(p_queue.part_id, p_queue.listened_until);
    for i in 1 .. p_new.count loop
        p_sent.extend;
        p_sent(p_sent.last) := rowq_sent(
            p_sent.last, p_new(i).place, p_queue.queue_name, p_new(i).message_id, p_new(i).outcome
        );
    end loop;
exception
    when e_no_queue then
        raise e_cannot_serialize;
end internal_store_bound;

procedure internal_store_grouped(
    p_part_id in number,
    p_new     in t_new_messages,
    p_ready   in out nocopy t_numbers
)
is
-- routine   internal_store_grouped
-- purpose   Let new messages of groups be ready, or wait behind others; p_ready has the places of those that are due, and keeps those that are ready.
-- promise   P01 P05 P21 P22
-- locks     as internal_join_groups
-- differs   PostgreSQL joins groups in enqueue and enqueue_batch
    v_messages t_messages;
    v_waiting  t_numbers;
    v_place    pls_integer := p_ready.first;
begin
    while v_place is not null loop
        if p_new(v_place).group_key is not null then
            v_messages(v_place).message_id := p_new(v_place).message_id;
            v_messages(v_place).lane := p_new(v_place).lane;
            v_messages(v_place).group_key := p_new(v_place).group_key;
        end if;
        v_place := p_ready.next(v_place);
    end loop;
    internal_join_groups(p_part_id, v_messages, v_waiting);

    v_place := v_waiting.first;
    while v_place is not null loop
        p_ready.delete(v_place);
        v_place := v_waiting.next(v_place);
    end loop;
end internal_store_grouped;

function internal_text_length(p_text in clob)
return number
is
-- routine   internal_text_length
-- purpose   Return how many characters a text has.
-- promise   P15
-- differs   no such helper elsewhere: dbms_lob.getlength counts an emoji as two
    v_part   varchar2(32767);
    v_place  number := 1;
    v_length number := 0;
begin
    loop
        v_part := internal_clob_part(p_text, v_place, 8000);
        exit when v_part is null;
        v_length := v_length + length(v_part);
        v_place := v_place + length2(v_part);
    end loop;
    return v_length;
end internal_text_length;

function internal_tick_headers(p_schedule in t_schedule, p_tick in timestamp)
return clob
is
-- routine   internal_tick_headers
-- purpose   Return the headers of a message of a schedule: its own, the schedule's name and the tick.
-- promise   P20
-- differs   the two are added to the text, so that its own numbers stay as they are
    c_blanks constant varchar2(4 char) := chr(9) || chr(10) || chr(13) || chr(32);
    v_headers clob := '{';
    v_last    varchar2(4 char);
    v_name    varchar2(400 char);
begin
    if p_schedule.headers is not null then
        -- Leave out the brace at the end.
        v_headers := rtrim(p_schedule.headers, c_blanks);
        v_headers := rtrim(substr(v_headers, 1, length(v_headers) - 1), c_blanks);
    end if;
    v_last := substr(v_headers, -1);
    if ascii(v_last) <> ascii('{') then
        v_headers := v_headers || ', ';
    end if;
    -- A name has no control characters.
    v_name := replace(replace(p_schedule.schedule_name, '\', '\\'), '"', '\"');
    return v_headers || '"schedule": "' || v_name || '", "tick": "'
        || to_char(p_tick, 'yyyy-mm-dd"T"hh24:mi:ss.ff6"Z"', 'nls_calendar=gregorian') || '"}';
end internal_tick_headers;

function internal_tick_key(p_schedule in t_schedule)
return varchar2
is
-- routine   internal_tick_key
-- purpose   Return the dedup key of a schedule's messages; null where they may overlap.
-- promise   P12
-- differs   no such helper elsewhere: part of send_tick
begin
    return case when p_schedule.overlap = 0 then 'schedule:' || p_schedule.schedule_name end;
end internal_tick_key;

function internal_to_base64(p_bytes in blob)
return clob
is
-- routine   internal_to_base64
-- purpose   Return bytes as base64 in one line; null stays null.
-- promise   P20
-- differs   no such helper elsewhere: other engines have a function for it
    -- 12000 bytes are a whole number of groups of three, so that only the last chunk is padded.
    c_step constant pls_integer := 12000;
    v_length pls_integer := dbms_lob.getlength(p_bytes);
    v_place  pls_integer := 1;
    v_chunk  varchar2(32767);
    v_text   clob;
begin
    if p_bytes is null then
        return null;
    end if;
    dbms_lob.createtemporary(v_text, true, dbms_lob.call);
    while v_place <= v_length loop
        v_chunk := utl_raw.cast_to_varchar2(
            utl_encode.base64_encode(dbms_lob.substr(p_bytes, c_step, v_place))
        );
        v_chunk := replace(replace(v_chunk, chr(13)), chr(10));
        dbms_lob.writeappend(v_text, length(v_chunk), v_chunk);
        v_place := v_place + c_step;
    end loop;
    return v_text;
end internal_to_base64;

function internal_to_minute(p_moment in timestamp)
return timestamp
is
-- routine   internal_to_minute
-- purpose   Return the moment at which the minute of a moment has begun.
-- differs   no such helper elsewhere: trunc makes a date of it, and dates may be rounded
begin
    return p_moment - numtodsinterval(extract(second from p_moment), 'second');
end internal_to_minute;

function internal_topic_fault(
    p_name       in varchar2,
    p_topic      in varchar2,
    p_is_pattern in boolean
)
return varchar2
is
-- routine   internal_topic_fault
-- purpose   Return what is wrong with a topic or a pattern; null means nothing.
-- promise   P15
    c_star constant pls_integer := ascii('*');
    c_hash constant pls_integer := ascii('#');
    v_words   t_texts;
    v_is_good boolean;

    -- is_word says whether a text is one or more letters, digits, _ or -. It compares their codes,
    -- because regular expressions follow the session's NLS_SORT.
    function is_word(p_text in varchar2)
    return boolean
    is
        v_code pls_integer;
    begin
        for i in 1 .. coalesce(length(p_text), 0) loop
            v_code := ascii(substr(p_text, i, 1));
            if not (
                v_code between ascii('A') and ascii('Z')
                or v_code between ascii('a') and ascii('z')
                or v_code between ascii('0') and ascii('9')
                or v_code in (ascii('_'), ascii('-'))
            )
            then
                return false;
            end if;
        end loop;
        return p_text is not null;
    end is_word;
begin
    if p_topic is null then
        return p_name || ' is missing';
    elsif length(p_topic) > 200 then
        return p_name || ' is longer than 200 characters';
    end if;

    -- The code of a character of four bytes may be greater than any integer of PL/SQL.
    v_is_good := lengthb(p_topic) = length(p_topic);
    if v_is_good then
        v_words := internal_words_of(p_topic);
    end if;
    for i in 1 .. v_words.count loop
        if p_is_pattern and length(v_words(i)) = 1
           and (ascii(v_words(i)) = c_star or i = v_words.count and ascii(v_words(i)) = c_hash)
        then
            continue;
        end if;
        v_is_good := v_is_good and is_word(v_words(i));
    end loop;
    return case
        when v_is_good
            then null
        when p_is_pattern
            then p_name || ' must be words of letters, digits, _, - or *, with dots between, # last'
        else p_name || ' must be words of letters, digits, _, -, with dots between'
    end;
end internal_topic_fault;

function internal_topic_patterns(p_topic in varchar2)
return rowq_keys
is
-- routine   internal_topic_patterns
-- purpose   Return, as bytes, the patterns that a topic would match: one of each shape that there is among those which begin as it does.
-- promise   P35
-- differs   no such helper elsewhere: other engines compare by like, which here follows NLS_SORT
    v_words constant t_texts := internal_words_of(p_topic);
    v_heads    rowq_keys := rowq_keys();
    v_patterns rowq_keys := rowq_keys();
    v_shapes   t_texts;
    v_head     varchar2(200 char);
    v_pattern  varchar2(400 char);

    -- pattern_of is null where a pattern of that shape has more or fewer words than the topic.
    function pattern_of(p_shape in varchar2)
    return varchar2
    is
        v_has_rest constant boolean := to_number(substr(p_shape, -1), '9') = 2;
        v_count    constant pls_integer := length(p_shape) - case when v_has_rest then 1 else 0 end;
        v_text varchar2(400 char);
    begin
        if v_count > v_words.count or v_count < v_words.count and not v_has_rest then
            return null;
        end if;
        for i in 1 .. v_count loop
            v_text := v_text || case when i > 1 then '.' end
                || case to_number(substr(p_shape, i, 1), '9') when 1 then '*' else v_words(i) end;
        end loop;
        if v_has_rest then
            v_text := v_text || case when v_count > 0 then '.' end || '#';
        end if;
        return v_text;
    end pattern_of;
begin
    v_heads.extend(v_words.count + 1);
    v_heads(1) := internal_head_key(null);
    for i in 1 .. v_words.count loop
        v_head := v_head || case when i > 1 then '.' end || v_words(i);
        v_heads(i + 1) := internal_head_key(v_head);
    end loop;

    select /*+ leading(h b) use_nl(b) cardinality(h 4) index(b rowq_topic_binding_head_ix) */
           distinct b.shape
    bulk collect into v_shapes
    from table(v_heads) h
    join rowq_topic_binding b on b.head_key = h.column_value;

    for i in 1 .. v_shapes.count loop
        v_pattern := pattern_of(v_shapes(i));
        if v_pattern is not null then
            v_patterns.extend;
            v_patterns(v_patterns.last) := utl_raw.cast_to_raw(v_pattern);
        end if;
    end loop;
    return v_patterns;
end internal_topic_patterns;

procedure internal_trim_claim(p_part_id in number, p_claim_id in number)
is
-- routine   internal_trim_claim
-- purpose   Give back those messages of a new claim that go beyond 64 MB; the first one stays.
-- promise   P02 P05
-- locks     rows of leased, which nobody else sees yet; new ready rows
    c_most constant number := 67108864;
    v_held  t_messages := internal_claimed_messages(p_part_id, p_claim_id);
    v_rest  t_messages;
    v_place number := 0;
    v_total number := 0;
begin
    for each_message in (
        select /*+ leading(l m) use_nl(m) index(m rowq_message_pk) */
               m.headers, m.body, m.body_binary
        from rowq_leased l
        join rowq_message m
          on m.part_id = l.part_id
         and m.message_id = l.message_id
        where l.part_id = p_part_id
          and l.claim_id = p_claim_id
        order by l.part_id, l.claim_id, l.place
    ) loop
        v_place := v_place + 1;
        v_total := v_total + coalesce(dbms_lob.getlength(each_message.body), 0)
            + coalesce(dbms_lob.getlength(each_message.body_binary), 0) * 4 / 3
            + coalesce(dbms_lob.getlength(each_message.headers), 0) + 1000;
        if v_total > c_most and v_place > 1 then
            v_rest(v_rest.count + 1) := v_held(v_place);
        end if;
    end loop;

    forall i in 1 .. v_rest.count
        delete from rowq_leased l
        where l.part_id = p_part_id
          and l.claim_id = p_claim_id
          and l.place = v_rest(i).seq;
    internal_as_front(v_rest, 1);
    internal_push_ready(p_part_id, v_rest);
end internal_trim_claim;

function internal_try_recheck(
    p_part_id        in number,
    p_group_key      in raw,
    p_message_id     in number,
    p_predecessor_id in number,
    p_is_hint        in number
)
return boolean
is
-- routine   internal_try_recheck
-- purpose   Look again at what a row of recheck names; return whether that was enough.
-- promise   P22 P24 P26 P27
-- locks     as internal_pass_group, internal_widen_group, internal_let_go, internal_free_successors
--           and internal_recheck_death
-- differs   no such helper elsewhere: part of internal_recheck
    v_again         rowq_ids;
    v_is_left       boolean;
    v_pause_seconds number;
begin
    if p_message_id is not null then
        internal_let_go(p_part_id, rowq_ids(p_message_id), null, v_again);
        return v_again.count = 0;
    end if;
    if p_predecessor_id is not null then
        if p_is_hint = 1 then
            return internal_recheck_death(p_part_id, p_predecessor_id);
        end if;
        internal_free_successors(p_part_id, p_predecessor_id);
        return true;
    end if;
    if p_is_hint = 1 then
        return internal_widen_group(p_part_id, p_group_key);
    end if;
    internal_pass_group(p_part_id, p_group_key, true, v_is_left, v_pause_seconds);
    return not v_is_left;
end internal_try_recheck;

function internal_try_schedule(p_part_id in number, p_schedule_key in raw)
return boolean
is
-- routine   internal_try_schedule
-- purpose   Hold a schedule that is due to the end of the transaction; return false where another session holds it or has run it.
-- promise   P30
-- locks     the schedule row, passed over when locked
-- differs   no such helper elsewhere: a cursor that locks is not kept open over a rollback here
    -- ORA-08177: this transaction is serializable, and the schedule was run after it began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_held rowq_schedule.schedule_key%type;
    cursor due_row is
        select s.schedule_key
        from rowq_schedule s
        where s.part_id = p_part_id
          and s.schedule_key = p_schedule_key
          and s.next_run_at <= v_now
        for update skip locked;
begin
    open due_row;
    fetch due_row into v_held;
    close due_row;
    return v_held is not null;
exception
    when e_not_serial then
        return false;
end internal_try_schedule;

procedure internal_try_unblock(
    p_part_id    in number,
    p_message_id in number,
    p_ended_id   in number,
    p_state      out varchar2,
    p_lane       out number
)
is
-- routine   internal_try_unblock
-- purpose   Look again what a blocked message waits for: again, gone, waiting, moved, failed, or ready, with its lane.
-- promise   P25 P26 P27
-- locks     the blocked and the message row, tried only; as internal_await_predecessor and
--           internal_enter_group
-- differs   PostgreSQL does it in internal_unblock
    v_is_listed      boolean;
    v_predecessor_id rowq_blocked.predecessor_id%type;
    v_due_at         rowq_blocked.due_at%type;
    v_on_dead        rowq_blocked.on_dead%type;
    v_group_key      rowq_blocked.group_key%type;
    v_key            raw(800);
    v_rest           clob;
    v_listed         rowq_ids := rowq_ids();
    v_ids            rowq_ids := rowq_ids();
    v_rest_ids       rowq_ids;
    v_locked         rowq_ids;
    v_held           rowq_ids;
    v_awaited_id     rowq_message.message_id%type;
    v_has_token      boolean;
begin
    internal_lock_blocked(p_part_id, p_message_id, p_state);
    if p_state <> 'locked' then
        return;
    end if;
    -- Read the row in a statement of its own, which sees it as it is now.
    select b.lane, b.predecessor_id, b.due_at, b.on_dead, b.group_key, b.rest_ids
    into p_lane, v_predecessor_id, v_due_at, v_on_dead, v_group_key, v_rest
    from rowq_blocked b
    where b.part_id = p_part_id
      and b.message_id = p_message_id;

    p_state := 'free';
    if v_predecessor_id <> coalesce(p_ended_id, 0) then
        v_ids.extend;
        v_ids(1) := v_predecessor_id;
    end if;
    if v_rest is not null then
        v_is_listed := internal_is_id_list(v_rest, v_listed);
        for i in 1 .. v_listed.count loop
            v_ids.extend;
            v_ids(v_ids.last) := v_listed(i);
        end loop;
    end if;
    if v_ids.count > 0 then
        internal_await_predecessor(
            p_part_id, p_message_id, v_ids, v_on_dead, p_state, v_awaited_id, v_rest_ids
        );
    end if;

    if p_state = 'unsure' then
        p_state := 'again';
    elsif p_state = 'waiting' then
        v_rest := case when v_rest_ids.count > 0 then ids(v_rest_ids) end;
        update rowq_blocked b
        set b.predecessor_id = v_awaited_id,
            b.rest_ids = v_rest
        where b.part_id = p_part_id
          and b.message_id = p_message_id;
    elsif p_state = 'failed' then
        -- Its row is to have the error, and a producer may be adding a message that waits for it.
        internal_lock_messages(p_part_id, rowq_ids(p_message_id), v_locked, v_held);
        if v_locked.count = 0 then
            p_state := 'again';
        else
            internal_fail_with(p_part_id, p_message_id, p_lane, v_awaited_id);
        end if;
    elsif v_due_at > sys_extract_utc(systimestamp) then
        insert into rowq_delayed (part_id, due_at, message_id, lane, group_key)
        values (p_part_id, v_due_at, p_message_id, p_lane, v_group_key);
        p_state := 'moved';
    elsif v_group_key is not null then
        v_key := utl_raw.cast_to_raw(v_group_key);
        v_has_token := internal_enter_group(p_part_id, v_key, false);
        if v_has_token is null then
            p_state := 'again';
        elsif v_has_token then
            -- Groups take turns.
            p_state := 'ready';
        else
            insert into rowq_grouped (part_id, group_key, message_id, lane)
            values (p_part_id, v_key, p_message_id, p_lane);
            p_state := 'moved';
        end if;
    else
        -- What has been begun is finished first.
        p_state := 'ready';
        p_lane := trunc(p_lane / 2) * 2;
    end if;

    if p_state in ('moved', 'ready', 'failed') then
        delete from rowq_blocked b
        where b.part_id = p_part_id
          and b.message_id = p_message_id;
    end if;
end internal_try_unblock;

procedure internal_unblock(
    p_part_id     in number,
    p_message_ids in rowq_ids,
    p_ended_id    in number,
    p_again       out nocopy rowq_ids,
    p_failed      out nocopy rowq_ids
)
is
-- routine   internal_unblock
-- purpose   Look again what blocked messages wait for, and let them go on where that is nothing. p_again are those that need another look, p_failed those that are dead with a predecessor now.
-- promise   P25 P26 P27
-- locks     as internal_try_unblock; new ready rows
    v_state          varchar2(20 char);
    v_lane           rowq_blocked.lane%type;
    v_ready          t_messages;
    v_next           pls_integer := 0;
    v_listened_until rowq_queue.listened_until%type;
begin
    p_again := rowq_ids();
    p_failed := rowq_ids();
    for i in 1 .. p_message_ids.count loop
        internal_try_unblock(p_part_id, p_message_ids(i), p_ended_id, v_state, v_lane);
        if v_state = 'again' then
            p_again.extend;
            p_again(p_again.last) := p_message_ids(i);
        elsif v_state = 'failed' then
            p_failed.extend;
            p_failed(p_failed.last) := p_message_ids(i);
        elsif v_state = 'ready' then
            v_next := v_next + 1;
            v_ready(v_next).message_id := p_message_ids(i);
            v_ready(v_next).lane := v_lane;
            v_ready(v_next).attempt := 0;
        end if;
    end loop;

    if v_next > 0 then
        internal_push_ready(p_part_id, v_ready);
        select q.listened_until into v_listened_until
        from rowq_queue q
        where q.part_id = p_part_id;
        internal_ring_doorbell(p_part_id, v_listened_until);
    end if;
end internal_unblock;

function internal_waiting_of(p_part_id in number, p_ids in rowq_ids)
return rowq_ids
is
-- routine   internal_waiting_of
-- purpose   Return those of these messages that no claim holds and that are not finished and on their way to the archive.
-- promise   P03
-- differs   no such helper elsewhere: part of cancel_many
    v_ids rowq_ids;
begin
    select a.column_value
    bulk collect into v_ids
    from table(p_ids) a
    where not exists (
        select /*+ hash_aj index_rs_asc(l rowq_leased_pk) */ null
        from rowq_leased l
        where l.part_id = p_part_id
          and l.message_id = a.column_value
    )
      and not exists (
        select /*+ hash_aj index_rs_asc(f rowq_finished_pk) */ null
        from rowq_finished f
        where f.part_id = p_part_id
          and f.message_id = a.column_value
    );
    return v_ids;
end internal_waiting_of;

function internal_widen_group(p_part_id in number, p_group_key in raw)
return boolean
is
-- routine   internal_widen_group
-- purpose   Give a group in which messages wait the tokens that it may have; return false where another look is needed.
-- promise   P22 P24
-- locks     the group's door and its message_group rows, passing over locked ones; new
--           message_group rows; as internal_leave_groups
    v_group    t_group;
    v_keys     t_keys;
    v_locked   t_numbers;
    v_has_door boolean;
    v_is_taken boolean;
begin
    v_keys(1) := p_group_key;
    loop
        internal_read_group(p_part_id, p_group_key, v_group);
        if v_group.first_id is null then
            return true;
        end if;
        exit when v_group.tokens.count >= v_group.group_limit;
        -- Without the door a producer may be opening the group, and a worker does not wait for it.
        v_has_door := internal_lock_door(p_part_id, p_group_key);
        if not v_has_door then
            return false;
        end if;
        v_is_taken := internal_add_token(p_part_id, p_group_key, v_group);
        if not v_is_taken then
            return false;
        end if;
        internal_leave_groups(p_part_id, v_keys);
    end loop;

    -- A token that can be locked is not being given back, and whoever ends its message sees those
    -- that wait, because they are committed by now.
    v_locked := internal_lock_tokens(p_part_id, p_group_key);
    return v_locked.count > 0;
end internal_widen_group;

function internal_words_of(p_text in varchar2)
return t_texts
is
-- routine   internal_words_of
-- purpose   Return the words of a topic or a pattern, which dots part; every character of it is one byte.
-- promise   P35
-- differs   no such helper elsewhere: other engines have a function for it
    c_dot constant pls_integer := ascii('.');
    v_words t_texts;
    v_from  pls_integer := 1;
begin
    -- Compare the codes of characters, because instr follows the session's NLS_COMP and NLS_SORT.
    for i in 1 .. length(p_text) loop
        if ascii(substr(p_text, i, 1)) = c_dot then
            v_words(v_words.count + 1) := substr(p_text, v_from, i - v_from);
            v_from := i + 1;
        end if;
    end loop;
    v_words(v_words.count + 1) := substr(p_text, v_from);
    return v_words;
end internal_words_of;

function ids(p_ids in rowq_ids)
return clob
is
-- routine   ids
-- version   1
-- purpose   A list of ids as the JSON array that routines take: for callers in PL/SQL.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   this engine's own: elsewhere a caller has a list or writes JSON
    v_array json_array_t := json_array_t();
begin
    if p_ids is null then
        return null;
    end if;
    for i in 1 .. p_ids.count loop
        v_array.append(p_ids(i));
    end loop;
    return v_array.to_clob();
end ids;

function put(
    p_queue_name          in varchar2,
    p_body                in clob default null,
    p_body_binary         in blob default null,
    p_message_type        in varchar2 default null,
    p_headers             in clob default null,
    p_priority            in number default 5,
    p_delay_seconds       in number default null,
    p_run_at              in timestamp default null,
    p_dedup_key           in varchar2 default null,
    p_max_attempts        in number default null,
    p_group_key           in varchar2 default null,
    p_predecessor_ids     in clob default null,
    p_on_predecessor_dead in varchar2 default null,
    p_expire_seconds      in number default null
)
return number
is
-- routine   put
-- version   1
-- purpose   What enqueue does, for callers in PL/SQL: returns the message's id, of a duplicate that of the first.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P27 P36
-- locks     as enqueue
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   this engine's own: a caller in PL/SQL need not fetch a cursor
    v_rows    sys_refcursor;
    v_id      rowq_message.message_id%type;
    v_outcome varchar2(20 char);
begin
    enqueue(
        p_queue_name, p_body, p_body_binary, p_message_type, p_headers, p_priority,
        p_delay_seconds, p_run_at, p_dedup_key, p_max_attempts, p_group_key,
        p_predecessor_ids, p_on_predecessor_dead, p_expire_seconds, v_rows
    );
    fetch v_rows into v_id, v_outcome;
    close v_rows;
    return v_id;
end put;

procedure look(
    p_queue_name     in varchar2,
    p_batch_size     in number,
    p_worker_name    in varchar2,
    p_lease_seconds  in number,
    p_listened_until in timestamp,
    p_part_id        out number,
    p_claim_id       out number,
    p_lease_until    out timestamp
)
is
-- routine   look
-- version   1
-- purpose   One look of dequeue_wait: what dequeue_fast takes, as far as it fits one answer; a null claim when there is none.
-- promise   P02 P03 P05
-- locks     as dequeue_fast; of a session that listens the queue row, passed over when locked
-- commits   never; the caller commits at once
-- errors    RQ701 RQ711 RQ713
-- differs   this engine's own: public, so that package rowq_wait can call it
begin
    internal_dequeue(
        p_queue_name, p_batch_size, p_worker_name, p_lease_seconds, p_part_id, p_claim_id,
        p_lease_until
    );
    if p_claim_id is not null then
        internal_trim_claim(p_part_id, p_claim_id);
        if p_listened_until is not null then
            internal_note_listener(p_part_id, null);
        end if;
    end if;
end look;

procedure look_for_result(
    p_queue_name  in varchar2,
    p_message_id  in number,
    p_is_first    in number,
    p_is_last     in number,
    p_part_id     out number,
    p_state       out varchar2,
    p_finished_at out timestamp
)
is
-- routine   look_for_result
-- version   1
-- purpose   One look of wait_for_result: how a message has ended; the first look and the last one say where it is, too.
-- promise   P32
-- locks     none
-- commits   never; the caller commits at once
-- errors    RQ701 RQ711
-- differs   this engine's own: public, so that package rowq_wait can call it
    v_queue t_queue;
begin
    if p_message_id is null then
        internal_refuse('message_id is missing');
    end if;
    v_queue := internal_require_queue(p_queue_name);
    p_part_id := v_queue.part_id;

    if p_is_first = 1 or p_is_last = 1 then
        internal_read_result(v_queue.part_id, p_message_id, p_state, p_finished_at);
    else
        -- Looks between need no more than the result, which is found by its key.
        select max(r.state), max(r.finished_at) into p_state, p_finished_at
        from rowq_result r
        where r.part_id = v_queue.part_id
          and r.message_id = p_message_id;
    end if;
    if p_finished_at is null
       and p_is_last = 0
       and v_queue.result_seconds = 0
       and (p_is_first = 0 or p_state is not null) then
        internal_refuse('the queue keeps no results: its result_seconds is 0');
    end if;
end look_for_result;

function messages_json(
    p_part_id     in number,
    p_claim_id    in number,
    p_lease_until in timestamp
)
return clob
is
-- routine   messages_json
-- version   1
-- purpose   What dequeue_fast returns for a claim, as a JSON array; null where there is no claim.
-- promise   P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   this engine's own: public, so that the query of dequeue_wait's result can call it
    -- The array is made when the result is fetched, because a temporary LOB of a variable ends with
    -- the block that has the variable, and what SQL gets from a function lives until it is fetched.
    v_object json_object_t;
    v_text   clob := '[';

    procedure put_text(p_key in varchar2, p_text in clob)
    is
    begin
        if p_text is null then
            v_object.put_null(p_key);
        elsif dbms_lob.getlength(p_text) = 0 then
            -- An empty text is not a missing one, so it is put as "". Before 21c only an array or
            -- an object can be parsed, and put takes '' as null.
            v_object.put(p_key, json_array_t.parse('[""]').get(0));
        else
            v_object.put(p_key, p_text);
        end if;
    end put_text;
begin
    if p_claim_id is null then
        return null;
    end if;
    for each_message in (
        select /*+ leading(l m) use_nl(m) index(m rowq_message_pk) */
               l.message_id, l.attempt, m.message_type, m.headers, m.body, m.body_binary,
               m.enqueued_at, m.last_error
        from rowq_leased l
        join rowq_message m
          on m.part_id = l.part_id
         and m.message_id = l.message_id
        where l.part_id = p_part_id
          and l.claim_id = p_claim_id
        order by l.part_id, l.claim_id, l.place
    ) loop
        v_object := json_object_t();
        v_object.put('claim_id', p_claim_id);
        v_object.put('message_id', each_message.message_id);
        v_object.put('attempt', each_message.attempt);
        put_text('message_type', each_message.message_type);
        put_text('body', each_message.body);
        put_text('body_binary', internal_to_base64(each_message.body_binary));
        put_text('enqueued_at', internal_iso_text(each_message.enqueued_at));
        put_text('lease_until', internal_iso_text(p_lease_until));
        put_text('last_error', each_message.last_error);

        -- Headers are added as text, because a JSON object would round their numbers.
        if dbms_lob.getlength(v_text) > 1 then
            dbms_lob.append(v_text, ',');
        end if;
        dbms_lob.append(v_text, '{"headers":');
        dbms_lob.append(v_text, coalesce(each_message.headers, to_clob('null')));
        dbms_lob.append(v_text, ',');
        dbms_lob.append(v_text, substr(v_object.to_clob(), 2));
    end loop;
    dbms_lob.append(v_text, ']');
    return v_text;
end messages_json;

function result_json(
    p_part_id     in number,
    p_message_id  in number,
    p_state       in varchar2,
    p_finished_at in timestamp
)
return clob
is
-- routine   result_json
-- version   1
-- purpose   The row of get_result as JSON object, of a message that is in this state; null without one.
-- promise   P32
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   this engine's own: public, so that the query of wait_for_result's result can call it
    v_object  json_object_t := json_object_t();
    v_result  clob;
    v_error   clob;
    v_is_kept pls_integer := 0;
    v_text    clob := '{"result":';
    cursor results is
        select 1 as is_kept, r.result, r.last_error
        from rowq_result r
        where r.part_id = p_part_id
          and r.message_id = p_message_id;
    cursor bodies is
        select m.last_error
        from rowq_message m
        where m.part_id = p_part_id
          and m.message_id = p_message_id;
begin
    if p_state is null then
        return null;
    end if;
    if p_finished_at is not null then
        open results;
        fetch results into v_is_kept, v_result, v_error;
        close results;
        if v_is_kept = 0 and p_state = 'dead' then
            open bodies;
            fetch bodies into v_error;
            close bodies;
        end if;
    end if;

    v_object.put('message_id', p_message_id);
    v_object.put('state', p_state);
    if p_finished_at is null then
        v_object.put_null('finished_at');
    else
        v_object.put('finished_at', internal_iso_text(p_finished_at));
    end if;
    if v_error is null then
        v_object.put_null('last_error');
    elsif dbms_lob.getlength(v_error) = 0 then
        -- An empty text is not a missing one, so it is put as "". Before 21c only an array or an
        -- object can be parsed, and put takes '' as null.
        v_object.put('last_error', json_array_t.parse('[""]').get(0));
    else
        v_object.put('last_error', v_error);
    end if;
    -- The result is added as text, because a JSON object would round its numbers.
    dbms_lob.append(v_text, coalesce(v_result, to_clob('null')));
    dbms_lob.append(v_text, ',');
    dbms_lob.append(v_text, substr(v_object.to_clob(), 2));
    return v_text;
end result_json;

procedure alter_queue(
    p_queue_name           in varchar2,
    p_lease_seconds        in number default null,
    p_max_attempts         in number default null,
    p_backoff_base_seconds in number default null,
    p_backoff_factor       in number default null,
    p_backoff_cap_seconds  in number default null,
    p_backoff_jitter       in number default null,
    p_archive_days         in number default null,
    p_max_body_length      in number default null,
    p_group_limit          in number default null,
    p_group_after_dead     in varchar2 default null,
    p_group_pause_seconds  in number default null,
    p_max_leased           in number default null,
    p_rate_limit           in number default null,
    p_rate_seconds         in number default null,
    p_result_seconds       in number default null,
    p_history_days         in number default null,
    p_rows                 out sys_refcursor
)
is
-- routine   alter_queue
-- version   1
-- purpose   Change settings of a queue; null leaves a setting as it is.
-- promise   P15
-- locks     the queue row; new recheck rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_check_settings(
        p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds,
        p_backoff_factor, p_backoff_cap_seconds, p_backoff_jitter, p_archive_days,
        p_max_body_length, p_group_limit, p_group_after_dead, p_group_pause_seconds,
        p_max_leased, p_rate_limit, p_rate_seconds, p_result_seconds,
        p_history_days
    );
    v_queue := internal_require_queue(p_queue_name);

    update rowq_queue q
    set q.lease_seconds        = coalesce(p_lease_seconds, q.lease_seconds),
        q.max_attempts         = coalesce(p_max_attempts, q.max_attempts),
        q.backoff_base_seconds = coalesce(p_backoff_base_seconds, q.backoff_base_seconds),
        q.backoff_factor       = coalesce(p_backoff_factor, q.backoff_factor),
        q.backoff_cap_seconds  = coalesce(p_backoff_cap_seconds, q.backoff_cap_seconds),
        q.backoff_jitter       = coalesce(p_backoff_jitter, q.backoff_jitter),
        q.archive_days         = coalesce(p_archive_days, q.archive_days),
        q.max_body_length      = coalesce(p_max_body_length, q.max_body_length),
        q.group_limit          = coalesce(p_group_limit, q.group_limit),
        q.group_after_dead     = coalesce(p_group_after_dead, q.group_after_dead),
        q.group_pause_seconds  = coalesce(p_group_pause_seconds, q.group_pause_seconds),
        q.max_leased           = coalesce(p_max_leased, q.max_leased),
        q.rate_limit           = coalesce(p_rate_limit, q.rate_limit),
        q.rate_seconds         = coalesce(p_rate_seconds, q.rate_seconds),
        q.result_seconds       = coalesce(p_result_seconds, q.result_seconds),
        q.history_days         = coalesce(p_history_days, q.history_days)
    where q.part_id = v_queue.part_id;
    if sql%rowcount = 0 then
        -- The queue was dropped while this call waited for its row.
        internal_refuse_queue(p_queue_name);
    end if;
    if p_group_limit > v_queue.group_limit then
        internal_hint_groups(v_queue.part_id);
    end if;

    open p_rows for
        select p_queue_name as queue_name, 'altered' as outcome
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end alter_queue;

procedure alter_schedule(
    p_queue_name       in varchar2,
    p_schedule_name    in varchar2,
    p_cron             in varchar2 default null,
    p_interval_seconds in number default null,
    p_time_zone        in varchar2 default null,
    p_body             in clob default null,
    p_body_binary      in blob default null,
    p_message_type     in varchar2 default null,
    p_headers          in clob default null,
    p_priority         in number default null,
    p_max_attempts     in number default null,
    p_group_key        in varchar2 default null,
    p_missed           in varchar2 default null,
    p_overlap          in number default null,
    p_starts_at        in timestamp default null,
    p_ends_at          in timestamp default null,
    p_is_paused        in number default null,
    p_rows             out sys_refcursor
)
is
-- routine   alter_schedule
-- version   1
-- purpose   Change a schedule, pause it or let it go on; null leaves a setting as it is. It counts anew from now: what it has missed is not made up for.
-- promise   P15 P31
-- locks     the schedule row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ702 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_schedule      t_schedule;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_queue := internal_require_queue(p_queue_name);
    v_schedule := internal_require_schedule(v_queue.part_id, p_schedule_name);

    -- One kind of time, or of body, takes the place of the other.
    if p_cron is not null or p_interval_seconds is not null then
        v_schedule.cron := p_cron;
        v_schedule.interval_seconds := p_interval_seconds;
    end if;
    if p_body is not null or p_body_binary is not null then
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
    if p_is_paused is null or p_is_paused = 0 or p_cron is not null
       or p_interval_seconds is not null or p_time_zone is not null or p_body is not null
       or p_body_binary is not null or p_message_type is not null or p_headers is not null
       or p_priority is not null or p_max_attempts is not null or p_group_key is not null
       or p_missed is not null or p_overlap is not null or p_starts_at is not null
       or p_ends_at is not null then
        internal_check_schedule(v_schedule, v_queue);
    end if;
    v_schedule.next_run_at := null;
    if v_schedule.is_paused = 0 then
        v_schedule.next_run_at := internal_next_tick(v_schedule, sys_extract_utc(systimestamp));
    end if;

    update rowq_schedule s
    set s.cron             = v_schedule.cron,
        s.interval_seconds = v_schedule.interval_seconds,
        s.time_zone        = v_schedule.time_zone,
        s.missed           = v_schedule.missed,
        s.overlap          = v_schedule.overlap,
        s.starts_at        = v_schedule.starts_at,
        s.ends_at          = v_schedule.ends_at,
        s.message_type     = v_schedule.message_type,
        s.priority         = v_schedule.priority,
        s.group_key        = v_schedule.group_key,
        s.max_attempts     = v_schedule.max_attempts,
        s.is_paused        = v_schedule.is_paused,
        s.next_run_at      = v_schedule.next_run_at,
        s.last_error       = null,
        s.headers          = v_schedule.headers,
        s.body             = v_schedule.body,
        s.body_binary      = v_schedule.body_binary
    where s.part_id = v_schedule.part_id
      and s.schedule_key = v_schedule.schedule_key;

    open p_rows for
        select p_schedule_name as schedule_name, 'altered' as outcome,
               v_schedule.next_run_at as next_run_at
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end alter_schedule;

procedure archive(
    p_queue_name in varchar2,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
-- routine   archive
-- version   1
-- purpose   Move finished messages of a queue with archive_days above 0 to the archive.
-- promise   P19
-- locks     finished rows, passing over locked ones; message rows; new archive rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_archived      pls_integer;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_check_batch_size(p_batch_size);
    v_queue := internal_require_queue(p_queue_name);
    v_archived := internal_archive(v_queue.part_id, p_batch_size);

    open p_rows for
        select v_archived as archived
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end archive;

procedure bind_topic(
    p_queue_name    in varchar2,
    p_topic_pattern in varchar2,
    p_rows          out sys_refcursor
)
is
-- routine   bind_topic
-- version   1
-- purpose   Let a queue get what is published under the topics that a pattern matches.
-- promise   P15 P35
-- locks     the table of bindings against drop_queue; a new topic_binding row; waits for a session
--           that is binding the same
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    -- ORA-02291 (parent key not found): the queue was dropped since a serializable transaction
    -- began.
    e_no_queue exception;
    pragma exception_init(e_no_queue, -2291);
    v_fault         varchar2(32767);
    v_queue         t_queue;
    v_head          varchar2(200 char);
    v_shape         varchar2(100 char);
    v_key           raw(200);
    v_head_key      raw(200);
    v_outcome       varchar2(20 char) := 'bound';
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_fault := internal_topic_fault('topic_pattern', p_topic_pattern, true);
    if v_fault is not null then
        internal_refuse(v_fault);
    end if;
    v_queue := internal_lock_bindings(p_queue_name);
    internal_read_pattern(p_topic_pattern, v_head, v_shape);
    v_key := utl_raw.cast_to_raw(p_topic_pattern);
    v_head_key := internal_head_key(v_head);

    begin
        insert into rowq_topic_binding (part_id, pattern_key, topic_pattern, head_key, shape)
        values (v_queue.part_id, v_key, p_topic_pattern, v_head_key, v_shape);
    exception
        when e_no_queue then
            internal_refuse_queue(p_queue_name);
        when dup_val_on_index then
            v_outcome := 'exists';
    end;

    open p_rows for
        select p_queue_name as queue_name, p_topic_pattern as topic_pattern, v_outcome as outcome
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end bind_topic;

procedure cancel(
    p_queue_name     in varchar2,
    p_message_ids    in clob,
    p_include_leased in number default 0,
    p_rows           out sys_refcursor
)
is
-- routine   cancel
-- version   1
-- purpose   Withdraw messages that no worker holds, dead ones too.
-- promise   P15 P34
-- locks     claim rows, if include_leased, then blocked, delayed, ready, grouped, dead rows,
--           passing over locked ones; then as complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that was retried or delayed is looked for among all ready ones of the queue
    v_queue         t_queue;
    v_ids           rowq_ids;
    v_noted         rowq_ids := rowq_ids();
    v_rest          rowq_ids;
    v_messages      t_messages;
    v_lines         rowq_lines;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    if p_message_ids is null then
        internal_refuse('message_ids is missing');
    end if;
    v_ids := internal_read_id_list(p_message_ids);
    if p_include_leased not in (0, 1) then
        internal_refuse('include_leased must be 0 or 1');
    end if;
    v_queue := internal_require_queue(p_queue_name);

    -- Look into the claims first: what is noted there is not looked for among the ready ones.
    v_rest := v_ids;
    if p_include_leased = 1 then
        internal_note_cancels(v_queue.part_id, v_ids, v_noted, v_rest);
    end if;
    v_messages := internal_pop_waiting(v_queue.part_id, v_rest);
    internal_finish(v_queue, v_messages, 'cancelled');
    v_lines := internal_outcomes(v_ids, v_messages, 'cancelled', 'not_found');
    internal_mark_lines(v_lines, v_noted, 'requested');
    internal_mark_leased(v_queue.part_id, v_lines);

    open p_rows for
        select n.message_id, n.outcome
        from table(v_lines) n
        order by n.place;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end cancel;

procedure cancel_many(
    p_queue_name       in varchar2,
    p_message_type     in varchar2 default null,
    p_group_key        in varchar2 default null,
    p_header_name      in varchar2 default null,
    p_header_value     in clob default null,
    p_enqueued_before  in timestamp default null,
    p_after_message_id in number default 0,
    p_max_messages     in number default 1000,
    p_rows             out sys_refcursor
)
is
-- routine   cancel_many
-- version   1
-- purpose   Look at up to max_messages messages, in the order of their ids, and withdraw those that match every filter given and that no worker holds, dead ones too. At least one filter is required.
-- promise   P15
-- locks     as cancel
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that was retried or delayed is looked for among all ready ones of the queue
    v_type          constant raw(32767) := utl_raw.cast_to_raw(p_message_type);
    v_key           constant raw(32767) := utl_raw.cast_to_raw(p_group_key);
    v_queue         t_queue;
    v_ids           rowq_ids := rowq_ids();
    v_messages      t_messages;
    v_looked_at     pls_integer := 0;
    v_last_id       rowq_message.message_id%type;
    v_cancelled     number;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_check_whole('max_messages', p_max_messages, 1, 10000, p_is_required => true);
    if p_header_name is null and p_header_value is not null
       or p_header_name is not null and p_header_value is null then
        internal_refuse('header_name and header_value are given together');
    end if;
    internal_check_header_name(p_header_name);
    if p_message_type is null and p_group_key is null and p_header_name is null
       and p_enqueued_before is null then
        internal_refuse(
            'a filter is missing: message_type, group_key, header_name with header_value, or'
            || ' enqueued_before'
        );
    end if;
    v_queue := internal_require_queue(p_queue_name);

    -- Compare bytes, because texts are compared by the session's NLS_COMP and NLS_SORT.
    for each_message in (
        select /*+ index_rs_asc(m rowq_message_pk) */
               m.message_id, m.message_type, m.group_key, m.enqueued_at, m.headers
        from rowq_message m
        where m.part_id = v_queue.part_id
          and m.message_id > coalesce(p_after_message_id, 0)
        order by m.part_id, m.message_id
        fetch first p_max_messages rows only
    ) loop
        v_looked_at := v_looked_at + 1;
        v_last_id := each_message.message_id;
        if (v_type is null or utl_raw.cast_to_raw(each_message.message_type) = v_type)
           and (v_key is null or utl_raw.cast_to_raw(each_message.group_key) = v_key)
           and (p_enqueued_before is null or each_message.enqueued_at < p_enqueued_before)
           and (
               p_header_name is null
               or internal_has_header(each_message.headers, p_header_name, p_header_value)
           ) then
            v_ids.extend;
            v_ids(v_ids.last) := each_message.message_id;
        end if;
    end loop;

    -- Leave out what a worker holds, and what is finished and not yet archived, because it would be
    -- looked for among all ready messages.
    if v_ids.count > 0 then
        v_ids := internal_waiting_of(v_queue.part_id, v_ids);
    end if;
    if v_ids.count > 0 then
        v_messages := internal_pop_waiting(v_queue.part_id, v_ids);
        internal_finish(v_queue, v_messages, 'cancelled');
    end if;
    v_cancelled := v_messages.count;
    if v_looked_at < p_max_messages then
        v_last_id := null;
    end if;

    open p_rows for
        select v_cancelled as cancelled, v_last_id as after_message_id
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end cancel_many;

procedure complete(
    p_queue_name  in varchar2,
    p_claim_id    in number,
    p_message_ids in clob default null,
    p_results     in clob default null,
    p_rows        out sys_refcursor
)
is
-- routine   complete
-- version   1
-- purpose   Finish messages: they are gone, or in the archive, and never delivered again.
-- promise   P04 P08 P21 P22 P23 P24 P26 P32 P37
-- locks     the claim row; then message and dedup rows, waiting for who has just named one of the
--           messages as a predecessor; rows of groups and of messages that wait, tried only;
--           new result and history rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    v_queue         t_queue;
    v_ids           rowq_ids;
    v_claim         t_claim;
    v_messages      t_messages;
    v_given         t_clobs;
    v_results       t_clobs;
    v_lines         rowq_lines;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_ids := internal_read_id_list(p_message_ids);
    internal_check_claim(p_claim_id);
    v_queue := internal_require_queue(p_queue_name);
    if p_results is not null then
        internal_read_results(
            p_results, case when v_ids is null then 1 else v_ids.count end, v_queue, v_given
        );
    end if;

    internal_pop_claimed(v_queue.part_id, p_claim_id, v_ids, v_claim, v_messages);
    if p_results is not null and v_ids is null and v_messages.count > 1 then
        internal_refuse('results without message_ids are of a claim of one message');
    end if;
    internal_finish(v_queue, v_messages, 'completed');
    if v_queue.result_seconds > 0 then
        v_results := internal_results_of(v_messages, v_ids, v_given);
        internal_push_result(v_queue.part_id, v_messages, 'completed', null, v_results);
    end if;
    if v_queue.history_days > 0 then
        internal_push_history(v_queue.part_id, v_claim, v_messages, 'completed', null);
    end if;
    v_lines := internal_outcomes(v_ids, v_messages, 'completed');

    open p_rows for
        select n.message_id, n.outcome
        from table(v_lines) n
        order by n.place;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end complete;

procedure create_queue(
    p_queue_name           in varchar2,
    p_lease_seconds        in number default null,
    p_max_attempts         in number default null,
    p_backoff_base_seconds in number default null,
    p_backoff_factor       in number default null,
    p_backoff_cap_seconds  in number default null,
    p_backoff_jitter       in number default null,
    p_archive_days         in number default null,
    p_max_body_length      in number default null,
    p_group_limit          in number default null,
    p_group_after_dead     in varchar2 default null,
    p_group_pause_seconds  in number default null,
    p_max_leased           in number default null,
    p_rate_limit           in number default null,
    p_rate_seconds         in number default null,
    p_result_seconds       in number default null,
    p_history_days         in number default null,
    p_rows                 out sys_refcursor
)
is
-- routine   create_queue
-- version   1
-- purpose   Create a queue; an existing queue of that name is left as it is.
-- promise   P15
-- locks     the new rows of queue, lane, door and gate; waits for a session that is creating the
--           same
--           queue
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
    v_key           raw(400);
    v_part_id       rowq_queue.part_id%type;
    v_outcome       varchar2(20 char) := 'exists';
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_check_settings(
        p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds,
        p_backoff_factor, p_backoff_cap_seconds, p_backoff_jitter, p_archive_days,
        p_max_body_length, p_group_limit, p_group_after_dead, p_group_pause_seconds,
        p_max_leased, p_rate_limit, p_rate_seconds, p_result_seconds,
        p_history_days
    );
    v_key := utl_raw.cast_to_raw(p_queue_name);

    -- Look first, because an insert that ends in a conflict uses up a number.
    select max(q.part_id) into v_part_id
    from rowq_queue q
    where q.queue_key = v_key;
    if v_part_id is null then
        v_part_id := rowq_part_seq.nextval;
        begin
            insert into rowq_queue (
                part_id, queue_name, queue_key, lease_seconds, max_attempts,
                backoff_base_seconds, backoff_factor, backoff_cap_seconds, backoff_jitter,
                archive_days, max_body_length, group_limit, group_after_dead,
                group_pause_seconds, max_leased, rate_limit, rate_seconds,
                result_seconds, history_days, created_at
            )
            values (
                v_part_id, p_queue_name, v_key, coalesce(p_lease_seconds, 30),
                coalesce(p_max_attempts, 10), coalesce(p_backoff_base_seconds, 5),
                coalesce(p_backoff_factor, 2), coalesce(p_backoff_cap_seconds, 3600),
                coalesce(p_backoff_jitter, 0.2), coalesce(p_archive_days, 0),
                coalesce(p_max_body_length, 1048576), coalesce(p_group_limit, 1),
                coalesce(p_group_after_dead, 'continue'), coalesce(p_group_pause_seconds, 0),
                coalesce(p_max_leased, 0), coalesce(p_rate_limit, 0), coalesce(p_rate_seconds, 1),
                coalesce(p_result_seconds, 0), coalesce(p_history_days, 0),
                sys_extract_utc(systimestamp)
            );
            v_outcome := 'created';
        exception
            when dup_val_on_index then
                -- Another session has made the queue while this one waited for it. If there is no
                -- queue of that name, part_id was the duplicate, and that stays an error.
                select max(q.part_id) into v_part_id
                from rowq_queue q
                where q.queue_key = v_key;
                if v_part_id is null then
                    raise;
                end if;
        end;
        if v_outcome = 'created' then
            internal_add_part(v_part_id);
        end if;
    end if;

    open p_rows for
        select p_queue_name as queue_name, v_outcome as outcome
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end create_queue;

procedure create_schedule(
    p_queue_name       in varchar2,
    p_schedule_name    in varchar2,
    p_cron             in varchar2 default null,
    p_interval_seconds in number default null,
    p_time_zone        in varchar2 default 'UTC',
    p_body             in clob default null,
    p_body_binary      in blob default null,
    p_message_type     in varchar2 default null,
    p_headers          in clob default null,
    p_priority         in number default 5,
    p_max_attempts     in number default null,
    p_group_key        in varchar2 default null,
    p_missed           in varchar2 default 'once',
    p_overlap          in number default 1,
    p_starts_at        in timestamp default null,
    p_ends_at          in timestamp default null,
    p_rows             out sys_refcursor
)
is
-- routine   create_schedule
-- version   1
-- purpose   Let maintain enqueue a message at the times of a cron expression, or every so many seconds; an existing schedule of that name is left as it is.
-- promise   P15 P30 P31
-- locks     the new schedule row; waits for a session that is creating the same schedule
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   the queue row is not locked: a foreign key has drop_queue and this routine take turns
    -- ORA-02291 (parent key not found): the queue was dropped while this insert waited for it.
    e_no_queue exception;
    pragma exception_init(e_no_queue, -2291);
    c_most_tries constant pls_integer := 100;
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_queue         t_queue;
    v_schedule      t_schedule;
    v_existing      t_schedule;
    v_tries         pls_integer := 0;
    v_outcome       varchar2(20 char) := 'created';
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_queue := internal_require_queue(p_queue_name);
    v_schedule.part_id := v_queue.part_id;
    v_schedule.schedule_name := p_schedule_name;
    v_schedule.cron := p_cron;
    v_schedule.interval_seconds := p_interval_seconds;
    v_schedule.time_zone := p_time_zone;
    v_schedule.missed := p_missed;
    v_schedule.overlap := coalesce(p_overlap, 1);
    v_schedule.starts_at := coalesce(p_starts_at, v_now);
    v_schedule.ends_at := p_ends_at;
    v_schedule.message_type := p_message_type;
    v_schedule.priority := p_priority;
    v_schedule.group_key := p_group_key;
    v_schedule.max_attempts := p_max_attempts;
    v_schedule.headers := p_headers;
    v_schedule.body := p_body;
    v_schedule.body_binary := p_body_binary;
    internal_check_schedule(v_schedule, v_queue);
    v_schedule.schedule_key := utl_raw.cast_to_raw(p_schedule_name);
    v_schedule.next_run_at := internal_next_tick(v_schedule, sys_extract_utc(systimestamp));

    loop
        begin
            insert into rowq_schedule (
                part_id, schedule_key, schedule_name, cron, interval_seconds, time_zone, missed,
                overlap, starts_at, ends_at, message_type, priority, group_key, max_attempts,
                next_run_at, headers, body, body_binary
            )
            values (
                v_schedule.part_id, v_schedule.schedule_key, v_schedule.schedule_name,
                v_schedule.cron, v_schedule.interval_seconds, v_schedule.time_zone,
                v_schedule.missed, v_schedule.overlap, v_schedule.starts_at, v_schedule.ends_at,
                v_schedule.message_type, v_schedule.priority, v_schedule.group_key,
                v_schedule.max_attempts, v_schedule.next_run_at, v_schedule.headers,
                v_schedule.body, v_schedule.body_binary
            );
            exit;
        exception
            when e_no_queue then
                internal_refuse_queue(p_queue_name);
            when dup_val_on_index then
                v_existing := internal_read_schedule(v_queue.part_id, v_schedule.schedule_key);
                if v_existing.part_id is not null then
                    v_outcome := 'exists';
                    v_schedule.next_run_at := v_existing.next_run_at;
                    exit;
                end if;
                -- The schedule was dropped meanwhile, so try again. The tries are limited for a
                -- serializable transaction, which never sees the row that it collides with.
                v_tries := v_tries + 1;
                if v_tries = c_most_tries then
                    raise;
                end if;
        end;
    end loop;

    open p_rows for
        select p_schedule_name as schedule_name, v_outcome as outcome,
               v_schedule.next_run_at as next_run_at
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end create_schedule;

procedure dequeue_fast(
    p_queue_name    in varchar2,
    p_batch_size    in number default 1,
    p_worker_name   in varchar2 default null,
    p_lease_seconds in number default null,
    p_rows          out sys_refcursor
)
is
-- routine   dequeue_fast
-- version   1
-- purpose   Lease up to batch_size ready messages to one new claim, passing over rows that another session holds.
-- promise   P02 P03 P05 P06 P07 P13 P18 P28 P29
-- locks     ready rows, passing over locked ones; the new claim row; where the queue has limits,
--           its gate, tried for a tenth of a second and held until the caller's transaction ends
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ713
-- differs   nothing
    v_part_id       rowq_queue.part_id%type;
    v_claim_id      rowq_claim.claim_id%type;
    v_lease_until   rowq_claim.lease_until%type;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_dequeue(
        p_queue_name, p_batch_size, p_worker_name, p_lease_seconds, v_part_id, v_claim_id,
        v_lease_until
    );

    open p_rows for
        select /*+ leading(l m) use_nl(m) index(m rowq_message_pk) */
               l.claim_id, l.message_id, l.attempt, m.message_type, m.headers, m.body,
               m.body_binary, m.enqueued_at, v_lease_until as lease_until, m.last_error
        from rowq_leased l
        join rowq_message m
          on m.part_id = l.part_id
         and m.message_id = l.message_id
        where l.part_id = v_part_id
          and l.claim_id = v_claim_id
        order by l.part_id, l.claim_id, l.place;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end dequeue_fast;

procedure discard_dead(
    p_queue_name   in varchar2,
    p_message_ids  in clob default null,
    p_max_messages in number default 1000,
    p_message_type in varchar2 default null,
    p_died_before  in timestamp default null,
    p_rows         out sys_refcursor
)
is
-- routine   discard_dead
-- version   1
-- purpose   Delete dead messages for good, the archive keeps none of them; null takes the oldest max_messages.
-- promise   P12 P22 P26
-- locks     dead rows, passing over locked ones; then as complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_ids           rowq_ids;
    v_locked        t_locked_rows;
    v_messages      t_messages;
    v_removed       number;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_lock_dead(
        p_queue_name, p_message_ids, p_max_messages, p_message_type, p_died_before,
        v_queue, v_ids, v_locked
    );
    internal_delete_dead(v_locked, v_messages);
    -- No archive keeps what is discarded.
    v_queue.archive_days := 0;
    internal_finish(v_queue, v_messages, 'cancelled');
    v_removed := v_messages.count;

    open p_rows for
        select v_removed as removed
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end discard_dead;

procedure drop_queue(
    p_queue_name in varchar2,
    p_force      in number default 0,
    p_rows       out sys_refcursor
)
is
-- routine   drop_queue
-- version   1
-- purpose   Remove an empty queue, or with force a queue and everything in it, archive included.
-- promise   P02 P15
-- locks     the tables against writers, waiting for a second at most; all rows of the queue
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ704 RQ705 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    if p_force not in (0, 1) then
        internal_refuse('force must be 0 or 1');
    end if;
    v_queue := internal_require_queue(p_queue_name);
    internal_remove_queue(v_queue.part_id, p_queue_name, coalesce(p_force, 0) = 1);

    open p_rows for
        select p_queue_name as queue_name, 'dropped' as outcome
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end drop_queue;

procedure drop_schedule(
    p_queue_name    in varchar2,
    p_schedule_name in varchar2,
    p_rows          out sys_refcursor
)
is
-- routine   drop_schedule
-- version   1
-- purpose   Remove a schedule; the messages that it made stay.
-- promise   P15
-- locks     the schedule row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ702 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_schedule      t_schedule;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_queue := internal_require_queue(p_queue_name);
    v_schedule := internal_require_schedule(v_queue.part_id, p_schedule_name);
    delete from rowq_schedule s
    where s.part_id = v_schedule.part_id
      and s.schedule_key = v_schedule.schedule_key;

    open p_rows for
        select p_schedule_name as schedule_name, 'dropped' as outcome
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end drop_schedule;

procedure enqueue(
    p_queue_name          in varchar2,
    p_body                in clob default null,
    p_body_binary         in blob default null,
    p_message_type        in varchar2 default null,
    p_headers             in clob default null,
    p_priority            in number default 5,
    p_delay_seconds       in number default null,
    p_run_at              in timestamp default null,
    p_dedup_key           in varchar2 default null,
    p_max_attempts        in number default null,
    p_group_key           in varchar2 default null,
    p_predecessor_ids     in clob default null,
    p_on_predecessor_dead in varchar2 default null,
    p_expire_seconds      in number default null,
    p_rows                out sys_refcursor
)
is
-- routine   enqueue
-- version   1
-- purpose   Hand over one message.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P27 P36
-- locks     new rows; with a dedup key, waits for another open enqueue of it; with a group key, for
--           one that has opened the group; the row of a predecessor, tried only
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   an empty text is null to Oracle: pass empty_clob() for an empty body
    v_fault         varchar2(32767);
    v_ids           rowq_ids;
    v_is_good       boolean;
    v_queue         t_queue;
    v_new           t_new_messages;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_fault := internal_message_fault(
        p_body, p_body_binary, p_message_type, p_headers, p_priority, p_delay_seconds, p_run_at,
        p_dedup_key, p_max_attempts, p_group_key, p_on_predecessor_dead, p_expire_seconds
    );
    if p_predecessor_ids is not null and v_fault is null then
        v_is_good := internal_is_id_list(p_predecessor_ids, v_ids);
        if not v_is_good then
            v_fault := 'predecessor_ids must be a flat list of at most 10000 ids, no null';
        end if;
    end if;
    if v_fault is not null then
        internal_refuse(v_fault);
    end if;
    v_queue := internal_require_queue(p_queue_name);
    v_fault := internal_body_fault(p_body, p_body_binary, v_queue.max_body_length);
    if v_fault is not null then
        internal_refuse(v_fault);
    end if;

    v_new(1) := internal_new_message(
        sys_extract_utc(systimestamp), 0, p_body, p_body_binary, p_message_type, p_headers,
        p_priority, p_delay_seconds, p_run_at, p_dedup_key, p_max_attempts, p_group_key,
        v_ids, p_on_predecessor_dead, p_expire_seconds
    );
    internal_store(v_queue.part_id, p_queue_name, v_new);
    internal_ring_doorbell(v_queue.part_id, v_queue.listened_until);

    open p_rows for
        select v_new(1).message_id as message_id, v_new(1).outcome as outcome
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end enqueue;

procedure enqueue_batch(
    p_queue_name in varchar2,
    p_messages   in clob,
    p_rows       out sys_refcursor
)
is
-- routine   enqueue_batch
-- version   1
-- purpose   Hand over many messages in one call: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P26 P27 P36
-- locks     new rows; with dedup and group keys, waits as enqueue does, in the order of the keys;
--           rows of predecessors, tried only
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_new           t_new_messages;
    v_lines         rowq_lines := rowq_lines();
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_queue := internal_require_queue(p_queue_name);
    v_new := internal_parse_messages(p_messages, v_queue.max_body_length);
    internal_store(v_queue.part_id, p_queue_name, v_new);
    internal_ring_doorbell(v_queue.part_id, v_queue.listened_until);
    v_lines.extend(v_new.count);
    for i in 1 .. v_new.count loop
        v_lines(i) := rowq_line(i, v_new(i).message_id, null, null, v_new(i).outcome, null);
    end loop;

    open p_rows for
        select n.place as position, n.message_id, n.outcome
        from table(v_lines) n
        order by n.place;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end enqueue_batch;

procedure extend_lease(
    p_queue_name    in varchar2,
    p_claim_id      in number,
    p_lease_seconds in number default null,
    p_progress      in clob default null,
    p_rows          out sys_refcursor
)
is
-- routine   extend_lease
-- version   1
-- purpose   Heartbeat: hold all messages of a claim for lease_seconds from now; a lease is never shortened.
-- promise   P08 P34
-- locks     the claim row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    -- A CLOB counts an emoji as two, and a varchar2 counts it as one.
    v_progress      clob := substr(internal_clob_part(p_progress, 1, 4000), 1, 2000);
    v_queue         t_queue;
    v_row_id        rowid;
    v_lease_until   rowq_claim.lease_until%type;
    v_has_cancels   rowq_claim.has_cancels%type;
    v_has_savepoint boolean;
    cursor claim_row is
        select c.rowid, c.lease_until, c.has_cancels
        from rowq_claim c
        where c.part_id = v_queue.part_id
          and c.claim_id = p_claim_id
        for update;
begin
    internal_begin_work(v_has_savepoint);
    internal_check_claim(p_claim_id);
    internal_check_whole('lease_seconds', p_lease_seconds, 1, 86400);
    v_queue := internal_require_queue(p_queue_name);

    open claim_row;
    fetch claim_row into v_row_id, v_lease_until, v_has_cancels;
    close claim_row;
    if v_row_id is null then
        internal_refuse_claim(p_claim_id);
    end if;
    v_lease_until := greatest(
        v_lease_until,
        sys_extract_utc(systimestamp)
        + numtodsinterval(coalesce(p_lease_seconds, v_queue.lease_seconds), 'second')
    );
    if p_progress is null then
        update rowq_claim c
        set c.lease_until = v_lease_until
        where c.rowid = v_row_id;
    else
        -- An empty text is not a missing one, but Oracle takes '' as null: store an empty CLOB.
        v_progress := coalesce(v_progress, empty_clob());
        update rowq_claim c
        set c.lease_until = v_lease_until,
            c.progress    = v_progress
        where c.rowid = v_row_id;
    end if;

    open p_rows for
        select p_claim_id as claim_id, v_lease_until as lease_until,
               case
                   when v_has_cancels = 1 then (
                       select case
                                  when count(*) > 0
                                      then json_arrayagg(l.message_id returning clob)
                              end
                       from rowq_leased l
                       where l.part_id = v_queue.part_id
                         and l.claim_id = p_claim_id
                         and l.is_cancelled = 1
                   )
               end as cancel_ids
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end extend_lease;

procedure fail_now(
    p_queue_name  in varchar2,
    p_claim_id    in number,
    p_message_ids in clob default null,
    p_error       in clob default null,
    p_rows        out sys_refcursor
)
is
-- routine   fail_now
-- version   1
-- purpose   Declare messages dead without another attempt.
-- promise   P08 P10 P34 P37
-- locks     the claim row; then message, dead and dedup rows, waiting as complete does; new
--           history rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    v_queue         t_queue;
    v_ids           rowq_ids;
    v_claim         t_claim;
    v_messages      t_messages;
    v_rest          t_messages;
    v_cancelled     t_messages;
    v_lines         rowq_lines;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_ids := internal_read_id_list(p_message_ids);
    internal_check_claim(p_claim_id);
    v_queue := internal_require_queue(p_queue_name);

    internal_pop_claimed(v_queue.part_id, p_claim_id, v_ids, v_claim, v_messages);
    internal_split_by_cancel(v_messages, v_rest, v_cancelled);
    internal_finish(v_queue, v_cancelled, 'cancelled');
    internal_push_dead(v_queue, v_rest, p_error, true);
    if v_queue.history_days > 0 then
        internal_push_history(v_queue.part_id, v_claim, v_cancelled, 'cancelled', null);
        internal_push_history(v_queue.part_id, v_claim, v_rest, 'dead', p_error);
    end if;
    v_lines := internal_outcomes(v_ids, v_messages, 'dead');
    internal_mark_lines(v_lines, internal_ids_of(v_cancelled), 'cancelled');

    open p_rows for
        select n.message_id, n.outcome
        from table(v_lines) n
        order by n.place;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end fail_now;

procedure find_message(
    p_queue_name in varchar2,
    p_dedup_key  in varchar2,
    p_rows       out sys_refcursor
)
is
-- routine   find_message
-- version   1
-- purpose   Find the unfinished message that has a dedup key, and return what get_message does.
-- promise   P12 P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that ends while it is looked for may be returned as one that has ended
    -- No key is longer than 200 characters.
    v_key constant raw(804) := utl_raw.cast_to_raw(substr(p_dedup_key, 1, 201));
    v_queue      t_queue;
    v_message_id number;
begin
    if p_dedup_key is null then
        internal_refuse('dedup_key is missing');
    end if;
    v_queue := internal_require_queue(p_queue_name);

    -- No message has the id 0.
    select coalesce(max(d.message_id), 0) into v_message_id
    from rowq_dedup d
    where d.part_id = v_queue.part_id
      and d.dedup_key = v_key;
    get_message(p_queue_name, v_message_id, p_rows);
end find_message;

procedure get_history(
    p_queue_name in varchar2,
    p_message_id in number,
    p_rows       out sys_refcursor
)
is
-- routine   get_history
-- version   1
-- purpose   The attempts of a message: those that have ended within the queue's history_days, oldest first, then the present lease. A lease that ran out is lease_expired, also where no attempt was left; no row when rowq knows of none.
-- promise   P37
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue       t_queue;
    v_is_known    pls_integer;
    v_group_key   rowq_message.group_key%type;
    v_due_at      timestamp(6);
    v_state       varchar2(20 char);
    v_lane        number;
    v_attempt     number;
    v_claim_id    number;
    v_worker_name rowq_claim.worker_name%type;
    v_leased_at   timestamp(6);
    v_lease_until timestamp(6);
    v_finished_at timestamp(6);
    v_waits_for   number;
begin
    if p_message_id is null then
        internal_refuse('message_id is missing');
    end if;
    v_queue := internal_require_queue(p_queue_name);

    -- Look for the present lease first: an attempt that ends between the looks is in the history
    -- then, and is left out where it is still taken for a lease.
    select count(*), max(m.due_at), max(m.group_key) into v_is_known, v_due_at, v_group_key
    from rowq_message m
    where m.part_id = v_queue.part_id
      and m.message_id = p_message_id;
    if v_is_known = 1 then
        internal_locate_messages(
            v_queue.part_id, p_message_id, v_group_key, v_due_at, v_state, v_lane, v_attempt,
            v_claim_id, v_worker_name, v_lease_until, v_finished_at, v_waits_for, v_leased_at
        );
    end if;

    open p_rows for
        select n.attempt, n.worker_name, n.leased_at, n.ended_at, n.outcome, n.error
        from (
            select /*+ index_rs_asc(h rowq_history_message_ix) */
                   h.attempt, h.worker_name, h.leased_at, h.ended_at, h.outcome, h.error,
                   h.claim_id
            from rowq_history h
            where h.part_id = v_queue.part_id
              and h.message_id = p_message_id
            union all
            select v_attempt as attempt, v_worker_name as worker_name, v_leased_at as leased_at,
                   cast(null as timestamp) as ended_at,
                   cast(null as varchar2(20 char)) as outcome, to_clob(null) as error,
                   v_claim_id as claim_id
            from dual
            where v_claim_id is not null
              and not exists (
                  select /*+ index_rs_asc(k rowq_history_message_ix) */ null
                  from rowq_history k
                  where k.part_id = v_queue.part_id
                    and k.message_id = p_message_id
                    and k.claim_id = v_claim_id
              )
        ) n
        order by case when n.ended_at is null then 1 else 0 end, n.ended_at, n.claim_id;
end get_history;

procedure get_message(
    p_queue_name in varchar2,
    p_message_id in number,
    p_rows       out sys_refcursor
)
is
-- routine   get_message
-- version   1
-- purpose   Where a message is and everything about it; no row when rowq does not know it.
-- promise   P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue       t_queue;
    v_due_at      timestamp(6);
    v_state       varchar2(20 char);
    v_lane        number;
    v_attempt     number;
    v_claim_id    number;
    v_worker_name rowq_claim.worker_name%type;
    v_leased_at   timestamp(6);
    v_lease_until timestamp(6);
    v_finished_at timestamp(6);
    v_is_known    pls_integer;
    v_group_key   rowq_message.group_key%type;
    v_waits_for   number;
begin
    if p_message_id is null then
        internal_refuse('message_id is missing');
    end if;
    v_queue := internal_require_queue(p_queue_name);

    select count(*), max(m.due_at), max(m.group_key) into v_is_known, v_due_at, v_group_key
    from rowq_message m
    where m.part_id = v_queue.part_id
      and m.message_id = p_message_id;

    if v_is_known = 1 then
        internal_locate_messages(
            v_queue.part_id, p_message_id, v_group_key, v_due_at, v_state, v_lane, v_attempt,
            v_claim_id, v_worker_name, v_lease_until, v_finished_at, v_waits_for, v_leased_at
        );
        open p_rows for
            select /*+ leading(m c) use_nl(c) index(m rowq_message_pk) index(c rowq_claim_pk) */
                   m.message_id, v_state as state, trunc(v_lane / 2) as priority,
                   v_attempt as attempt,
                   coalesce(m.max_attempts, v_queue.max_attempts) as max_attempts, m.message_type,
                   m.headers, m.body, m.body_binary, m.dedup_key, m.enqueued_at,
                   v_due_at as due_at, v_claim_id as claim_id, v_worker_name as worker_name,
                   v_lease_until as lease_until, v_finished_at as finished_at, m.last_error,
                   m.group_key, v_waits_for as waits_for, m.expires_at,
                   c.progress
            from rowq_message m
            left join rowq_claim c
              on c.part_id = m.part_id
             and c.claim_id = v_claim_id
            where m.part_id = v_queue.part_id
              and m.message_id = p_message_id;
    else
        open p_rows for
            select a.message_id, a.state, trunc(a.lane / 2) as priority, a.attempt,
                   cast(null as number) as max_attempts, a.message_type, a.headers, a.body,
                   a.body_binary, a.dedup_key, a.enqueued_at, cast(null as timestamp) as due_at,
                   cast(null as number) as claim_id,
                   cast(null as varchar2(200 char)) as worker_name,
                   cast(null as timestamp) as lease_until, a.finished_at,
                   to_clob(null) as last_error, a.group_key, cast(null as number) as waits_for,
                   cast(null as timestamp) as expires_at, to_clob(null) as progress
            from rowq_archive a
            where a.part_id = v_queue.part_id
              and a.message_id = p_message_id;
    end if;
end get_message;

procedure get_result(
    p_queue_name in varchar2,
    p_message_id in number,
    p_rows       out sys_refcursor
)
is
-- routine   get_result
-- version   1
-- purpose   How a message has ended, and its result; of one that has not ended its state; no row when rowq does not know it.
-- promise   P32
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue       t_queue;
    v_state       varchar2(20 char);
    v_finished_at timestamp(6);
begin
    if p_message_id is null then
        internal_refuse('message_id is missing');
    end if;
    v_queue := internal_require_queue(p_queue_name);
    internal_read_result(v_queue.part_id, p_message_id, v_state, v_finished_at);

    -- Of a dead message whose result is not kept, the error is that beside its body.
    open p_rows for
        select /*+ index(r rowq_result_pk) index(m rowq_message_pk) */
               p_message_id as message_id, v_state as state, v_finished_at as finished_at,
               r.result,
               case when r.message_id is null then m.last_error else r.last_error end as last_error
        from dual
        left join rowq_result r
          on r.part_id = v_queue.part_id
         and r.message_id = p_message_id
         and v_finished_at is not null
        left join rowq_message m
          on m.part_id = v_queue.part_id
         and m.message_id = p_message_id
         and v_state = 'dead'
        where v_state is not null;
end get_result;

procedure health(p_rows out sys_refcursor)
is
-- routine   health
-- version   1
-- purpose   Report what needs attention: who holds back clean-up, overdue messages, expired leases, dead messages, a sequence behind its data.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   checks of the horizon and the archive are this engine's
    type t_named is record (
        part_id        rowq_queue.part_id%type,
        queue_name     rowq_queue.queue_name%type,
        paused_at      rowq_queue.paused_at%type,
        result_seconds rowq_queue.result_seconds%type,
        history_days   rowq_queue.history_days%type
    );
    type t_named_list is table of t_named index by pls_integer;
    v_queues t_named_list;
    v_checks rowq_checks := rowq_checks();
begin
    internal_health_server(v_checks);
    select q.part_id, q.queue_name, q.paused_at, q.result_seconds, q.history_days
    bulk collect into v_queues
    from rowq_queue q
    order by q.queue_key;
    for i in 1 .. v_queues.count loop
        internal_health_queue(
            v_queues(i).part_id, v_queues(i).queue_name, v_queues(i).paused_at is not null,
            v_queues(i).result_seconds, v_queues(i).history_days, v_checks
        );
    end loop;

    open p_rows for
        select n.check_name, n.queue_name,
               case
                   when n.measured >= n.critical then 'critical'
                   when n.measured >= n.warning then 'warning'
                   else 'ok'
               end as status,
               n.measured as value, n.detail
        from table(v_checks) n
        order by nlssort(n.check_name, 'nls_sort=binary'),
                 nlssort(n.queue_name, 'nls_sort=binary') nulls first;
end health;

procedure list_claims(
    p_queue_name     in varchar2 default null,
    p_after_claim_id in number default 0,
    p_max_claims     in number default 100,
    p_rows           out sys_refcursor
)
is
-- routine   list_claims
-- version   1
-- purpose   Who is at work on what: the claims of one queue or all, in the order of their ids.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a claim that was committed late is listed once maintain has corrected its floor
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_queue t_queue;
begin
    internal_check_whole('max_claims', p_max_claims, 1, 10000, p_is_required => true);
    if p_queue_name is not null then
        v_queue := internal_require_queue(p_queue_name);
    end if;

    open p_rows for
        select h.queue_name, h.claim_id, h.worker_name,
               (
                   select /*+ index_rs_asc(l rowq_leased_pk) */ count(*)
                   from rowq_leased l
                   where l.part_id = h.part_id
                     and l.claim_id = h.claim_id
               ) as message_count,
               h.lease_until,
               extract(day from h.lease_until - v_now) * 86400
               + extract(hour from h.lease_until - v_now) * 3600
               + extract(minute from h.lease_until - v_now) * 60
               + extract(second from h.lease_until - v_now) as lease_left_seconds
        from (
            -- Each queue gives a page at most, so no more than these are put in order.
            select /*+ leading(q f c) use_nl(f) use_nl(c) index(f rowq_lane_pk) */
                   q.queue_name, q.part_id, c.claim_id, c.worker_name, c.lease_until
            from rowq_queue q
            join rowq_lane f
              on f.part_id = q.part_id
             and f.lane = -1
            cross apply (
                select /*+ index_rs_asc(k rowq_claim_pk) */
                       k.claim_id, k.worker_name, k.lease_until
                from rowq_claim k
                where k.part_id = q.part_id
                  and k.claim_id >= f.floor_seq
                  and k.claim_id > coalesce(p_after_claim_id, 0)
                order by k.part_id, k.claim_id
                fetch first p_max_claims rows only
            ) c
            where v_queue.part_id is null
               or q.part_id = v_queue.part_id
            order by c.claim_id
            fetch first p_max_claims rows only
        ) h
        order by h.claim_id;
end list_claims;

procedure list_dead(
    p_queue_name        in varchar2,
    p_after_message_id  in number default 0,
    p_max_messages      in number default 100,
    p_before_message_id in number default null,
    p_message_type      in varchar2 default null,
    p_rows              out sys_refcursor
)
is
-- routine   list_dead
-- version   1
-- purpose   Dead messages, without their bodies, in the order of their ids, or backwards before one; of one type only, if given.
-- promise   P10
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    -- No type is longer than 200 characters, and SQL takes no more than 2000 bytes. Compare bytes,
    -- because texts are compared by the session's NLS_COMP and NLS_SORT.
    v_type  constant raw(804) := utl_raw.cast_to_raw(substr(p_message_type, 1, 201));
    v_queue t_queue;
begin
    internal_check_whole('max_messages', p_max_messages, 1, 10000, p_is_required => true);
    v_queue := internal_require_queue(p_queue_name);

    if p_before_message_id is null then
        open p_rows for
            select /*+ leading(h m) use_nl(m) index(m rowq_message_pk) */
                   h.message_id, trunc(h.lane / 2) as priority, h.attempt, m.message_type,
                   m.enqueued_at, h.died_at, m.last_error
            from (
                select /*+ index_rs_asc(d rowq_dead_pk) */
                       d.part_id, d.message_id, d.lane, d.attempt, d.died_at
                from rowq_dead d
                where d.part_id = v_queue.part_id
                  and d.message_id > coalesce(p_after_message_id, 0)
                  and (v_type is null or v_type = (
                      select /*+ index(x rowq_message_pk) */ hextoraw(rawtohex(x.message_type))
                      from rowq_message x
                      where x.part_id = d.part_id
                        and x.message_id = d.message_id
                  ))
                order by d.part_id, d.message_id
                fetch first p_max_messages rows only
            ) h
            join rowq_message m
              on m.part_id = h.part_id
             and m.message_id = h.message_id
            order by h.message_id;
    else
        open p_rows for
            select /*+ leading(h m) use_nl(m) index(m rowq_message_pk) */
                   h.message_id, trunc(h.lane / 2) as priority, h.attempt, m.message_type,
                   m.enqueued_at, h.died_at, m.last_error
            from (
                select /*+ index_rs_desc(d rowq_dead_pk) */
                       d.part_id, d.message_id, d.lane, d.attempt, d.died_at
                from rowq_dead d
                where d.part_id = v_queue.part_id
                  and d.message_id > coalesce(p_after_message_id, 0)
                  and d.message_id < p_before_message_id
                  and (v_type is null or v_type = (
                      select /*+ index(x rowq_message_pk) */ hextoraw(rawtohex(x.message_type))
                      from rowq_message x
                      where x.part_id = d.part_id
                        and x.message_id = d.message_id
                  ))
                order by d.part_id desc, d.message_id desc
                fetch first p_max_messages rows only
            ) h
            join rowq_message m
              on m.part_id = h.part_id
             and m.message_id = h.message_id
            order by h.message_id desc;
    end if;
end list_dead;

procedure list_delayed(
    p_queue_name       in varchar2,
    p_after_due_at     in timestamp default null,
    p_after_message_id in number default 0,
    p_max_messages     in number default 100,
    p_rows             out sys_refcursor
)
is
-- routine   list_delayed
-- version   1
-- purpose   Messages that wait for their time, without their bodies, in the order in which they become due.
-- promise   P11
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that was committed late is listed once maintain has corrected its floor
    v_queue t_queue;
    v_from  timestamp(6);
    v_after number := coalesce(p_after_message_id, 0);
begin
    internal_check_whole('max_messages', p_max_messages, 1, 10000, p_is_required => true);
    if p_after_due_at is null and v_after <> 0 then
        internal_refuse('after_message_id goes together with after_due_at');
    end if;
    v_queue := internal_require_queue(p_queue_name);

    -- Begin no sooner than where the first live row may be, beyond the emptied index blocks.
    v_from := internal_from_microseconds(internal_read_floor(v_queue.part_id, -2));
    if p_after_due_at >= v_from then
        v_from := p_after_due_at;
    else
        v_after := 0;
    end if;

    open p_rows for
        select /*+ leading(h m) use_nl(m) index(m rowq_message_pk) */
               h.message_id, trunc(h.lane / 2) as priority, h.attempt, m.message_type, h.due_at,
               m.last_error
        from (
            -- Two ranges, because one for both would read all that is due at the same moment before
            -- the place to go on from.
            select x.part_id, x.message_id, x.lane, x.attempt, x.due_at
            from (
                select /*+ index_rs_asc(d rowq_delayed_pk) */
                       d.part_id, d.message_id, d.lane, d.attempt, d.due_at
                from rowq_delayed d
                where d.part_id = v_queue.part_id
                  and d.due_at = v_from
                  and d.message_id > v_after
                order by d.part_id, d.due_at, d.message_id
                fetch first p_max_messages rows only
            ) x
            union all
            select y.part_id, y.message_id, y.lane, y.attempt, y.due_at
            from (
                select /*+ index_rs_asc(d rowq_delayed_pk) */
                       d.part_id, d.message_id, d.lane, d.attempt, d.due_at
                from rowq_delayed d
                where d.part_id = v_queue.part_id
                  and d.due_at > v_from
                order by d.part_id, d.due_at, d.message_id
                fetch first p_max_messages rows only
            ) y
        ) h
        join rowq_message m
          on m.part_id = h.part_id
         and m.message_id = h.message_id
        order by h.due_at, h.message_id
        fetch first p_max_messages rows only;
end list_delayed;

procedure list_schedules(
    p_queue_name in varchar2 default null,
    p_rows       out sys_refcursor
)
is
-- routine   list_schedules
-- version   1
-- purpose   The schedules of one queue, or of all, without their bodies and headers.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
    v_queue t_queue;
begin
    if p_queue_name is not null then
        v_queue := internal_require_queue(p_queue_name);
    end if;

    open p_rows for
        select q.queue_name, s.schedule_name, s.cron, s.interval_seconds, s.time_zone,
               s.is_paused, s.next_run_at, s.last_run_at, s.last_message_id, s.last_error,
               s.missed, s.overlap, s.starts_at, s.ends_at, s.message_type, s.priority,
               s.max_attempts, s.group_key
        from rowq_queue q
        join rowq_schedule s on s.part_id = q.part_id
        where v_queue.part_id is null
           or q.part_id = v_queue.part_id
        order by q.queue_key, s.schedule_key;
end list_schedules;

procedure list_topics(
    p_queue_name in varchar2 default null,
    p_rows       out sys_refcursor
)
is
-- routine   list_topics
-- version   1
-- purpose   The patterns of one queue or all, in the order of the queues' names.
-- promise   P35
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
    v_queue t_queue;
begin
    if p_queue_name is not null then
        v_queue := internal_require_queue(p_queue_name);
    end if;

    open p_rows for
        select q.queue_name, b.topic_pattern
        from rowq_queue q
        join rowq_topic_binding b on b.part_id = q.part_id
        where v_queue.part_id is null
           or q.part_id = v_queue.part_id
        order by q.queue_key, b.pattern_key;
end list_topics;

procedure maintain(
    p_queue_name in varchar2 default null,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
-- routine   maintain
-- version   1
-- purpose   All housekeeping of one queue, or of every queue: schedules, promote, reap, expiry, floors, archive, results, history. Call it about once a second.
-- promise   P09 P11 P13 P14 P19 P24 P26 P27 P30 P31 P34 P36 P37
-- locks     a row of lane of each queue and its due schedules, passed over when locked; as promote,
--           reap and archive
-- commits   never; the caller owns the transaction. Partitions are dropped in one of its own
-- errors    RQ701 RQ711
-- differs   with more than 1000 queues, a call without a name takes 1000 of them at random
    v_has_savepoint boolean;
    type t_names is table of rowq_queue.queue_name%type index by pls_integer;
    -- A queue that was dropped meanwhile is an error only if the caller has named it.
    e_gone exception;
    pragma exception_init(e_gone, -20701);
    c_most constant pls_integer := 1000;
    -- More than a batch of results and history goes only till then, whatever the number of queues,
    -- because what was promoted and reaped waits for the end of the transaction.
    c_until constant timestamp(6) :=
        sys_extract_utc(systimestamp) + numtodsinterval(0.1, 'second');
    v_seed  pls_integer;
    v_names t_names;
    v_kept  rowq_kept;
    v_rows  rowq_kept_list := rowq_kept_list();
    cursor some_queues is
        select q.queue_name
        from rowq_queue q
        order by ora_hash(q.part_id, 4294967295, v_seed);
begin
    internal_begin_work(v_has_savepoint);
    internal_check_batch_size(p_batch_size);
    if p_queue_name is null then
        v_seed := trunc(internal_random_fraction * 1000000);
        open some_queues;
        fetch some_queues bulk collect into v_names limit c_most;
        close some_queues;
    else
        v_names(1) := p_queue_name;
    end if;

    for i in 1 .. v_names.count loop
        begin
            internal_maintain_queue(
                v_names(i), internal_require_queue(v_names(i)), p_batch_size, c_until,
                v_kept
            );
            v_rows.extend;
            v_rows(v_rows.last) := v_kept;
        exception
            when e_gone then
                if p_queue_name is not null then
                    raise;
                end if;
        end;
    end loop;

    open p_rows for
        select n.queue_name, n.elected, n.promoted, n.reaped, n.died, n.archived, n.purged,
               n.partitions_dropped, n.expired
        from table(v_rows) n;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end maintain;

procedure next_ticks(
    p_cron             in varchar2 default null,
    p_interval_seconds in number default null,
    p_time_zone        in varchar2 default 'UTC',
    p_after            in timestamp default null,
    p_max_ticks        in number default 5,
    p_rows             out sys_refcursor
)
is
-- routine   next_ticks
-- version   1
-- purpose   When a schedule with these times would run: a look before it is created. An interval counts from after.
-- promise   P31
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
    v_schedule t_schedule;
    v_tick     timestamp(6) := coalesce(p_after, sys_extract_utc(systimestamp));
    v_ticks    rowq_moments := rowq_moments();
begin
    if p_cron is null and p_interval_seconds is null
       or p_cron is not null and p_interval_seconds is not null then
        internal_refuse('a schedule has either cron or interval_seconds');
    end if;
    internal_check_range('interval_seconds', p_interval_seconds, 1, 315360000);
    internal_check_time_zone(p_time_zone);
    internal_check_whole('max_ticks', p_max_ticks, 1, 1000, p_is_required => true);
    if v_tick not between timestamp '2000-01-01 00:00:00' and timestamp '2100-01-01 00:00:00' then
        internal_refuse('after must be a moment between the years 2000 and 2100');
    end if;
    v_schedule.cron := p_cron;
    v_schedule.interval_seconds := p_interval_seconds;
    v_schedule.time_zone := p_time_zone;
    v_schedule.starts_at := v_tick;
    for i in 1 .. p_max_ticks loop
        v_tick := internal_next_tick(v_schedule, v_tick);
        exit when v_tick is null;
        v_ticks.extend;
        v_ticks(v_ticks.last) := v_tick;
    end loop;

    open p_rows for
        select n.column_value as tick
        from table(v_ticks) n
        order by n.column_value;
end next_ticks;

procedure pause_queue(
    p_queue_name in varchar2,
    p_rows       out sys_refcursor
)
is
-- routine   pause_queue
-- version   1
-- purpose   Stop delivery; enqueue and the finishing routines go on.
-- promise   P18
-- locks     the queue row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue t_queue;
begin
    v_queue := internal_require_queue(p_queue_name);

    update rowq_queue q
    set q.paused_at = coalesce(q.paused_at, sys_extract_utc(systimestamp))
    where q.part_id = v_queue.part_id;
    if sql%rowcount = 0 then
        -- The queue was dropped while this call waited for its row.
        internal_refuse_queue(p_queue_name);
    end if;

    open p_rows for
        select p_queue_name as queue_name, 'paused' as outcome
        from dual;
end pause_queue;

procedure peek(
    p_queue_name   in varchar2,
    p_max_messages in number default 1,
    p_rows         out sys_refcursor
)
is
-- routine   peek
-- version   1
-- purpose   Show the next ready messages without leasing them.
-- promise   P05
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue t_queue;
    v_lines rowq_lines;
begin
    internal_check_whole('max_messages', p_max_messages, 1, 1000, p_is_required => true);
    v_queue := internal_require_queue(p_queue_name);
    v_lines := internal_peek_ready(v_queue.part_id, p_max_messages);

    open p_rows for
        select /*+ leading(n m) use_nl(m) index(m rowq_message_pk) */
               n.message_id, trunc(n.lane / 2) as priority, n.attempt, m.message_type, m.headers,
               m.body, m.body_binary, m.enqueued_at, m.last_error
        from table(v_lines) n
        join rowq_message m
          on m.part_id = v_queue.part_id
         and m.message_id = n.message_id
        order by n.place;
end peek;

procedure promote(
    p_queue_name in varchar2,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
-- routine   promote
-- version   1
-- purpose   Make delayed messages ready whose time has come.
-- promise   P11
-- locks     delayed rows, passing over locked ones; new ready rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_promoted      pls_integer;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_check_batch_size(p_batch_size);
    v_queue := internal_require_queue(p_queue_name);
    v_promoted := internal_promote(v_queue.part_id, p_batch_size);
    if v_promoted > 0 then
        internal_ring_doorbell(v_queue.part_id, v_queue.listened_until);
    end if;

    open p_rows for
        select v_promoted as promoted
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end promote;

procedure publish(
    p_topic          in varchar2,
    p_body           in clob default null,
    p_body_binary    in blob default null,
    p_message_type   in varchar2 default null,
    p_headers        in clob default null,
    p_priority       in number default 5,
    p_delay_seconds  in number default null,
    p_run_at         in timestamp default null,
    p_dedup_key      in varchar2 default null,
    p_max_attempts   in number default null,
    p_group_key      in varchar2 default null,
    p_expire_seconds in number default null,
    p_rows           out sys_refcursor
)
is
-- routine   publish
-- version   1
-- purpose   Hand over one message to each queue that is bound to a topic, in the order of their names; to none where none is. Without a message_type it is the topic.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as internal_bound_queues; as enqueue, queue by queue in the order of their names
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   an empty text is null to Oracle: pass empty_clob() for an empty body
    v_fault         varchar2(32767);
    v_new           t_new_messages;
    v_sent          rowq_sent_list;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    -- What is wrong is refused where no queue is bound, too. The length of a body is for each queue
    -- to judge.
    v_fault := coalesce(
        internal_topic_fault('topic', p_topic, false),
        internal_message_fault(
            p_body, p_body_binary, p_message_type, p_headers, p_priority, p_delay_seconds,
            p_run_at, p_dedup_key, p_max_attempts, p_group_key, null, p_expire_seconds
        )
    );
    if v_fault is not null then
        internal_refuse(v_fault);
    end if;

    v_new(1) := internal_new_message(
        sys_extract_utc(systimestamp), 0, p_body, p_body_binary,
        coalesce(p_message_type, p_topic), p_headers, p_priority, p_delay_seconds, p_run_at,
        p_dedup_key, p_max_attempts, p_group_key, null, null, p_expire_seconds
    );
    v_new(1).topic := p_topic;
    internal_publish(v_new, v_sent);

    open p_rows for
        select n.queue_name, n.message_id, n.outcome
        from table(v_sent) n
        order by n.line_no;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end publish;

procedure publish_batch(
    p_messages in clob,
    p_rows     out sys_refcursor
)
is
-- routine   publish_batch
-- version   1
-- purpose   Do what publish does with many messages in one call, queue by queue: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as internal_bound_queues; as enqueue_batch, queue by queue in the order of their names
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
    v_sent          rowq_sent_list;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_publish(internal_parse_messages(p_messages, null, true), v_sent);

    open p_rows for
        select n.place as position, n.queue_name, n.message_id, n.outcome
        from table(v_sent) n
        order by n.line_no;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end publish_batch;

procedure purge_archive(
    p_queue_name in varchar2,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
-- routine   purge_archive
-- version   1
-- purpose   Delete archived messages older than the queue's archive_days and attempts older than its history_days, and drop partitions that no queue needs.
-- promise   P19 P37
-- locks     archive and history rows, passing over locked ones; for a drop a partition, tried
-- commits   never; the caller owns the transaction. Partitions are dropped in one of its own
-- errors    RQ701 RQ711
-- differs   partitions only where partition_archive.sql has made them
    v_queue         t_queue;
    v_purged        pls_integer;
    v_dropped       pls_integer;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_check_batch_size(p_batch_size);
    v_queue := internal_require_queue(p_queue_name);
    -- Drop partitions before this transaction has touched the archive, because its own locks would
    -- be in the way.
    v_dropped := internal_drop_days;
    v_purged := internal_purge_archive(
        v_queue.part_id,
        sys_extract_utc(systimestamp) - numtodsinterval(v_queue.archive_days, 'day'),
        p_batch_size
    );
    v_purged := v_purged + internal_purge_history(v_queue, p_batch_size);

    open p_rows for
        select v_purged as purged, v_dropped as partitions_dropped
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end purge_archive;

procedure purge_queue(
    p_queue_name   in varchar2,
    p_include_dead in number default 0,
    p_max_messages in number default null,
    p_rows         out sys_refcursor
)
is
-- routine   purge_queue
-- version   1
-- purpose   Delete waiting messages: ready, delayed, blocked; leased ones stay with their workers.
-- promise   P15
-- locks     blocked, grouped, ready, delayed, dead rows, passing over locked ones; then as complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_removed       number;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    if p_include_dead not in (0, 1) then
        internal_refuse('include_dead must be 0 or 1');
    end if;
    internal_check_whole('max_messages', p_max_messages, 1, 10000);
    v_queue := internal_require_queue(p_queue_name);
    -- No archive keeps what is purged.
    v_queue.archive_days := 0;

    -- Begin with what waits for others and in groups, so that nothing is freed and no token is
    -- passed on to a message that goes too.
    v_removed := internal_purge_blocked(v_queue, p_max_messages);
    v_removed := v_removed
        + internal_purge_grouped(v_queue, p_max_messages - v_removed);
    v_removed := v_removed
        + internal_purge_ready(v_queue, p_max_messages - v_removed);
    v_removed := v_removed
        + internal_purge_waiting(v_queue, false, p_max_messages - v_removed);
    if p_include_dead = 1 then
        v_removed := v_removed
            + internal_purge_waiting(v_queue, true, p_max_messages - v_removed);
    end if;

    open p_rows for
        select v_removed as removed
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end purge_queue;

procedure queue_stats(
    p_queue_name in varchar2 default null,
    p_max_count  in number default 100000,
    p_rows       out sys_refcursor
)
is
-- routine   queue_stats
-- version   1
-- purpose   Counts, age and settings of one queue or all.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue  t_queue;
    v_parts  t_numbers;
    v_counts rowq_counts := rowq_counts();
begin
    internal_check_whole('max_count', p_max_count, 1, 100000000, p_is_required => true);
    if p_queue_name is null then
        select q.part_id bulk collect into v_parts
        from rowq_queue q;
    else
        v_queue := internal_require_queue(p_queue_name);
        v_parts(1) := v_queue.part_id;
    end if;
    v_counts.extend(v_parts.count);
    for i in 1 .. v_parts.count loop
        v_counts(i) := internal_count_messages(v_parts(i), p_max_count);
    end loop;

    open p_rows for
        select q.queue_name, nvl2(q.paused_at, 1, 0) as is_paused, n.ready_count as ready,
               n.delayed_count as delayed, n.leased_count as leased, n.dead_count as dead,
               n.blocked_count as blocked, n.oldest_seconds as oldest_ready_seconds,
               q.lease_seconds, q.max_attempts, q.backoff_base_seconds, q.backoff_factor,
               q.backoff_cap_seconds, q.backoff_jitter, q.archive_days,
               q.max_body_length, q.group_limit, q.group_after_dead, q.group_pause_seconds,
               q.max_leased, q.rate_limit, q.rate_seconds, q.result_seconds,
               q.history_days
        from table(v_counts) n
        join rowq_queue q on q.part_id = n.part_id
        order by q.queue_key;
end queue_stats;

procedure reap(
    p_queue_name in varchar2,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
-- routine   reap
-- version   1
-- purpose   Take unfinished messages back from claims whose lease ran out.
-- promise   P03 P09 P34 P37
-- locks     expired claim rows and message rows, passing over locked ones; ready, dead and dedup
--           rows; for cancelled messages as complete; new history rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_reaped        pls_integer;
    v_died          pls_integer;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_check_batch_size(p_batch_size);
    v_queue := internal_require_queue(p_queue_name);
    internal_reap(v_queue, p_batch_size, v_reaped, v_died);
    if v_reaped > 0 then
        internal_ring_doorbell(v_queue.part_id, v_queue.listened_until);
    end if;

    open p_rows for
        select v_reaped as reaped, v_died as died
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end reap;

procedure release(
    p_queue_name  in varchar2,
    p_claim_id    in number,
    p_message_ids in clob default null,
    p_rows        out sys_refcursor
)
is
-- routine   release
-- version   1
-- purpose   Give messages back to the front of their priority without spending the attempt.
-- promise   P08 P34 P37
-- locks     the claim row; then new ready rows, and for cancelled messages as complete; new
--           history rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    v_queue         t_queue;
    v_ids           rowq_ids;
    v_claim         t_claim;
    v_messages      t_messages;
    v_rest          t_messages;
    v_cancelled     t_messages;
    v_lines         rowq_lines;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_ids := internal_read_id_list(p_message_ids);
    internal_check_claim(p_claim_id);
    v_queue := internal_require_queue(p_queue_name);

    internal_pop_claimed(v_queue.part_id, p_claim_id, v_ids, v_claim, v_messages);
    internal_split_by_cancel(v_messages, v_rest, v_cancelled);
    internal_finish(v_queue, v_cancelled, 'cancelled');
    -- Before the attempt is given back, because its number belongs to what has ended.
    if v_queue.history_days > 0 then
        internal_push_history(v_queue.part_id, v_claim, v_cancelled, 'cancelled', null);
        internal_push_history(v_queue.part_id, v_claim, v_rest, 'released', null);
    end if;
    internal_as_front(v_rest, 1);
    internal_push_ready(v_queue.part_id, v_rest);
    internal_ring_doorbell(v_queue.part_id, v_queue.listened_until);
    v_lines := internal_outcomes(v_ids, v_messages, 'released');
    internal_mark_lines(v_lines, internal_ids_of(v_cancelled), 'cancelled');

    open p_rows for
        select n.message_id, n.outcome
        from table(v_lines) n
        order by n.place;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end release;

procedure reset(
    p_queue_name   in varchar2,
    p_message_ids  in clob default null,
    p_max_messages in number default 1000,
    p_message_type in varchar2 default null,
    p_died_before  in timestamp default null,
    p_rows         out sys_refcursor
)
is
-- routine   reset
-- version   1
-- purpose   Make dead messages ready again, at the tail of their priority, with fresh attempts; null takes the oldest max_messages.
-- promise   P10 P12 P32
-- locks     dead rows, passing over locked ones; dedup and result rows; new ready and expiry rows;
--           groups as enqueue
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_ids           rowq_ids;
    v_locked        t_locked_rows;
    v_messages      t_messages;
    v_waiting       t_numbers;
    v_ready         t_messages;
    v_behind        t_messages;
    v_seqs          t_numbers;
    v_lines         rowq_lines;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_lock_dead(
        p_queue_name, p_message_ids, p_max_messages, p_message_type, p_died_before,
        v_queue, v_ids, v_locked
    );
    internal_pop_dead(v_queue.part_id, v_ids, v_locked, v_messages, v_lines);
    -- A message that is alive again has not ended.
    forall i in 1 .. v_messages.count
        delete from rowq_result r
        where r.part_id = v_queue.part_id
          and r.message_id = v_messages(i).message_id;
    internal_join_groups(v_queue.part_id, v_messages, v_waiting);
    for i in 1 .. v_messages.count loop
        if v_waiting.exists(i) then
            v_behind(v_behind.count + 1) := v_messages(i);
        else
            v_ready(v_ready.count + 1) := v_messages(i);
        end if;
    end loop;
    internal_note_expiry(v_queue.part_id, v_behind, v_seqs);
    internal_push_ready(v_queue.part_id, v_ready);
    internal_ring_doorbell(v_queue.part_id, v_queue.listened_until);

    open p_rows for
        select n.message_id, n.outcome
        from table(v_lines) n
        order by n.place;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end reset;

procedure resume_queue(
    p_queue_name in varchar2,
    p_rows       out sys_refcursor
)
is
-- routine   resume_queue
-- version   1
-- purpose   Start delivery again.
-- promise   P18
-- locks     the queue row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue t_queue;
begin
    v_queue := internal_require_queue(p_queue_name);

    update rowq_queue q
    set q.paused_at = null
    where q.part_id = v_queue.part_id;
    if sql%rowcount = 0 then
        -- The queue was dropped while this call waited for its row.
        internal_refuse_queue(p_queue_name);
    end if;
    internal_ring_doorbell(v_queue.part_id, v_queue.listened_until);

    open p_rows for
        select p_queue_name as queue_name, 'resumed' as outcome
        from dual;
end resume_queue;

procedure retry_later(
    p_queue_name    in varchar2,
    p_claim_id      in number,
    p_message_ids   in clob default null,
    p_delay_seconds in number default null,
    p_error         in clob default null,
    p_rows          out sys_refcursor
)
is
-- routine   retry_later
-- version   1
-- purpose   Give messages back for another attempt after a delay, the queue's backoff unless delay_seconds is given; without an attempt left they are dead.
-- promise   P08 P10 P34 P37
-- locks     the claim row; then message, delayed, ready, dead or dedup rows, waiting as complete
--           does; new history rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    v_queue         t_queue;
    v_ids           rowq_ids;
    v_claim         t_claim;
    v_messages      t_messages;
    v_rest          t_messages;
    v_cancelled     t_messages;
    v_alive         t_messages;
    v_dead          t_messages;
    v_due_at        t_moments;
    v_lines         rowq_lines;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_ids := internal_read_id_list(p_message_ids);
    internal_check_claim(p_claim_id);
    internal_check_range('delay_seconds', p_delay_seconds, 0, 315360000);
    v_queue := internal_require_queue(p_queue_name);

    internal_pop_claimed(v_queue.part_id, p_claim_id, v_ids, v_claim, v_messages);
    internal_split_by_cancel(v_messages, v_rest, v_cancelled);
    internal_finish(v_queue, v_cancelled, 'cancelled');
    internal_split_by_attempts(v_queue, v_rest, v_alive, v_dead);
    internal_back_off(v_queue, v_alive, p_delay_seconds, v_due_at);
    internal_push_delayed(v_queue.part_id, v_alive, v_due_at, p_error);
    internal_push_dead(v_queue, v_dead, p_error, true);
    if v_queue.history_days > 0 then
        internal_push_history(v_queue.part_id, v_claim, v_cancelled, 'cancelled', null);
        internal_push_history(v_queue.part_id, v_claim, v_alive, 'retrying', p_error);
        internal_push_history(v_queue.part_id, v_claim, v_dead, 'dead', p_error);
    end if;
    internal_ring_doorbell(v_queue.part_id, v_queue.listened_until);
    v_lines := internal_retry_outcomes(v_ids, v_messages, v_alive, v_due_at);
    internal_mark_lines(v_lines, internal_ids_of(v_cancelled), 'cancelled');

    open p_rows for
        select n.message_id, n.outcome, n.due_at
        from table(v_lines) n
        order by n.place;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end retry_later;

procedure run_schedule(
    p_queue_name    in varchar2,
    p_schedule_name in varchar2,
    p_rows          out sys_refcursor
)
is
-- routine   run_schedule
-- version   1
-- purpose   Enqueue the message of a schedule now, paused or not; its next tick stays as it is.
-- promise   P15
-- locks     the schedule row; as enqueue
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ702 RQ711
-- differs   nothing
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_queue         t_queue;
    v_schedule      t_schedule;
    v_message_id    number;
    v_outcome       varchar2(20 char);
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_queue := internal_require_queue(p_queue_name);
    v_schedule := internal_require_schedule(v_queue.part_id, p_schedule_name);
    internal_send_tick(v_queue, p_queue_name, v_schedule, v_now, v_message_id, v_outcome);
    internal_ring_doorbell(v_queue.part_id, v_queue.listened_until);
    if v_outcome = 'enqueued' then
        update rowq_schedule s
        set s.last_run_at     = v_now,
            s.last_message_id = v_message_id
        where s.part_id = v_schedule.part_id
          and s.schedule_key = v_schedule.schedule_key;
    end if;

    open p_rows for
        select v_message_id as message_id, v_outcome as outcome
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end run_schedule;

procedure unbind_topic(
    p_queue_name    in varchar2,
    p_topic_pattern in varchar2,
    p_rows          out sys_refcursor
)
is
-- routine   unbind_topic
-- version   1
-- purpose   Take a queue's pattern away; what it has got stays.
-- promise   P15 P35
-- locks     the table of bindings against drop_queue; the topic_binding row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_fault         varchar2(32767);
    v_queue         t_queue;
    v_key           raw(200);
    v_outcome       varchar2(20 char) := 'not_bound';
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_fault := internal_topic_fault('topic_pattern', p_topic_pattern, true);
    if v_fault is not null then
        internal_refuse(v_fault);
    end if;
    v_queue := internal_lock_bindings(p_queue_name);
    v_key := utl_raw.cast_to_raw(p_topic_pattern);

    delete from rowq_topic_binding b
    where b.part_id = v_queue.part_id
      and b.pattern_key = v_key;
    if sql%rowcount > 0 then
        v_outcome := 'unbound';
    end if;

    open p_rows for
        select p_queue_name as queue_name, p_topic_pattern as topic_pattern, v_outcome as outcome
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end unbind_topic;

procedure version(p_rows out sys_refcursor)
is
-- routine   version
-- version   1
-- purpose   What is installed.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
begin
    open p_rows for
        select max(case when m.name = 'rowq_version' then m.value end) as rowq_version,
               to_number(max(case when m.name = 'schema_version' then m.value end), '9999')
                   as schema_version,
               (
                   select max(p.product || ' ' || p.version_full)
                   from product_component_version p
                   where p.product like 'Oracle%'
               ) as engine
        from rowq_meta m;
end version;

procedure dequeue_wait(
    p_queue_name    in varchar2,
    p_batch_size    in number default 1,
    p_worker_name   in varchar2 default null,
    p_lease_seconds in number default null,
    p_wait_seconds  in number default 20,
    p_rows          out sys_refcursor
)
is
begin
    rowq_wait.dequeue_wait(
        p_queue_name => p_queue_name,
        p_batch_size => p_batch_size,
        p_worker_name => p_worker_name,
        p_lease_seconds => p_lease_seconds,
        p_wait_seconds => p_wait_seconds,
        p_rows => p_rows
    );
end dequeue_wait;

procedure wait_for_result(
    p_queue_name   in varchar2,
    p_message_id   in number,
    p_wait_seconds in number default 20,
    p_rows         out sys_refcursor
)
is
begin
    rowq_wait.wait_for_result(
        p_queue_name => p_queue_name,
        p_message_id => p_message_id,
        p_wait_seconds => p_wait_seconds,
        p_rows => p_rows
    );
end wait_for_result;

end rowq;
/

-- [file packages/rowq_wait_body.sql]
-- Put together from internal and the routines that wait.
create or replace package body rowq_wait as

procedure internal_check_range(
    p_name  in varchar2,
    p_value in number,
    p_low   in number,
    p_high  in number
);
function internal_has_doorbell
return boolean;
function internal_microseconds(p_moment in timestamp)
return number;
procedure internal_note_listener(p_part_id in number, p_listened_until in timestamp);
function internal_number_text(p_value in number)
return varchar2;
procedure internal_refuse(p_fault in varchar2);
function internal_seconds_since(p_moment in timestamp, p_now in timestamp)
return number;
procedure internal_stop_leading_waiters(p_lock in number);
function internal_try_lead_waiters(p_lock in number)
return boolean;
procedure internal_wait_for_ring(
    p_part_id        in number,
    p_listened_until in out timestamp,
    p_has_doorbell   in out boolean
);
function internal_waiters_lock_number(p_part_id in number)
return number;

procedure internal_check_range(
    p_name  in varchar2,
    p_value in number,
    p_low   in number,
    p_high  in number
)
is
-- routine   internal_check_range
-- purpose   Refuse a number outside its range; null passes.
-- promise   P15
-- errors    RQ711
begin
    if p_value not between p_low and p_high then
        internal_refuse(
            p_name || ' must be between ' || internal_number_text(p_low) || ' and '
            || internal_number_text(p_high) || ', got ' || internal_number_text(p_value)
        );
    end if;
end internal_check_range;

function internal_has_doorbell
return boolean
is
-- routine   internal_has_doorbell
-- purpose   Return whether doorbell.sql was run.
-- differs   this engine's own
    v_count pls_integer;
begin
    select count(*) into v_count
    from user_objects o
    where o.object_name = 'ROWQ_DOORBELL'
      and o.object_type = 'PACKAGE BODY';
    return v_count > 0;
end internal_has_doorbell;

function internal_microseconds(p_moment in timestamp)
return number
is
-- routine   internal_microseconds
-- purpose   Return a moment as microseconds since 1970; null stays null.
-- differs   no such helper elsewhere: other engines have a function for it
    v_since interval day(9) to second(6);
begin
    v_since := p_moment - timestamp '1970-01-01 00:00:00';
    return extract(day from v_since) * 86400000000
        + extract(hour from v_since) * 3600000000
        + extract(minute from v_since) * 60000000
        + round(extract(second from v_since) * 1000000);
end internal_microseconds;

procedure internal_note_listener(p_part_id in number, p_listened_until in timestamp)
is
-- routine   internal_note_listener
-- purpose   Note until when somebody listens at a queue; null when nobody does any more.
-- locks     the queue row, passed over when locked
-- differs   this engine's own
    v_row_id rowid;
    cursor queue_row is
        select q.rowid
        from rowq_queue q
        where q.part_id = p_part_id
        for update skip locked;
begin
    open queue_row;
    fetch queue_row into v_row_id;
    close queue_row;
    if v_row_id is not null then
        update rowq_queue q
        set q.listened_until = p_listened_until
        where q.rowid = v_row_id;
    end if;
end internal_note_listener;

function internal_number_text(p_value in number)
return varchar2
is
-- routine   internal_number_text
-- purpose   Return a number as text, with a point whatever the session's NLS_NUMERIC_CHARACTERS are.
-- differs   no such helper elsewhere: other engines have no such setting
begin
    return coalesce(to_char(p_value, 'tm9', 'nls_numeric_characters=''.,'''), 'null');
end internal_number_text;

procedure internal_refuse(p_fault in varchar2)
is
-- routine   internal_refuse
-- purpose   Raise the error for an invalid argument.
-- promise   P15
-- errors    RQ711
-- differs   no such helper elsewhere: other engines raise with an expression
begin
    raise_application_error(-20711, 'RQ711 invalid_argument: ' || substr(p_fault, 1, 400));
end internal_refuse;

function internal_seconds_since(p_moment in timestamp, p_now in timestamp)
return number
is
-- routine   internal_seconds_since
-- purpose   Return the seconds from a moment to p_now; null stays null.
-- differs   no such helper elsewhere: other engines have a function for it
begin
    return (internal_microseconds(p_now) - internal_microseconds(p_moment)) / 1000000;
end internal_seconds_since;

procedure internal_stop_leading_waiters(p_lock in number)
is
-- routine   internal_stop_leading_waiters
-- purpose   Let another waiter of the queue lead.
-- locks     gives back the session's lock p_lock
-- differs   this engine's own
    v_result number;
begin
    execute immediate
        'begin :1 := sys.dbms_lock.release(id => :2); end;'
        using out v_result, in p_lock;
end internal_stop_leading_waiters;

function internal_try_lead_waiters(p_lock in number)
return boolean
is
-- routine   internal_try_lead_waiters
-- purpose   Wait for a second at most to be the one waiter of a queue that looks for all.
-- locks     the lock p_lock, kept until internal_stop_leading_waiters or the session's end
-- differs   this engine's own
    v_result number;
begin
    -- This is dynamic SQL, so that the package compiles without a right to dbms_lock.
    execute immediate
        'begin :1 := sys.dbms_lock.request(id => :2, lockmode => sys.dbms_lock.x_mode,'
        || ' timeout => 1, release_on_commit => false); end;'
        using out v_result, in p_lock;
    -- 0 means granted, 1 means timed out, and 4 means that a call that was broken off has left the
    -- lock with this session. The other results come at once, so sleep here: waiting goes on
    -- without a leader.
    if v_result not in (0, 1, 4) then
        dbms_session.sleep(1);
    end if;
    return v_result in (0, 4);
end internal_try_lead_waiters;

procedure internal_wait_for_ring(
    p_part_id        in number,
    p_listened_until in out timestamp,
    p_has_doorbell   in out boolean
)
is
-- routine   internal_wait_for_ring
-- purpose   Note that somebody listens at a queue; if that is noted already, wait for a ring, for a second at most.
-- locks     the queue row, passed over when locked; none while waiting
-- commits   never; the caller commits at once, and looks before it listens again
-- differs   this engine's own
    -- ORA-01013: the user has cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
begin
    if p_listened_until is null or p_listened_until < v_now + numtodsinterval(2, 'second') then
        -- Say so for six seconds only, so that nobody rings for long for a session that was killed.
        p_listened_until := v_now + numtodsinterval(6, 'second');
        internal_note_listener(p_part_id, p_listened_until);
        return;
    end if;
    -- This is dynamic SQL, because the package exists only where the owner has run doorbell.sql.
    execute immediate 'begin rowq_doorbell.listen(:1); end;' using p_part_id;
exception
    when e_cancelled then
        raise;
    when others then
        -- The doorbell is broken or gone, so go on without it.
        p_has_doorbell := false;
end internal_wait_for_ring;

function internal_waiters_lock_number(p_part_id in number)
return number
is
-- routine   internal_waiters_lock_number
-- purpose   Return the number of the lock that elects a queue's leading waiter; 0 if the owner may not use dbms_lock.
-- differs   this engine's own: the server has numbers and no names for locks that need no row
    v_count pls_integer;
begin
    -- Look the right up and do not try it, because a statement that fails to parse is parsed anew
    -- each time. Roles do not count in stored code, and "execute any procedure" leaves out what
    -- belongs to SYS.
    select count(*) into v_count
    from all_tab_privs p
    where p.table_schema = 'SYS'
      and p.table_name = 'DBMS_LOCK'
      and p.privilege = 'EXECUTE'
      and p.grantee in (sys_context('userenv', 'current_user'), 'PUBLIC');
    if v_count = 0 then
        return 0;
    end if;
    -- All applications of the database share the lock numbers up to 1073741823. One that happens to
    -- use the same number delays waiters by a second at most.
    return dbms_utility.get_hash_value(
        sys_context('userenv', 'current_user') || '.rowq.wait.' || internal_number_text(p_part_id),
        1, 1073741823
    );
end internal_waiters_lock_number;

procedure dequeue_wait(
    p_queue_name    in varchar2,
    p_batch_size    in number default 1,
    p_worker_name   in varchar2 default null,
    p_lease_seconds in number default null,
    p_wait_seconds  in number default 20,
    p_rows          out sys_refcursor
)
is
-- routine   dequeue_wait
-- version   1
-- purpose   Do what dequeue_fast does, but wait until something is ready or the time is up; return fewer messages where they are long.
-- promise   P03 P17
-- locks     as dequeue_fast; while it waits, of dbms_lock where the owner may, the queue's one lock
-- commits   after each look, so that nothing is held while it waits; refuses an open transaction
-- errors    RQ701 RQ711 RQ713
-- differs   rows come as one JSON array, in a result of one row and column; in package rowq_wait
    -- Package rowq is called by dynamic SQL, so that it is in use for the moment of a look only and
    -- can be replaced while sessions wait.
    c_look     constant varchar2(100 char) :=
        'begin rowq.look(:1, :2, :3, :4, :5, :6, :7, :8); end;';
    c_messages constant varchar2(100 char) :=
        'select rowq.messages_json(:1, :2, :3) as messages from dual';
    v_part_id        rowq_queue.part_id%type;
    v_claim_id       rowq_claim.claim_id%type;
    v_lease_until    rowq_claim.lease_until%type;
    v_until          timestamp(6);
    v_left           number;
    v_pause          number := 0.02;
    v_lock           number;
    v_is_leader      boolean := false;
    v_has_doorbell   boolean := false;
    v_listened_until timestamp(6);
begin
    if dbms_transaction.local_transaction_id is not null then
        raise_application_error(
            -20713,
            'RQ713 wrong_transaction_state: dequeue_wait commits while it waits; end your'
            || ' transaction first'
        );
    end if;
    if p_wait_seconds is null then
        internal_refuse('wait_seconds must be between 0 and 3600, got null');
    end if;
    internal_check_range('wait_seconds', p_wait_seconds, 0, 3600);
    v_until := sys_extract_utc(systimestamp) + numtodsinterval(p_wait_seconds, 'second');

    begin
        loop
            execute immediate c_look
                using in p_queue_name, in p_batch_size, in p_worker_name, in p_lease_seconds,
                in v_listened_until, out v_part_id, out v_claim_id, out v_lease_until;
            commit;
            v_left := internal_seconds_since(sys_extract_utc(systimestamp), v_until);
            exit when v_claim_id is not null or v_left <= 0;

            if v_lock is null and v_left >= 1 then
                v_lock := internal_waiters_lock_number(v_part_id);
                v_has_doorbell := internal_has_doorbell;
            end if;
            if v_left < 1 or v_lock = 0 or (v_is_leader and not v_has_doorbell) then
                dbms_session.sleep(least(v_pause, v_left));
                v_pause := least(v_pause * 2, 0.25);
            elsif v_is_leader then
                internal_wait_for_ring(v_part_id, v_listened_until, v_has_doorbell);
                commit;
            else
                -- One waiter of a queue looks for all. The others wait for its lock, and look once
                -- a second in case the lock was left behind.
                v_is_leader := internal_try_lead_waiters(v_lock);
            end if;
        end loop;
        if v_is_leader then
            internal_stop_leading_waiters(v_lock);
        end if;
    exception
        when others then
            -- No transaction was open when the call began, so all of this one is the call's own.
            rollback;
            if v_is_leader then
                internal_stop_leading_waiters(v_lock);
            end if;
            raise;
    end;

    open p_rows for c_messages using v_part_id, v_claim_id, v_lease_until;
end dequeue_wait;

procedure wait_for_result(
    p_queue_name   in varchar2,
    p_message_id   in number,
    p_wait_seconds in number default 20,
    p_rows         out sys_refcursor
)
is
-- routine   wait_for_result
-- version   1
-- purpose   Do what get_result does, but wait until the message has ended or the time is up; the queue must keep results.
-- promise   P17 P32
-- locks     none
-- commits   after each look, so that no snapshot is held while it waits; refuses an open one
-- errors    RQ701 RQ711 RQ713
-- differs   the row comes as one JSON object, in a result of one row and column; in package
--           rowq_wait
    -- Package rowq is called by dynamic SQL, so that it is in use for the moment of a look only and
    -- can be replaced while sessions wait.
    c_look   constant varchar2(100 char) :=
        'begin rowq.look_for_result(:1, :2, :3, :4, :5, :6, :7); end;';
    c_answer constant varchar2(100 char) :=
        'select rowq.result_json(:1, :2, :3, :4) as answer from dual';
    v_part_id     rowq_queue.part_id%type;
    v_state       varchar2(20 char);
    v_finished_at timestamp(6);
    v_until       timestamp(6);
    v_left        number;
    v_pause       number;
    v_is_first    number := 1;
    v_is_last     number;
begin
    if dbms_transaction.local_transaction_id is not null then
        raise_application_error(
            -20713,
            'RQ713 wrong_transaction_state: wait_for_result commits while it waits; end your'
            || ' transaction first'
        );
    end if;
    if p_wait_seconds is null then
        internal_refuse('wait_seconds must be between 0 and 3600, got null');
    end if;
    internal_check_range('wait_seconds', p_wait_seconds, 0, 3600);
    v_until := sys_extract_utc(systimestamp) + numtodsinterval(p_wait_seconds, 'second');

    -- Each look is a transaction of its own, so that a serializable session sees what is new.
    commit;
    loop
        v_is_last := case when sys_extract_utc(systimestamp) >= v_until then 1 else 0 end;
        execute immediate c_look
            using in p_queue_name, in p_message_id, in v_is_first, in v_is_last, out v_part_id,
            out v_state, out v_finished_at;
        commit;
        exit when v_finished_at is not null
            or v_is_last = 1
            or (v_is_first = 1 and v_state is null);
        v_is_first := 0;
        v_left := internal_seconds_since(sys_extract_utc(systimestamp), v_until);
        v_pause := least(coalesce(v_pause * 2, 0.02), 0.25);
        dbms_session.sleep(greatest(least(v_pause, v_left), 0));
    end loop;

    open p_rows for c_answer using v_part_id, p_message_id, v_state, v_finished_at;
end wait_for_result;

end rowq_wait;
/

-- [file packages/rowq_produce.sql]
-- Put together from the signatures of what role rowq_producer may call.
create or replace package rowq_produce authid definer as

    -- A list of ids as the JSON array that routines take: for callers in PL/SQL.
    function ids(p_ids in rowq_ids)
    return clob;

    -- What enqueue does, for callers in PL/SQL: returns the message's id, of a duplicate that of the first.
    function put(
        p_queue_name          in varchar2,
        p_body                in clob default null,
        p_body_binary         in blob default null,
        p_message_type        in varchar2 default null,
        p_headers             in clob default null,
        p_priority            in number default 5,
        p_delay_seconds       in number default null,
        p_run_at              in timestamp default null,
        p_dedup_key           in varchar2 default null,
        p_max_attempts        in number default null,
        p_group_key           in varchar2 default null,
        p_predecessor_ids     in clob default null,
        p_on_predecessor_dead in varchar2 default null,
        p_expire_seconds      in number default null
    )
    return number;

    -- Withdraw messages that no worker holds, dead ones too.
    procedure cancel(
        p_queue_name     in varchar2,
        p_message_ids    in clob,
        p_include_leased in number default 0,
        p_rows           out sys_refcursor
    );

    -- Look at up to max_messages messages, in the order of their ids, and withdraw those that match every filter given and that no worker holds, dead ones too. At least one filter is required.
    procedure cancel_many(
        p_queue_name       in varchar2,
        p_message_type     in varchar2 default null,
        p_group_key        in varchar2 default null,
        p_header_name      in varchar2 default null,
        p_header_value     in clob default null,
        p_enqueued_before  in timestamp default null,
        p_after_message_id in number default 0,
        p_max_messages     in number default 1000,
        p_rows             out sys_refcursor
    );

    -- Hand over one message.
    procedure enqueue(
        p_queue_name          in varchar2,
        p_body                in clob default null,
        p_body_binary         in blob default null,
        p_message_type        in varchar2 default null,
        p_headers             in clob default null,
        p_priority            in number default 5,
        p_delay_seconds       in number default null,
        p_run_at              in timestamp default null,
        p_dedup_key           in varchar2 default null,
        p_max_attempts        in number default null,
        p_group_key           in varchar2 default null,
        p_predecessor_ids     in clob default null,
        p_on_predecessor_dead in varchar2 default null,
        p_expire_seconds      in number default null,
        p_rows                out sys_refcursor
    );

    -- Hand over many messages in one call: all of them or, on an error, none.
    procedure enqueue_batch(
        p_queue_name in varchar2,
        p_messages   in clob,
        p_rows       out sys_refcursor
    );

    -- How a message has ended, and its result; of one that has not ended its state; no row when rowq does not know it.
    procedure get_result(
        p_queue_name in varchar2,
        p_message_id in number,
        p_rows       out sys_refcursor
    );

    -- When a schedule with these times would run: a look before it is created. An interval counts from after.
    procedure next_ticks(
        p_cron             in varchar2 default null,
        p_interval_seconds in number default null,
        p_time_zone        in varchar2 default 'UTC',
        p_after            in timestamp default null,
        p_max_ticks        in number default 5,
        p_rows             out sys_refcursor
    );

    -- Hand over one message to each queue that is bound to a topic, in the order of their names; to none where none is. Without a message_type it is the topic.
    procedure publish(
        p_topic          in varchar2,
        p_body           in clob default null,
        p_body_binary    in blob default null,
        p_message_type   in varchar2 default null,
        p_headers        in clob default null,
        p_priority       in number default 5,
        p_delay_seconds  in number default null,
        p_run_at         in timestamp default null,
        p_dedup_key      in varchar2 default null,
        p_max_attempts   in number default null,
        p_group_key      in varchar2 default null,
        p_expire_seconds in number default null,
        p_rows           out sys_refcursor
    );

    -- Do what publish does with many messages in one call, queue by queue: all of them or, on an error, none.
    procedure publish_batch(
        p_messages in clob,
        p_rows     out sys_refcursor
    );

    -- What is installed.
    procedure version(p_rows out sys_refcursor);

    -- Do what get_result does, but wait until the message has ended or the time is up; the queue must keep results.
    procedure wait_for_result(
        p_queue_name   in varchar2,
        p_message_id   in number,
        p_wait_seconds in number default 20,
        p_rows         out sys_refcursor
    );

end rowq_produce;
/

-- [file packages/rowq_produce_body.sql]
-- Put together from the signatures of what role rowq_producer may call.
create or replace package body rowq_produce as

function ids(p_ids in rowq_ids)
return clob
is
begin
    return rowq.ids(
        p_ids => p_ids
    );
end ids;

function put(
    p_queue_name          in varchar2,
    p_body                in clob default null,
    p_body_binary         in blob default null,
    p_message_type        in varchar2 default null,
    p_headers             in clob default null,
    p_priority            in number default 5,
    p_delay_seconds       in number default null,
    p_run_at              in timestamp default null,
    p_dedup_key           in varchar2 default null,
    p_max_attempts        in number default null,
    p_group_key           in varchar2 default null,
    p_predecessor_ids     in clob default null,
    p_on_predecessor_dead in varchar2 default null,
    p_expire_seconds      in number default null
)
return number
is
begin
    return rowq.put(
        p_queue_name => p_queue_name,
        p_body => p_body,
        p_body_binary => p_body_binary,
        p_message_type => p_message_type,
        p_headers => p_headers,
        p_priority => p_priority,
        p_delay_seconds => p_delay_seconds,
        p_run_at => p_run_at,
        p_dedup_key => p_dedup_key,
        p_max_attempts => p_max_attempts,
        p_group_key => p_group_key,
        p_predecessor_ids => p_predecessor_ids,
        p_on_predecessor_dead => p_on_predecessor_dead,
        p_expire_seconds => p_expire_seconds
    );
end put;

procedure cancel(
    p_queue_name     in varchar2,
    p_message_ids    in clob,
    p_include_leased in number default 0,
    p_rows           out sys_refcursor
)
is
begin
    rowq.cancel(
        p_queue_name => p_queue_name,
        p_message_ids => p_message_ids,
        p_include_leased => p_include_leased,
        p_rows => p_rows
    );
end cancel;

procedure cancel_many(
    p_queue_name       in varchar2,
    p_message_type     in varchar2 default null,
    p_group_key        in varchar2 default null,
    p_header_name      in varchar2 default null,
    p_header_value     in clob default null,
    p_enqueued_before  in timestamp default null,
    p_after_message_id in number default 0,
    p_max_messages     in number default 1000,
    p_rows             out sys_refcursor
)
is
begin
    rowq.cancel_many(
        p_queue_name => p_queue_name,
        p_message_type => p_message_type,
        p_group_key => p_group_key,
        p_header_name => p_header_name,
        p_header_value => p_header_value,
        p_enqueued_before => p_enqueued_before,
        p_after_message_id => p_after_message_id,
        p_max_messages => p_max_messages,
        p_rows => p_rows
    );
end cancel_many;

procedure enqueue(
    p_queue_name          in varchar2,
    p_body                in clob default null,
    p_body_binary         in blob default null,
    p_message_type        in varchar2 default null,
    p_headers             in clob default null,
    p_priority            in number default 5,
    p_delay_seconds       in number default null,
    p_run_at              in timestamp default null,
    p_dedup_key           in varchar2 default null,
    p_max_attempts        in number default null,
    p_group_key           in varchar2 default null,
    p_predecessor_ids     in clob default null,
    p_on_predecessor_dead in varchar2 default null,
    p_expire_seconds      in number default null,
    p_rows                out sys_refcursor
)
is
begin
    rowq.enqueue(
        p_queue_name => p_queue_name,
        p_body => p_body,
        p_body_binary => p_body_binary,
        p_message_type => p_message_type,
        p_headers => p_headers,
        p_priority => p_priority,
        p_delay_seconds => p_delay_seconds,
        p_run_at => p_run_at,
        p_dedup_key => p_dedup_key,
        p_max_attempts => p_max_attempts,
        p_group_key => p_group_key,
        p_predecessor_ids => p_predecessor_ids,
        p_on_predecessor_dead => p_on_predecessor_dead,
        p_expire_seconds => p_expire_seconds,
        p_rows => p_rows
    );
end enqueue;

procedure enqueue_batch(
    p_queue_name in varchar2,
    p_messages   in clob,
    p_rows       out sys_refcursor
)
is
begin
    rowq.enqueue_batch(
        p_queue_name => p_queue_name,
        p_messages => p_messages,
        p_rows => p_rows
    );
end enqueue_batch;

procedure get_result(
    p_queue_name in varchar2,
    p_message_id in number,
    p_rows       out sys_refcursor
)
is
begin
    rowq.get_result(
        p_queue_name => p_queue_name,
        p_message_id => p_message_id,
        p_rows => p_rows
    );
end get_result;

procedure next_ticks(
    p_cron             in varchar2 default null,
    p_interval_seconds in number default null,
    p_time_zone        in varchar2 default 'UTC',
    p_after            in timestamp default null,
    p_max_ticks        in number default 5,
    p_rows             out sys_refcursor
)
is
begin
    rowq.next_ticks(
        p_cron => p_cron,
        p_interval_seconds => p_interval_seconds,
        p_time_zone => p_time_zone,
        p_after => p_after,
        p_max_ticks => p_max_ticks,
        p_rows => p_rows
    );
end next_ticks;

procedure publish(
    p_topic          in varchar2,
    p_body           in clob default null,
    p_body_binary    in blob default null,
    p_message_type   in varchar2 default null,
    p_headers        in clob default null,
    p_priority       in number default 5,
    p_delay_seconds  in number default null,
    p_run_at         in timestamp default null,
    p_dedup_key      in varchar2 default null,
    p_max_attempts   in number default null,
    p_group_key      in varchar2 default null,
    p_expire_seconds in number default null,
    p_rows           out sys_refcursor
)
is
begin
    rowq.publish(
        p_topic => p_topic,
        p_body => p_body,
        p_body_binary => p_body_binary,
        p_message_type => p_message_type,
        p_headers => p_headers,
        p_priority => p_priority,
        p_delay_seconds => p_delay_seconds,
        p_run_at => p_run_at,
        p_dedup_key => p_dedup_key,
        p_max_attempts => p_max_attempts,
        p_group_key => p_group_key,
        p_expire_seconds => p_expire_seconds,
        p_rows => p_rows
    );
end publish;

procedure publish_batch(
    p_messages in clob,
    p_rows     out sys_refcursor
)
is
begin
    rowq.publish_batch(
        p_messages => p_messages,
        p_rows => p_rows
    );
end publish_batch;

procedure version(p_rows out sys_refcursor)
is
begin
    rowq.version(
        p_rows => p_rows
    );
end version;

procedure wait_for_result(
    p_queue_name   in varchar2,
    p_message_id   in number,
    p_wait_seconds in number default 20,
    p_rows         out sys_refcursor
)
is
begin
    rowq_wait.wait_for_result(
        p_queue_name => p_queue_name,
        p_message_id => p_message_id,
        p_wait_seconds => p_wait_seconds,
        p_rows => p_rows
    );
end wait_for_result;

end rowq_produce;
/

-- [file packages/rowq_consume.sql]
-- Put together from the signatures of what role rowq_consumer may call.
create or replace package rowq_consume authid definer as

    -- A list of ids as the JSON array that routines take: for callers in PL/SQL.
    function ids(p_ids in rowq_ids)
    return clob;

    -- Move finished messages of a queue with archive_days above 0 to the archive.
    procedure archive(
        p_queue_name in varchar2,
        p_batch_size in number default 1000,
        p_rows       out sys_refcursor
    );

    -- Finish messages: they are gone, or in the archive, and never delivered again.
    procedure complete(
        p_queue_name  in varchar2,
        p_claim_id    in number,
        p_message_ids in clob default null,
        p_results     in clob default null,
        p_rows        out sys_refcursor
    );

    -- Lease up to batch_size ready messages to one new claim, passing over rows that another session holds.
    procedure dequeue_fast(
        p_queue_name    in varchar2,
        p_batch_size    in number default 1,
        p_worker_name   in varchar2 default null,
        p_lease_seconds in number default null,
        p_rows          out sys_refcursor
    );

    -- Do what dequeue_fast does, but wait until something is ready or the time is up; return fewer messages where they are long.
    procedure dequeue_wait(
        p_queue_name    in varchar2,
        p_batch_size    in number default 1,
        p_worker_name   in varchar2 default null,
        p_lease_seconds in number default null,
        p_wait_seconds  in number default 20,
        p_rows          out sys_refcursor
    );

    -- Heartbeat: hold all messages of a claim for lease_seconds from now; a lease is never shortened.
    procedure extend_lease(
        p_queue_name    in varchar2,
        p_claim_id      in number,
        p_lease_seconds in number default null,
        p_progress      in clob default null,
        p_rows          out sys_refcursor
    );

    -- Declare messages dead without another attempt.
    procedure fail_now(
        p_queue_name  in varchar2,
        p_claim_id    in number,
        p_message_ids in clob default null,
        p_error       in clob default null,
        p_rows        out sys_refcursor
    );

    -- All housekeeping of one queue, or of every queue: schedules, promote, reap, expiry, floors, archive, results, history. Call it about once a second.
    procedure maintain(
        p_queue_name in varchar2 default null,
        p_batch_size in number default 1000,
        p_rows       out sys_refcursor
    );

    -- Show the next ready messages without leasing them.
    procedure peek(
        p_queue_name   in varchar2,
        p_max_messages in number default 1,
        p_rows         out sys_refcursor
    );

    -- Make delayed messages ready whose time has come.
    procedure promote(
        p_queue_name in varchar2,
        p_batch_size in number default 1000,
        p_rows       out sys_refcursor
    );

    -- Counts, age and settings of one queue or all.
    procedure queue_stats(
        p_queue_name in varchar2 default null,
        p_max_count  in number default 100000,
        p_rows       out sys_refcursor
    );

    -- Take unfinished messages back from claims whose lease ran out.
    procedure reap(
        p_queue_name in varchar2,
        p_batch_size in number default 1000,
        p_rows       out sys_refcursor
    );

    -- Give messages back to the front of their priority without spending the attempt.
    procedure release(
        p_queue_name  in varchar2,
        p_claim_id    in number,
        p_message_ids in clob default null,
        p_rows        out sys_refcursor
    );

    -- Give messages back for another attempt after a delay, the queue's backoff unless delay_seconds is given; without an attempt left they are dead.
    procedure retry_later(
        p_queue_name    in varchar2,
        p_claim_id      in number,
        p_message_ids   in clob default null,
        p_delay_seconds in number default null,
        p_error         in clob default null,
        p_rows          out sys_refcursor
    );

    -- What is installed.
    procedure version(p_rows out sys_refcursor);

end rowq_consume;
/

-- [file packages/rowq_consume_body.sql]
-- Put together from the signatures of what role rowq_consumer may call.
create or replace package body rowq_consume as

function ids(p_ids in rowq_ids)
return clob
is
begin
    return rowq.ids(
        p_ids => p_ids
    );
end ids;

procedure archive(
    p_queue_name in varchar2,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
begin
    rowq.archive(
        p_queue_name => p_queue_name,
        p_batch_size => p_batch_size,
        p_rows => p_rows
    );
end archive;

procedure complete(
    p_queue_name  in varchar2,
    p_claim_id    in number,
    p_message_ids in clob default null,
    p_results     in clob default null,
    p_rows        out sys_refcursor
)
is
begin
    rowq.complete(
        p_queue_name => p_queue_name,
        p_claim_id => p_claim_id,
        p_message_ids => p_message_ids,
        p_results => p_results,
        p_rows => p_rows
    );
end complete;

procedure dequeue_fast(
    p_queue_name    in varchar2,
    p_batch_size    in number default 1,
    p_worker_name   in varchar2 default null,
    p_lease_seconds in number default null,
    p_rows          out sys_refcursor
)
is
begin
    rowq.dequeue_fast(
        p_queue_name => p_queue_name,
        p_batch_size => p_batch_size,
        p_worker_name => p_worker_name,
        p_lease_seconds => p_lease_seconds,
        p_rows => p_rows
    );
end dequeue_fast;

procedure dequeue_wait(
    p_queue_name    in varchar2,
    p_batch_size    in number default 1,
    p_worker_name   in varchar2 default null,
    p_lease_seconds in number default null,
    p_wait_seconds  in number default 20,
    p_rows          out sys_refcursor
)
is
begin
    rowq_wait.dequeue_wait(
        p_queue_name => p_queue_name,
        p_batch_size => p_batch_size,
        p_worker_name => p_worker_name,
        p_lease_seconds => p_lease_seconds,
        p_wait_seconds => p_wait_seconds,
        p_rows => p_rows
    );
end dequeue_wait;

procedure extend_lease(
    p_queue_name    in varchar2,
    p_claim_id      in number,
    p_lease_seconds in number default null,
    p_progress      in clob default null,
    p_rows          out sys_refcursor
)
is
begin
    rowq.extend_lease(
        p_queue_name => p_queue_name,
        p_claim_id => p_claim_id,
        p_lease_seconds => p_lease_seconds,
        p_progress => p_progress,
        p_rows => p_rows
    );
end extend_lease;

procedure fail_now(
    p_queue_name  in varchar2,
    p_claim_id    in number,
    p_message_ids in clob default null,
    p_error       in clob default null,
    p_rows        out sys_refcursor
)
is
begin
    rowq.fail_now(
        p_queue_name => p_queue_name,
        p_claim_id => p_claim_id,
        p_message_ids => p_message_ids,
        p_error => p_error,
        p_rows => p_rows
    );
end fail_now;

procedure maintain(
    p_queue_name in varchar2 default null,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
begin
    rowq.maintain(
        p_queue_name => p_queue_name,
        p_batch_size => p_batch_size,
        p_rows => p_rows
    );
end maintain;

procedure peek(
    p_queue_name   in varchar2,
    p_max_messages in number default 1,
    p_rows         out sys_refcursor
)
is
begin
    rowq.peek(
        p_queue_name => p_queue_name,
        p_max_messages => p_max_messages,
        p_rows => p_rows
    );
end peek;

procedure promote(
    p_queue_name in varchar2,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
begin
    rowq.promote(
        p_queue_name => p_queue_name,
        p_batch_size => p_batch_size,
        p_rows => p_rows
    );
end promote;

procedure queue_stats(
    p_queue_name in varchar2 default null,
    p_max_count  in number default 100000,
    p_rows       out sys_refcursor
)
is
begin
    rowq.queue_stats(
        p_queue_name => p_queue_name,
        p_max_count => p_max_count,
        p_rows => p_rows
    );
end queue_stats;

procedure reap(
    p_queue_name in varchar2,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
begin
    rowq.reap(
        p_queue_name => p_queue_name,
        p_batch_size => p_batch_size,
        p_rows => p_rows
    );
end reap;

procedure release(
    p_queue_name  in varchar2,
    p_claim_id    in number,
    p_message_ids in clob default null,
    p_rows        out sys_refcursor
)
is
begin
    rowq.release(
        p_queue_name => p_queue_name,
        p_claim_id => p_claim_id,
        p_message_ids => p_message_ids,
        p_rows => p_rows
    );
end release;

procedure retry_later(
    p_queue_name    in varchar2,
    p_claim_id      in number,
    p_message_ids   in clob default null,
    p_delay_seconds in number default null,
    p_error         in clob default null,
    p_rows          out sys_refcursor
)
is
begin
    rowq.retry_later(
        p_queue_name => p_queue_name,
        p_claim_id => p_claim_id,
        p_message_ids => p_message_ids,
        p_delay_seconds => p_delay_seconds,
        p_error => p_error,
        p_rows => p_rows
    );
end retry_later;

procedure version(p_rows out sys_refcursor)
is
begin
    rowq.version(
        p_rows => p_rows
    );
end version;

end rowq_consume;
/

-- [file packages/rowq_look.sql]
-- Put together from the signatures of what role rowq_monitor may call.
create or replace package rowq_look authid definer as

    -- Report what needs attention: who holds back clean-up, overdue messages, expired leases, dead messages, a sequence behind its data.
    procedure health(p_rows out sys_refcursor);

    -- Who is at work on what: the claims of one queue or all, in the order of their ids.
    procedure list_claims(
        p_queue_name     in varchar2 default null,
        p_after_claim_id in number default 0,
        p_max_claims     in number default 100,
        p_rows           out sys_refcursor
    );

    -- Dead messages, without their bodies, in the order of their ids, or backwards before one; of one type only, if given.
    procedure list_dead(
        p_queue_name        in varchar2,
        p_after_message_id  in number default 0,
        p_max_messages      in number default 100,
        p_before_message_id in number default null,
        p_message_type      in varchar2 default null,
        p_rows              out sys_refcursor
    );

    -- Messages that wait for their time, without their bodies, in the order in which they become due.
    procedure list_delayed(
        p_queue_name       in varchar2,
        p_after_due_at     in timestamp default null,
        p_after_message_id in number default 0,
        p_max_messages     in number default 100,
        p_rows             out sys_refcursor
    );

    -- The schedules of one queue, or of all, without their bodies and headers.
    procedure list_schedules(
        p_queue_name in varchar2 default null,
        p_rows       out sys_refcursor
    );

    -- The patterns of one queue or all, in the order of the queues' names.
    procedure list_topics(
        p_queue_name in varchar2 default null,
        p_rows       out sys_refcursor
    );

    -- When a schedule with these times would run: a look before it is created. An interval counts from after.
    procedure next_ticks(
        p_cron             in varchar2 default null,
        p_interval_seconds in number default null,
        p_time_zone        in varchar2 default 'UTC',
        p_after            in timestamp default null,
        p_max_ticks        in number default 5,
        p_rows             out sys_refcursor
    );

    -- Counts, age and settings of one queue or all.
    procedure queue_stats(
        p_queue_name in varchar2 default null,
        p_max_count  in number default 100000,
        p_rows       out sys_refcursor
    );

    -- What is installed.
    procedure version(p_rows out sys_refcursor);

end rowq_look;
/

-- [file packages/rowq_look_body.sql]
-- Put together from the signatures of what role rowq_monitor may call.
create or replace package body rowq_look as

procedure health(p_rows out sys_refcursor)
is
begin
    rowq.health(
        p_rows => p_rows
    );
end health;

procedure list_claims(
    p_queue_name     in varchar2 default null,
    p_after_claim_id in number default 0,
    p_max_claims     in number default 100,
    p_rows           out sys_refcursor
)
is
begin
    rowq.list_claims(
        p_queue_name => p_queue_name,
        p_after_claim_id => p_after_claim_id,
        p_max_claims => p_max_claims,
        p_rows => p_rows
    );
end list_claims;

procedure list_dead(
    p_queue_name        in varchar2,
    p_after_message_id  in number default 0,
    p_max_messages      in number default 100,
    p_before_message_id in number default null,
    p_message_type      in varchar2 default null,
    p_rows              out sys_refcursor
)
is
begin
    rowq.list_dead(
        p_queue_name => p_queue_name,
        p_after_message_id => p_after_message_id,
        p_max_messages => p_max_messages,
        p_before_message_id => p_before_message_id,
        p_message_type => p_message_type,
        p_rows => p_rows
    );
end list_dead;

procedure list_delayed(
    p_queue_name       in varchar2,
    p_after_due_at     in timestamp default null,
    p_after_message_id in number default 0,
    p_max_messages     in number default 100,
    p_rows             out sys_refcursor
)
is
begin
    rowq.list_delayed(
        p_queue_name => p_queue_name,
        p_after_due_at => p_after_due_at,
        p_after_message_id => p_after_message_id,
        p_max_messages => p_max_messages,
        p_rows => p_rows
    );
end list_delayed;

procedure list_schedules(
    p_queue_name in varchar2 default null,
    p_rows       out sys_refcursor
)
is
begin
    rowq.list_schedules(
        p_queue_name => p_queue_name,
        p_rows => p_rows
    );
end list_schedules;

procedure list_topics(
    p_queue_name in varchar2 default null,
    p_rows       out sys_refcursor
)
is
begin
    rowq.list_topics(
        p_queue_name => p_queue_name,
        p_rows => p_rows
    );
end list_topics;

procedure next_ticks(
    p_cron             in varchar2 default null,
    p_interval_seconds in number default null,
    p_time_zone        in varchar2 default 'UTC',
    p_after            in timestamp default null,
    p_max_ticks        in number default 5,
    p_rows             out sys_refcursor
)
is
begin
    rowq.next_ticks(
        p_cron => p_cron,
        p_interval_seconds => p_interval_seconds,
        p_time_zone => p_time_zone,
        p_after => p_after,
        p_max_ticks => p_max_ticks,
        p_rows => p_rows
    );
end next_ticks;

procedure queue_stats(
    p_queue_name in varchar2 default null,
    p_max_count  in number default 100000,
    p_rows       out sys_refcursor
)
is
begin
    rowq.queue_stats(
        p_queue_name => p_queue_name,
        p_max_count => p_max_count,
        p_rows => p_rows
    );
end queue_stats;

procedure version(p_rows out sys_refcursor)
is
begin
    rowq.version(
        p_rows => p_rows
    );
end version;

end rowq_look;
/

-- [file compiled.sql]
-- This raises an error if anything of rowq did not compile: "create or replace package" then
-- succeeds with a warning, which clients do not report.
declare
    v_text varchar2(2000 char);
begin
    select max(e.type || ' ' || e.name || ', line ' || to_char(e.line, 'fm99999') || ': '
               || substr(e.text, 1, 400))
           keep (dense_rank first order by e.type, e.name, e.sequence)
    into v_text
    from user_errors e
    where e.attribute = 'ERROR'
      and (e.name = 'ROWQ' or e.name like 'ROWQ\_%' escape '\');

    if v_text is not null then
        raise_application_error(-20700, 'rowq did not compile: ' || substr(v_text, 1, 400));
    end if;
end;
/

-- [file comments.sql]
-- This lets SQL Developer and other tools show what each table and column is. A package can have no
-- comment: its specification says above each routine what that does. The script may run any number
-- of times, and changes only a comment that is not right yet. It leaves alone what is not there.
declare
    procedure describe(
        p_table_name in varchar2,
        p_column_name in varchar2,
        p_comment in varchar2
    ) is
        v_count number;
        v_kind  varchar2(10 char) := 'table ';
        v_name  varchar2(300 char) := p_table_name;
    begin
        if p_column_name is null then
            select count(*)
            into v_count
            from user_tab_comments c
            where c.table_name = upper(p_table_name)
              and (c.comments is null or c.comments <> p_comment);
        else
            v_kind := 'column ';
            v_name := p_table_name || '.' || p_column_name;
            select count(*)
            into v_count
            from user_col_comments c
            where c.table_name = upper(p_table_name)
              and c.column_name = upper(p_column_name)
              and (c.comments is null or c.comments <> p_comment);
        end if;
        if v_count > 0 then
            execute immediate 'comment on ' || v_kind || v_name || ' is '''
                || replace(p_comment, '''', '''''') || '''';
        end if;
    end describe;
begin
    -- comments: generated from contract.toml by make generate
    describe('rowq_archive', null, 'Finished messages, kept for the queue''s archive_days.');
    describe('rowq_blocked', null, 'Messages that wait for others to end.');
    describe('rowq_claim', null, 'One successful dequeue each: the lease of a batch.');
    describe('rowq_dead', null, 'Messages that failed for good, until they are reset, cancelled or purged.');
    describe('rowq_dedup', null, 'Dedup keys of unfinished messages.');
    describe('rowq_delayed', null, 'Messages that wait for their time.');
    describe('rowq_door', null, 'A few rows a queue: whoever adds a token to a group, or a dedup key of a schedule, locks the one that a hash of the key names; they never change.');
    describe('rowq_expiry', null, 'When messages expire: what is due is withdrawn by maintain, or has ended before.');
    describe('rowq_finished', null, 'Finished messages of queues that keep an archive, until archive moves them there.');
    describe('rowq_gate', null, 'One row a queue, which a dequeue of a limited queue locks while it counts and takes.');
    describe('rowq_grouped', null, 'Messages that wait behind others of their groups.');
    describe('rowq_history', null, 'Attempts that have ended, kept for the queue''s history_days.');
    describe('rowq_lane', null, 'Lanes of each queue, and where their live rows begin, so that no reader walks the dead rows before them.');
    describe('rowq_leased', null, 'Messages of the claims, in the order of their delivery.');
    describe('rowq_message', null, 'What the producers handed over: written once, deleted once.');
    describe('rowq_message_group', null, 'Tokens: each is the right of one message of a group to be ready, leased or waiting for a retry.');
    describe('rowq_meta', null, 'What is installed: schema_version and rowq_version.');
    describe('rowq_queue', null, 'Queues and their settings.');
    describe('rowq_ready', null, 'Messages that wait for a worker; the primary key is the order of delivery.');
    describe('rowq_recheck', null, 'What could not be passed on at once, because others were at work on it: tokens of groups, messages that waited for others; maintain looks at it again.');
    describe('rowq_result', null, 'How messages have ended, with their results, kept for the queue''s result_seconds.');
    describe('rowq_schedule', null, 'Schedules, whose messages maintain adds to their queues when they are due.');
    describe('rowq_started', null, 'The deliveries of queues with a rate_limit that began within their rate_seconds: a row each dequeue.');
    describe('rowq_successor', null, 'Which message waits for which other one.');
    describe('rowq_topic_binding', null, 'Which queue gets what is published under which topics.');
    describe('rowq_archive', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_archive', 'finished_at', 'When it was completed, cancelled, expired or declared dead.');
    describe('rowq_archive', 'message_id', 'The message.');
    describe('rowq_archive', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_archive', 'attempt', 'How many times the message has been leased.');
    describe('rowq_archive', 'enqueued_at', 'When the producer handed it over.');
    describe('rowq_archive', 'state', 'completed, cancelled or expired.');
    describe('rowq_archive', 'message_type', 'The producer''s label.');
    describe('rowq_archive', 'dedup_key', 'The producer''s dedup key.');
    describe('rowq_archive', 'headers', 'The producer''s headers.');
    describe('rowq_archive', 'body', 'Text body, or null.');
    describe('rowq_archive', 'body_binary', 'Binary body, or null.');
    describe('rowq_archive', 'group_key', 'The producer''s group key.');
    describe('rowq_blocked', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_blocked', 'message_id', 'The message.');
    describe('rowq_blocked', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_blocked', 'predecessor_id', 'The message that it waits for now; null where that is to be found out.');
    describe('rowq_blocked', 'due_at', 'When the message may be delivered, if it has a time of its own.');
    describe('rowq_blocked', 'on_dead', 'What a dead predecessor does to the message: hold, continue or fail; null is hold.');
    describe('rowq_blocked', 'group_key', 'The group that it joins when it waits for nothing any more.');
    describe('rowq_blocked', 'rest_ids', 'The other messages that it may have to wait for, in order.');
    describe('rowq_claim', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_claim', 'claim_id', 'The claim that holds the lease; pass it to the finishing routines.');
    describe('rowq_claim', 'leased_at', 'When the dequeue leased the message.');
    describe('rowq_claim', 'lease_until', 'When the lease runs out.');
    describe('rowq_claim', 'worker_name', 'Who holds the lease.');
    describe('rowq_claim', 'has_cancels', 'Whether messages of the batch were cancelled while the worker had them; null or 0 for no.');
    describe('rowq_claim', 'progress', 'How far the work is, as the worker said last.');
    describe('rowq_dead', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_dead', 'message_id', 'The message.');
    describe('rowq_dead', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_dead', 'attempt', 'How many times the message has been leased.');
    describe('rowq_dead', 'died_at', 'When it failed for good.');
    describe('rowq_dead', 'holds_group', 'Whether the dead message has kept its token, so that its group waits; else null.');
    describe('rowq_dedup', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_dedup', 'dedup_key', 'The producer''s dedup key.');
    describe('rowq_dedup', 'message_id', 'The message.');
    describe('rowq_delayed', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_delayed', 'due_at', 'When a delayed message becomes ready.');
    describe('rowq_delayed', 'message_id', 'The message.');
    describe('rowq_delayed', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_delayed', 'attempt', 'How many times the message has been leased.');
    describe('rowq_delayed', 'group_key', 'Group that the message joins when it is due; null for one that has its token.');
    describe('rowq_door', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_door', 'door_no', 'Number of the door, from 0.');
    describe('rowq_expiry', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_expiry', 'expires_at', 'Maintain looks for the message from this moment on.');
    describe('rowq_expiry', 'expiry_id', 'Makes the key unique.');
    describe('rowq_expiry', 'message_id', 'The message.');
    describe('rowq_expiry', 'lane', 'Lane in which the message is if it is ready.');
    describe('rowq_expiry', 'seq', 'Its place there; null where the row was written for another place.');
    describe('rowq_finished', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_finished', 'finish_id', 'The call that finished the messages; the archive goes in this order.');
    describe('rowq_finished', 'message_id', 'The message.');
    describe('rowq_finished', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_finished', 'attempt', 'How many times the message has been leased.');
    describe('rowq_finished', 'state', 'completed, cancelled or expired.');
    describe('rowq_finished', 'finished_at', 'When it was completed, cancelled, expired or declared dead.');
    describe('rowq_gate', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_gate', 'taken_at', 'When a dequeue last took the gate.');
    describe('rowq_grouped', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_grouped', 'group_key', 'The producer''s group key.');
    describe('rowq_grouped', 'message_id', 'The message.');
    describe('rowq_grouped', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_history', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_history', 'ended_at', 'When the attempt ended.');
    describe('rowq_history', 'message_id', 'The message.');
    describe('rowq_history', 'claim_id', 'The claim that held the message.');
    describe('rowq_history', 'attempt', 'How many times the message has been leased.');
    describe('rowq_history', 'leased_at', 'When the dequeue leased the message.');
    describe('rowq_history', 'outcome', 'completed, retrying, dead, released, lease_expired or cancelled.');
    describe('rowq_history', 'worker_name', 'Who held the lease.');
    describe('rowq_history', 'error', 'What the worker said went wrong, or that the lease expired; else null.');
    describe('rowq_lane', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_lane', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_lane', 'is_open', 'Whether dequeue looks into the lane; a mark of its own where the lane is below 0.');
    describe('rowq_lane', 'floor_seq', 'Where the live rows of the lane begin: a hint.');
    describe('rowq_lane', 'check_after', 'No rescan looks at the lane before this moment.');
    describe('rowq_leased', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_leased', 'claim_id', 'The claim that holds the lease; pass it to the finishing routines.');
    describe('rowq_leased', 'place', 'Place in the order of delivery.');
    describe('rowq_leased', 'message_id', 'The message.');
    describe('rowq_leased', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_leased', 'attempt', 'How many times the message has been leased.');
    describe('rowq_leased', 'is_cancelled', 'Whether the message was cancelled while its worker had it; null or 0 for no.');
    describe('rowq_message', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_message', 'message_id', 'The message.');
    describe('rowq_message', 'max_attempts', 'Leases before a message is dead; of a message: null for the queue''s setting.');
    describe('rowq_message', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_message', 'seq', 'Place in the lane; it only grows.');
    describe('rowq_message', 'enqueued_at', 'When the producer handed it over.');
    describe('rowq_message', 'due_at', 'When a delayed message becomes ready.');
    describe('rowq_message', 'message_type', 'The producer''s label.');
    describe('rowq_message', 'dedup_key', 'The producer''s dedup key.');
    describe('rowq_message', 'headers', 'The producer''s headers.');
    describe('rowq_message', 'body', 'Text body, or null.');
    describe('rowq_message', 'body_binary', 'Binary body, or null.');
    describe('rowq_message', 'last_error', 'What went wrong last, or null.');
    describe('rowq_message', 'group_key', 'The producer''s group key.');
    describe('rowq_message', 'has_successors', 'Whether a message has waited for this one; null for no.');
    describe('rowq_message', 'expires_at', 'When maintain withdraws the message unless it has ended, or null.');
    describe('rowq_message_group', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_message_group', 'group_key', 'The producer''s group key.');
    describe('rowq_message_group', 'token_no', 'Number of the token in its group, from 1.');
    describe('rowq_message_group', 'joined_at', 'When a message last joined the group behind this token.');
    describe('rowq_meta', 'name', 'What the value is of.');
    describe('rowq_meta', 'value', 'The value.');
    describe('rowq_meta', 'changed_at', 'When the value was set.');
    describe('rowq_queue', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_queue', 'queue_name', 'Name of the queue.');
    describe('rowq_queue', 'queue_key', 'Bytes of the name, which are what is compared.');
    describe('rowq_queue', 'lease_seconds', 'Setting: default lease.');
    describe('rowq_queue', 'max_attempts', 'Leases before a message is dead; of a message: null for the queue''s setting.');
    describe('rowq_queue', 'backoff_base_seconds', 'Setting: delay before the second attempt.');
    describe('rowq_queue', 'backoff_factor', 'Setting: growth of the delay.');
    describe('rowq_queue', 'backoff_cap_seconds', 'Setting: longest delay.');
    describe('rowq_queue', 'backoff_jitter', 'Setting: random share taken off a delay.');
    describe('rowq_queue', 'archive_days', 'Setting: days in the archive.');
    describe('rowq_queue', 'max_body_length', 'Setting: longest body.');
    describe('rowq_queue', 'group_limit', 'Setting: messages of one group in work at once.');
    describe('rowq_queue', 'group_after_dead', 'Setting: continue or hold.');
    describe('rowq_queue', 'group_pause_seconds', 'Setting: rest of a group between two messages.');
    describe('rowq_queue', 'max_leased', 'Setting: most messages leased at a time; 0 is no limit.');
    describe('rowq_queue', 'rate_limit', 'Setting: most deliveries begun within rate_seconds; 0 is no limit.');
    describe('rowq_queue', 'rate_seconds', 'Setting: the time that rate_limit is about.');
    describe('rowq_queue', 'result_seconds', 'Setting: how long results are kept; 0 is not at all.');
    describe('rowq_queue', 'history_days', 'Setting: days that ended attempts are kept; 0 is not at all.');
    describe('rowq_queue', 'paused_at', 'Since when dequeue is stopped; null while it is not.');
    describe('rowq_queue', 'listened_until', 'Until then a session waits for a ring; null where doorbell.sql was never run.');
    describe('rowq_queue', 'created_at', 'When the queue was created.');
    describe('rowq_ready', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_ready', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_ready', 'seq', 'Place in the lane; it only grows.');
    describe('rowq_ready', 'message_id', 'The message.');
    describe('rowq_ready', 'attempt', 'How many times the message has been leased.');
    describe('rowq_recheck', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_recheck', 'due_at', 'Maintain looks at it from this moment on.');
    describe('rowq_recheck', 'recheck_id', 'Makes the key unique.');
    describe('rowq_recheck', 'group_key', 'The group that the token is of; null where it is no token.');
    describe('rowq_recheck', 'is_hint', 'Whether there is no token yet, but may be one to take; of a predecessor: whether it is dead.');
    describe('rowq_recheck', 'message_id', 'A blocked message that may wait for nothing any more.');
    describe('rowq_recheck', 'predecessor_id', 'A message that has ended, of which not all successors were freed.');
    describe('rowq_result', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_result', 'message_id', 'The message.');
    describe('rowq_result', 'finished_at', 'When it was completed, cancelled, expired or declared dead.');
    describe('rowq_result', 'state', 'completed, cancelled, expired or dead.');
    describe('rowq_result', 'result', 'What complete was given for the message, or null.');
    describe('rowq_result', 'last_error', 'What went wrong last, or null.');
    describe('rowq_schedule', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_schedule', 'schedule_key', 'Bytes of the name, which are what is compared.');
    describe('rowq_schedule', 'schedule_name', 'Name of the schedule.');
    describe('rowq_schedule', 'cron', 'Its times as in a crontab, or null.');
    describe('rowq_schedule', 'interval_seconds', 'Seconds between its ticks, or null.');
    describe('rowq_schedule', 'time_zone', 'Whose clocks cron means.');
    describe('rowq_schedule', 'missed', 'What becomes of late ticks: skip, once or all.');
    describe('rowq_schedule', 'overlap', 'Whether a tick makes a message while that of an earlier one has not ended.');
    describe('rowq_schedule', 'starts_at', 'No tick comes before this moment; intervals are counted from it.');
    describe('rowq_schedule', 'ends_at', 'No tick comes after this moment, or null.');
    describe('rowq_schedule', 'message_type', 'The producer''s label.');
    describe('rowq_schedule', 'priority', '0 to 9; 0 is delivered first.');
    describe('rowq_schedule', 'group_key', 'The producer''s group key.');
    describe('rowq_schedule', 'max_attempts', 'Leases before a message is dead; of a message: null for the queue''s setting.');
    describe('rowq_schedule', 'is_paused', 'It is stopped: a queue delivers nothing, a schedule makes no message.');
    describe('rowq_schedule', 'next_run_at', 'The next tick; null while the schedule is paused, and after its last one.');
    describe('rowq_schedule', 'last_run_at', 'When it last made a message, or null.');
    describe('rowq_schedule', 'last_message_id', 'The message that it made then, or null.');
    describe('rowq_schedule', 'last_error', 'What went wrong last, or null.');
    describe('rowq_schedule', 'headers', 'The producer''s headers.');
    describe('rowq_schedule', 'body', 'Text body, or null.');
    describe('rowq_schedule', 'body_binary', 'Binary body, or null.');
    describe('rowq_started', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_started', 'started_at', 'When the dequeue leased them.');
    describe('rowq_started', 'claim_id', 'The claim that holds the lease; pass it to the finishing routines.');
    describe('rowq_started', 'messages', 'How many messages the dequeue leased.');
    describe('rowq_successor', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_successor', 'predecessor_id', 'The message that it waits for now; null where that is to be found out.');
    describe('rowq_successor', 'message_id', 'The message.');
    describe('rowq_topic_binding', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_topic_binding', 'pattern_key', 'Bytes of the pattern, which are what is compared.');
    describe('rowq_topic_binding', 'topic_pattern', 'What of the topics the queue gets.');
    describe('rowq_topic_binding', 'head_key', 'Bytes of the words before the first * or #, which the topic has to begin with; of a dot where there are none.');
    describe('rowq_topic_binding', 'shape', 'A digit for each word of the pattern: 1 is *, 2 is #, 0 any other.');
    -- end of comments
end;
/

-- [after noted]
merge into rowq_migration m
using (select '9c8688626bb6f5dd85cc557069b771254e030abf5e8b2b18b78164a274baf7a8' as migration_hash from dual) n on (m.migration_hash = n.migration_hash)
when not matched then insert (migration_hash, migration_id, applied_at_utc)
    values (n.migration_hash, 'ora-0001-first-release', sys_extract_utc(systimestamp))
/
insert into rowq_migration_log (
    id, migration_hash, migration_id, operation, username, hostname, created_at_utc
)
select lower(rawtohex(sys_guid())), '9c8688626bb6f5dd85cc557069b771254e030abf5e8b2b18b78164a274baf7a8', 'ora-0001-first-release', 'apply', user, 'script',
       sys_extract_utc(systimestamp)
from dual
where not exists (select null from rowq_migration_log g where g.migration_hash = '9c8688626bb6f5dd85cc557069b771254e030abf5e8b2b18b78164a274baf7a8')
/
commit
/

merge into rowq_meta m
using (
    select 'schema_version' as name, '1' as value from dual
    union all
    select 'rowq_version' as name, '0.1.0' as value from dual
) n on (m.name = n.name)
when matched then update
    set m.value      = n.value,
        m.changed_at = sys_extract_utc(systimestamp)
when not matched then insert (name, value, changed_at)
    values (n.name, n.value, sys_extract_utc(systimestamp))
/

-- [file grants.sql]
-- This makes the roles and gives each one execute on its package and on the type of lists of ids
-- where its routines take them, and nothing else. It may run any number of times, takes back what
-- it does not give, and gives only what is missing: a grant on a package waits for every call that
-- is under way.
--
-- Roles belong to the whole database, so a right is given only to a role that the owner has with
-- the admin option, as who creates a role has it: to another installation's role nothing is given
-- by accident. Any other role is left out with a line of output: a DBA creates it where it is
-- missing, grants it to the owner with admin option, and the owner runs this again. A role is
-- enabled in sessions, but not in a caller's own stored procedures: grant the package to the owner
-- of those directly.
declare
    -- ORA-01031, and from 23ai ORA-41900, say that a privilege is missing; ORA-01921 that the role
    -- is there already.
    e_may_not exception;
    e_may_not_named exception;
    e_is_there exception;
    pragma exception_init(e_may_not, -1031);
    pragma exception_init(e_may_not_named, -41900);
    pragma exception_init(e_is_there, -1921);

    procedure make(p_role in varchar2) is
    begin
        execute immediate 'create role ' || p_role;
    exception
        when e_is_there or e_may_not or e_may_not_named then
            null;
    end make;

    procedure give(p_role in varchar2, p_object in varchar2) is
        v_own   pls_integer;
        v_given pls_integer;
    begin
        select count(*) into v_own
        from user_role_privs r
        where r.granted_role = upper(p_role)
          and r.admin_option = 'YES';
        select count(*) into v_given
        from user_tab_privs_made p
        where p.type in ('PACKAGE', 'TYPE')
          and p.grantee = upper(p_role)
          and p.table_name = upper(p_object)
          and p.privilege = 'EXECUTE';
        if v_own = 0 then
            dbms_output.put_line(
                'role ' || p_role || ' is missing or not the owner''s, and gets no right to '
                || p_object
            );
        elsif v_given = 0 then
            execute immediate 'grant execute on ' || p_object || ' to ' || p_role;
        end if;
    end give;
begin
    make('rowq_producer');
    make('rowq_consumer');
    make('rowq_monitor');
    make('rowq_admin');

    -- rights: generated from contract.toml by make generate
    give('rowq_admin', 'rowq');
    give('rowq_admin', 'rowq_ids');
    give('rowq_producer', 'rowq_produce');
    give('rowq_producer', 'rowq_ids');
    give('rowq_consumer', 'rowq_consume');
    give('rowq_consumer', 'rowq_ids');
    give('rowq_monitor', 'rowq_look');
    -- end of rights

    for each_right in (
        select distinct p.privilege, p.table_name, p.grantee
        from user_tab_privs_made p
        -- A row of type USER is a right on the account itself, which may be called ROWQ_something,
        -- and everybody has the right INHERIT PRIVILEGES on it.
        where p.type <> 'USER'
          and (p.table_name = 'ROWQ' or p.table_name like 'ROWQ\_%' escape '\')
          and p.grantee in (
              'ROWQ_PRODUCER', 'ROWQ_CONSUMER', 'ROWQ_MONITOR', 'ROWQ_ADMIN', 'PUBLIC'
          )
          and (p.privilege <> 'EXECUTE' or (p.grantee, p.table_name) not in (
              -- kept rights: generated from contract.toml by make generate
              ('ROWQ_ADMIN', 'ROWQ'),
              ('ROWQ_ADMIN', 'ROWQ_IDS'),
              ('ROWQ_PRODUCER', 'ROWQ_PRODUCE'),
              ('ROWQ_PRODUCER', 'ROWQ_IDS'),
              ('ROWQ_CONSUMER', 'ROWQ_CONSUME'),
              ('ROWQ_CONSUMER', 'ROWQ_IDS'),
              ('ROWQ_MONITOR', 'ROWQ_LOOK')
              -- end of kept rights
          ))
    ) loop
        execute immediate 'revoke ' || each_right.privilege || ' on '
            || dbms_assert.enquote_name(each_right.table_name) || ' from ' || each_right.grantee;
    end loop;
end;
/

-- [after committed]
commit
/

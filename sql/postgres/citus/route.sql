-- Wrappers with the names of routines carry calls to the node that has the queue. This script runs
-- on every node, as a superuser, after behind.sql and in the same transaction, and after carry.sql
-- has run on all nodes and distribute.sql on the coordinator; then rights.sql. It may run again: a
-- wrapper whose parameters and columns are what they were stays the same object.
--
-- A session that says "set rowq.here = 'on'" is answered by its own node alone. In a call that was
-- carried it is 'carried', which is the same for what the routine calls, and is for nobody to set.
set local citus.enable_ddl_propagation = off;
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;

do $$
declare
    v_change text;
begin
    for v_change in
        select format('drop function %s', w.oid::regprocedure)
        from pg_proc o
        join pg_proc w
            on w.proname = o.proname
            and w.prosrc ~ format('rowq_citus\.(to|each)_%s_[0-9]+\(', w.proname)
        where o.pronamespace = 'rowq_node'::regnamespace
          and w.pronamespace = 'rowq'::regnamespace
          and (
              pg_get_function_identity_arguments(w.oid), pg_get_function_result(w.oid)
          ) <> (
              pg_get_function_identity_arguments(o.oid), pg_get_function_result(o.oid)
          )
    loop
        execute v_change;
    end loop;
end;
$$;

-- wrappers: generated from contract.toml by make generate
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
returns table (
    queue_name text,
    outcome    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   create_queue
-- version   1
-- purpose   Create a queue; an existing queue of that name is left as it is.
-- promise   P15
-- locks     as rowq_node.create_queue, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.queue_name, r.outcome
        from rowq_node.create_queue(
            p_queue_name => p_queue_name, p_lease_seconds => p_lease_seconds, p_max_attempts =>
            p_max_attempts, p_backoff_base_seconds => p_backoff_base_seconds, p_backoff_factor =>
            p_backoff_factor, p_backoff_cap_seconds => p_backoff_cap_seconds, p_backoff_jitter =>
            p_backoff_jitter, p_archive_days => p_archive_days, p_max_body_length =>
            p_max_body_length, p_group_limit => p_group_limit, p_group_after_dead =>
            p_group_after_dead, p_group_pause_seconds => p_group_pause_seconds, p_max_leased =>
            p_max_leased, p_rate_limit => p_rate_limit, p_rate_seconds => p_rate_seconds,
            p_result_seconds => p_result_seconds, p_history_days => p_history_days
        ) r;
    else
        return query
        select r.queue_name, r.outcome
        from rowq_citus.to_create_queue_1(
            p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds, p_backoff_factor,
            p_backoff_cap_seconds, p_backoff_jitter, p_archive_days, p_max_body_length,
            p_group_limit, p_group_after_dead, p_group_pause_seconds, p_max_leased, p_rate_limit,
            p_rate_seconds, p_result_seconds, p_history_days
        ) r;
    end if;
end;
$$;

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
returns table (
    queue_name text,
    outcome    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   alter_queue
-- version   1
-- purpose   Change settings of a queue; null leaves a setting as it is.
-- promise   P15
-- locks     as rowq_node.alter_queue, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.queue_name, r.outcome
        from rowq_node.alter_queue(
            p_queue_name => p_queue_name, p_lease_seconds => p_lease_seconds, p_max_attempts =>
            p_max_attempts, p_backoff_base_seconds => p_backoff_base_seconds, p_backoff_factor =>
            p_backoff_factor, p_backoff_cap_seconds => p_backoff_cap_seconds, p_backoff_jitter =>
            p_backoff_jitter, p_archive_days => p_archive_days, p_max_body_length =>
            p_max_body_length, p_group_limit => p_group_limit, p_group_after_dead =>
            p_group_after_dead, p_group_pause_seconds => p_group_pause_seconds, p_max_leased =>
            p_max_leased, p_rate_limit => p_rate_limit, p_rate_seconds => p_rate_seconds,
            p_result_seconds => p_result_seconds, p_history_days => p_history_days
        ) r;
    else
        return query
        select r.queue_name, r.outcome
        from rowq_citus.to_alter_queue_1(
            p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds, p_backoff_factor,
            p_backoff_cap_seconds, p_backoff_jitter, p_archive_days, p_max_body_length,
            p_group_limit, p_group_after_dead, p_group_pause_seconds, p_max_leased, p_rate_limit,
            p_rate_seconds, p_result_seconds, p_history_days
        ) r;
    end if;
end;
$$;

create or replace function rowq.drop_queue(
    p_queue_name text,
    p_force      boolean default false
)
returns table (
    queue_name text,
    outcome    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   drop_queue
-- version   1
-- purpose   Remove an empty queue, or with force a queue and everything in it, archive included.
-- promise   P02 P15
-- locks     as rowq_node.drop_queue, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ704 RQ705 RQ706 RQ711 RQ713
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.queue_name, r.outcome
        from rowq_node.drop_queue(p_queue_name => p_queue_name, p_force => p_force) r;
    else
        return query
        select r.queue_name, r.outcome
        from rowq_citus.to_drop_queue_1(p_queue_name, p_force) r;
    end if;
end;
$$;

create or replace function rowq.pause_queue(
    p_queue_name text
)
returns table (
    queue_name text,
    outcome    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   pause_queue
-- version   1
-- purpose   Stop delivery; enqueue and the finishing routines go on.
-- promise   P18
-- locks     as rowq_node.pause_queue, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.queue_name, r.outcome
        from rowq_node.pause_queue(p_queue_name => p_queue_name) r;
    else
        return query
        select r.queue_name, r.outcome
        from rowq_citus.to_pause_queue_1(p_queue_name) r;
    end if;
end;
$$;

create or replace function rowq.resume_queue(
    p_queue_name text
)
returns table (
    queue_name text,
    outcome    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   resume_queue
-- version   1
-- purpose   Start delivery again.
-- promise   P18
-- locks     as rowq_node.resume_queue, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.queue_name, r.outcome
        from rowq_node.resume_queue(p_queue_name => p_queue_name) r;
    else
        return query
        select r.queue_name, r.outcome
        from rowq_citus.to_resume_queue_1(p_queue_name) r;
    end if;
end;
$$;

create or replace function rowq.bind_topic(
    p_queue_name    text,
    p_topic_pattern text
)
returns table (
    queue_name    text,
    topic_pattern text,
    outcome       text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   bind_topic
-- version   1
-- purpose   Let a queue get what is published under the topics that a pattern matches.
-- promise   P15 P35
-- locks     as rowq_node.bind_topic, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.queue_name, r.topic_pattern, r.outcome
        from rowq_node.bind_topic(
            p_queue_name => p_queue_name, p_topic_pattern => p_topic_pattern
        ) r;
    else
        return query
        select r.queue_name, r.topic_pattern, r.outcome
        from rowq_citus.to_bind_topic_1(p_queue_name, p_topic_pattern) r;
    end if;
end;
$$;

create or replace function rowq.unbind_topic(
    p_queue_name    text,
    p_topic_pattern text
)
returns table (
    queue_name    text,
    topic_pattern text,
    outcome       text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   unbind_topic
-- version   1
-- purpose   Take a queue's pattern away; what it has got stays.
-- promise   P15 P35
-- locks     as rowq_node.unbind_topic, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.queue_name, r.topic_pattern, r.outcome
        from rowq_node.unbind_topic(
            p_queue_name => p_queue_name, p_topic_pattern => p_topic_pattern
        ) r;
    else
        return query
        select r.queue_name, r.topic_pattern, r.outcome
        from rowq_citus.to_unbind_topic_1(p_queue_name, p_topic_pattern) r;
    end if;
end;
$$;

create or replace function rowq.purge_queue(
    p_queue_name   text,
    p_include_dead boolean default false,
    p_max_messages integer default null
)
returns table (
    removed bigint
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   purge_queue
-- version   1
-- purpose   Delete waiting messages: ready, delayed, blocked; leased ones stay with their workers.
-- promise   P15
-- locks     as rowq_node.purge_queue, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.removed
        from rowq_node.purge_queue(
            p_queue_name => p_queue_name, p_include_dead => p_include_dead, p_max_messages =>
            p_max_messages
        ) r;
    else
        return query
        select r.removed
        from rowq_citus.to_purge_queue_1(p_queue_name, p_include_dead, p_max_messages) r;
    end if;
end;
$$;

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
returns table (
    message_id bigint,
    outcome    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   enqueue
-- version   1
-- purpose   Hand over one message.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P27 P36
-- locks     as rowq_node.enqueue, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.message_id, r.outcome
        from rowq_node.enqueue(
            p_queue_name => p_queue_name, p_body => p_body, p_body_binary => p_body_binary,
            p_message_type => p_message_type, p_headers => p_headers, p_priority => p_priority,
            p_delay_seconds => p_delay_seconds, p_run_at => p_run_at, p_dedup_key => p_dedup_key,
            p_max_attempts => p_max_attempts, p_group_key => p_group_key, p_predecessor_ids =>
            p_predecessor_ids, p_on_predecessor_dead => p_on_predecessor_dead, p_expire_seconds =>
            p_expire_seconds
        ) r;
    else
        return query
        select r.message_id, r.outcome
        from rowq_citus.to_enqueue_1(
            p_queue_name, p_body, p_body_binary, p_message_type, p_headers, p_priority,
            p_delay_seconds, p_run_at, p_dedup_key, p_max_attempts, p_group_key, p_predecessor_ids,
            p_on_predecessor_dead, p_expire_seconds
        ) r;
    end if;
end;
$$;

create or replace function rowq.enqueue_batch(
    p_queue_name text,
    p_messages   jsonb
)
returns table (
    "position" integer,
    message_id bigint,
    outcome    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   enqueue_batch
-- version   1
-- purpose   Hand over many messages in one call: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P26 P27 P36
-- locks     as rowq_node.enqueue_batch, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r."position", r.message_id, r.outcome
        from rowq_node.enqueue_batch(p_queue_name => p_queue_name, p_messages => p_messages) r;
    else
        return query
        select r."position", r.message_id, r.outcome
        from rowq_citus.to_enqueue_batch_1(p_queue_name, p_messages) r;
    end if;
end;
$$;

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
returns table (
    queue_name text,
    message_id bigint,
    outcome    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   publish
-- version   1
-- purpose   Hand over one message to each queue that is bound to a topic, in the order of their names; to none where none is. Without a message_type it is the topic.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as rowq_node.publish, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ706 RQ711
-- differs   every node is asked
begin
    if current_setting('rowq.here', true) in ('on', 'carried') then
        raise exception 'RQ711 invalid_argument: rowq.here is on; publish asks every node'
            using errcode = 'RQ711', hint = 'Run: reset rowq.here';
    else
        return query
        select r.queue_name, r.message_id, r.outcome
        from rowq_citus.each_publish_1(
            p_topic, p_body, p_body_binary, p_message_type, p_headers, p_priority, p_delay_seconds,
            p_run_at, p_dedup_key, p_max_attempts, p_group_key, p_expire_seconds
        ) r
        order by r.queue_name collate "C";
    end if;
end;
$$;

create or replace function rowq.publish_batch(
    p_messages jsonb
)
returns table (
    "position" integer,
    queue_name text,
    message_id bigint,
    outcome    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   publish_batch
-- version   1
-- purpose   Do what publish does with many messages in one call, queue by queue: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as rowq_node.publish_batch, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ706 RQ711
-- differs   every node is asked
begin
    if current_setting('rowq.here', true) in ('on', 'carried') then
        raise exception 'RQ711 invalid_argument: rowq.here is on; publish_batch asks every node'
            using errcode = 'RQ711', hint = 'Run: reset rowq.here';
    else
        return query
        select r."position", r.queue_name, r.message_id, r.outcome
        from rowq_citus.each_publish_batch_1(p_messages) r
        order by r.queue_name collate "C", r.position;
    end if;
end;
$$;

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
as $$
-- routine   dequeue_fast
-- version   1
-- purpose   Lease up to batch_size ready messages to one new claim, passing over rows that another session holds.
-- promise   P02 P03 P05 P06 P07 P13 P18 P28 P29
-- locks     as rowq_node.dequeue_fast, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711 RQ713
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.claim_id, r.message_id, r.attempt, r.message_type, r.headers, r.body,
               r.body_binary, r.enqueued_at, r.lease_until, r.last_error
        from rowq_node.dequeue_fast(
            p_queue_name => p_queue_name, p_batch_size => p_batch_size, p_worker_name =>
            p_worker_name, p_lease_seconds => p_lease_seconds
        ) r;
    else
        return query
        select r.claim_id, r.message_id, r.attempt, r.message_type, r.headers, r.body,
               r.body_binary, r.enqueued_at, r.lease_until, r.last_error
        from rowq_citus.to_dequeue_fast_1(
            p_queue_name, p_batch_size, p_worker_name, p_lease_seconds
        ) r;
    end if;
end;
$$;

create or replace function rowq.listen(
    p_queue_name text
)
returns table (
    queue_name text,
    outcome    text,
    channel    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   listen
-- version   1
-- purpose   Have this session notified of a queue's new messages, on a channel that nobody else can name.
-- promise   none
-- locks     as rowq_node.listen, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.queue_name, r.outcome, r.channel
        from rowq_node.listen(p_queue_name => p_queue_name) r;
    else
        return query
        select r.queue_name, r.outcome, r.channel
        from rowq_citus.to_listen_1(p_queue_name) r;
    end if;
end;
$$;

create or replace function rowq.unlisten(
    p_queue_name text
)
returns table (
    queue_name text,
    outcome    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   unlisten
-- version   1
-- purpose   Take back one listen; while nobody listens, producers notify nobody.
-- promise   none
-- locks     as rowq_node.unlisten, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.queue_name, r.outcome
        from rowq_node.unlisten(p_queue_name => p_queue_name) r;
    else
        return query
        select r.queue_name, r.outcome
        from rowq_citus.to_unlisten_1(p_queue_name) r;
    end if;
end;
$$;

create or replace function rowq.elect_keeper(
    p_queue_name text
)
returns table (
    queue_name text,
    elected    boolean
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   elect_keeper
-- version   1
-- purpose   Elect the one session that calls maintain for a queue each second; the others may call it more seldom.
-- promise   P19
-- locks     as rowq_node.elect_keeper, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.queue_name, r.elected
        from rowq_node.elect_keeper(p_queue_name => p_queue_name) r;
    else
        return query
        select r.queue_name, r.elected
        from rowq_citus.to_elect_keeper_1(p_queue_name) r;
    end if;
end;
$$;

create or replace function rowq.peek(
    p_queue_name   text,
    p_max_messages integer default 1
)
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
as $$
-- routine   peek
-- version   1
-- purpose   Show the next ready messages without leasing them.
-- promise   P05
-- locks     as rowq_node.peek, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.message_id, r.priority, r.attempt, r.message_type, r.headers, r.body,
               r.body_binary, r.enqueued_at, r.last_error
        from rowq_node.peek(p_queue_name => p_queue_name, p_max_messages => p_max_messages) r;
    else
        return query
        select r.message_id, r.priority, r.attempt, r.message_type, r.headers, r.body,
               r.body_binary, r.enqueued_at, r.last_error
        from rowq_citus.to_peek_1(p_queue_name, p_max_messages) r;
    end if;
end;
$$;

create or replace function rowq.complete(
    p_queue_name  text,
    p_claim_id    bigint,
    p_message_ids bigint[] default null,
    p_results     jsonb default null
)
returns table (
    message_id bigint,
    outcome    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   complete
-- version   1
-- purpose   Finish messages: they are gone, or in the archive, and never delivered again.
-- promise   P04 P08 P21 P22 P23 P24 P26 P32 P37
-- locks     as rowq_node.complete, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711 RQ721
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.message_id, r.outcome
        from rowq_node.complete(
            p_queue_name => p_queue_name, p_claim_id => p_claim_id, p_message_ids => p_message_ids,
            p_results => p_results
        ) r;
    else
        return query
        select r.message_id, r.outcome
        from rowq_citus.to_complete_1(p_queue_name, p_claim_id, p_message_ids, p_results) r;
    end if;
end;
$$;

create or replace function rowq.retry_later(
    p_queue_name    text,
    p_claim_id      bigint,
    p_message_ids   bigint[] default null,
    p_delay_seconds double precision default null,
    p_error         text default null
)
returns table (
    message_id bigint,
    outcome    text,
    due_at     timestamp with time zone
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   retry_later
-- version   1
-- purpose   Give messages back for another attempt after a delay, the queue's backoff unless delay_seconds is given; without an attempt left they are dead.
-- promise   P08 P10 P34 P37
-- locks     as rowq_node.retry_later, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711 RQ721
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.message_id, r.outcome, r.due_at
        from rowq_node.retry_later(
            p_queue_name => p_queue_name, p_claim_id => p_claim_id, p_message_ids => p_message_ids,
            p_delay_seconds => p_delay_seconds, p_error => p_error
        ) r;
    else
        return query
        select r.message_id, r.outcome, r.due_at
        from rowq_citus.to_retry_later_1(
            p_queue_name, p_claim_id, p_message_ids, p_delay_seconds, p_error
        ) r;
    end if;
end;
$$;

create or replace function rowq.fail_now(
    p_queue_name  text,
    p_claim_id    bigint,
    p_message_ids bigint[] default null,
    p_error       text default null
)
returns table (
    message_id bigint,
    outcome    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   fail_now
-- version   1
-- purpose   Declare messages dead without another attempt.
-- promise   P08 P10 P34 P37
-- locks     as rowq_node.fail_now, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711 RQ721
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.message_id, r.outcome
        from rowq_node.fail_now(
            p_queue_name => p_queue_name, p_claim_id => p_claim_id, p_message_ids => p_message_ids,
            p_error => p_error
        ) r;
    else
        return query
        select r.message_id, r.outcome
        from rowq_citus.to_fail_now_1(p_queue_name, p_claim_id, p_message_ids, p_error) r;
    end if;
end;
$$;

create or replace function rowq.release(
    p_queue_name  text,
    p_claim_id    bigint,
    p_message_ids bigint[] default null
)
returns table (
    message_id bigint,
    outcome    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   release
-- version   1
-- purpose   Give messages back to the front of their priority without spending the attempt.
-- promise   P08 P34 P37
-- locks     as rowq_node.release, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711 RQ721
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.message_id, r.outcome
        from rowq_node.release(
            p_queue_name => p_queue_name, p_claim_id => p_claim_id, p_message_ids => p_message_ids
        ) r;
    else
        return query
        select r.message_id, r.outcome
        from rowq_citus.to_release_1(p_queue_name, p_claim_id, p_message_ids) r;
    end if;
end;
$$;

create or replace function rowq.extend_lease(
    p_queue_name    text,
    p_claim_id      bigint,
    p_lease_seconds integer default null,
    p_progress      text default null
)
returns table (
    claim_id    bigint,
    lease_until timestamp with time zone,
    cancel_ids  bigint[]
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   extend_lease
-- version   1
-- purpose   Heartbeat: hold all messages of a claim for lease_seconds from now; a lease is never shortened.
-- promise   P08 P34
-- locks     as rowq_node.extend_lease, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711 RQ721
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.claim_id, r.lease_until, r.cancel_ids
        from rowq_node.extend_lease(
            p_queue_name => p_queue_name, p_claim_id => p_claim_id, p_lease_seconds =>
            p_lease_seconds, p_progress => p_progress
        ) r;
    else
        return query
        select r.claim_id, r.lease_until, r.cancel_ids
        from rowq_citus.to_extend_lease_1(p_queue_name, p_claim_id, p_lease_seconds, p_progress) r;
    end if;
end;
$$;

create or replace function rowq.cancel(
    p_queue_name     text,
    p_message_ids    bigint[],
    p_include_leased boolean default false
)
returns table (
    message_id bigint,
    outcome    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   cancel
-- version   1
-- purpose   Withdraw messages that no worker holds, dead ones too.
-- promise   P15 P34
-- locks     as rowq_node.cancel, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.message_id, r.outcome
        from rowq_node.cancel(
            p_queue_name => p_queue_name, p_message_ids => p_message_ids, p_include_leased =>
            p_include_leased
        ) r;
    else
        return query
        select r.message_id, r.outcome
        from rowq_citus.to_cancel_1(p_queue_name, p_message_ids, p_include_leased) r;
    end if;
end;
$$;

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
returns table (
    cancelled        integer,
    after_message_id bigint
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   cancel_many
-- version   1
-- purpose   Look at up to max_messages messages, in the order of their ids, and withdraw those that match every filter given and that no worker holds, dead ones too. At least one filter is required.
-- promise   P15
-- locks     as rowq_node.cancel_many, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.cancelled, r.after_message_id
        from rowq_node.cancel_many(
            p_queue_name => p_queue_name, p_message_type => p_message_type, p_group_key =>
            p_group_key, p_header_name => p_header_name, p_header_value => p_header_value,
            p_enqueued_before => p_enqueued_before, p_after_message_id => p_after_message_id,
            p_max_messages => p_max_messages
        ) r;
    else
        return query
        select r.cancelled, r.after_message_id
        from rowq_citus.to_cancel_many_1(
            p_queue_name, p_message_type, p_group_key, p_header_name, p_header_value,
            p_enqueued_before, p_after_message_id, p_max_messages
        ) r;
    end if;
end;
$$;

create or replace function rowq.reset(
    p_queue_name   text,
    p_message_ids  bigint[] default null,
    p_max_messages integer default 1000,
    p_message_type text default null,
    p_died_before  timestamp with time zone default null
)
returns table (
    message_id bigint,
    outcome    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   reset
-- version   1
-- purpose   Make dead messages ready again, at the tail of their priority, with fresh attempts; null takes the oldest max_messages.
-- promise   P10 P12 P32
-- locks     as rowq_node.reset, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.message_id, r.outcome
        from rowq_node.reset(
            p_queue_name => p_queue_name, p_message_ids => p_message_ids, p_max_messages =>
            p_max_messages, p_message_type => p_message_type, p_died_before => p_died_before
        ) r;
    else
        return query
        select r.message_id, r.outcome
        from rowq_citus.to_reset_1(
            p_queue_name, p_message_ids, p_max_messages, p_message_type, p_died_before
        ) r;
    end if;
end;
$$;

create or replace function rowq.discard_dead(
    p_queue_name   text,
    p_message_ids  bigint[] default null,
    p_max_messages integer default 1000,
    p_message_type text default null,
    p_died_before  timestamp with time zone default null
)
returns table (
    removed bigint
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   discard_dead
-- version   1
-- purpose   Delete dead messages for good, the archive keeps none of them; null takes the oldest max_messages.
-- promise   P12 P22 P26
-- locks     as rowq_node.discard_dead, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.removed
        from rowq_node.discard_dead(
            p_queue_name => p_queue_name, p_message_ids => p_message_ids, p_max_messages =>
            p_max_messages, p_message_type => p_message_type, p_died_before => p_died_before
        ) r;
    else
        return query
        select r.removed
        from rowq_citus.to_discard_dead_1(
            p_queue_name, p_message_ids, p_max_messages, p_message_type, p_died_before
        ) r;
    end if;
end;
$$;

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
returns table (
    schedule_name text,
    outcome       text,
    next_run_at   timestamp with time zone
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   create_schedule
-- version   1
-- purpose   Let maintain enqueue a message at the times of a cron expression, or every so many seconds; an existing schedule of that name is left as it is.
-- promise   P15 P30 P31
-- locks     as rowq_node.create_schedule, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.schedule_name, r.outcome, r.next_run_at
        from rowq_node.create_schedule(
            p_queue_name => p_queue_name, p_schedule_name => p_schedule_name, p_cron => p_cron,
            p_interval_seconds => p_interval_seconds, p_time_zone => p_time_zone, p_body => p_body,
            p_body_binary => p_body_binary, p_message_type => p_message_type, p_headers =>
            p_headers, p_priority => p_priority, p_max_attempts => p_max_attempts, p_group_key =>
            p_group_key, p_missed => p_missed, p_overlap => p_overlap, p_starts_at => p_starts_at,
            p_ends_at => p_ends_at
        ) r;
    else
        return query
        select r.schedule_name, r.outcome, r.next_run_at
        from rowq_citus.to_create_schedule_1(
            p_queue_name, p_schedule_name, p_cron, p_interval_seconds, p_time_zone, p_body,
            p_body_binary, p_message_type, p_headers, p_priority, p_max_attempts, p_group_key,
            p_missed, p_overlap, p_starts_at, p_ends_at
        ) r;
    end if;
end;
$$;

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
returns table (
    schedule_name text,
    outcome       text,
    next_run_at   timestamp with time zone
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   alter_schedule
-- version   1
-- purpose   Change a schedule, pause it or let it go on; null leaves a setting as it is. It counts anew from now: what it has missed is not made up for.
-- promise   P15 P31
-- locks     as rowq_node.alter_schedule, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ702 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.schedule_name, r.outcome, r.next_run_at
        from rowq_node.alter_schedule(
            p_queue_name => p_queue_name, p_schedule_name => p_schedule_name, p_cron => p_cron,
            p_interval_seconds => p_interval_seconds, p_time_zone => p_time_zone, p_body => p_body,
            p_body_binary => p_body_binary, p_message_type => p_message_type, p_headers =>
            p_headers, p_priority => p_priority, p_max_attempts => p_max_attempts, p_group_key =>
            p_group_key, p_missed => p_missed, p_overlap => p_overlap, p_starts_at => p_starts_at,
            p_ends_at => p_ends_at, p_is_paused => p_is_paused
        ) r;
    else
        return query
        select r.schedule_name, r.outcome, r.next_run_at
        from rowq_citus.to_alter_schedule_1(
            p_queue_name, p_schedule_name, p_cron, p_interval_seconds, p_time_zone, p_body,
            p_body_binary, p_message_type, p_headers, p_priority, p_max_attempts, p_group_key,
            p_missed, p_overlap, p_starts_at, p_ends_at, p_is_paused
        ) r;
    end if;
end;
$$;

create or replace function rowq.drop_schedule(
    p_queue_name    text,
    p_schedule_name text
)
returns table (
    schedule_name text,
    outcome       text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   drop_schedule
-- version   1
-- purpose   Remove a schedule; the messages that it made stay.
-- promise   P15
-- locks     as rowq_node.drop_schedule, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ702 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.schedule_name, r.outcome
        from rowq_node.drop_schedule(
            p_queue_name => p_queue_name, p_schedule_name => p_schedule_name
        ) r;
    else
        return query
        select r.schedule_name, r.outcome
        from rowq_citus.to_drop_schedule_1(p_queue_name, p_schedule_name) r;
    end if;
end;
$$;

create or replace function rowq.run_schedule(
    p_queue_name    text,
    p_schedule_name text
)
returns table (
    message_id bigint,
    outcome    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   run_schedule
-- version   1
-- purpose   Enqueue the message of a schedule now, paused or not; its next tick stays as it is.
-- promise   P15
-- locks     as rowq_node.run_schedule, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ702 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.message_id, r.outcome
        from rowq_node.run_schedule(
            p_queue_name => p_queue_name, p_schedule_name => p_schedule_name
        ) r;
    else
        return query
        select r.message_id, r.outcome
        from rowq_citus.to_run_schedule_1(p_queue_name, p_schedule_name) r;
    end if;
end;
$$;

create or replace function rowq.list_schedules(
    p_queue_name text default null
)
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
-- locks     as rowq_node.list_schedules, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.queue_name, r.schedule_name, r.cron, r.interval_seconds, r.time_zone, r.is_paused,
               r.next_run_at, r.last_run_at, r.last_message_id, r.last_error, r.missed, r.overlap,
               r.starts_at, r.ends_at, r.message_type, r.priority, r.max_attempts, r.group_key
        from rowq_node.list_schedules(p_queue_name => p_queue_name) r;
    elsif p_queue_name is null then
        return query
        select r.queue_name, r.schedule_name, r.cron, r.interval_seconds, r.time_zone, r.is_paused,
               r.next_run_at, r.last_run_at, r.last_message_id, r.last_error, r.missed, r.overlap,
               r.starts_at, r.ends_at, r.message_type, r.priority, r.max_attempts, r.group_key
        from rowq_citus.each_list_schedules_1(p_queue_name) r
        order by r.queue_name collate "C", r.schedule_name collate "C";
    else
        return query
        select r.queue_name, r.schedule_name, r.cron, r.interval_seconds, r.time_zone, r.is_paused,
               r.next_run_at, r.last_run_at, r.last_message_id, r.last_error, r.missed, r.overlap,
               r.starts_at, r.ends_at, r.message_type, r.priority, r.max_attempts, r.group_key
        from rowq_citus.to_list_schedules_1(p_queue_name) r;
    end if;
end;
$$;

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
as $$
-- routine   maintain
-- version   1
-- purpose   All housekeeping of one queue, or of every queue: schedules, promote, reap, expiry, floors, archive, results, history. Call it about once a second.
-- promise   P09 P11 P13 P14 P19 P24 P26 P27 P30 P31 P34 P36 P37
-- locks     as rowq_node.maintain, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.queue_name, r.elected, r.promoted, r.reaped, r.died, r.archived, r.purged,
               r.partitions_dropped, r.expired
        from rowq_node.maintain(p_queue_name => p_queue_name, p_batch_size => p_batch_size) r;
    elsif p_queue_name is null then
        return query
        select r.queue_name, r.elected, r.promoted, r.reaped, r.died, r.archived, r.purged,
               r.partitions_dropped, r.expired
        from rowq_citus.each_maintain_1(p_queue_name, p_batch_size) r;
    else
        return query
        select r.queue_name, r.elected, r.promoted, r.reaped, r.died, r.archived, r.purged,
               r.partitions_dropped, r.expired
        from rowq_citus.to_maintain_1(p_queue_name, p_batch_size) r;
    end if;
end;
$$;

create or replace function rowq.reap(
    p_queue_name text,
    p_batch_size integer default 1000
)
returns table (
    reaped integer,
    died   integer
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   reap
-- version   1
-- purpose   Take unfinished messages back from claims whose lease ran out.
-- promise   P03 P09 P34 P37
-- locks     as rowq_node.reap, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.reaped, r.died
        from rowq_node.reap(p_queue_name => p_queue_name, p_batch_size => p_batch_size) r;
    else
        return query
        select r.reaped, r.died
        from rowq_citus.to_reap_1(p_queue_name, p_batch_size) r;
    end if;
end;
$$;

create or replace function rowq.promote(
    p_queue_name text,
    p_batch_size integer default 1000
)
returns table (
    promoted integer
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   promote
-- version   1
-- purpose   Make delayed messages ready whose time has come.
-- promise   P11
-- locks     as rowq_node.promote, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.promoted
        from rowq_node.promote(p_queue_name => p_queue_name, p_batch_size => p_batch_size) r;
    else
        return query
        select r.promoted
        from rowq_citus.to_promote_1(p_queue_name, p_batch_size) r;
    end if;
end;
$$;

create or replace function rowq.archive(
    p_queue_name text,
    p_batch_size integer default 1000
)
returns table (
    archived integer
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   archive
-- version   1
-- purpose   Move finished messages of a queue with archive_days above 0 to the archive.
-- promise   P19
-- locks     as rowq_node.archive, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.archived
        from rowq_node.archive(p_queue_name => p_queue_name, p_batch_size => p_batch_size) r;
    else
        return query
        select r.archived
        from rowq_citus.to_archive_1(p_queue_name, p_batch_size) r;
    end if;
end;
$$;

create or replace function rowq.purge_archive(
    p_queue_name text,
    p_batch_size integer default 1000
)
returns table (
    purged             integer,
    partitions_dropped integer
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   purge_archive
-- version   1
-- purpose   Delete archived messages older than the queue's archive_days and attempts older than its history_days, and drop partitions that no queue needs.
-- promise   P19 P37
-- locks     as rowq_node.purge_archive, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.purged, r.partitions_dropped
        from rowq_node.purge_archive(p_queue_name => p_queue_name, p_batch_size => p_batch_size) r;
    else
        return query
        select r.purged, r.partitions_dropped
        from rowq_citus.to_purge_archive_1(p_queue_name, p_batch_size) r;
    end if;
end;
$$;

create or replace function rowq.report_worker(
    p_queue_name     text,
    p_worker_id      text,
    p_worker_name    text default null,
    p_host_name      text default null,
    p_worker_version text default null,
    p_threads        integer default 1,
    p_completed      bigint default 0,
    p_failed         bigint default 0,
    p_is_ended       boolean default false
)
returns table (
    queue_name text,
    outcome    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   report_worker
-- version   1
-- purpose   Report that a worker runs, and what it has done; call it every ten seconds or so, in a transaction of its own.
-- promise   P15
-- locks     as rowq_node.report_worker, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.queue_name, r.outcome
        from rowq_node.report_worker(
            p_queue_name => p_queue_name, p_worker_id => p_worker_id, p_worker_name =>
            p_worker_name, p_host_name => p_host_name, p_worker_version => p_worker_version,
            p_threads => p_threads, p_completed => p_completed, p_failed => p_failed, p_is_ended =>
            p_is_ended
        ) r;
    else
        return query
        select r.queue_name, r.outcome
        from rowq_citus.to_report_worker_1(
            p_queue_name, p_worker_id, p_worker_name, p_host_name, p_worker_version, p_threads,
            p_completed, p_failed, p_is_ended
        ) r;
    end if;
end;
$$;

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
as $$
-- routine   queue_stats
-- version   1
-- purpose   Counts, age and settings of one queue or all.
-- promise   none
-- locks     as rowq_node.queue_stats, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.queue_name, r.is_paused, r.ready, r.delayed, r.leased, r.dead, r.blocked,
               r.oldest_ready_seconds, r.lease_seconds, r.max_attempts, r.backoff_base_seconds,
               r.backoff_factor, r.backoff_cap_seconds, r.backoff_jitter, r.archive_days,
               r.max_body_length, r.group_limit, r.group_after_dead, r.group_pause_seconds,
               r.max_leased, r.rate_limit, r.rate_seconds, r.result_seconds, r.history_days
        from rowq_node.queue_stats(p_queue_name => p_queue_name, p_max_count => p_max_count) r;
    elsif p_queue_name is null then
        return query
        select r.queue_name, r.is_paused, r.ready, r.delayed, r.leased, r.dead, r.blocked,
               r.oldest_ready_seconds, r.lease_seconds, r.max_attempts, r.backoff_base_seconds,
               r.backoff_factor, r.backoff_cap_seconds, r.backoff_jitter, r.archive_days,
               r.max_body_length, r.group_limit, r.group_after_dead, r.group_pause_seconds,
               r.max_leased, r.rate_limit, r.rate_seconds, r.result_seconds, r.history_days
        from rowq_citus.each_queue_stats_1(p_queue_name, p_max_count) r
        order by r.queue_name collate "C";
    else
        return query
        select r.queue_name, r.is_paused, r.ready, r.delayed, r.leased, r.dead, r.blocked,
               r.oldest_ready_seconds, r.lease_seconds, r.max_attempts, r.backoff_base_seconds,
               r.backoff_factor, r.backoff_cap_seconds, r.backoff_jitter, r.archive_days,
               r.max_body_length, r.group_limit, r.group_after_dead, r.group_pause_seconds,
               r.max_leased, r.rate_limit, r.rate_seconds, r.result_seconds, r.history_days
        from rowq_citus.to_queue_stats_1(p_queue_name, p_max_count) r;
    end if;
end;
$$;

create or replace function rowq.get_message(
    p_queue_name text,
    p_message_id bigint
)
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
as $$
-- routine   get_message
-- version   1
-- purpose   Where a message is and everything about it; no row when rowq does not know it.
-- promise   P20
-- locks     as rowq_node.get_message, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.message_id, r.state, r.priority, r.attempt, r.max_attempts, r.message_type,
               r.headers, r.body, r.body_binary, r.dedup_key, r.enqueued_at, r.due_at, r.claim_id,
               r.worker_name, r.lease_until, r.finished_at, r.last_error, r.group_key, r.waits_for,
               r.expires_at, r.progress
        from rowq_node.get_message(p_queue_name => p_queue_name, p_message_id => p_message_id) r;
    else
        return query
        select r.message_id, r.state, r.priority, r.attempt, r.max_attempts, r.message_type,
               r.headers, r.body, r.body_binary, r.dedup_key, r.enqueued_at, r.due_at, r.claim_id,
               r.worker_name, r.lease_until, r.finished_at, r.last_error, r.group_key, r.waits_for,
               r.expires_at, r.progress
        from rowq_citus.to_get_message_1(p_queue_name, p_message_id) r;
    end if;
end;
$$;

create or replace function rowq.find_message(
    p_queue_name text,
    p_dedup_key  text
)
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
as $$
-- routine   find_message
-- version   1
-- purpose   Find the unfinished message that has a dedup key, and return what get_message does.
-- promise   P12 P20
-- locks     as rowq_node.find_message, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.message_id, r.state, r.priority, r.attempt, r.max_attempts, r.message_type,
               r.headers, r.body, r.body_binary, r.dedup_key, r.enqueued_at, r.due_at, r.claim_id,
               r.worker_name, r.lease_until, r.finished_at, r.last_error, r.group_key, r.waits_for,
               r.expires_at, r.progress
        from rowq_node.find_message(p_queue_name => p_queue_name, p_dedup_key => p_dedup_key) r;
    else
        return query
        select r.message_id, r.state, r.priority, r.attempt, r.max_attempts, r.message_type,
               r.headers, r.body, r.body_binary, r.dedup_key, r.enqueued_at, r.due_at, r.claim_id,
               r.worker_name, r.lease_until, r.finished_at, r.last_error, r.group_key, r.waits_for,
               r.expires_at, r.progress
        from rowq_citus.to_find_message_1(p_queue_name, p_dedup_key) r;
    end if;
end;
$$;

create or replace function rowq.get_result(
    p_queue_name text,
    p_message_id bigint
)
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
as $$
-- routine   get_result
-- version   1
-- purpose   How a message has ended, and its result; of one that has not ended its state; no row when rowq does not know it.
-- promise   P32
-- locks     as rowq_node.get_result, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.message_id, r.state, r.finished_at, r.result, r.last_error
        from rowq_node.get_result(p_queue_name => p_queue_name, p_message_id => p_message_id) r;
    else
        return query
        select r.message_id, r.state, r.finished_at, r.result, r.last_error
        from rowq_citus.to_get_result_1(p_queue_name, p_message_id) r;
    end if;
end;
$$;

create or replace function rowq.get_history(
    p_queue_name text,
    p_message_id bigint
)
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
as $$
-- routine   get_history
-- version   1
-- purpose   The attempts of a message: those that have ended within the queue's history_days, oldest first, then the present lease. A lease that ran out is lease_expired, also where no attempt was left; no row when rowq knows of none.
-- promise   P37
-- locks     as rowq_node.get_history, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.attempt, r.worker_name, r.leased_at, r.ended_at, r.outcome, r.error
        from rowq_node.get_history(p_queue_name => p_queue_name, p_message_id => p_message_id) r;
    else
        return query
        select r.attempt, r.worker_name, r.leased_at, r.ended_at, r.outcome, r.error
        from rowq_citus.to_get_history_1(p_queue_name, p_message_id) r;
    end if;
end;
$$;

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
as $$
-- routine   list_dead
-- version   1
-- purpose   Dead messages, without their bodies, in the order of their ids, or backwards before one; of one type only, if given.
-- promise   P10
-- locks     as rowq_node.list_dead, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.message_id, r.priority, r.attempt, r.message_type, r.enqueued_at, r.died_at,
               r.last_error
        from rowq_node.list_dead(
            p_queue_name => p_queue_name, p_after_message_id => p_after_message_id, p_max_messages
            => p_max_messages, p_before_message_id => p_before_message_id, p_message_type =>
            p_message_type
        ) r;
    else
        return query
        select r.message_id, r.priority, r.attempt, r.message_type, r.enqueued_at, r.died_at,
               r.last_error
        from rowq_citus.to_list_dead_1(
            p_queue_name, p_after_message_id, p_max_messages, p_before_message_id, p_message_type
        ) r;
    end if;
end;
$$;

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
as $$
-- routine   list_claims
-- version   1
-- purpose   Who is at work on what: the claims of one queue or all, in the order of their ids.
-- promise   none
-- locks     as rowq_node.list_claims, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.queue_name, r.claim_id, r.worker_name, r.message_count, r.lease_until,
               r.lease_left_seconds
        from rowq_node.list_claims(
            p_queue_name => p_queue_name, p_after_claim_id => p_after_claim_id, p_max_claims =>
            p_max_claims
        ) r;
    elsif p_queue_name is null then
        return query
        select r.queue_name, r.claim_id, r.worker_name, r.message_count, r.lease_until,
               r.lease_left_seconds
        from rowq_citus.each_list_claims_1(p_queue_name, p_after_claim_id, p_max_claims) r
        order by r.claim_id
        fetch first (greatest(coalesce(p_max_claims, 1), 1)) rows with ties;
    else
        return query
        select r.queue_name, r.claim_id, r.worker_name, r.message_count, r.lease_until,
               r.lease_left_seconds
        from rowq_citus.to_list_claims_1(p_queue_name, p_after_claim_id, p_max_claims) r;
    end if;
end;
$$;

create or replace function rowq.list_workers(
    p_queue_name text default null
)
returns table (
    queue_name           text,
    worker_id            text,
    worker_name          text,
    host_name            text,
    worker_version       text,
    threads              integer,
    started_at           timestamp with time zone,
    last_seen_at         timestamp with time zone,
    last_seen_seconds    double precision,
    completed            bigint,
    failed               bigint,
    completed_per_second double precision,
    failed_per_second    double precision
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   list_workers
-- version   1
-- purpose   The workers of one queue, or of all, that have reported within the last hour, idle ones too.
-- promise   none
-- locks     as rowq_node.list_workers, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.queue_name, r.worker_id, r.worker_name, r.host_name, r.worker_version, r.threads,
               r.started_at, r.last_seen_at, r.last_seen_seconds, r.completed, r.failed,
               r.completed_per_second, r.failed_per_second
        from rowq_node.list_workers(p_queue_name => p_queue_name) r;
    elsif p_queue_name is null then
        return query
        select r.queue_name, r.worker_id, r.worker_name, r.host_name, r.worker_version, r.threads,
               r.started_at, r.last_seen_at, r.last_seen_seconds, r.completed, r.failed,
               r.completed_per_second, r.failed_per_second
        from rowq_citus.each_list_workers_1(p_queue_name) r
        order by r.queue_name collate "C", r.worker_id collate "C";
    else
        return query
        select r.queue_name, r.worker_id, r.worker_name, r.host_name, r.worker_version, r.threads,
               r.started_at, r.last_seen_at, r.last_seen_seconds, r.completed, r.failed,
               r.completed_per_second, r.failed_per_second
        from rowq_citus.to_list_workers_1(p_queue_name) r;
    end if;
end;
$$;

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
as $$
-- routine   list_delayed
-- version   1
-- purpose   Messages that wait for their time, without their bodies, in the order in which they become due.
-- promise   P11
-- locks     as rowq_node.list_delayed, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.message_id, r.priority, r.attempt, r.message_type, r.due_at, r.last_error
        from rowq_node.list_delayed(
            p_queue_name => p_queue_name, p_after_due_at => p_after_due_at, p_after_message_id =>
            p_after_message_id, p_max_messages => p_max_messages
        ) r;
    else
        return query
        select r.message_id, r.priority, r.attempt, r.message_type, r.due_at, r.last_error
        from rowq_citus.to_list_delayed_1(
            p_queue_name, p_after_due_at, p_after_message_id, p_max_messages
        ) r;
    end if;
end;
$$;

create or replace function rowq.list_topics(
    p_queue_name text default null
)
returns table (
    queue_name    text,
    topic_pattern text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   list_topics
-- version   1
-- purpose   The patterns of one queue or all, in the order of the queues' names.
-- promise   P35
-- locks     as rowq_node.list_topics, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.queue_name, r.topic_pattern
        from rowq_node.list_topics(p_queue_name => p_queue_name) r;
    elsif p_queue_name is null then
        return query
        select r.queue_name, r.topic_pattern
        from rowq_citus.each_list_topics_1(p_queue_name) r
        order by r.queue_name collate "C", r.topic_pattern collate "C";
    else
        return query
        select r.queue_name, r.topic_pattern
        from rowq_citus.to_list_topics_1(p_queue_name) r;
    end if;
end;
$$;

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
as $$
-- routine   health
-- version   1
-- purpose   Report what needs attention: who holds back clean-up, overdue messages, expired leases, dead messages, a sequence behind its data.
-- promise   none
-- locks     as rowq_node.health, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ706 RQ711
-- differs   every node is asked
begin
    if current_setting('rowq.here', true) in ('on', 'carried') then
        return query
        select r.check_name, r.queue_name, r.status, r.value, r.detail
        from rowq_node.health() r;
    else
        return query
        select r.check_name, r.queue_name, r.status, r.value, r.detail
        from rowq_citus.each_health_1() r
        order by r.check_name collate "C", r.queue_name collate "C" nulls first;
    end if;
end;
$$;
-- end of wrappers

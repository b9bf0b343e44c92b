-- Routines go into the schema rowq_node, and wrappers with their names carry calls to the node that
-- has the queue. This script runs on every node, as a superuser and in one transaction, after
-- carry.sql has run on all of them and distribute.sql on the coordinator. unroute.sql takes it
-- back, and runs before a migration.
--
-- A session that says "set rowq.here = 'on'" is answered by its own node alone, and changes no
-- queue of another.
set local citus.enable_ddl_propagation = off;
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;

do $$
begin
    if to_regnamespace('rowq_node') is not null then
        raise exception 'RQ809 routed_database: calls are carried between nodes here already'
            using errcode = 'RQ809', hint = 'Run unroute.sql first, in the same transaction.';
    end if;
    create schema rowq_node;
    comment on schema rowq_node is 'rowq message queue: routines that answer for this node';
end;
$$;

-- moves: generated from contract.toml by make generate
alter function rowq.create_queue(
    text, integer, integer, double precision, double precision, double precision, double precision,
    integer, integer, integer, text, double precision, integer, integer, double precision, double
    precision, integer
) set schema rowq_node;
alter function rowq.alter_queue(
    text, integer, integer, double precision, double precision, double precision, double precision,
    integer, integer, integer, text, double precision, integer, integer, double precision, double
    precision, integer
) set schema rowq_node;
alter function rowq.drop_queue(text, boolean) set schema rowq_node;
alter function rowq.pause_queue(text) set schema rowq_node;
alter function rowq.resume_queue(text) set schema rowq_node;
alter function rowq.bind_topic(text, text) set schema rowq_node;
alter function rowq.unbind_topic(text, text) set schema rowq_node;
alter function rowq.purge_queue(text, boolean, integer) set schema rowq_node;
alter function rowq.enqueue(
    text, text, bytea, text, jsonb, integer, double precision, timestamp with time zone, text,
    integer, text, bigint[], text, double precision
) set schema rowq_node;
alter function rowq.enqueue_batch(text, jsonb) set schema rowq_node;
alter function rowq.publish(
    text, text, bytea, text, jsonb, integer, double precision, timestamp with time zone, text,
    integer, text, double precision
) set schema rowq_node;
alter function rowq.publish_batch(jsonb) set schema rowq_node;
alter function rowq.dequeue_fast(text, integer, text, integer) set schema rowq_node;
alter function rowq.listen(text) set schema rowq_node;
alter function rowq.unlisten(text) set schema rowq_node;
alter function rowq.elect_keeper(text) set schema rowq_node;
alter function rowq.peek(text, integer) set schema rowq_node;
alter function rowq.complete(text, bigint, bigint[], jsonb) set schema rowq_node;
alter function rowq.retry_later(
    text, bigint, bigint[], double precision, text
) set schema rowq_node;
alter function rowq.fail_now(text, bigint, bigint[], text) set schema rowq_node;
alter function rowq.release(text, bigint, bigint[]) set schema rowq_node;
alter function rowq.extend_lease(text, bigint, integer, text) set schema rowq_node;
alter function rowq.cancel(text, bigint[], boolean) set schema rowq_node;
alter function rowq.cancel_many(
    text, text, text, text, text, timestamp with time zone, bigint, integer
) set schema rowq_node;
alter function rowq.reset(
    text, bigint[], integer, text, timestamp with time zone
) set schema rowq_node;
alter function rowq.discard_dead(
    text, bigint[], integer, text, timestamp with time zone
) set schema rowq_node;
alter function rowq.create_schedule(
    text, text, text, double precision, text, text, bytea, text, jsonb, integer, integer, text,
    text, boolean, timestamp with time zone, timestamp with time zone
) set schema rowq_node;
alter function rowq.alter_schedule(
    text, text, text, double precision, text, text, bytea, text, jsonb, integer, integer, text,
    text, boolean, timestamp with time zone, timestamp with time zone, boolean
) set schema rowq_node;
alter function rowq.drop_schedule(text, text) set schema rowq_node;
alter function rowq.run_schedule(text, text) set schema rowq_node;
alter function rowq.list_schedules(text) set schema rowq_node;
alter function rowq.maintain(text, integer) set schema rowq_node;
alter function rowq.reap(text, integer) set schema rowq_node;
alter function rowq.promote(text, integer) set schema rowq_node;
alter function rowq.archive(text, integer) set schema rowq_node;
alter function rowq.purge_archive(text, integer) set schema rowq_node;
alter function rowq.queue_stats(text, integer) set schema rowq_node;
alter function rowq.get_message(text, bigint) set schema rowq_node;
alter function rowq.find_message(text, text) set schema rowq_node;
alter function rowq.get_result(text, bigint) set schema rowq_node;
alter function rowq.get_history(text, bigint) set schema rowq_node;
alter function rowq.list_dead(text, bigint, integer, bigint, text) set schema rowq_node;
alter function rowq.list_claims(text, bigint, integer) set schema rowq_node;
alter function rowq.list_delayed(
    text, timestamp with time zone, bigint, integer
) set schema rowq_node;
alter function rowq.list_topics(text) set schema rowq_node;
alter function rowq.health() set schema rowq_node;
-- end of moves

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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.queue_name, r.outcome
        from rowq_node.create_queue(
            p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds, p_backoff_factor,
            p_backoff_cap_seconds, p_backoff_jitter, p_archive_days, p_max_body_length,
            p_group_limit, p_group_after_dead, p_group_pause_seconds, p_max_leased, p_rate_limit,
            p_rate_seconds, p_result_seconds, p_history_days
        ) r;
    else
        return query
        select r.queue_name, r.outcome
        from rowq_citus.to_create_queue(
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.queue_name, r.outcome
        from rowq_node.alter_queue(
            p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds, p_backoff_factor,
            p_backoff_cap_seconds, p_backoff_jitter, p_archive_days, p_max_body_length,
            p_group_limit, p_group_after_dead, p_group_pause_seconds, p_max_leased, p_rate_limit,
            p_rate_seconds, p_result_seconds, p_history_days
        ) r;
    else
        return query
        select r.queue_name, r.outcome
        from rowq_citus.to_alter_queue(
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.queue_name, r.outcome
        from rowq_node.drop_queue(p_queue_name, p_force) r;
    else
        return query
        select r.queue_name, r.outcome
        from rowq_citus.to_drop_queue(p_queue_name, p_force) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.queue_name, r.outcome
        from rowq_node.pause_queue(p_queue_name) r;
    else
        return query
        select r.queue_name, r.outcome
        from rowq_citus.to_pause_queue(p_queue_name) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.queue_name, r.outcome
        from rowq_node.resume_queue(p_queue_name) r;
    else
        return query
        select r.queue_name, r.outcome
        from rowq_citus.to_resume_queue(p_queue_name) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.queue_name, r.topic_pattern, r.outcome
        from rowq_node.bind_topic(p_queue_name, p_topic_pattern) r;
    else
        return query
        select r.queue_name, r.topic_pattern, r.outcome
        from rowq_citus.to_bind_topic(p_queue_name, p_topic_pattern) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.queue_name, r.topic_pattern, r.outcome
        from rowq_node.unbind_topic(p_queue_name, p_topic_pattern) r;
    else
        return query
        select r.queue_name, r.topic_pattern, r.outcome
        from rowq_citus.to_unbind_topic(p_queue_name, p_topic_pattern) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.removed
        from rowq_node.purge_queue(p_queue_name, p_include_dead, p_max_messages) r;
    else
        return query
        select r.removed
        from rowq_citus.to_purge_queue(p_queue_name, p_include_dead, p_max_messages) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.message_id, r.outcome
        from rowq_node.enqueue(
            p_queue_name, p_body, p_body_binary, p_message_type, p_headers, p_priority,
            p_delay_seconds, p_run_at, p_dedup_key, p_max_attempts, p_group_key, p_predecessor_ids,
            p_on_predecessor_dead, p_expire_seconds
        ) r;
    else
        return query
        select r.message_id, r.outcome
        from rowq_citus.to_enqueue(
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r."position", r.message_id, r.outcome
        from rowq_node.enqueue_batch(p_queue_name, p_messages) r;
    else
        return query
        select r."position", r.message_id, r.outcome
        from rowq_citus.to_enqueue_batch(p_queue_name, p_messages) r;
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
    if current_setting('rowq.here', true) = 'on' then
        raise exception 'RQ711 invalid_argument: rowq.here is on; publish asks every node'
            using errcode = 'RQ711', hint = 'Run: reset rowq.here';
    else
        return query
        select r.queue_name, r.message_id, r.outcome
        from rowq_citus.each_publish(
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
    if current_setting('rowq.here', true) = 'on' then
        raise exception 'RQ711 invalid_argument: rowq.here is on; publish_batch asks every node'
            using errcode = 'RQ711', hint = 'Run: reset rowq.here';
    else
        return query
        select r."position", r.queue_name, r.message_id, r.outcome
        from rowq_citus.each_publish_batch(p_messages) r
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.claim_id, r.message_id, r.attempt, r.message_type, r.headers, r.body,
               r.body_binary, r.enqueued_at, r.lease_until, r.last_error
        from rowq_node.dequeue_fast(p_queue_name, p_batch_size, p_worker_name, p_lease_seconds) r;
    else
        return query
        select r.claim_id, r.message_id, r.attempt, r.message_type, r.headers, r.body,
               r.body_binary, r.enqueued_at, r.lease_until, r.last_error
        from rowq_citus.to_dequeue_fast(
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
    outcome    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   listen
-- version   1
-- purpose   Have this session notified on the channel rowq of a queue's new messages.
-- promise   none
-- locks     as rowq_node.listen, on the node that does it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ706 RQ711
-- differs   carried to the node of the queue
begin
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.queue_name, r.outcome
        from rowq_node.listen(p_queue_name) r;
    else
        return query
        select r.queue_name, r.outcome
        from rowq_citus.to_listen(p_queue_name) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.queue_name, r.outcome
        from rowq_node.unlisten(p_queue_name) r;
    else
        return query
        select r.queue_name, r.outcome
        from rowq_citus.to_unlisten(p_queue_name) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        return query
        select r.queue_name, r.elected
        from rowq_node.elect_keeper(p_queue_name) r;
    else
        return query
        select r.queue_name, r.elected
        from rowq_citus.to_elect_keeper(p_queue_name) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.message_id, r.priority, r.attempt, r.message_type, r.headers, r.body,
               r.body_binary, r.enqueued_at, r.last_error
        from rowq_node.peek(p_queue_name, p_max_messages) r;
    else
        return query
        select r.message_id, r.priority, r.attempt, r.message_type, r.headers, r.body,
               r.body_binary, r.enqueued_at, r.last_error
        from rowq_citus.to_peek(p_queue_name, p_max_messages) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.message_id, r.outcome
        from rowq_node.complete(p_queue_name, p_claim_id, p_message_ids, p_results) r;
    else
        return query
        select r.message_id, r.outcome
        from rowq_citus.to_complete(p_queue_name, p_claim_id, p_message_ids, p_results) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.message_id, r.outcome, r.due_at
        from rowq_node.retry_later(
            p_queue_name, p_claim_id, p_message_ids, p_delay_seconds, p_error
        ) r;
    else
        return query
        select r.message_id, r.outcome, r.due_at
        from rowq_citus.to_retry_later(
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.message_id, r.outcome
        from rowq_node.fail_now(p_queue_name, p_claim_id, p_message_ids, p_error) r;
    else
        return query
        select r.message_id, r.outcome
        from rowq_citus.to_fail_now(p_queue_name, p_claim_id, p_message_ids, p_error) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.message_id, r.outcome
        from rowq_node.release(p_queue_name, p_claim_id, p_message_ids) r;
    else
        return query
        select r.message_id, r.outcome
        from rowq_citus.to_release(p_queue_name, p_claim_id, p_message_ids) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.claim_id, r.lease_until, r.cancel_ids
        from rowq_node.extend_lease(p_queue_name, p_claim_id, p_lease_seconds, p_progress) r;
    else
        return query
        select r.claim_id, r.lease_until, r.cancel_ids
        from rowq_citus.to_extend_lease(p_queue_name, p_claim_id, p_lease_seconds, p_progress) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.message_id, r.outcome
        from rowq_node.cancel(p_queue_name, p_message_ids, p_include_leased) r;
    else
        return query
        select r.message_id, r.outcome
        from rowq_citus.to_cancel(p_queue_name, p_message_ids, p_include_leased) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.cancelled, r.after_message_id
        from rowq_node.cancel_many(
            p_queue_name, p_message_type, p_group_key, p_header_name, p_header_value,
            p_enqueued_before, p_after_message_id, p_max_messages
        ) r;
    else
        return query
        select r.cancelled, r.after_message_id
        from rowq_citus.to_cancel_many(
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.message_id, r.outcome
        from rowq_node.reset(
            p_queue_name, p_message_ids, p_max_messages, p_message_type, p_died_before
        ) r;
    else
        return query
        select r.message_id, r.outcome
        from rowq_citus.to_reset(
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.removed
        from rowq_node.discard_dead(
            p_queue_name, p_message_ids, p_max_messages, p_message_type, p_died_before
        ) r;
    else
        return query
        select r.removed
        from rowq_citus.to_discard_dead(
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.schedule_name, r.outcome, r.next_run_at
        from rowq_node.create_schedule(
            p_queue_name, p_schedule_name, p_cron, p_interval_seconds, p_time_zone, p_body,
            p_body_binary, p_message_type, p_headers, p_priority, p_max_attempts, p_group_key,
            p_missed, p_overlap, p_starts_at, p_ends_at
        ) r;
    else
        return query
        select r.schedule_name, r.outcome, r.next_run_at
        from rowq_citus.to_create_schedule(
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.schedule_name, r.outcome, r.next_run_at
        from rowq_node.alter_schedule(
            p_queue_name, p_schedule_name, p_cron, p_interval_seconds, p_time_zone, p_body,
            p_body_binary, p_message_type, p_headers, p_priority, p_max_attempts, p_group_key,
            p_missed, p_overlap, p_starts_at, p_ends_at, p_is_paused
        ) r;
    else
        return query
        select r.schedule_name, r.outcome, r.next_run_at
        from rowq_citus.to_alter_schedule(
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.schedule_name, r.outcome
        from rowq_node.drop_schedule(p_queue_name, p_schedule_name) r;
    else
        return query
        select r.schedule_name, r.outcome
        from rowq_citus.to_drop_schedule(p_queue_name, p_schedule_name) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        perform rowq_citus.require_own(p_queue_name);
        return query
        select r.message_id, r.outcome
        from rowq_node.run_schedule(p_queue_name, p_schedule_name) r;
    else
        return query
        select r.message_id, r.outcome
        from rowq_citus.to_run_schedule(p_queue_name, p_schedule_name) r;
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
-- errors    RQ701 RQ706
-- differs   carried to the node of the queue
begin
    if current_setting('rowq.here', true) = 'on' then
        return query
        select r.queue_name, r.schedule_name, r.cron, r.interval_seconds, r.time_zone, r.is_paused,
               r.next_run_at, r.last_run_at, r.last_message_id, r.last_error, r.missed, r.overlap,
               r.starts_at, r.ends_at, r.message_type, r.priority, r.max_attempts, r.group_key
        from rowq_node.list_schedules(p_queue_name) r;
    elsif p_queue_name is null then
        return query
        select r.queue_name, r.schedule_name, r.cron, r.interval_seconds, r.time_zone, r.is_paused,
               r.next_run_at, r.last_run_at, r.last_message_id, r.last_error, r.missed, r.overlap,
               r.starts_at, r.ends_at, r.message_type, r.priority, r.max_attempts, r.group_key
        from rowq_citus.each_list_schedules(p_queue_name) r
        order by r.queue_name collate "C", r.schedule_name collate "C";
    else
        return query
        select r.queue_name, r.schedule_name, r.cron, r.interval_seconds, r.time_zone, r.is_paused,
               r.next_run_at, r.last_run_at, r.last_message_id, r.last_error, r.missed, r.overlap,
               r.starts_at, r.ends_at, r.message_type, r.priority, r.max_attempts, r.group_key
        from rowq_citus.to_list_schedules(p_queue_name) r;
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
    if current_setting('rowq.here', true) = 'on' then
        return query
        select r.queue_name, r.elected, r.promoted, r.reaped, r.died, r.archived, r.purged,
               r.partitions_dropped, r.expired
        from rowq_node.maintain(p_queue_name, p_batch_size) r;
    elsif p_queue_name is null then
        return query
        select r.queue_name, r.elected, r.promoted, r.reaped, r.died, r.archived, r.purged,
               r.partitions_dropped, r.expired
        from rowq_citus.each_maintain(p_queue_name, p_batch_size) r;
    else
        return query
        select r.queue_name, r.elected, r.promoted, r.reaped, r.died, r.archived, r.purged,
               r.partitions_dropped, r.expired
        from rowq_citus.to_maintain(p_queue_name, p_batch_size) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        return query
        select r.reaped, r.died
        from rowq_node.reap(p_queue_name, p_batch_size) r;
    else
        return query
        select r.reaped, r.died
        from rowq_citus.to_reap(p_queue_name, p_batch_size) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        return query
        select r.promoted
        from rowq_node.promote(p_queue_name, p_batch_size) r;
    else
        return query
        select r.promoted
        from rowq_citus.to_promote(p_queue_name, p_batch_size) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        return query
        select r.archived
        from rowq_node.archive(p_queue_name, p_batch_size) r;
    else
        return query
        select r.archived
        from rowq_citus.to_archive(p_queue_name, p_batch_size) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        return query
        select r.purged, r.partitions_dropped
        from rowq_node.purge_archive(p_queue_name, p_batch_size) r;
    else
        return query
        select r.purged, r.partitions_dropped
        from rowq_citus.to_purge_archive(p_queue_name, p_batch_size) r;
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
    if current_setting('rowq.here', true) = 'on' then
        return query
        select r.queue_name, r.is_paused, r.ready, r.delayed, r.leased, r.dead, r.blocked,
               r.oldest_ready_seconds, r.lease_seconds, r.max_attempts, r.backoff_base_seconds,
               r.backoff_factor, r.backoff_cap_seconds, r.backoff_jitter, r.archive_days,
               r.max_body_length, r.group_limit, r.group_after_dead, r.group_pause_seconds,
               r.max_leased, r.rate_limit, r.rate_seconds, r.result_seconds, r.history_days
        from rowq_node.queue_stats(p_queue_name, p_max_count) r;
    elsif p_queue_name is null then
        return query
        select r.queue_name, r.is_paused, r.ready, r.delayed, r.leased, r.dead, r.blocked,
               r.oldest_ready_seconds, r.lease_seconds, r.max_attempts, r.backoff_base_seconds,
               r.backoff_factor, r.backoff_cap_seconds, r.backoff_jitter, r.archive_days,
               r.max_body_length, r.group_limit, r.group_after_dead, r.group_pause_seconds,
               r.max_leased, r.rate_limit, r.rate_seconds, r.result_seconds, r.history_days
        from rowq_citus.each_queue_stats(p_queue_name, p_max_count) r
        order by r.queue_name collate "C";
    else
        return query
        select r.queue_name, r.is_paused, r.ready, r.delayed, r.leased, r.dead, r.blocked,
               r.oldest_ready_seconds, r.lease_seconds, r.max_attempts, r.backoff_base_seconds,
               r.backoff_factor, r.backoff_cap_seconds, r.backoff_jitter, r.archive_days,
               r.max_body_length, r.group_limit, r.group_after_dead, r.group_pause_seconds,
               r.max_leased, r.rate_limit, r.rate_seconds, r.result_seconds, r.history_days
        from rowq_citus.to_queue_stats(p_queue_name, p_max_count) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        return query
        select r.message_id, r.state, r.priority, r.attempt, r.max_attempts, r.message_type,
               r.headers, r.body, r.body_binary, r.dedup_key, r.enqueued_at, r.due_at, r.claim_id,
               r.worker_name, r.lease_until, r.finished_at, r.last_error, r.group_key, r.waits_for,
               r.expires_at, r.progress
        from rowq_node.get_message(p_queue_name, p_message_id) r;
    else
        return query
        select r.message_id, r.state, r.priority, r.attempt, r.max_attempts, r.message_type,
               r.headers, r.body, r.body_binary, r.dedup_key, r.enqueued_at, r.due_at, r.claim_id,
               r.worker_name, r.lease_until, r.finished_at, r.last_error, r.group_key, r.waits_for,
               r.expires_at, r.progress
        from rowq_citus.to_get_message(p_queue_name, p_message_id) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        return query
        select r.message_id, r.state, r.priority, r.attempt, r.max_attempts, r.message_type,
               r.headers, r.body, r.body_binary, r.dedup_key, r.enqueued_at, r.due_at, r.claim_id,
               r.worker_name, r.lease_until, r.finished_at, r.last_error, r.group_key, r.waits_for,
               r.expires_at, r.progress
        from rowq_node.find_message(p_queue_name, p_dedup_key) r;
    else
        return query
        select r.message_id, r.state, r.priority, r.attempt, r.max_attempts, r.message_type,
               r.headers, r.body, r.body_binary, r.dedup_key, r.enqueued_at, r.due_at, r.claim_id,
               r.worker_name, r.lease_until, r.finished_at, r.last_error, r.group_key, r.waits_for,
               r.expires_at, r.progress
        from rowq_citus.to_find_message(p_queue_name, p_dedup_key) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        return query
        select r.message_id, r.state, r.finished_at, r.result, r.last_error
        from rowq_node.get_result(p_queue_name, p_message_id) r;
    else
        return query
        select r.message_id, r.state, r.finished_at, r.result, r.last_error
        from rowq_citus.to_get_result(p_queue_name, p_message_id) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        return query
        select r.attempt, r.worker_name, r.leased_at, r.ended_at, r.outcome, r.error
        from rowq_node.get_history(p_queue_name, p_message_id) r;
    else
        return query
        select r.attempt, r.worker_name, r.leased_at, r.ended_at, r.outcome, r.error
        from rowq_citus.to_get_history(p_queue_name, p_message_id) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        return query
        select r.message_id, r.priority, r.attempt, r.message_type, r.enqueued_at, r.died_at,
               r.last_error
        from rowq_node.list_dead(
            p_queue_name, p_after_message_id, p_max_messages, p_before_message_id, p_message_type
        ) r;
    else
        return query
        select r.message_id, r.priority, r.attempt, r.message_type, r.enqueued_at, r.died_at,
               r.last_error
        from rowq_citus.to_list_dead(
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
    if current_setting('rowq.here', true) = 'on' then
        return query
        select r.queue_name, r.claim_id, r.worker_name, r.message_count, r.lease_until,
               r.lease_left_seconds
        from rowq_node.list_claims(p_queue_name, p_after_claim_id, p_max_claims) r;
    elsif p_queue_name is null then
        return query
        select r.queue_name, r.claim_id, r.worker_name, r.message_count, r.lease_until,
               r.lease_left_seconds
        from rowq_citus.each_list_claims(p_queue_name, p_after_claim_id, p_max_claims) r
        order by r.claim_id
        fetch first (greatest(coalesce(p_max_claims, 1), 1)) rows with ties;
    else
        return query
        select r.queue_name, r.claim_id, r.worker_name, r.message_count, r.lease_until,
               r.lease_left_seconds
        from rowq_citus.to_list_claims(p_queue_name, p_after_claim_id, p_max_claims) r;
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
    if p_queue_name is null or current_setting('rowq.here', true) = 'on' then
        return query
        select r.message_id, r.priority, r.attempt, r.message_type, r.due_at, r.last_error
        from rowq_node.list_delayed(
            p_queue_name, p_after_due_at, p_after_message_id, p_max_messages
        ) r;
    else
        return query
        select r.message_id, r.priority, r.attempt, r.message_type, r.due_at, r.last_error
        from rowq_citus.to_list_delayed(
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
-- errors    RQ701 RQ706
-- differs   carried to the node of the queue
begin
    if current_setting('rowq.here', true) = 'on' then
        return query
        select r.queue_name, r.topic_pattern
        from rowq_node.list_topics(p_queue_name) r;
    elsif p_queue_name is null then
        return query
        select r.queue_name, r.topic_pattern
        from rowq_citus.each_list_topics(p_queue_name) r
        order by r.queue_name collate "C", r.topic_pattern collate "C";
    else
        return query
        select r.queue_name, r.topic_pattern
        from rowq_citus.to_list_topics(p_queue_name) r;
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
-- errors    RQ706
-- differs   every node is asked
begin
    if current_setting('rowq.here', true) = 'on' then
        return query
        select r.check_name, r.queue_name, r.status, r.value, r.detail
        from rowq_node.health() r;
    else
        return query
        select r.check_name, r.queue_name, r.status, r.value, r.detail
        from rowq_citus.each_health() r
        order by r.check_name collate "C", r.queue_name collate "C" nulls first;
    end if;
end;
$$;
-- end of wrappers

-- A wrapper has the owner, the rights and the comment of its routine. Callers keep their rights on
-- the routine, but none on its schema, which only the owner and rowq_citus may use.
do $$
declare
    v_owner  constant text := (
        select pg_get_userbyid(n.nspowner) from pg_namespace n where n.nspname = 'rowq'
    );
    v_change text;
begin
    execute format('alter schema rowq_node owner to %I', v_owner);
    grant usage on schema rowq_node to rowq_citus;
    for v_change in
        select c.change
        from pg_proc o
        join pg_proc w on w.proname = o.proname and w.proargtypes = o.proargtypes
        cross join lateral (
            values
                (1, format('alter function %s owner to %I', w.oid::regprocedure, v_owner)),
                (2, format('revoke all on function %s from public', w.oid::regprocedure)),
                (
                    3,
                    format('comment on function %s is %L', w.oid::regprocedure,
                        obj_description(o.oid, 'pg_proc'))
                ),
                (4, format('grant execute on function %s to rowq_citus', o.oid::regprocedure))
            union all
            select
                5,
                format('grant execute on function %s to %s%s', w.oid::regprocedure,
                    coalesce(quote_ident(r.rolname), 'public'),
                    case when a.is_grantable then ' with grant option' end)
            from aclexplode(o.proacl) a
            left join pg_roles r on r.oid = a.grantee
            where a.grantee <> o.proowner
        ) c (place, change)
        where o.pronamespace = 'rowq_node'::regnamespace
          and w.pronamespace = 'rowq'::regnamespace
        order by c.place
    loop
        execute v_change;
    end loop;
    -- A lock of maintain counts only if its session may call maintain, and on the node of a queue
    -- this is a session of rowq_citus.
    grant execute on function rowq.maintain(text, integer) to rowq_citus;
end;
$$;

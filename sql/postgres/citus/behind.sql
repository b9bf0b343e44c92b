-- Routines go behind wrappers, into the schema rowq_node, and the wrappers that aside.sql has put
-- aside come back as they were. This script runs on a node, as a superuser, after aside.sql and
-- perhaps a migration, in the same transaction; route.sql or rights.sql come after it. A routine
-- that is new has no wrapper before route.sql, and cannot be called.
set local citus.enable_ddl_propagation = off;
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;

create schema rowq_node;

-- Routines have the rights of now, and rights.sql gives them to wrappers.
set local rowq.is_behind = 'on';

comment on schema rowq_node is 'rowq message queue: routines that answer for this node';

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
alter function rowq.report_worker(
    text, text, text, text, text, integer, bigint, bigint, boolean
) set schema rowq_node;
alter function rowq.queue_stats(text, integer) set schema rowq_node;
alter function rowq.get_message(text, bigint) set schema rowq_node;
alter function rowq.find_message(text, text) set schema rowq_node;
alter function rowq.get_result(text, bigint) set schema rowq_node;
alter function rowq.get_history(text, bigint) set schema rowq_node;
alter function rowq.list_dead(text, bigint, integer, bigint, text) set schema rowq_node;
alter function rowq.list_claims(text, bigint, integer) set schema rowq_node;
alter function rowq.list_workers(text) set schema rowq_node;
alter function rowq.list_delayed(
    text, timestamp with time zone, bigint, integer
) set schema rowq_node;
alter function rowq.list_topics(text) set schema rowq_node;
alter function rowq.health() set schema rowq_node;
-- end of moves

do $$
declare
    v_change text;
begin
    if to_regnamespace('rowq_aside') is null then
        return;
    end if;
    for v_change in
        select format('alter function %s set schema rowq', w.oid::regprocedure)
        from pg_proc w
        where w.pronamespace = 'rowq_aside'::regnamespace
    loop
        execute v_change;
    end loop;
    drop schema rowq_aside;
end;
$$;

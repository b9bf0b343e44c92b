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
-- purpose   Enqueue the message of a schedule now, even if paused; its next run is unchanged.
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
    v_schedule := rowq.internal_require_schedule(v_queue.queue_id, p_schedule_name);
    v_now := clock_timestamp();
    v_sent := rowq.internal_enqueue_tick(v_schedule, v_queue.queue_name, v_now);
    if v_sent.o_outcome = 'enqueued' then
        update rowq.schedule s
        set last_run_at     = v_now,
            last_message_id = v_sent.o_message_id,
            is_running      = s.counts_from = 'end',
            next_run_at     = case
                when s.counts_from = 'end' and s.next_run_at is not null
                    then v_now + interval '1 second'
                else s.next_run_at
            end
        where s.queue_id = v_schedule.queue_id
          and s.schedule_name = v_schedule.schedule_name;
    end if;
    return query select v_sent.o_message_id, v_sent.o_outcome;
end;
$$;

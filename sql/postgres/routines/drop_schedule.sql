create or replace function rowq.drop_schedule(p_queue_name text, p_schedule_name text)
returns table (schedule_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   drop_schedule
-- version   1
-- purpose   Drop a schedule; messages already enqueued stay.
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
    v_schedule := rowq.internal_require_schedule(v_queue.queue_id, p_schedule_name);
    delete from rowq.schedule s
    where s.queue_id = v_schedule.queue_id
      and s.schedule_name = v_schedule.schedule_name;
    return query select p_schedule_name, 'dropped';
end;
$$;

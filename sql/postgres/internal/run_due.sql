create or replace function rowq.internal_run_due(
    p_schedule   rowq.schedule,
    p_queue_name text,
    p_is_late    boolean
)
returns boolean
language plpgsql
set lock_timeout = '20ms'
as $$
-- routine   internal_run_due
-- purpose   Add the messages of a schedule's due ticks, a hundred at most, and move it on; false where that is left to the next call. p_is_late is as for internal_send_tick.
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
        v_sent := rowq.internal_send_tick(p_schedule, p_queue_name, v_tick, p_is_late);
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

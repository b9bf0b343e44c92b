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

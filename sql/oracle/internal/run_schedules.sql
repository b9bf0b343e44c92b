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

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

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

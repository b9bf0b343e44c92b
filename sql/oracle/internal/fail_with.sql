procedure internal_fail_with(
    p_part_id        in number,
    p_message_id     in number,
    p_lane           in number,
    p_predecessor_id in number
)
is
-- routine   internal_fail_with
-- purpose   Keep a message as dead whose predecessor is dead; free its dedup key. It has made no attempt, and has no token of a group.
-- promise   P12 P27 P32
-- locks     a new dead row; the message row, which the caller holds already; a dedup row; a result
--           row
-- differs   no such helper elsewhere: part of internal_block and internal_follow_deaths
    v_error     constant varchar2(100 char) :=
        'predecessor ' || internal_number_text(p_predecessor_id) || ' is dead';
    v_dedup_key rowq_message.dedup_key%type;
    v_key       raw(800);
    v_seconds   rowq_queue.result_seconds%type;
    v_failed    t_messages;
    v_results   t_clobs;
begin
    insert into rowq_dead (part_id, message_id, lane, attempt, died_at)
    values (p_part_id, p_message_id, p_lane, 0, sys_extract_utc(systimestamp));
    update rowq_message m
    set m.last_error = v_error
    where m.part_id = p_part_id
      and m.message_id = p_message_id
    returning m.dedup_key into v_dedup_key;
    if v_dedup_key is not null then
        v_key := utl_raw.cast_to_raw(v_dedup_key);
        delete from rowq_dedup d
        where d.part_id = p_part_id
          and d.dedup_key = v_key
          and d.message_id = p_message_id;
    end if;

    select max(q.result_seconds) into v_seconds
    from rowq_queue q
    where q.part_id = p_part_id;
    if v_seconds > 0 then
        v_failed(1).message_id := p_message_id;
        internal_push_result(p_part_id, v_failed, 'dead', v_error, v_results);
    end if;
end internal_fail_with;

function internal_block(
    p_part_id         in number,
    p_message_id      in number,
    p_place           in number,
    p_lane            in number,
    p_due_at          in timestamp,
    p_group_key       in varchar2,
    p_predecessor_ids in rowq_ids,
    p_on_dead         in varchar2
)
return boolean
is
-- routine   internal_block
-- purpose   Let a new message wait for its predecessors, or fail with one; false where all have ended. p_place is its place in a batch, or 0.
-- promise   P15 P25 P26 P27
-- locks     as internal_await_predecessor; new blocked, recheck and dead rows
-- errors    RQ711
    v_ids            rowq_ids;
    v_rest_ids       rowq_ids;
    v_rest           clob;
    v_predecessor_id rowq_message.message_id%type;
    v_state          varchar2(20 char);
begin
    select distinct a.column_value
    bulk collect into v_ids
    from table(p_predecessor_ids) a
    where a.column_value > 0
    order by a.column_value desc;
    if v_ids.count = 0 then
        return false;
    end if;
    internal_refuse_unknown(p_message_id, p_place, v_ids(1));
    internal_await_predecessor(
        p_part_id, p_message_id, v_ids, p_on_dead, v_state, v_predecessor_id, v_rest_ids
    );
    if v_state = 'free' then
        return false;
    end if;
    if v_state = 'failed' then
        internal_fail_with(p_part_id, p_message_id, p_lane, v_predecessor_id);
        return true;
    end if;

    v_rest := case when v_rest_ids.count > 0 then ids(v_rest_ids) end;
    insert into rowq_blocked (
        part_id, message_id, lane, predecessor_id, due_at, on_dead, group_key, rest_ids
    )
    values (
        p_part_id, p_message_id, p_lane, v_predecessor_id, p_due_at, p_on_dead, p_group_key,
        v_rest
    );
    if v_state = 'unsure' then
        internal_recheck_later(p_part_id, rowq_ids(p_message_id), null, 0);
    end if;
    return true;
end internal_block;

procedure internal_join_groups(
    p_part_id  in number,
    p_messages in t_messages,
    p_waiting  out nocopy t_numbers
)
is
-- routine   internal_join_groups
-- purpose   Let messages that have a group_key join their groups. p_waiting has the places of those that wait there, each by itself; the others are for the caller to make ready.
-- promise   P21 P22
-- locks     as internal_enter_group, in the order of the keys; new grouped rows
    v_order    t_places;
    v_at       varchar2(4000 char);
    v_place    pls_integer := p_messages.first;
    v_key      raw(800);
    v_full_key raw(800);
    v_is_full  boolean;
    v_keys     t_keys;
    v_behind   t_messages;
begin
    p_waiting.delete;
    while v_place is not null loop
        if p_messages(v_place).group_key is not null then
            v_order(
                internal_dedup_order(
                    p_messages(v_place).group_key, p_messages(v_place).message_id
                )
            ) := v_place;
        end if;
        v_place := p_messages.next(v_place);
    end loop;

    v_at := v_order.first;
    while v_at is not null loop
        v_place := v_order(v_at);
        v_key := utl_raw.cast_to_raw(p_messages(v_place).group_key);
        -- A group that is full stays so until the end of this transaction.
        v_is_full := v_key = v_full_key;
        if v_is_full is null or not v_is_full then
            v_is_full := not internal_enter_group(p_part_id, v_key, true);
        end if;
        if v_is_full then
            v_full_key := v_key;
            p_waiting(v_place) := v_place;
            v_keys(v_keys.count + 1) := v_key;
            v_behind(v_keys.count) := p_messages(v_place);
        end if;
        v_at := v_order.next(v_at);
    end loop;

    forall i in 1 .. v_keys.count
        insert into rowq_grouped (part_id, group_key, message_id, lane)
        values (p_part_id, v_keys(i), v_behind(i).message_id, v_behind(i).lane);
end internal_join_groups;

procedure internal_block_batch(
    p_part_id in number,
    p_new     in t_new_messages,
    p_ready   in out nocopy t_numbers,
    p_later   in out nocopy t_numbers
)
is
-- routine   internal_block_batch
-- purpose   Let new messages wait for their predecessors; p_ready and p_later have the places of those that are due and of those that are not, and keep those that wait for nothing.
-- promise   P15 P25 P26 P27
-- locks     as internal_block
-- errors    RQ711
    v_ids        rowq_ids;
    v_places     rowq_ids;
    v_is_blocked boolean;
begin
    for i in 1 .. p_new.count loop
        if p_new(i).outcome = 'enqueued' and p_new(i).predecessor_ids is not null then
            v_ids := p_new(i).predecessor_ids;
            v_places := p_new(i).predecessor_positions;
            if v_places is not null then
                for k in 1 .. v_places.count loop
                    v_ids.extend;
                    v_ids(v_ids.last) := p_new(v_places(k)).message_id;
                end loop;
            end if;
            v_is_blocked := internal_block(
                p_part_id, p_new(i).message_id, p_new(i).place, p_new(i).lane, p_new(i).due_at,
                p_new(i).group_key, v_ids, p_new(i).on_predecessor_dead
            );
            if v_is_blocked then
                p_ready.delete(i);
                p_later.delete(i);
            end if;
        end if;
    end loop;
end internal_block_batch;

drop procedure if exists rowq.internal_block;

delimiter //
create procedure rowq.internal_block(
    p_part_id int,
    p_message_id bigint,
    p_place int,
    p_lane smallint,
    p_due_at datetime(6),
    p_group_key varbinary(800),
    p_predecessor_ids longtext,
    p_own_id bigint,
    p_on_dead varchar(20),
    p_owns_transaction boolean,
    out p_state varchar(20)
)
sql security definer
modifies sql data
begin
-- routine   internal_block
-- purpose   Let a new message wait for its predecessors: waiting, unsure, failed with one, or free where all have ended. The caller frees the dedup key of one that has failed. p_own_id is the newest of them that this call has stored, p_place the message's place in a batch, or 0.
-- promise   P15 P25 P26 P27 P32
-- locks     as internal_await_predecessor; new blocked, dead and result rows
-- errors    RQ711
    declare v_ids, v_rest_ids longtext;
    declare v_newest_id, v_predecessor_id bigint;
    declare v_looks int;

    -- A number that is too big for an id is read as null.
    select json_arrayagg(h.message_id), max(h.message_id) into v_ids, v_newest_id
    from (
        select distinct coalesce(a.message_id, 9223372036854775807) as message_id
        from json_table(p_predecessor_ids, '$[*]' columns (message_id bigint path '$')) a
        order by coalesce(a.message_id, 9223372036854775807) desc
        limit 1000000
    ) h
    where h.message_id > 0;
    if v_newest_id >= p_message_id then
        call rowq.internal_refuse(
            concat(
                'predecessor_ids must name messages that are there',
                if(p_place > 0, concat(' (message ', p_place, ')'), '')
            )
        );
    end if;

    set p_state = 'free';
    if v_newest_id = p_own_id then
        -- Nobody else sees this predecessor yet.
        update rowq.message m force index (primary)
        set m.has_successors = true
        where m.message_id = p_own_id;
        insert into rowq.successor (part_id, predecessor_id, message_id)
        values (p_part_id, p_own_id, p_message_id);
        set p_state = 'waiting', v_predecessor_id = p_own_id,
            v_rest_ids = json_remove(v_ids, '$[0]');
        set v_rest_ids = nullif(v_rest_ids, '[]');
    elseif v_ids is not null then
        call rowq.internal_await_predecessor(
            p_part_id, p_message_id, v_ids, p_on_dead, p_owns_transaction, p_owns_transaction,
            null, p_state, v_predecessor_id, v_rest_ids, v_looks
        );
    end if;

    if p_state = 'failed' then
        insert into rowq.dead (part_id, message_id, lane, attempt, died_at, last_error)
        values (
            p_part_id, p_message_id, p_lane, 0, utc_timestamp(6),
            concat('predecessor ', v_predecessor_id, ' is dead')
        );
        call rowq.internal_push_result(
            p_part_id, json_array(json_array(p_message_id + 0)), 'dead', null, null, null
        );
    elseif p_state <> 'free' then
        insert into rowq.blocked (
            part_id, message_id, lane, predecessor_id, due_at, on_dead, group_key, rest_ids
        )
        values (
            p_part_id, p_message_id, p_lane, v_predecessor_id, p_due_at, p_on_dead, p_group_key,
            v_rest_ids
        );
        if p_state = 'unsure' then
            call rowq.internal_recheck_later(
                p_part_id, json_array(p_message_id + 0), null, false
            );
        end if;
    end if;
end//
delimiter ;

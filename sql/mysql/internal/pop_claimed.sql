drop procedure if exists rowq.internal_pop_claimed;

delimiter //
create procedure rowq.internal_pop_claimed(
    p_part_id int,
    p_claim_id bigint,
    p_message_ids longtext,
    p_owns_transaction boolean,
    out p_is_keyed boolean,
    out p_messages longtext,
    out p_cancel_ids longtext,
    out p_worker_name varchar(200),
    out p_leased_at datetime(6)
)
sql security definer
modifies sql data
begin
-- routine   internal_pop_claimed
-- purpose   Take messages out of a claim: those asked for that it still holds, or all of them; null when there is none. p_is_keyed is false where none has a dedup key; p_cancel_ids are those of them that were cancelled, null where there is none; p_worker_name and p_leased_at are of the lease.
-- promise   P08
-- locks     the claim row, first of all
-- errors    RQ721
-- differs   a claim holds its messages as a range of ids or as a JSON array
    declare v_claim_id bigint default p_claim_id;
    declare v_held, v_kept, v_noted, v_kept_noted longtext;
    declare v_first_id, v_last_id bigint;
    declare v_lane, v_attempt smallint;
    declare v_at int;
    declare v_id, v_place varchar(40);
    set p_messages = null, p_cancel_ids = null;

    if not p_owns_transaction then
        call rowq.internal_bound_gap(p_part_id, v_claim_id);
    end if;
    -- A locking read by the whole key finds the row as it is now, even under an old snapshot.
    select c.is_keyed, c.lane, c.attempt, c.first_id, c.last_id, c.messages,
           c.cancel_ids, c.worker_name, c.leased_at
    into p_is_keyed, v_lane, v_attempt, v_first_id, v_last_id, v_held, v_noted, p_worker_name,
         p_leased_at
    from rowq.claim c force index (primary)
    where c.part_id = p_part_id
      and c.claim_id = v_claim_id
      and c.claim_id > 0
    for update;
    if v_held is null and v_first_id is not null then
        call rowq.internal_expand_range(v_first_id, v_last_id, v_lane, v_attempt, v_held);
    end if;
    if v_held is null and p_message_ids is null then
        call rowq.internal_refuse_claim(p_claim_id);
    end if;

    if p_message_ids is null then
        set p_messages = v_held;
    elseif json_length(p_message_ids) = 1 then
        -- Find one message by the text of its id. The number of entries before that text is its
        -- place in the array.
        set v_id = trim(leading '0' from json_value(p_message_ids, '$[0]'));
        set v_at = locate(concat('[', v_id, ','), v_held);
        if v_at > 0 then
            set v_place = concat('$[', json_length(concat(left(v_held, v_at - 1), '0]')) - 1, ']');
            set p_messages = concat('[', json_extract(v_held, v_place), ']');
            if json_length(v_held) > 1 then
                set v_kept = json_remove(v_held, v_place);
            end if;
        end if;
    elseif v_held is not null then
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into p_messages
        from json_table(
            v_held,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        straight_join (
            select distinct a.message_id
            from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
        ) w on w.message_id = j.message_id;
        if json_length(p_messages) < json_length(v_held) then
            select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into v_kept
            from json_table(
                v_held,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    lane smallint path '$[1]',
                    attempt smallint path '$[2]'
                )
            ) j
            left join (
                select distinct a.message_id
                from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
            ) w on w.message_id = j.message_id
            where w.message_id is null;
        end if;
    end if;

    if v_noted is not null then
        select json_arrayagg(n.message_id) into p_cancel_ids
        from json_table(v_noted, '$[*]' columns (message_id bigint path '$')) n
        straight_join (
            select distinct j.message_id
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        ) w on w.message_id = n.message_id;
        select json_arrayagg(n.message_id) into v_kept_noted
        from json_table(v_noted, '$[*]' columns (message_id bigint path '$')) n
        left join (
            select distinct j.message_id
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        ) w on w.message_id = n.message_id
        where w.message_id is null;
    end if;

    if v_kept is not null then
        update rowq.claim c force index (primary)
        set c.messages = v_kept,
            c.cancel_ids = v_kept_noted
        where c.part_id = p_part_id
          and c.claim_id = p_claim_id;
    elseif p_messages is not null then
        delete c
        from rowq.claim c force index (primary)
        where c.part_id = p_part_id
          and c.claim_id = p_claim_id;
    end if;
end//
delimiter ;

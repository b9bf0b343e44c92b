drop procedure if exists rowq.internal_pop_claimed;

delimiter //
create procedure rowq.internal_pop_claimed(
    p_part_id int,
    p_claim_id bigint,
    p_message_ids longtext,
    p_owns_transaction boolean,
    out p_messages longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_pop_claimed
-- version   1
-- purpose   Take messages out of a claim: those asked for that it still holds, or all of them; null when there is none.
-- promise   P08
-- locks     the claim row, first of all
-- commits   never; the caller owns the transaction
-- errors    RQ721
-- differs   a claim holds its messages as a JSON array
    declare v_claim_id bigint default p_claim_id;
    declare v_held, v_kept longtext;
    declare v_at int;
    declare v_id, v_place varchar(40);
    set p_messages = null;

    if not p_owns_transaction then
        call rowq.internal_bound_gap(p_part_id, v_claim_id);
    end if;
    -- By its whole key; an old snapshot, too, sees the row as it is now.
    select c.messages into v_held
    from rowq.claim c force index (primary)
    where c.part_id = p_part_id
      and c.claim_id = v_claim_id
      and c.claim_id > 0
    for update;
    if v_held is null and p_message_ids is null then
        call rowq.internal_refuse_claim(p_claim_id);
    end if;

    if p_message_ids is null then
        set p_messages = v_held;
    elseif json_length(p_message_ids) = 1 then
        -- One message is found by the text of its id; what stands before it says its place.
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
        where j.message_id in (
            select a.message_id
            from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
        );
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
            where j.message_id not in (
                select a.message_id
                from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
            );
        end if;
    end if;

    if v_kept is not null then
        update rowq.claim c force index (primary)
        set c.messages = v_kept
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

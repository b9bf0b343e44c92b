drop procedure if exists rowq.internal_note_cancels;

delimiter //
create procedure rowq.internal_note_cancels(
    p_part_id int,
    p_message_ids longtext,
    out p_noted_ids longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_note_cancels
-- purpose   Note in the claims that hold these messages that they were cancelled; return those noted, null where there is none.
-- promise   P34
-- locks     claim rows, passing over locked ones
    declare v_claim_ids, v_notes, v_noted longtext;
    declare v_notes_before int;
    set p_noted_ids = null;

    -- Find claims without locks, then lock them by their whole keys, so that no gap is locked.
    call rowq.internal_claims_of(p_part_id, p_message_ids, v_claim_ids, p_noted_ids);
    if v_claim_ids is not null then
        set p_noted_ids = null;
        select json_arrayagg(h.claim_id), sum(h.has_notes) into v_notes, v_notes_before
        from (
            select c.claim_id, c.cancel_ids is not null as has_notes
            from (
                select distinct a.claim_id
                from json_table(v_claim_ids, '$[*]' columns (claim_id bigint path '$')) a
            ) j
            straight_join rowq.claim c force index (primary)
                on c.part_id = p_part_id
               and c.claim_id = j.claim_id
            for update /*!80000 of c */ skip locked
        ) h;
        set v_claim_ids = v_notes, v_notes = null;
    end if;

    -- Read the rows as they are now, even under an old snapshot.
    if v_notes_before > 0 then
        select json_arrayagg(h.message_id) into v_noted
        from (
            select n.message_id
            from json_table(v_claim_ids, '$[*]' columns (claim_id bigint path '$')) l
            straight_join rowq.claim c force index (primary)
                on c.part_id = p_part_id
               and c.claim_id = l.claim_id
            straight_join json_table(
                c.cancel_ids, '$[*]' columns (message_id bigint path '$')
            ) n
            straight_join (
                select distinct a.message_id
                from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
            ) w on w.message_id = n.message_id
            for update /*!80000 of c */
        ) h;
    end if;
    if v_claim_ids is not null then
        -- A list of ids goes as a text.
        select json_arrayagg(json_array(h.claim_id, concat(h.ids, ''))) into v_notes
        from (
            select c.claim_id, json_arrayagg(w.message_id) as ids
            from json_table(v_claim_ids, '$[*]' columns (claim_id bigint path '$')) l
            straight_join rowq.claim c force index (primary)
                on c.part_id = p_part_id
               and c.claim_id = l.claim_id
            straight_join json_table(
                coalesce(c.messages, concat('[[0]', repeat(',[0]', c.last_id - c.first_id), ']')),
                '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
            ) j
            straight_join (
                select distinct a.message_id
                from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
            ) w on w.message_id = if(c.messages is null, c.first_id + j.place - 1, j.message_id)
            left join (
                select distinct a.message_id
                from json_table(v_noted, '$[*]' columns (message_id bigint path '$')) a
            ) o on o.message_id = w.message_id
            where o.message_id is null
            group by c.claim_id
            for update /*!80000 of c */
        ) h;
        update json_table(
            v_notes, '$[*]' columns (claim_id bigint path '$[0]', ids longtext path '$[1]')
        ) n
        straight_join rowq.claim c force index (primary)
            on c.part_id = p_part_id
           and c.claim_id = n.claim_id
        set c.cancel_ids = json_merge_preserve(coalesce(c.cancel_ids, '[]'), n.ids);
        select json_arrayagg(j.message_id) into p_noted_ids
        from json_table(v_notes, '$[*]' columns (ids longtext path '$[1]')) n
        straight_join json_table(n.ids, '$[*]' columns (message_id bigint path '$')) j;
        if v_noted is not null then
            set p_noted_ids = json_merge_preserve(v_noted, coalesce(p_noted_ids, '[]'));
        end if;
    end if;
end//
delimiter ;

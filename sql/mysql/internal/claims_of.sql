drop procedure if exists rowq.internal_claims_of;

delimiter //
create procedure rowq.internal_claims_of(
    p_part_id int,
    p_message_ids longtext,
    out p_claim_ids longtext,
    out p_held_ids longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_claims_of
-- purpose   Find the claims that hold any of these messages, and which messages these are; null where there is none.
-- differs   PostgreSQL compares arrays
    -- An array of as many entries stands for a range.
    select json_arrayagg(h.claim_id), json_arrayagg(h.message_id) into p_claim_ids, p_held_ids
    from (
        select c.claim_id, w.message_id
        from rowq.claim c force index (primary)
        straight_join json_table(
            coalesce(c.messages, concat('[[0]', repeat(',[0]', c.last_id - c.first_id), ']')),
            '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
        ) j
        straight_join (
            select distinct a.message_id
            from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
        ) w on w.message_id = if(c.messages is null, c.first_id + j.place - 1, j.message_id)
        where c.part_id = p_part_id
          and c.claim_id > 0
    ) h;
end//
delimiter ;

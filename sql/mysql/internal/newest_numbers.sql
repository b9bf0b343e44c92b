drop procedure if exists rowq.internal_newest_numbers;

delimiter //
create procedure rowq.internal_newest_numbers(
    p_part_id int,
    p_next_id bigint,
    p_next_claim bigint,
    inout p_message_id bigint,
    inout p_claim_id bigint
)
sql security definer
reads sql data
begin
-- routine   internal_newest_numbers
-- purpose   Raise p_message_id and p_claim_id to a queue's newest ids, if these are beyond the numbers that come next.
-- promise   P08 P13
-- differs   here the table of messages is always ahead of its own numbers
    -- uuid_short counts so many numbers on from one second in which a server starts to the next. A
    -- server that has started earlier has lower numbers and never comes to those that are stored;
    -- one that has started in the same second gives them out again.
    declare c_second int default 16777216;
    declare v_state varchar(20);
    declare v_message_id, v_claim_id bigint;
    declare v_lease_until datetime(6);

    -- Begin each look where the next number would be, beyond all rows of the queue, dead ones too.
    select r.message_id, r.state into v_message_id, v_state
    from rowq.result r force index (primary)
    where r.part_id = p_part_id
      and r.message_id >= p_next_id
    order by r.part_id, r.message_id
    limit 1;
    if v_message_id is not null then
        select greatest(p_message_id, r.message_id), r.state into p_message_id, v_state
        from rowq.result r force index (primary)
        where r.part_id = p_part_id
        order by r.part_id desc, r.message_id desc
        limit 1;
    end if;

    set v_message_id = null;
    select h.message_id into v_message_id
    from rowq.history h force index (history_message_ix)
    where h.part_id = p_part_id
      and h.message_id >= p_next_id
    order by h.part_id, h.message_id
    limit 1;
    if v_message_id is not null then
        select greatest(p_message_id, h.message_id) into p_message_id
        from rowq.history h force index (history_message_ix)
        where h.part_id = p_part_id
        order by h.part_id desc, h.message_id desc
        limit 1;
    end if;

    select c.claim_id, c.lease_until into v_claim_id, v_lease_until
    from rowq.claim c force index (primary)
    where c.part_id = p_part_id
      and c.claim_id >= p_next_claim
    order by c.part_id, c.claim_id
    limit 1;
    if v_claim_id < p_next_claim + c_second then
        select greatest(p_claim_id, c.claim_id), c.lease_until into p_claim_id, v_lease_until
        from rowq.claim c force index (primary)
        where c.part_id = p_part_id
          and c.claim_id < p_next_claim + c_second
        order by c.part_id desc, c.claim_id desc
        limit 1;
    end if;
end//
delimiter ;

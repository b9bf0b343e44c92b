drop procedure if exists rowq.internal_end_held;

delimiter //
create procedure rowq.internal_end_held(
    p_part_id int,
    p_message_id bigint,
    inout p_most int,
    inout p_most_looks int,
    out p_is_done boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_end_held
-- purpose   Delete a message that has ended while another transaction had locked its row, and let the messages go on that have come to wait for it; p_is_done is false where the row is locked still. p_most and p_most_looks are as for internal_free_successors. The transaction must be the call's own.
-- promise   P26
-- locks     the message row, tried only; as internal_free_successors
    declare v_message_id bigint;
    declare v_is_awaited boolean;
    select m.message_id, coalesce(m.has_successors, false) into v_message_id, v_is_awaited
    from rowq.message m force index (primary)
    where m.message_id = p_message_id
    for update skip locked;
    if v_message_id is null then
        select count(*) = 0 into p_is_done
        from rowq.message m force index (primary)
        where m.message_id = p_message_id;
    else
        delete from rowq.message
        where message_id = p_message_id;
        if v_is_awaited then
            call rowq.internal_free_successors(
                p_part_id, p_message_id, true, p_most, p_most_looks
            );
        end if;
        set p_is_done = true;
    end if;
end//
delimiter ;

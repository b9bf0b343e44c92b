drop procedure if exists rowq.internal_end_awaited;

delimiter //
create procedure rowq.internal_end_awaited(
    p_part_id int,
    p_messages longtext,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_end_awaited
-- purpose   Delete those of these messages that are still there, because others wait for them, and let these go on.
-- promise   P26
-- locks     message rows; as internal_free_successors
-- differs   PostgreSQL learns by the delete itself who waits
    declare v_ties longtext;
    call rowq.internal_read_ties(p_messages, null, false, true, v_ties);
    delete m
    from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
    if v_ties is not null then
        call rowq.internal_cut_ties(p_part_id, v_ties, p_owns_transaction);
    end if;
end//
delimiter ;

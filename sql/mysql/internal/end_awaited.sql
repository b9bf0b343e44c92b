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
-- purpose   Delete those of these messages that are still there, none with a key, and let the messages go on that wait for them; leave to maintain those whose rows another transaction has locked.
-- promise   P26
-- locks     as internal_read_ties and internal_cut_ties; new recheck rows
-- differs   PostgreSQL learns by the delete itself who waits
    declare v_ties, v_held longtext;
    call rowq.internal_read_ties(p_messages, null, false, true, v_ties, v_held);
    call rowq.internal_delete_messages(p_part_id, p_messages, v_held);
    if v_ties is not null then
        call rowq.internal_cut_ties(p_part_id, v_ties, p_owns_transaction);
    end if;
end//
delimiter ;

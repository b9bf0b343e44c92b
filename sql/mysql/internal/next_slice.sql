drop procedure if exists rowq.internal_next_slice;

delimiter //
create procedure rowq.internal_next_slice(inout p_messages longtext, out p_slice longtext)
sql security definer
reads sql data
begin
-- routine   internal_next_slice
-- purpose   Take as many messages from the head of an array as internal_read_ties can return the ties of, however long their keys are; p_messages are the others, or null.
-- promise   P12 P22
-- differs   elsewhere no aggregate is cut off at the length of a packet
    -- Two keys of 800 bytes in hex, an id, and what stands between them.
    declare c_longest_tie int default 3300;
    declare v_most int default greatest(1, @@max_allowed_packet div c_longest_tie);

    if json_length(p_messages) > v_most then
        call rowq.internal_cut_slice(p_messages, v_most, p_slice);
    else
        set p_slice = p_messages, p_messages = null;
    end if;
end//
delimiter ;

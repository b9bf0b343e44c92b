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
    declare v_all longtext default p_messages;

    set p_slice = p_messages, p_messages = null;
    if json_length(v_all) > v_most then
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into p_slice
        from json_table(
            v_all,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        where j.place <= v_most;
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into p_messages
        from json_table(
            v_all,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        where j.place > v_most;
    end if;
end//
delimiter ;

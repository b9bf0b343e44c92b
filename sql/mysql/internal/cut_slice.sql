drop procedure if exists rowq.internal_cut_slice;

delimiter //
create procedure rowq.internal_cut_slice(
    inout p_messages longtext,
    p_most int,
    out p_slice longtext
)
sql security definer
reads sql data
begin
-- routine   internal_cut_slice
-- purpose   Take up to p_most messages from the head of an array; p_messages are the others, or null.
-- differs   elsewhere an array has slices
    declare v_all longtext default p_messages;

    set p_slice = p_messages, p_messages = null;
    if json_length(v_all) > p_most then
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
        where j.place <= p_most;
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
        where j.place > p_most;
    end if;
end//
delimiter ;

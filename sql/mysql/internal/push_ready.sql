drop procedure if exists rowq.internal_push_ready;

delimiter //
create procedure rowq.internal_push_ready(p_part_id int, p_messages longtext)
sql security definer
modifies sql data
begin
-- routine   internal_push_ready
-- version   1
-- purpose   Append messages to lanes, in the order of the array, under new numbers.
-- promise   P02 P14
-- locks     new ready rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    declare v_seq bigint;
    set v_seq = timestampdiff(microsecond, '1970-01-01', utc_timestamp(6));

    insert into rowq.ready (part_id, lane, seq, message_id, attempt)
    select p_part_id, j.lane, v_seq + j.place, j.message_id, j.attempt
    from json_table(
        p_messages,
        '$[*]' columns (
            place for ordinality,
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j;
end//
delimiter ;

drop procedure if exists rowq.internal_push_dead;

delimiter //
create procedure rowq.internal_push_dead(p_part_id int, p_messages longtext, p_error longtext)
sql security definer
modifies sql data
begin
-- routine   internal_push_dead
-- version   1
-- purpose   Keep messages as dead with the last error; their dedup keys are free again.
-- promise   P10 P12
-- locks     new dead rows; message rows; dedup rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    insert into rowq.dead (part_id, message_id, lane, attempt, died_at)
    select p_part_id, j.message_id, j.lane, j.attempt, utc_timestamp(6)
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j;

    call rowq.internal_note_error(p_messages, p_error);
    call rowq.internal_release_dedup_keys(p_part_id, p_messages);
end//
delimiter ;

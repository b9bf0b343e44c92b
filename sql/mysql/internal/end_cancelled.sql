drop procedure if exists rowq.internal_end_cancelled;

delimiter //
create procedure rowq.internal_end_cancelled(
    p_part_id int,
    p_cancel_ids longtext,
    p_owns_transaction boolean,
    inout p_messages longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_end_cancelled
-- purpose   End those messages of a claim that were cancelled, and leave the others in p_messages; null where there is none.
-- promise   P34
-- locks     as internal_finish
    declare v_archive_days int;
    declare v_ended, v_rest longtext;

    select q.archive_days into v_archive_days
    from rowq.queue q
    where q.part_id = p_part_id;
    select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into v_ended
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j
    straight_join (
        select distinct a.message_id
        from json_table(p_cancel_ids, '$[*]' columns (message_id bigint path '$')) a
    ) w on w.message_id = j.message_id;
    select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into v_rest
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j
    left join (
        select distinct a.message_id
        from json_table(p_cancel_ids, '$[*]' columns (message_id bigint path '$')) a
    ) w on w.message_id = j.message_id
    where w.message_id is null;
    call rowq.internal_finish(
        p_part_id, v_archive_days, true, v_ended, null, null, p_owns_transaction, 'cancelled'
    );
    set p_messages = v_rest;
end//
delimiter ;

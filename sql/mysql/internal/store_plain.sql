drop procedure if exists rowq.internal_store_plain;

delimiter //
create procedure rowq.internal_store_plain(
    p_part_id int,
    p_messages longtext,
    out p_first_id bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_store_plain
-- purpose   Keep a batch of plain messages in two inserts; returns the first id, or null where it kept nothing.
-- promise   P01 P05
-- locks     new rows only; the next number of message, until they are inserted
-- differs   internal_store_batch keeps every batch; this is twice as fast
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_count, v_plain_count int;
    declare v_places longtext;
    set p_first_id = null;

    -- The ids of one insert follow each other in modes 0 and 1 only. Until it ends, other producers
    -- wait for their ids, so it does not store very much.
    if @@global.innodb_autoinc_lock_mode < 2 and length(p_messages) < 1000000 then
        -- A plain message has a text body and nothing else, and internal_message_fault would refuse
        -- no such body.
        select count(*),
               sum(json_length(j.message) = 1
                   and left(j.body, 1) = '"'
                   and length(j.body) <= least(
                       q.max_body_length,
                       (cast(@@global.max_allowed_packet as signed) - 1600000) div 6
                   ))
        into v_count, v_plain_count
        from rowq.queue q
        straight_join json_table(
            p_messages, '$[*]' columns (message json path '$', body json path '$.body')
        ) j
        where q.part_id = p_part_id;
    end if;

    -- The lane of the default priority is always open.
    if v_count = v_plain_count then
        insert into rowq.message (part_id, enqueued_at, body)
        select p_part_id, v_now + interval j.place microsecond, json_unquote(j.body)
        from json_table(
            p_messages, '$[*]' columns (place for ordinality, body json path '$.body')
        ) j;
        set p_first_id = last_insert_id();
        -- An array of as many zeros counts them, and is read faster than the messages.
        set v_places = concat('[0', repeat(',0', v_count - 1), ']');
        insert into rowq.ready (part_id, lane, seq, message_id, is_keyed)
        select p_part_id, 11,
               timestampdiff(microsecond, '1970-01-01', v_now) + j.place,
               p_first_id + (j.place - 1) * @@auto_increment_increment,
               false
        from json_table(v_places, '$[*]' columns (place for ordinality)) j;
    end if;
end//
delimiter ;

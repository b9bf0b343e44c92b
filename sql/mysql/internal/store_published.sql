drop procedure if exists rowq.internal_store_published;

delimiter //
create procedure rowq.internal_store_published(
    p_part_id int,
    p_messages longtext,
    p_places longblob,
    out p_results longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_store_published
-- purpose   Keep published messages that are plain but for their topics, in two inserts; returns [position, message_id, outcome] of each as internal_store_batch does, or null where it kept nothing.
-- promise   P01 P05
-- locks     new rows only; the next number of message, until they are inserted
-- differs   internal_store_batch keeps every batch; this does what internal_store_plain does
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_count, v_plain_count int;
    declare v_first_id bigint;
    declare v_ordinals longtext;
    set p_results = null;

    -- As in internal_store_plain. A topic of other characters, or with escapes, is left to
    -- internal_store_batch.
    if @@global.innodb_autoinc_lock_mode < 2 and length(p_messages) < 1000000 then
        select count(*),
               sum(json_length(j.message) = 2
                   and left(j.body, 1) = '"'
                   and length(j.body) <= least(
                       q.max_body_length,
                       (cast(@@global.max_allowed_packet as signed) - 1600000) div 6
                   )
                   and length(j.topic) between 3 and 202
                   and char_length(j.topic) = length(j.topic)
                   and j.topic regexp '\\A"[A-Za-z0-9_\\-]+([.][A-Za-z0-9_\\-]+)*"\\z')
        into v_count, v_plain_count
        from rowq.queue q
        straight_join json_table(
            p_messages,
            '$[*]' columns (
                message json path '$',
                body json path '$.body',
                topic json path '$.topic'
            )
        ) j
        where q.part_id = p_part_id;
    end if;

    if v_count = v_plain_count then
        insert into rowq.message (part_id, enqueued_at, message_type, body)
        select p_part_id, v_now + interval j.place microsecond, json_unquote(j.topic),
               json_unquote(j.body)
        from json_table(
            p_messages,
            '$[*]' columns (
                place for ordinality,
                body json path '$.body',
                topic json path '$.topic'
            )
        ) j;
        set v_first_id = last_insert_id(),
            v_ordinals = concat('[0', repeat(',0', v_count - 1), ']');
        insert into rowq.ready (part_id, lane, seq, message_id, is_keyed)
        select p_part_id, 11,
               timestampdiff(microsecond, '1970-01-01', v_now) + j.place,
               v_first_id + (j.place - 1) * @@auto_increment_increment,
               false
        from json_table(v_ordinals, '$[*]' columns (place for ordinality)) j;
        select json_arrayagg(
                   json_array(
                       coalesce(nullif(substring(p_places, j.place * 5 - 4, 5), '') + 0, j.place),
                       v_first_id + (j.place - 1) * @@auto_increment_increment,
                       'enqueued'
                   )
               )
        into p_results
        from json_table(v_ordinals, '$[*]' columns (place for ordinality)) j;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_store_batch;

delimiter //
create procedure rowq.internal_store_batch(
    p_part_id int,
    p_messages longtext,
    p_places longblob,
    p_owns_transaction boolean,
    out p_results longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_store_batch
-- purpose   Keep the messages of a batch; returns [position, message_id, outcome] of each. p_places is null, or of published messages their places in the batch that was given, five digits each, or '' where they are the same.
-- promise   P01 P05 P12 P15 P21 P25 P26 P27 P36
-- locks     new rows; with dedup and group keys, waits as enqueue does, in the order of the keys;
--           as internal_block
-- errors    RQ711
-- differs   PostgreSQL stores a batch as a set; here ids come one by one
    declare v_place int;
    declare v_message, v_chunk, v_body, v_message_type, v_headers, v_dedup_key longtext;
    declare v_group_key, v_joining, v_all_joining longtext;
    declare v_predecessor_ids, v_positions, v_on_predecessor_dead longtext;
    declare v_stored longtext default '';
    declare v_failed, v_slice, v_ties, v_held longtext;
    declare v_body_binary longblob;
    declare v_priority, v_max_attempts int;
    declare v_delay_seconds, v_expire_seconds double;
    declare v_delay bigint;
    declare v_run_at datetime(6);
    declare v_fault varchar(120);
    declare v_message_id, v_own_id bigint;
    declare v_outcome varchar(20);
    declare v_is_end boolean default false;
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_seq bigint default timestampdiff(microsecond, '1970-01-01', v_now);
    declare v_is_plain, v_is_failed boolean;
    declare v_has_places boolean
        default json_contains_path(p_messages, 'one', '$[*].predecessor_positions');
    declare v_is_in_order boolean
        default v_has_places or json_contains_path(p_messages, 'one', '$[*].group_key');
    declare v_max_body_length, v_usual_length int;
    -- Store in key order, so that two batches with the same keys cannot wait for each other; but
    -- messages of groups, and those that name others by their places, need ids in their own order,
    -- so that such a batch may meet a deadlock with another one, and is tried again. A plain
    -- message has a text body and nothing else. MySQL sorts texts by their places, but takes JSON
    -- into the sort, which then lacks memory; the limit makes it sort what was cast to text.
    declare each_message cursor for
        select h.place, h.message, h.is_plain, h.body
        from (
            select j.place, j.dedup_key, cast(j.message as char) as message,
                   coalesce(
                       json_length(j.message) = 1
                       and json_type(json_extract(j.message, '$.body')) = 'STRING',
                       false
                   ) as is_plain,
                   json_unquote(json_extract(j.message, '$.body')) as body
            from json_table(
                p_messages,
                '$[*]' columns (
                    place for ordinality,
                    message json path '$',
                    dedup_key varchar(200) path '$.dedup_key'
                )
            ) j
            limit 10000
        ) h
        order by if(v_is_in_order, null, h.dedup_key), h.place;
    declare continue handler for not found set v_is_end = true;
    -- No function returns a text that is longer than max_allowed_packet.
    declare exit handler for 1301
        call rowq.internal_refuse(
            'max_allowed_packet is too low for so many messages in one call'
        );
    set p_results = '[', v_chunk = '';

    select q.max_body_length,
           least(
               q.max_body_length, (cast(@@global.max_allowed_packet as signed) - 1600000) div 6
           )
    into v_max_body_length, v_usual_length
    from rowq.queue q
    where q.part_id = p_part_id;

    open each_message;
    messages: loop
        fetch each_message into v_place, v_message, v_is_plain, v_body;
        if v_is_end then
            leave messages;
        end if;
        set v_is_failed = false;
        if v_is_plain and length(v_body) <= v_usual_length then
            -- This does what internal_store does for most messages, and is five times as fast. The
            -- lane of the default priority is always open, and internal_message_fault would refuse
            -- no such body.
            insert into rowq.message (part_id, enqueued_at, body)
            values (p_part_id, v_now + interval v_place microsecond, v_body);
            set v_message_id = last_insert_id(), v_outcome = 'enqueued';
            insert into rowq.ready (part_id, lane, seq, message_id, is_keyed)
            values (p_part_id, 11, v_seq + v_place, v_message_id, false);
        else
            call rowq.internal_parse_message(
                v_message, p_places is not null, v_max_body_length, v_body, v_body_binary,
                v_message_type, v_headers, v_priority, v_delay_seconds, v_run_at, v_dedup_key,
                v_max_attempts, v_group_key, v_predecessor_ids, v_positions,
                v_on_predecessor_dead, v_expire_seconds, v_fault
            );
            set v_own_id = null;
            if v_positions is not null and v_fault is null then
                call rowq.internal_batch_predecessors(
                    v_place, v_stored, v_positions, v_predecessor_ids, v_own_id, v_fault
                );
            end if;
            if v_fault is not null then
                call rowq.internal_refuse(
                    concat(
                        left(v_fault, 80), ' (message ',
                        coalesce(nullif(substring(p_places, v_place * 5 - 4, 5), '') + 0, v_place),
                        ')'
                    )
                );
            end if;
            -- The delay counts from enqueued_at, so that messages with the same delay keep their
            -- order.
            set v_delay = round(v_delay_seconds * 1000000);
            if v_delay > 0 then
                set v_delay = v_delay + v_place;
            end if;
            call rowq.internal_store(
                p_part_id, v_place, v_now, v_body, v_body_binary, v_message_type, v_headers,
                v_priority,
                coalesce(v_run_at, v_now + interval v_delay microsecond),
                v_dedup_key, v_max_attempts, v_group_key, v_predecessor_ids, v_own_id,
                v_on_predecessor_dead, v_expire_seconds, p_owns_transaction, v_message_id,
                v_outcome, v_joining, v_is_failed
            );
            if v_joining is not null then
                if length(v_all_joining) + length(v_joining) + 10 > @@max_allowed_packet then
                    -- No text is longer than a packet.
                    call rowq.internal_store_grouped(
                        p_part_id, concat('[', v_all_joining, ']')
                    );
                    set v_all_joining = null;
                end if;
                set v_all_joining = concat_ws(',', v_all_joining, v_joining);
            end if;
            if v_is_failed then
                set v_failed = concat_ws(',', v_failed, concat('[', v_message_id, ']'));
            end if;
        end if;
        set v_is_end = false;
        if v_has_places then
            set v_stored = concat(
                v_stored,
                if(v_outcome = 'enqueued' and not v_is_failed, '1', '0'),
                lpad(v_message_id, 19, '0')
            );
        end if;

        -- Build the result in pieces, because a long text is copied each time something is added to
        -- it.
        set v_chunk = concat(
            v_chunk, if(p_results = '[' and v_chunk = '', '', ','),
            '[', coalesce(nullif(substring(p_places, v_place * 5 - 4, 5), '') + 0, v_place), ',',
            v_message_id, ',"', v_outcome, '"]'
        );
        if length(v_chunk) > 5000 then
            set p_results = concat(p_results, v_chunk), v_chunk = '';
        end if;
    end loop;
    close each_message;
    if v_all_joining is not null then
        call rowq.internal_store_grouped(p_part_id, concat('[', v_all_joining, ']'));
    end if;
    -- The keys of what has failed count for the messages of this batch.
    set v_failed = concat('[', v_failed, ']');
    while v_failed is not null do
        call rowq.internal_next_slice(v_failed, v_slice);
        call rowq.internal_read_ties(v_slice, null, true, false, v_ties, v_held);
        call rowq.internal_release_dedup_keys(p_part_id, v_ties);
    end while;
    set p_results = concat(p_results, v_chunk, ']');
end//
delimiter ;

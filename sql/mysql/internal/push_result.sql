drop procedure if exists rowq.internal_push_result;

delimiter //
create procedure rowq.internal_push_result(
    p_part_id int,
    p_messages longtext,
    p_state varchar(20),
    p_error longtext,
    p_results longtext,
    p_asked_ids longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_push_result
-- purpose   Keep how messages have ended, where the queue has result_seconds; p_results go along p_asked_ids, among which they are. Without p_error a dead message has that of its row in dead.
-- promise   P32
-- locks     result rows
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_result_seconds double;

    select q.result_seconds into v_result_seconds
    from rowq.queue q
    where q.part_id = p_part_id;

    if v_result_seconds > 0 and p_results is null then
        -- A dead message that is cancelled or purged has its row already.
        insert into rowq.result (part_id, message_id, finished_at, state, last_error)
        select p_part_id, j.message_id, v_now, p_state, left(p_error, 2000)
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        on duplicate key update
            finished_at = v_now,
            state       = p_state;
        if p_state = 'dead' and p_error is null then
            update json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.dead d force index (primary)
                on d.part_id = p_part_id
               and d.message_id = j.message_id
            straight_join rowq.result r force index (primary)
                on r.part_id = p_part_id
               and r.message_id = j.message_id
            set r.last_error = d.last_error;
        end if;
    elseif v_result_seconds > 0 then
        -- The limit has the engine keep the results in a table, and not read the text again for
        -- each message.
        insert into rowq.result (part_id, message_id, finished_at, state, result)
        select p_part_id, j.message_id, v_now, p_state,
               if(json_type(r.result) = 'NULL', null, r.result)
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join (
            select a.message_id, min(a.place) as place
            from json_table(
                p_asked_ids, '$[*]' columns (place for ordinality, message_id bigint path '$')
            ) a
            group by a.message_id
        ) w on w.message_id = j.message_id
        straight_join (
            select x.place, x.result
            from json_table(
                p_results, '$[*]' columns (place for ordinality, result json path '$')
            ) x
            limit 10000
        ) r on r.place = w.place;
    end if;
end//
delimiter ;

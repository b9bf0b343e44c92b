drop procedure if exists rowq.peek;

delimiter //
create procedure rowq.peek(p_queue_name longtext, p_max_messages int)
sql security definer
modifies sql data
comment 'Show the next ready messages without leasing them.'
begin
-- routine   peek
-- version   1
-- purpose   Show the next ready messages without leasing them.
-- promise   P05
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_queue_id int;
    declare v_left int default coalesce(p_max_messages, 1);
    declare v_lane smallint default -32768;
    declare v_is_hidden boolean default false;
    declare v_next smallint;
    declare v_floor bigint;
    declare v_some, v_messages longtext;
    declare exit handler for sqlexception
    begin
        call rowq.internal_restore_session();
        resignal;
    end;

    call rowq.internal_set_session(@@timestamp);
    call rowq.internal_check_range('max_messages', v_left, 1, 1000);
    call rowq.internal_require_queue(p_queue_name, v_queue_id);

    lanes: while v_left > 0 do
        set v_next = null;
        select l.lane, l.floor into v_next, v_floor
        from rowq.lane l force index (primary)
        where l.queue_id = v_queue_id
          and l.lane > v_lane
          and (l.is_open or v_is_hidden)
        order by l.queue_id, l.lane
        limit 1;
        if v_next is null then
            leave lanes;
        end if;
        if v_next < 0 then
            -- An open-lane request: read closed lanes too, which hold messages that an open
            -- transaction keeps other sessions from opening.
            set v_is_hidden = true, v_lane = -1;
            iterate lanes;
        end if;
        set v_lane = v_next;

        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt)) into v_some
        from (
            select r.lane, r.message_id, r.attempt
            from rowq.ready r force index (primary)
            where r.queue_id = v_queue_id
              and r.lane = v_lane
              and r.seq >= v_floor
              and r.seq < 9223372036854775806
            order by r.queue_id, r.lane, r.seq, r.message_id
            limit v_left
        ) h;
        if v_some is not null then
            set v_left = v_left - json_length(v_some);
            set v_messages = if(
                v_messages is null, v_some, json_merge_preserve(v_messages, v_some)
            );
        end if;
    end while;

    select m.message_id, j.lane div 2 as priority, j.attempt, m.message_type, m.headers, m.body,
           m.body_binary, m.enqueued_at, m.last_error
    from json_table(
        v_messages,
        '$[*]' columns (
            place for ordinality,
            message_id bigint path '$[0]',
            lane int path '$[1]',
            attempt int path '$[2]'
        )
    ) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    order by j.place;

    call rowq.internal_restore_session();
end//
delimiter ;

drop procedure if exists rowq.internal_promote;

delimiter //
create procedure rowq.internal_promote(
    p_part_id int,
    p_limit int,
    p_is_own boolean,
    out p_promoted int
)
sql security definer
modifies sql data
begin
    -- routine   internal_promote
    -- version   1
    -- purpose   Move up to p_limit due messages to the tails of their lanes, earliest first.
    -- promise   P11
    -- locks     delayed rows, passing over locked ones; new ready rows
    -- commits   never; the caller owns the transaction
    -- errors    none
    -- differs   nothing
    declare v_floor, v_to bigint;
    declare v_since, v_now, v_first datetime(6);
    declare v_seen, v_messages longtext;
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    set p_promoted = 0;

    select l.floor into v_floor
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -2;
    set v_since = v_epoch + interval v_floor microsecond,
        v_now = utc_timestamp(6);

    -- Looked for without locks, then locked by whole keys: under the caller's repeatable read a
    -- range would be locked with its gaps, and producers would wait.
    select json_arrayagg(json_array(
               h.message_id, h.attempt, timestampdiff(microsecond, '1970-01-01', h.due_at)
           ))
    into v_seen
    from (
        select d.due_at, d.message_id, d.attempt
        from rowq.delayed d force index (primary)
        where d.part_id = p_part_id
          and d.due_at >= v_since
          and d.due_at <= v_now
        order by d.part_id, d.due_at, d.message_id
        limit p_limit
    ) h;
    if v_seen is not null then
        select json_arrayagg(json_array(
                   h.message_id, h.lane, h.attempt,
                   timestampdiff(microsecond, '1970-01-01', h.due_at)
               )),
               count(*), min(h.due_at)
        into v_messages, p_promoted, v_first
        from (
            select d.due_at, d.message_id, d.lane, d.attempt
            from json_table(
                v_seen, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[2]')
            ) j
            straight_join rowq.delayed d force index (primary)
                on d.part_id = p_part_id
               and d.due_at = v_epoch + interval j.due_at microsecond
               and d.message_id = j.message_id
            limit p_limit
            for update skip locked
        ) h;
    end if;

    if p_promoted > 0 then
        delete d
        from json_table(
            v_messages, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[3]')
        ) j
        straight_join rowq.delayed d force index (primary)
            on d.part_id = p_part_id
           and d.due_at = v_epoch + interval j.due_at microsecond
           and d.message_id = j.message_id;
        call rowq.internal_to_ready(p_part_id, v_messages);

        if p_is_own and rand() < 0.08 * p_promoted then
            set v_to = least(
                timestampdiff(microsecond, '1970-01-01', v_first),
                timestampdiff(microsecond, '1970-01-01', v_now) - 500000
            );
            if v_to > v_floor then
                call rowq.internal_move_floor(p_part_id, -2, v_floor, v_to);
            end if;
        end if;
    end if;
end//
delimiter ;

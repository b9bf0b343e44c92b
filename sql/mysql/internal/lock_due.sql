drop procedure if exists rowq.internal_lock_due;

delimiter //
create procedure rowq.internal_lock_due(
    p_part_id int,
    p_since datetime(6),
    p_limit int,
    out p_messages longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_lock_due
-- purpose   Lock up to p_limit due messages, earliest first, but no more than fit into one text whatever their keys: [message_id, lane, attempt, due_at in microseconds, group key in hex or null].
-- promise   P06 P11 P13
-- locks     delayed rows, passing over locked ones
-- differs   elsewhere a range is locked without its gaps
    -- A key of 800 bytes in hex, three numbers, and what stands between them.
    declare c_longest int default 1800;
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_from datetime(6) default p_since;
    declare v_after bigint default 0;
    declare v_seen, v_some longtext;
    -- MariaDB cuts what json_arrayagg returns, too, and a dequeue pins no session for that.
    declare v_longest bigint default
        /*!80000 @@max_allowed_packet */
        /*M!100600 least(@@max_allowed_packet, @@group_concat_max_len) */;
    declare v_left int default least(p_limit, greatest(1, v_longest div c_longest));
    declare v_look int default v_left + 50;
    set p_messages = null;

    -- Find rows without locks, then lock them by their whole keys, as internal_lock_ready does in
    -- the caller's transaction, so that no gap is locked where producers insert.
    looks: while v_left > 0 do
        select json_arrayagg(json_array(
                   h.message_id, h.attempt, timestampdiff(microsecond, '1970-01-01', h.due_at)
               ))
        into v_seen
        from (
            select d.due_at, d.message_id, d.attempt
            from rowq.delayed d force index (primary)
            where d.part_id = p_part_id
              and d.due_at >= v_from
              and d.due_at <= v_now
              and (d.due_at > v_from or d.message_id > v_after)
            order by d.part_id, d.due_at, d.message_id
            limit v_look
        ) h;
        if v_seen is null then
            leave looks;
        end if;

        select json_arrayagg(json_array(
                   h.message_id, h.lane, h.attempt,
                   timestampdiff(microsecond, '1970-01-01', h.due_at), hex(h.group_key)
               ))
        into v_some
        from (
            select d.due_at, d.message_id, d.lane, d.attempt, d.group_key
            from json_table(
                v_seen, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[2]')
            ) j
            straight_join rowq.delayed d force index (primary)
                on d.part_id = p_part_id
               and d.due_at = v_epoch + interval j.due_at microsecond
               and d.message_id = j.message_id
            limit v_left
            for update /*!80000 of d */ skip locked
        ) h;
        if v_some is not null then
            set v_left = v_left - json_length(v_some);
            set p_messages = if(
                p_messages is null, v_some, json_merge_preserve(p_messages, v_some)
            );
        end if;
        if json_length(v_seen) < v_look then
            leave looks;
        end if;
        set v_from = v_epoch
                + interval json_extract(v_seen, concat('$[', v_look - 1, '][2]')) microsecond,
            v_after = json_extract(v_seen, concat('$[', v_look - 1, '][0]')),
            v_look = least(v_look * 2, 10000);
    end while;
end//
delimiter ;

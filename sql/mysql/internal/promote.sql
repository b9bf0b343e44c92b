drop procedure if exists rowq.internal_promote;

delimiter //
create procedure rowq.internal_promote(
    p_part_id int,
    p_limit int,
    p_owns_transaction boolean,
    out p_promoted int
)
sql security definer
modifies sql data
begin
-- routine   internal_promote
-- purpose   Move up to p_limit due messages to the tails of their lanes, or into their groups, earliest first.
-- promise   P11 P21
-- locks     delayed rows, passing over locked ones; new ready rows; as internal_try_enter_group
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_floor, v_first, v_seen, v_to bigint;
    declare v_since, v_now datetime(6);
    declare v_probe smallint;
    declare v_messages longtext;
    declare v_joined int default 0;
    set p_promoted = 0;

    select l.floor into v_floor
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -2 /* delayed */;
    set v_since = v_epoch + interval v_floor microsecond, v_now = utc_timestamp(6);

    select d.attempt into v_probe
    from rowq.delayed d force index (primary)
    where d.part_id = p_part_id
      and d.due_at >= v_since
      and d.due_at <= v_now
    order by d.part_id, d.due_at, d.message_id
    limit 1;
    if v_probe is not null then
        call rowq.internal_lock_due(p_part_id, v_since, p_limit, v_messages);
    end if;

    if v_messages is not null then
        set v_first = json_extract(v_messages, '$[0][3]');
        select count(j.group_key) into v_joined
        from json_table(v_messages, '$[*]' columns (group_key varchar(1600) path '$[4]')) j;
        if v_joined > 0 then
            call rowq.internal_promote_grouped(
                p_part_id, p_owns_transaction, v_messages, v_joined
            );
        end if;
        set p_promoted = v_joined;
    end if;

    if v_messages is not null then
        delete d
        from json_table(
            v_messages, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[3]')
        ) j
        straight_join rowq.delayed d force index (primary)
            on d.part_id = p_part_id
           and d.due_at = v_epoch + interval j.due_at microsecond
           and d.message_id = j.message_id;
        call rowq.internal_push_ready(p_part_id, v_messages);
        set p_promoted = p_promoted + json_length(v_messages);

        if p_owns_transaction and rand() < 0.08 * p_promoted then
            call rowq.internal_first_key(p_part_id, -2 /* delayed */, v_floor, v_seen);
            set v_to = least(
                    v_first, coalesce(v_seen, v_first),
                    timestampdiff(microsecond, '1970-01-01', v_now) - 500000
                );
            if v_to > v_floor then
                call rowq.internal_move_floor(p_part_id, -2 /* delayed */, v_floor, v_to);
            end if;
        end if;
    end if;
end//
delimiter ;

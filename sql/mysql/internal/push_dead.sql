drop procedure if exists rowq.internal_push_dead;

delimiter //
create procedure rowq.internal_push_dead(
    p_part_id int,
    p_messages longtext,
    p_error longtext,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_push_dead
-- purpose   Keep messages as dead with the last error; free their dedup keys, and their groups unless they are to wait.
-- promise   P10 P12 P21
-- locks     new dead rows; message rows; dedup rows; as internal_leave_groups
    declare v_is_held boolean;
    declare v_groups longtext;

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
    call rowq.internal_read_groups(p_messages, null, v_groups);
    if v_groups is not null then
        select q.group_after_dead = 'hold' into v_is_held
        from rowq.queue q
        where q.part_id = p_part_id;
        if v_is_held then
            update json_table(v_groups, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.dead d force index (primary)
                on d.part_id = p_part_id
               and d.message_id = j.message_id
            set d.holds_group = true;
        else
            call rowq.internal_leave_groups(p_part_id, v_groups, p_owns_transaction);
        end if;
    end if;
end//
delimiter ;

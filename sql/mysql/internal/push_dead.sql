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
-- purpose   Keep messages as dead with the last error; free their dedup keys, and their groups unless they are to wait; then what waits for them does as it asked.
-- promise   P10 P12 P21 P27 P32
-- locks     new dead rows; in the caller's transaction as internal_read_ties; new result rows; as
--           internal_release_dedup_keys, internal_leave_groups and internal_follow_deaths
    declare v_is_held boolean;
    declare v_rest longtext default p_messages;
    declare v_slice, v_ties, v_held longtext;
    declare v_looks int default 10000;

    insert into rowq.dead (part_id, message_id, lane, attempt, died_at, last_error)
    select p_part_id, j.message_id, j.lane, j.attempt, utc_timestamp(6), left(p_error, 2000)
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j;

    while v_rest is not null do
        call rowq.internal_next_slice(v_rest, v_slice);
        -- In a transaction of its own the call sees every message without a lock, and keys never
        -- change. Who has come to wait is looked for below.
        call rowq.internal_read_ties(
            v_slice, null, true, not p_owns_transaction, v_ties, v_held
        );
        if v_ties is not null then
            call rowq.internal_release_dedup_keys(p_part_id, v_ties);
            select q.group_after_dead = 'hold' into v_is_held
            from rowq.queue q
            where q.part_id = p_part_id;
            if v_is_held then
                update json_table(
                    v_ties,
                    '$[*]' columns (
                        message_id bigint path '$[0]',
                        group_key varchar(1600) path '$[1]'
                    )
                ) j
                straight_join rowq.dead d force index (primary)
                    on d.part_id = p_part_id
                   and d.message_id = j.message_id
                set d.holds_group = true
                where j.group_key is not null;
            else
                call rowq.internal_leave_groups(p_part_id, v_ties, p_owns_transaction);
            end if;
        end if;
    end while;
    call rowq.internal_push_result(p_part_id, p_messages, 'dead', p_error, null, null);
    call rowq.internal_follow_deaths(p_part_id, p_messages, null, p_owns_transaction, v_looks);
end//
delimiter ;

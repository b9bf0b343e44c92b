drop procedure if exists rowq.internal_follow_deaths;

delimiter //
create procedure rowq.internal_follow_deaths(
    p_part_id int,
    p_dead longtext,
    p_failed longtext,
    p_owns_transaction boolean,
    inout p_most_looks int
)
sql security definer
modifies sql data
begin
-- routine   internal_follow_deaths
-- purpose   Let what waits for dead messages do as it asked: arrays that begin with message_id. p_failed are messages that fail, as internal_unblock returns them, and are made dead first. p_most_looks is as for internal_unblock.
-- promise   P10 P12 P27 P32
-- locks     message rows, tried only; in the caller's transaction as internal_read_ties; new dead
--           and result rows; as internal_release_dedup_keys and internal_follow_death; new recheck
--           rows
    declare c_most int default 1000;
    declare v_count int default 0;
    declare v_dead longtext default p_dead;
    declare v_failed longtext default p_failed;
    declare v_rest, v_slice, v_ties, v_free, v_held, v_awaited longtext;
    declare v_at int;
    declare v_most int default c_most;

    levels: loop
        if v_failed is not null then
            insert into rowq.dead (part_id, message_id, lane, attempt, died_at, last_error)
            select p_part_id, j.message_id, j.lane, 0, utc_timestamp(6),
                   concat('predecessor ', j.dead_id, ' is dead')
            from json_table(
                v_failed,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    lane smallint path '$[1]',
                    dead_id bigint path '$[3]'
                )
            ) j;
            call rowq.internal_push_result(p_part_id, v_failed, 'dead', null, null, null);
            set v_rest = v_failed;
            while v_rest is not null do
                call rowq.internal_next_slice(v_rest, v_slice);
                call rowq.internal_read_ties(
                    v_slice, null, true, not p_owns_transaction, v_ties, v_held
                );
                if v_ties is not null then
                    call rowq.internal_release_dedup_keys(p_part_id, v_ties);
                end if;
            end while;
            set v_dead = v_failed, v_count = v_count + json_length(v_failed);
        end if;

        -- Where a row is locked, a producer is adding a message that waits: look again when it is
        -- there.
        select json_arrayagg(json_array(h.message_id, h.has_successors)) into v_free
        from (
            select m.message_id, m.has_successors
            from json_table(v_dead, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            limit 1000000
            for update /*!80000 of m */ skip locked
        ) h;
        select json_arrayagg(j.message_id) into v_awaited
        from json_table(
            v_free, '$[*]' columns (message_id bigint path '$[0]', is_awaited int path '$[1]')
        ) j
        where j.is_awaited;
        if coalesce(json_length(v_free), 0) < json_length(v_dead) then
            select json_arrayagg(j.message_id) into v_held
            from json_table(v_dead, '$[*]' columns (message_id bigint path '$[0]')) j
            left join (
                select distinct x.message_id
                from json_table(v_free, '$[*]' columns (message_id bigint path '$[0]')) x
            ) f on f.message_id = j.message_id
            where f.message_id is null;
            call rowq.internal_recheck_later(p_part_id, null, v_held, true);
        end if;

        -- An old snapshot does not show every message that waits, and a long tree dies in steps, so
        -- that no transaction grows without end.
        if v_awaited is null then
            leave levels;
        elseif not p_owns_transaction or v_count > c_most then
            call rowq.internal_recheck_later(p_part_id, null, v_awaited, true);
            leave levels;
        end if;

        set v_at = 0, v_failed = null;
        while v_at < json_length(v_awaited) do
            call rowq.internal_follow_death(
                p_part_id, json_extract(v_awaited, concat('$[', v_at, ']')), p_owns_transaction,
                v_most, p_most_looks, v_failed
            );
            set v_at = v_at + 1;
        end while;
        if v_failed is null then
            leave levels;
        end if;
    end loop;
end//
delimiter ;

drop procedure if exists rowq.internal_await_predecessor;

delimiter //
create procedure rowq.internal_await_predecessor(
    p_part_id int,
    p_message_id bigint,
    p_predecessor_ids longtext,
    p_on_dead varchar(20),
    p_is_fresh boolean,
    p_owns_transaction boolean,
    p_most_looks int,
    out p_state varchar(20),
    out p_predecessor_id bigint,
    out p_rest_ids longtext,
    out p_looks int
)
sql security definer
modifies sql data
begin
-- routine   internal_await_predecessor
-- purpose   Let a message wait for the first of these, newest first, that has not ended: waiting, free, failed, unsure where another transaction has locked it, or cut after p_most_looks of them, if that is not null. p_is_fresh says that a message that is not seen has ended.
-- promise   P25 P26 P27
-- locks     the predecessor's message row, tried only; a new successor row; new recheck rows
    declare v_count int default json_length(p_predecessor_ids);
    declare v_place int default 0;
    declare v_next int;
    declare v_shown_id, v_locked_id, v_after, v_ended_id bigint;
    declare v_has_successors boolean;
    declare v_last_place int;
    set p_state = null, p_rest_ids = null, p_looks = 0;

    looks: while p_state is null do
        set v_last_place = coalesce(
            least(v_count, v_place + greatest(p_most_looks - p_looks, 0)), v_count
        );
        set v_next = null, p_predecessor_id = null, v_locked_id = null, v_ended_id = null;
        select j.place, j.message_id, m.message_id, m.has_successors
        into v_next, p_predecessor_id, v_shown_id, v_has_successors
        from json_table(
            p_predecessor_ids, '$[*]' columns (place for ordinality, message_id bigint path '$')
        ) j
        left join rowq.message m force index (primary)
            on m.message_id = j.message_id
           and m.part_id = p_part_id
        where j.place > v_place
          and j.place <= v_last_place
          and (m.message_id is not null or not p_is_fresh)
        limit 1;
        set p_looks = p_looks + coalesce(v_next, v_last_place) - v_place;
        if v_next is null then
            set p_state = if(v_last_place < v_count, 'cut', 'free'), v_place = v_last_place;
            leave looks;
        end if;
        set v_place = v_next;
        if v_shown_id is null then
            -- It has ended, or is newer than the snapshot. A lock on a key that is not there would
            -- cover the gap where new messages go.
            set p_state = 'unsure';
            leave looks;
        end if;

        -- Hold the row to the end of the transaction: a call that ends the predecessor leaves the
        -- row to maintain meanwhile. This one waits for nobody.
        if v_has_successors then
            select m.message_id, m.has_successors into v_locked_id, v_has_successors
            from rowq.message m force index (primary)
            where m.message_id = p_predecessor_id
              and m.part_id = p_part_id
            /*!80000 for share skip locked */ /*M!100600 lock in share mode skip locked */;
        else
            select m.message_id, m.has_successors into v_locked_id, v_has_successors
            from rowq.message m force index (primary)
            where m.message_id = p_predecessor_id
              and m.part_id = p_part_id
            for update skip locked;
        end if;
        if v_locked_id is null and p_is_fresh then
            -- It is in others' hands, or has ended meanwhile.
            select m.message_id, 'unsure' into v_locked_id, p_state
            from rowq.message m force index (primary)
            where m.message_id = p_predecessor_id
              and m.part_id = p_part_id;
            iterate looks;
        elseif v_locked_id is null then
            set p_state = 'unsure';
            leave looks;
        end if;

        -- The archive keeps the message row for a while.
        select greatest(l.floor - 1, 0) into v_after
        from rowq.lane l force index (primary)
        where l.part_id = p_part_id
          and l.lane = -3 /* finished */;
        select f.finish_id into v_ended_id
        from rowq.finished f force index (primary)
        straight_join json_table(f.messages, '$[*]' columns (message_id bigint path '$[0]')) x
        where f.part_id = p_part_id
          and f.finish_id > v_after
          and x.message_id = p_predecessor_id
        limit 1;
        if v_ended_id is null and p_owns_transaction and p_on_dead in ('continue', 'fail') then
            select d.message_id into v_ended_id
            from rowq.dead d force index (primary)
            where d.part_id = p_part_id
              and d.message_id = p_predecessor_id;
            if v_ended_id is not null and p_on_dead = 'fail' then
                set p_state = 'failed';
                leave looks;
            end if;
        end if;
        if v_ended_id is not null then
            -- Thousands may have ended since the archiver was here: leave all of them out at once.
            select json_arrayagg(h.message_id) into p_predecessor_ids
            from (
                select j.message_id
                from json_table(
                    p_predecessor_ids,
                    '$[*]' columns (place for ordinality, message_id bigint path '$')
                ) j
                left join (
                    select distinct x.message_id
                    from rowq.finished f force index (primary)
                    straight_join json_table(
                        f.messages, '$[*]' columns (message_id bigint path '$[0]')
                    ) x
                    where f.part_id = p_part_id
                      and f.finish_id > v_after
                ) e on e.message_id = j.message_id
                where j.place > v_place
                  and e.message_id is null
                order by j.place
                limit 1000000
            ) h;
            set v_place = 0, v_count = coalesce(json_length(p_predecessor_ids), 0);
            iterate looks;
        end if;

        if v_has_successors is null then
            update rowq.message m force index (primary)
            set m.has_successors = true
            where m.message_id = p_predecessor_id;
        end if;
        insert ignore into rowq.successor (part_id, predecessor_id, message_id)
        values (p_part_id, p_predecessor_id, p_message_id);
        if not p_owns_transaction and p_on_dead in ('continue', 'fail') then
            -- An old snapshot does not show whether the predecessor is dead.
            call rowq.internal_recheck_later(
                p_part_id, null, json_array(p_predecessor_id + 0), true
            );
        end if;
        set p_state = 'waiting';
    end while;

    -- What is left of a list are its last members, and its end.
    if p_state = 'unsure' then
        set p_predecessor_id = null, v_place = v_place - 1;
    elseif p_state = 'cut' then
        set p_predecessor_id = null;
    end if;
    if p_state in ('waiting', 'unsure', 'cut') and v_place < v_count then
        set p_rest_ids = if(
            v_place = 0, p_predecessor_ids,
            concat('[', substring_index(p_predecessor_ids, ',', v_place - v_count))
        );
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_recheck;

delimiter //
create procedure rowq.internal_recheck(
    p_part_id int,
    p_limit int,
    p_owns_transaction boolean,
    p_may_reorder boolean,
    out p_solved int
)
sql security definer
modifies sql data
begin
-- routine   internal_recheck
-- purpose   Look again at up to p_limit tokens and messages that were left; return for how many that was enough. p_may_reorder: what stays may be put behind what was not looked at.
-- promise   P22 P24 P26 P27
-- locks     recheck rows, passing over locked ones; as internal_pass_group, internal_widen_group,
--           internal_let_go, internal_free_successors, internal_recheck_death,
--           internal_free_dedup_keys and internal_end_held
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_since, v_due_at datetime(6);
    declare v_recheck_id, v_last_id, v_message_id, v_predecessor_id bigint;
    declare v_group_key varbinary(800);
    declare v_is_hint, v_is_left, v_is_done boolean;
    declare v_seen, v_locked, v_notes, v_awaited, v_again longtext;
    declare v_next, v_note varchar(80);
    declare v_is_end boolean default false;
    declare v_most int default p_limit;
    declare v_looks int default 50 * p_limit;
    declare each_note cursor for
        select j.recheck_id, v_epoch + interval j.due_at microsecond
        from json_table(
            v_seen,
            '$[*]' columns (
                place for ordinality,
                recheck_id bigint path '$[0]',
                due_at bigint path '$[1]'
            )
        ) j
        order by j.place;
    declare continue handler for not found set v_is_end = true;
    set p_solved = 0;

    select v_epoch + interval l.floor microsecond into v_since
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -4 /* deferred */;
    -- Find rows without locks, then lock them by their whole keys, so that no gap is locked.
    select json_arrayagg(
               json_array(h.recheck_id, timestampdiff(microsecond, '1970-01-01', h.due_at))
           )
    into v_seen
    from (
        select r.due_at, r.recheck_id, r.is_hint
        from rowq.recheck r force index (primary)
        where r.part_id = p_part_id
          and r.due_at >= v_since
          and r.due_at <= v_now
        order by r.part_id, r.due_at, r.recheck_id
        limit p_limit
    ) h;

    open each_note;
    notes: loop
        set v_is_end = false, v_is_hint = null;
        fetch each_note into v_recheck_id, v_due_at;
        if v_is_end then
            leave notes;
        end if;
        set v_last_id = v_recheck_id;
        select r.group_key, r.message_id, r.predecessor_id, r.is_hint
        into v_group_key, v_message_id, v_predecessor_id, v_is_hint
        from rowq.recheck r force index (primary)
        where r.part_id = p_part_id
          and r.due_at = v_due_at
          and r.recheck_id = v_recheck_id
        for update skip locked;
        if v_is_hint is null then
            iterate notes;
        end if;
        set v_note = concat(
                '[', coalesce(v_message_id, 'null'), ',', v_recheck_id, ',',
                timestampdiff(microsecond, v_epoch, v_due_at), ']'
            ),
            v_locked = concat_ws(',', v_locked, v_note);
        -- An old snapshot does not show what has happened to messages since.
        if v_group_key is null and not p_owns_transaction then
            iterate notes;
        end if;

        -- A row that cannot be solved stays as it is: a producer that is idle in its transaction
        -- must not make every look write.
        if v_predecessor_id is not null and least(v_most, v_looks) = 0 then
            -- Others have used up what one call may do: leave this one to the next call.
            set v_is_done = false;
        elseif v_message_id = v_predecessor_id then
            call rowq.internal_end_held(
                p_part_id, v_message_id, v_most, v_looks, v_is_done
            );
        elseif v_message_id is not null then
            set v_is_done = false, v_notes = concat_ws(',', v_notes, v_note);
        elseif v_predecessor_id is not null and v_is_hint then
            call rowq.internal_recheck_death(p_part_id, v_predecessor_id, v_looks, v_is_done);
        elseif v_predecessor_id is not null then
            call rowq.internal_free_successors(
                p_part_id, v_predecessor_id, p_owns_transaction, v_most, v_looks
            );
            set v_is_done = true;
        elseif v_group_key is null then
            call rowq.internal_free_dedup_keys(p_part_id, v_is_done);
        elseif v_is_hint then
            call rowq.internal_widen_group(
                p_part_id, v_group_key, p_owns_transaction, v_is_done
            );
        else
            call rowq.internal_pass_group(
                p_part_id, v_group_key, true, p_owns_transaction, v_next, v_is_left
            );
            set v_is_done = not v_is_left;
            if v_next is not null then
                call rowq.internal_push_ready(p_part_id, concat('[', v_next, ']'));
            end if;
        end if;
        if v_is_done then
            delete from rowq.recheck
            where part_id = p_part_id
              and due_at = v_due_at
              and recheck_id = v_recheck_id;
            set p_solved = p_solved + 1;
        end if;
    end loop;
    close each_note;

    -- One call for all of the messages waits once for a producer that opens their group.
    if v_notes is not null then
        set v_notes = concat('[', v_notes, ']');
        select json_arrayagg(h.message_id) into v_awaited
        from (
            select distinct j.message_id
            from json_table(v_notes, '$[*]' columns (message_id bigint path '$[0]')) j
            order by j.message_id
            limit 1000000
        ) h;
        call rowq.internal_let_go(
            p_part_id, v_awaited, null, p_owns_transaction, v_looks, v_again
        );
        delete r
        from json_table(
            v_notes,
            '$[*]' columns (
                message_id bigint path '$[0]',
                recheck_id bigint path '$[1]',
                due_at bigint path '$[2]'
            )
        ) j
        straight_join rowq.recheck r force index (primary)
            on r.part_id = p_part_id
           and r.due_at = v_epoch + interval j.due_at microsecond
           and r.recheck_id = j.recheck_id
        left join json_table(
            coalesce(v_again, '[]'), '$[*]' columns (message_id bigint path '$')
        ) a on a.message_id = j.message_id
        where a.message_id is null;
        set p_solved = p_solved + row_count();
    end if;

    -- But where there are so many of these that others were not looked at, put them behind those.
    set v_recheck_id = null;
    if p_may_reorder and v_locked is not null and p_solved < p_limit
       and json_length(v_seen) >= p_limit then
        select r.recheck_id, r.is_hint into v_recheck_id, v_is_hint
        from rowq.recheck r force index (primary)
        where r.part_id = p_part_id
          and (r.due_at = v_due_at and r.recheck_id > v_last_id or r.due_at > v_due_at)
          and r.due_at <= v_now
        order by r.part_id, r.due_at, r.recheck_id
        limit 1;
    end if;
    if v_recheck_id is not null then
        update json_table(
            concat('[', v_locked, ']'),
            '$[*]' columns (recheck_id bigint path '$[1]', due_at bigint path '$[2]')
        ) j
        straight_join rowq.recheck r force index (primary)
            on r.part_id = p_part_id
           and r.due_at = v_epoch + interval j.due_at microsecond
           and r.recheck_id = j.recheck_id
        set r.due_at = v_now;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_recheck;

delimiter //
create procedure rowq.internal_recheck(
    p_part_id int,
    p_limit int,
    p_owns_transaction boolean,
    out p_solved int
)
sql security definer
modifies sql data
begin
-- routine   internal_recheck
-- purpose   Look again at up to p_limit tokens and messages that were left; return for how many that was enough.
-- promise   P22 P24 P26 P27
-- locks     recheck rows, passing over locked ones; as internal_pass_group, internal_widen_group,
--           internal_let_go, internal_free_successors and internal_recheck_death
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_since, v_due_at datetime(6);
    declare v_recheck_id, v_message_id, v_predecessor_id bigint;
    declare v_group_key varbinary(800);
    declare v_is_hint, v_is_left, v_is_done boolean;
    declare v_seen, v_notes, v_again longtext;
    declare v_next varchar(60);
    declare v_at int default 0;
    set p_solved = 0;

    select v_epoch + interval l.floor microsecond into v_since
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -5;
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

    notes: while v_at < coalesce(json_length(v_seen), 0) do
        set v_recheck_id = json_extract(v_seen, concat('$[', v_at, '][0]')),
            v_due_at = v_epoch
                + interval json_extract(v_seen, concat('$[', v_at, '][1]')) microsecond,
            v_at = v_at + 1, v_is_hint = null;
        select r.group_key, r.message_id, r.predecessor_id, r.is_hint
        into v_group_key, v_message_id, v_predecessor_id, v_is_hint
        from rowq.recheck r force index (primary)
        where r.part_id = p_part_id
          and r.due_at = v_due_at
          and r.recheck_id = v_recheck_id
        for update skip locked;
        -- An old snapshot does not show what has happened to messages since.
        if v_is_hint is null or v_group_key is null and not p_owns_transaction then
            iterate notes;
        end if;

        -- A row that cannot be solved stays as it is: a producer that is idle in its transaction
        -- must not make every look write.
        if v_message_id is not null then
            set v_is_done = false,
                v_notes = json_array_append(
                    coalesce(v_notes, '[]'), '$',
                    json_array(
                        v_message_id + 0, v_recheck_id + 0,
                        timestampdiff(microsecond, v_epoch, v_due_at)
                    )
                );
        elseif v_predecessor_id is not null and v_is_hint then
            call rowq.internal_recheck_death(p_part_id, v_predecessor_id, v_is_done);
        elseif v_predecessor_id is not null then
            call rowq.internal_free_successors(p_part_id, v_predecessor_id, p_owns_transaction);
            set v_is_done = true;
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
    end while;

    -- One call for all of the messages waits once for a producer that opens their group.
    if v_notes is not null then
        select json_arrayagg(h.message_id) into v_seen
        from (
            select distinct j.message_id
            from json_table(v_notes, '$[*]' columns (message_id bigint path '$[0]')) j
            order by j.message_id
            limit 1000000
        ) h;
        call rowq.internal_let_go(p_part_id, v_seen, null, p_owns_transaction, v_again);
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
end//
delimiter ;

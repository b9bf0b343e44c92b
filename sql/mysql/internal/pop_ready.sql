drop procedure if exists rowq.internal_pop_ready;

delimiter //
create procedure rowq.internal_pop_ready(
    p_part_id int,
    p_limit int,
    p_owns_transaction boolean,
    out p_messages longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_pop_ready
-- purpose   Take up to p_limit messages from the lanes, best lane first; null when there is none.
-- promise   P05 P06 P13
-- locks     ready rows, passing over locked ones; rows of lanes, too
    declare v_left int default p_limit;
    declare v_lane smallint default -32768;
    declare v_is_hidden boolean default false;
    declare v_next, v_probe smallint;
    declare v_floor, v_first, v_seen, v_to bigint;
    declare v_some longtext;
    set p_messages = null;

    lanes: while v_left > 0 do
        set v_next = null;
        select l.lane, l.floor into v_next, v_floor
        from rowq.lane l force index (primary)
        where l.part_id = p_part_id
          and l.lane > v_lane
          and (l.is_open or v_is_hidden)
        order by l.part_id, l.lane
        limit 1;
        if v_next is null then
            leave lanes;
        end if;
        if v_next < 0 then
            -- Look into closed lanes too: there are messages, but an open transaction keeps others
            -- from opening the lanes.
            set v_is_hidden = true, v_lane = -1;
            iterate lanes;
        end if;
        set v_lane = v_next;

        -- Look without locks first, so that an empty lane costs no write and its fence rows are not
        -- locked. Only "select ... into" takes no locks: exists() or a subquery in "set" would wait
        -- for open producers.
        set v_probe = null;
        select r.attempt into v_probe
        from rowq.ready r force index (primary)
        where r.part_id = p_part_id
          and r.lane = v_lane
          and r.seq >= v_floor
          and r.seq < 9223372036854775806
        order by r.part_id, r.lane, r.seq, r.message_id
        limit 1;
        if v_probe is null then
            iterate lanes;
        end if;

        call rowq.internal_lock_ready(
            p_part_id, v_lane, v_floor, v_left, p_owns_transaction, v_some
        );
        if v_some is null then
            iterate lanes;
        end if;
        set v_left = v_left - json_length(v_some), v_first = json_extract(v_some, '$[0][3]');

        delete r
        from json_table(
            v_some, '$[*]' columns (message_id bigint path '$[0]', seq bigint path '$[3]')
        ) j
        straight_join rowq.ready r force index (primary)
            on r.part_id = p_part_id
           and r.lane = v_lane
           and r.seq = j.seq
           and r.message_id = j.message_id;
        set p_messages = if(
            p_messages is null, v_some, json_merge_preserve(p_messages, v_some)
        );

        -- Moving the floor costs a write, so only one dequeue in twelve does it. A dequeue in the
        -- caller's transaction never does, because it would hold the row for long and may read an
        -- old snapshot.
        if p_owns_transaction and rand() < 0.08 then
            -- Stop below a row that another session has taken but not committed: a rollback puts it
            -- back.
            call rowq.internal_first_key(p_part_id, v_lane, v_floor, v_seen);
            set v_to = least(
                v_first, coalesce(v_seen, v_first),
                timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) - 500000
            );
            if v_to > v_floor then
                call rowq.internal_move_floor(p_part_id, v_lane, v_floor, v_to);
            end if;
        end if;
    end while;
end//
delimiter ;

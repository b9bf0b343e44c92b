drop procedure if exists rowq.internal_lock_ready;

delimiter //
create procedure rowq.internal_lock_ready(
    p_part_id int,
    p_lane smallint,
    p_floor bigint,
    p_limit int,
    p_owns_transaction boolean,
    out p_messages longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_lock_ready
-- purpose   Lock up to p_limit messages of one lane, from its floor on; null when there is none.
-- promise   P05 P06 P13
-- locks     ready rows, passing over locked ones
-- differs   elsewhere a range is locked without its gaps
    declare v_from bigint default p_floor;
    declare v_after bigint default 0;
    declare v_seen, v_some longtext;
    declare v_left int default p_limit;
    declare v_look int default p_limit + 50;
    set p_messages = null;

    if p_owns_transaction then
        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt + 1, h.seq, h.is_keyed))
        into p_messages
        from (
            select r.lane, r.seq, r.message_id, r.attempt, r.is_keyed
            from rowq.ready r force index (primary)
            where r.part_id = p_part_id
              and r.lane = p_lane
              and r.seq >= p_floor
              and r.seq < 9223372036854775806
            order by r.part_id, r.lane, r.seq, r.message_id
            limit p_limit
            for update skip locked
        ) h;
    else
        -- The caller's transaction may be repeatable read, where locking a range locks its gaps and
        -- makes producers wait. So find rows without locks, then lock them by their whole keys.
        looks: while v_left > 0 do
            select json_arrayagg(json_array(h.message_id, h.attempt, h.seq)) into v_seen
            from (
                select r.seq, r.message_id, r.attempt
                from rowq.ready r force index (primary)
                where r.part_id = p_part_id
                  and r.lane = p_lane
                  and r.seq >= v_from
                  and r.seq < 9223372036854775806
                  and (r.seq > v_from or r.message_id > v_after)
                order by r.part_id, r.lane, r.seq, r.message_id
                limit v_look
            ) h;
            if v_seen is null then
                leave looks;
            end if;

            select json_arrayagg(
                       json_array(h.message_id, h.lane, h.attempt + 1, h.seq, h.is_keyed)
                   )
            into v_some
            from (
                select r.lane, r.seq, r.message_id, r.attempt, r.is_keyed
                from json_table(
                    v_seen, '$[*]' columns (message_id bigint path '$[0]', seq bigint path '$[2]')
                ) j
                straight_join rowq.ready r force index (primary)
                    on r.part_id = p_part_id
                   and r.lane = p_lane
                   and r.seq = j.seq
                   and r.message_id = j.message_id
                limit v_left
                for update /*!80000 of r */ skip locked
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
            set v_from = json_extract(v_seen, concat('$[', v_look - 1, '][2]')),
                v_after = json_extract(v_seen, concat('$[', v_look - 1, '][0]')),
                v_look = least(v_look * 2, 10000);
        end while;
    end if;
end//
delimiter ;

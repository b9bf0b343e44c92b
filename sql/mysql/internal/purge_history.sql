drop procedure if exists rowq.internal_purge_history;

delimiter //
create procedure rowq.internal_purge_history(
    p_part_id int,
    p_days int,
    p_limit int,
    out p_purged int
)
sql security definer
modifies sql data
begin
-- routine   internal_purge_history
-- purpose   Delete up to p_limit attempts that ended more than p_days ago; return how many.
-- promise   P13 P37
-- locks     a row of lane, passed over when locked, which elects who purges; history rows,
--           passing over locked ones
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_before datetime(6) default v_now - interval p_days day;
    declare v_latest bigint default timestampdiff(
        microsecond, v_epoch, least(v_before, v_now - interval 500000 microsecond)
    );
    declare v_floor, v_first bigint;
    declare v_since datetime(6);
    declare v_seen, v_old longtext;
    set p_purged = 0;

    -- Read the floor as it is now: an old snapshot of the caller's transaction may show rows that
    -- other sessions have purged, and a lock on one of these would cover the gap around it.
    select l.floor into v_floor
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -8 /* history */
    for update skip locked;
    set v_since = v_epoch + interval v_floor microsecond;

    -- Find rows without locks, then lock them by their whole keys, so that no gap is locked. A
    -- longer list might be cut off at group_concat_max_len.
    if v_since is not null then
        select json_arrayagg(
                   json_array(
                       h.message_id, timestampdiff(microsecond, '1970-01-01', h.ended_at),
                       h.claim_id
                   )
               )
        into v_seen
        from (
            select k.message_id, k.ended_at, k.claim_id, k.outcome
            from rowq.history k force index (primary)
            where k.part_id = p_part_id
              and k.ended_at >= v_since
              and k.ended_at < v_before
            order by k.part_id, k.ended_at, k.message_id, k.claim_id
            limit p_limit
        ) h;
    end if;
    if v_seen is not null then
        select json_arrayagg(json_array(h.message_id, h.ended_at, h.claim_id)) into v_old
        from (
            select j.message_id, j.ended_at, j.claim_id
            from json_table(
                v_seen,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    ended_at bigint path '$[1]',
                    claim_id bigint path '$[2]'
                )
            ) j
            straight_join rowq.history k force index (primary)
                on k.part_id = p_part_id
               and k.ended_at = v_epoch + interval j.ended_at microsecond
               and k.message_id = j.message_id
               and k.claim_id = j.claim_id
            where k.outcome is not null
            for update /*!80000 of k */ skip locked
        ) h;
    end if;

    if v_old is not null then
        delete h
        from json_table(
            v_old,
            '$[*]' columns (
                message_id bigint path '$[0]',
                ended_at bigint path '$[1]',
                claim_id bigint path '$[2]'
            )
        ) j
        straight_join rowq.history h force index (primary)
            on h.part_id = p_part_id
           and h.ended_at = v_epoch + interval j.ended_at microsecond
           and h.message_id = j.message_id
           and h.claim_id = j.claim_id;
        set p_purged = row_count();
        call rowq.internal_first_key(p_part_id, -8 /* history */, v_floor, v_first);
        set v_first = least(v_first, v_latest);
        if v_first > v_floor then
            call rowq.internal_move_floor(p_part_id, -8 /* history */, v_floor, v_first);
        end if;
    end if;
end//
delimiter ;

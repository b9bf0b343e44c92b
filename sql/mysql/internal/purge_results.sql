drop procedure if exists rowq.internal_purge_results;

delimiter //
create procedure rowq.internal_purge_results(
    p_part_id int,
    p_seconds double,
    p_limit int,
    out p_purged int
)
sql security definer
modifies sql data
begin
-- routine   internal_purge_results
-- purpose   Delete up to p_limit results of messages that ended more than p_seconds ago; return how many.
-- promise   P13 P32
-- locks     a row of lane, passed over when locked, which elects who purges; result rows, passing
--           over locked ones
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_before datetime(6) default v_now - interval round(p_seconds * 1000000) microsecond;
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
      and l.lane = -7 /* result */
    for update skip locked;
    set v_since = v_epoch + interval v_floor microsecond;

    -- Find rows without locks, then lock them by their whole keys, so that no gap is locked. A
    -- longer list might be cut off at group_concat_max_len.
    if v_since is not null then
        select json_arrayagg(h.message_id) into v_seen
        from (
            select r.message_id, r.state
            from rowq.result r force index (result_finished_ix)
            where r.part_id = p_part_id
              and r.finished_at >= v_since
              and r.finished_at < v_before
            order by r.part_id, r.finished_at
            limit p_limit
        ) h;
    end if;
    if v_seen is not null then
        select json_arrayagg(h.message_id) into v_old
        from (
            select r.message_id, r.state
            from json_table(v_seen, '$[*]' columns (message_id bigint path '$')) j
            straight_join rowq.result r force index (primary)
                on r.part_id = p_part_id
               and r.message_id = j.message_id
            where r.finished_at < v_before
            for update /*!80000 of r */ skip locked
        ) h;
    end if;

    if v_old is not null then
        delete r
        from json_table(v_old, '$[*]' columns (message_id bigint path '$')) j
        straight_join rowq.result r force index (primary)
            on r.part_id = p_part_id
           and r.message_id = j.message_id;
        set p_purged = row_count();
        call rowq.internal_first_key(p_part_id, -7 /* result */, v_floor, v_first);
        set v_first = least(v_first, v_latest);
        if v_first > v_floor then
            call rowq.internal_move_floor(p_part_id, -7 /* result */, v_floor, v_first);
        end if;
    end if;
end//
delimiter ;

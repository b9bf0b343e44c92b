drop procedure if exists rowq.internal_purge_started;

delimiter //
create procedure rowq.internal_purge_started(p_part_id int, p_seconds double, p_limit int)
sql security definer
modifies sql data
begin
-- routine   internal_purge_started
-- purpose   Delete up to p_limit notes, 10000 at most, of deliveries that began more than p_seconds ago.
-- promise   P13 P29
-- locks     started rows
    -- A longer list might be cut off at group_concat_max_len.
    declare v_limit int default least(p_limit, 10000);
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_before datetime(6) default
        utc_timestamp(6) - interval round(p_seconds * 1000000) microsecond;
    declare v_since datetime(6);
    declare v_old longtext;

    select v_epoch + interval l.floor microsecond into v_since
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -5 /* started */;
    -- Find rows without locks, then delete them by their whole keys, so that no gap is locked.
    select json_arrayagg(
               json_array(h.claim_id, timestampdiff(microsecond, '1970-01-01', h.started_at))
           )
    into v_old
    from (
        select s.started_at, s.claim_id, s.messages
        from rowq.started s force index (primary)
        where s.part_id = p_part_id
          and s.started_at >= v_since
          and s.started_at < v_before
        order by s.part_id, s.started_at, s.claim_id
        limit v_limit
    ) h;

    if v_old is not null then
        delete s
        from json_table(
            v_old, '$[*]' columns (claim_id bigint path '$[0]', started_at bigint path '$[1]')
        ) j
        straight_join rowq.started s force index (primary)
            on s.part_id = p_part_id
           and s.started_at = v_epoch + interval j.started_at microsecond
           and s.claim_id = j.claim_id;
    end if;
end//
delimiter ;

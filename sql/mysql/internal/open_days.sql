drop procedure if exists rowq.internal_open_days;

delimiter //
create procedure rowq.internal_open_days(p_part_id int, p_limit int)
sql security definer
modifies sql data
begin
-- routine   internal_open_days
-- purpose   Make room in the archive for what is finished: the days of the next p_limit batches.
-- promise   P19
-- locks     the archive, waiting for a second at most
-- commits   implicitly; call it outside transactions
-- differs   PostgreSQL makes the partition in the transaction that needs it
    declare v_days longtext;
    declare v_floor bigint;
    declare v_at int default 0;

    select l.floor into v_floor
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -3 /* finished */;
    select json_arrayagg(h.finished_on) into v_days
    from (
        select distinct date(f.finished_at) as finished_on
        from (
            select x.finished_at
            from rowq.finished x force index (primary)
            where x.part_id = p_part_id
              and x.finish_id > 0
              and x.finish_id >= v_floor
            order by x.part_id, x.finish_id
            limit p_limit
        ) f
    ) h;
    while v_at < coalesce(json_length(v_days), 0) do
        call rowq.internal_open_day(json_unquote(json_extract(v_days, concat('$[', v_at, ']'))));
        set v_at = v_at + 1;
    end while;
end//
delimiter ;

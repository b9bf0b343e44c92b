drop procedure if exists rowq.internal_purge_archive;

delimiter //
create procedure rowq.internal_purge_archive(
    p_part_id int,
    p_before datetime(6),
    p_limit int,
    p_owns_transaction boolean,
    out p_purged int
)
sql security definer
modifies sql data
begin
-- routine   internal_purge_archive
-- purpose   Delete a queue's archived messages that finished before p_before.
-- promise   P19
-- locks     archive rows
    declare v_keep_from datetime(6) default '1970-01-01';
    -- Rows that are too old for every queue go with their partition, so leave them here. In the
    -- caller's transaction no partition is dropped, so delete them all.
    if p_owns_transaction then
        select date(utc_timestamp(6) - interval max(q.archive_days) day) into v_keep_from
        from rowq.queue q;
    end if;

    delete from rowq.archive
    where part_id = p_part_id
      and finished_at >= v_keep_from
      and finished_at < p_before
    order by part_id, finished_at, message_id
    limit p_limit;
    set p_purged = row_count();
end//
delimiter ;

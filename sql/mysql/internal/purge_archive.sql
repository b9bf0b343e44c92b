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
-- version   1
-- purpose   Delete a queue's archived messages that finished before p_before.
-- promise   P19
-- locks     archive rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    declare v_keep_from datetime(6) default '1970-01-01';
    -- What is older than every queue's archive goes with its partition, but not in an open
    -- transaction, which drops none.
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

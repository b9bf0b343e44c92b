drop procedure if exists rowq.list_workers;

delimiter //
create procedure rowq.list_workers(p_queue_name longtext)
sql security definer
modifies sql data
comment 'List workers that reported within the last hour, idle ones included.'
begin
-- routine   list_workers
-- version   1
-- purpose   List workers that reported within the last hour, idle ones included.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
    declare v_queue_id int;
    declare exit handler for sqlexception
    begin
        call rowq.internal_restore_session();
        resignal;
    end;

    call rowq.internal_set_session(@@timestamp);
    if p_queue_name is not null then
        call rowq.internal_require_queue(p_queue_name, v_queue_id);
    end if;

    select convert(q.queue_name using utf8mb4) as queue_name,
           convert(w.worker_id using utf8mb4) as worker_id,
           w.worker_name, w.host_name, w.worker_version, w.threads, w.started_at, w.last_seen_at,
           timestampdiff(microsecond, w.last_seen_at, utc_timestamp(6)) / 1e6 as last_seen_seconds,
           w.completed, w.failed, w.completed_per_second, w.failed_per_second
    from rowq.worker w
    straight_join rowq.queue q force index (primary) on q.queue_id = w.queue_id
    where (v_queue_id is null or w.queue_id = v_queue_id)
      and w.last_seen_at > utc_timestamp(6) - interval 1 hour
    order by q.queue_name, w.worker_id;

    call rowq.internal_restore_session();
end//
delimiter ;

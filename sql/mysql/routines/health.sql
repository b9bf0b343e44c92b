drop procedure if exists rowq.health;

delimiter //
create procedure rowq.health()
sql security definer
modifies sql data
comment 'Check for problems: blocked cleanup, overdue work, expired leases, dead messages, sequences.'
begin
-- routine   health
-- version   1
-- purpose   Check for problems: blocked cleanup, overdue work, expired leases, dead messages, sequences.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   the horizon, purge and sequence checks are this engine's
    declare v_checks, v_more longtext;
    declare v_queue_id, v_last int default 0;
    declare exit handler for sqlexception
    begin
        call rowq.internal_restore_session();
        resignal;
    end;

    call rowq.internal_set_session(@@timestamp);
    call rowq.internal_health_server(v_checks);
    queues: loop
        set v_queue_id = null;
        select q.queue_id into v_queue_id
        from rowq.queue q force index (primary)
        where q.queue_id > v_last
        order by q.queue_id
        limit 1;
        if v_queue_id is null then
            leave queues;
        end if;
        set v_last = v_queue_id;
        call rowq.internal_health_queue(v_queue_id, v_more);
        set v_checks = concat_ws(',', v_checks, v_more);
    end loop;
    call rowq.internal_health_numbers(v_checks);

    select j.check_name, convert(q.queue_name using utf8mb4) as queue_name,
           case
               when j.value >= j.critical then 'critical'
               when j.value >= j.warning then 'warning'
               else 'ok'
           end as status,
           j.value, j.detail
    from json_table(
        concat('[', v_checks, ']'),
        '$[*]' columns (
            check_name varchar(100) path '$[0]',
            queue_id int path '$[1]',
            value double path '$[2]',
            warning double path '$[3]',
            critical double path '$[4]',
            detail varchar(500) path '$[5]'
        )
    ) j
    left join rowq.queue q on q.queue_id = j.queue_id
    where j.queue_id is null
       or q.queue_id is not null
    order by j.check_name, q.queue_name, j.detail;

    call rowq.internal_restore_session();
end//
delimiter ;

drop procedure if exists rowq.internal_health_server;

delimiter //
create procedure rowq.internal_health_server(inout p_checks longtext)
sql security definer
reads sql data
begin
-- routine   internal_health_server
-- purpose   Append the checks that concern the whole server: who holds back the purge, how much waits for it, prepared transactions, numbers that run out, queues that are not maintained.
-- differs   this engine's own
    declare v_age, v_prepared_age double default 0;
    declare v_length, v_used double default 0;
    declare v_table varchar(64);
    declare v_thread, v_prepared bigint;
    declare v_may_look boolean default true;
    declare v_failed int;
    declare v_fault varchar(500);
    -- In some clouds no account may look at other sessions, because that needs the PROCESS
    -- privilege (1227).
    declare continue handler for 1227, 1142, 1044 set v_may_look = false;

    -- trx_started is in the time zone of the machine, so convert the present moment to that.
    select t.trx_mysql_thread_id,
           timestampdiff(
               second, t.trx_started, convert_tz(utc_timestamp(), '+00:00', 'SYSTEM')
           )
    into v_thread, v_age
    from information_schema.innodb_trx t
    where t.trx_mysql_thread_id <> connection_id()
    order by t.trx_started
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'clean_up_horizon', null, greatest(v_age, 0), 300, 3600,
        case
            when not v_may_look then concat('unknown: grant process on *.* to ', current_user())
            when v_thread is null or v_age < 1 then 'no transaction is older than a second'
            else concat(
                if(v_thread = 0, 'a prepared XA transaction', concat('connection ', v_thread)),
                ' keeps dead rows from being purged; rowq stays fast, other tables grow'
            )
        end
    ));

    -- A prepared transaction has no session once that is gone or the server has been restarted. The
    -- tables of which it keeps rows locked cannot be seen.
    select t.trx_id,
           timestampdiff(
               second, t.trx_started, convert_tz(utc_timestamp(), '+00:00', 'SYSTEM')
           )
    into v_prepared, v_prepared_age
    from information_schema.innodb_trx t
    where t.trx_mysql_thread_id = 0
      and t.trx_state <> 'ROLLING BACK'
      and (t.trx_rows_locked > 0 or t.trx_rows_modified > 0)
    order by t.trx_started
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'prepared_transactions', null, greatest(v_prepared_age, 0), 30, 300,
        case
            when not v_may_look then concat('unknown: grant process on *.* to ', current_user())
            when v_prepared is null
                then 'seconds that a prepared XA transaction has kept rows locked'
            else 'seconds that a prepared XA transaction has kept rows locked, perhaps of rowq; '
                'xa recover names it, xa commit or xa rollback ends it'
        end
    ));

    select coalesce(max(m.count), 0) into v_length
    from information_schema.innodb_metrics m
    where m.name = 'trx_rseg_history_len';
    set p_checks = concat_ws(',', p_checks, json_array(
        'purge_lag', null, greatest(v_length, 0), 1000000, 100000000,
        if(
            v_may_look, 'transactions whose dead rows wait for the purge',
            concat('unknown: grant process on *.* to ', current_user())
        )
    ));

    select h.table_name, h.used into v_table, v_used
    from (
        select t.table_name,
               1e2 * t.auto_increment / if(t.table_name = 'queue', 2147483647, 9223372036854775807)
                   as used
        from information_schema.tables t
        where t.table_schema = 'rowq'
          and t.table_name in ('queue', 'message', 'finished')
    ) h
    order by h.used desc
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'sequence_near_end', null, coalesce(v_used, 0), 50, 90,
        concat('per cent of the numbers of rowq.', coalesce(v_table, 'message'), ' are used up')
    ));

    select count(*),
           min(concat(
               'maintain has failed for queue ', convert(q.queue_name using utf8mb4), ': ', m.value
           ))
    into v_failed, v_fault
    from rowq.meta m
    straight_join rowq.queue q on m.name = concat('maintain_fault.', q.part_id);
    set p_checks = concat_ws(',', p_checks, json_array(
        'maintain_fault', null, v_failed, 1, 1,
        left(coalesce(v_fault, 'maintain has failed for no queue'), 500)
    ));
end//
delimiter ;

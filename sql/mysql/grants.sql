-- Create the roles, grant each execute on its routines only, and revoke their other rights in rowq.
-- The script can be run again. It skips a missing role that it cannot create, with a warning:
-- create the role ("create role rowq_producer") and run the script again. Run it after the
-- procedures, because dropping a procedure drops its rights. On MariaDB it is a block, on MySQL a
-- temporary procedure.
drop procedure if exists rowq.internal_grant;

delimiter //
/*!80000
create procedure rowq.internal_grant()
sql security invoker
modifies sql data
begin
*/
/*M!100600 begin not atomic */
    declare v_role_name varchar(80);
    declare v_text varchar(300);
    declare v_is_due boolean;
    declare v_is_end boolean default false;
    declare v_missing varchar(100) default '';
    declare v_warning varchar(128);
    -- Compare bytes, because names in information_schema have another collation.
    declare each_right cursor for
        select r.role_name,
               concat(
                   if(r.is_due, 'grant', 'revoke'), ' execute on procedure rowq.`',
                   replace(r.name, '`', '``'), '` ', if(r.is_due, 'to ', 'from '), r.role_name
               ),
               r.is_due
        from (
            select w.role_name, p.routine_name as name,
                   find_in_set(
                       cast(p.routine_name as binary), cast(w.routine_names as binary)
                   ) > 0 as is_due
            from (
                -- rights: generated from contract.toml by make generate
                select 'rowq_admin' as role_name, concat(
                    'create_queue,alter_queue,drop_queue,pause_queue,resume_queue,',
                    'bind_topic,unbind_topic,purge_queue,enqueue,enqueue_batch,',
                    'publish,publish_batch,dequeue_fast,complete_and_dequeue,',
                    'dequeue_wait,peek,complete,retry_later,fail_now,release,',
                    'extend_lease,cancel,cancel_many,reset,alter_message,discard_dead,',
                    'create_schedule,alter_schedule,drop_schedule,run_schedule,',
                    'list_schedules,next_ticks,maintain,reap,promote,archive,',
                    'purge_archive,report_worker,after_failover,queue_stats,',
                    'get_message,explain_message,find_message,get_result,',
                    'wait_for_result,get_history,list_dead,list_claims,list_workers,',
                    'list_delayed,list_topics,health,version,put'
                ) as routine_names
                union all
                select 'rowq_producer' as role_name, concat(
                    'enqueue,enqueue_batch,publish,publish_batch,cancel,cancel_many,',
                    'alter_message,next_ticks,get_result,wait_for_result,version,put'
                ) as routine_names
                union all
                select 'rowq_consumer' as role_name, concat(
                    'dequeue_fast,complete_and_dequeue,dequeue_wait,peek,complete,',
                    'retry_later,fail_now,release,extend_lease,maintain,reap,promote,',
                    'archive,report_worker,queue_stats,version'
                ) as routine_names
                union all
                select 'rowq_monitor' as role_name, concat(
                    'list_schedules,next_ticks,queue_stats,explain_message,list_dead,',
                    'list_claims,list_workers,list_delayed,list_topics,health,version'
                ) as routine_names
                -- end of rights
            ) w
            cross join information_schema.routines p
            where p.routine_schema = 'rowq'
              and p.routine_type = 'PROCEDURE'
        ) r
        order by r.role_name, r.name;
    declare continue handler for not found set v_is_end = true;

    roles: begin
        -- Ignore errors: this account may lack the right (1227), or the role exists (1396).
        declare continue handler for sqlexception begin end;
        create role if not exists rowq_producer;
        create role if not exists rowq_consumer;
        create role if not exists rowq_admin;
        create role if not exists rowq_monitor;
        revoke all privileges on rowq.* from rowq_producer;
        revoke all privileges on rowq.* from rowq_consumer;
        revoke all privileges on rowq.* from rowq_admin;
        revoke all privileges on rowq.* from rowq_monitor;
    end;

    open each_right;
    rights: loop
        fetch each_right into v_role_name, v_text, v_is_due;
        if v_is_end then
            leave rights;
        end if;
        begin
            -- Ignore revokes of a right that was not granted (1403).
            declare continue handler for sqlexception
            begin
                if v_is_due and not find_in_set(v_role_name, v_missing) then
                    set v_missing = concat(v_missing, if(v_missing = '', '', ','), v_role_name);
                end if;
            end;
            -- A prepared statement takes its text only from a session variable.
            set @rowq_statement = v_text;
            prepare rowq_right from @rowq_statement;
            execute rowq_right;
            deallocate prepare rowq_right;
        end;
    end loop;
    close each_right;
    set @rowq_statement = null;

    if v_missing <> '' then
        set v_warning = concat('not created, or without rights: ', v_missing);
        signal sqlstate '01000' set message_text = v_warning;
    end if;
end//
delimiter ;
/*!80000 call rowq.internal_grant() */ /*M!100600 do 0 */;
drop procedure if exists rowq.internal_grant;

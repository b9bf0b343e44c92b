-- The end of a rollback to 0: drop the migration record and the objects of wakeup.sql and
-- maintain_job.sql. The roles stay, so that accounts keep them.
declare
    v_count pls_integer;
begin
    select count(*) into v_count
    from user_scheduler_jobs j
    where j.job_name = 'ROWQ_MAINTAIN';
    if v_count > 0 then
        -- Dynamic SQL, so that the block compiles without a right to dbms_scheduler.
        execute immediate q'[
            begin
                dbms_scheduler.drop_job(job_name => 'ROWQ_MAINTAIN', force => true);
            end;
        ]';
    end if;

    select count(*) into v_count
    from user_objects o
    where o.object_name = 'ROWQ_WAKEUP'
      and o.object_type = 'PACKAGE';
    if v_count > 0 then
        execute immediate 'drop package rowq_wakeup';
    end if;

    select count(*) into v_count
    from user_queue_tables t
    where t.queue_table = 'ROWQ_WAKEUP_TABLE';
    if v_count > 0 then
        -- Dynamic SQL, so that the block compiles without a right to dbms_aqadm.
        execute immediate q'[
            begin
                dbms_aqadm.drop_queue_table(queue_table => 'ROWQ_WAKEUP_TABLE', force => true);
            end;
        ]';
    end if;
end;
/
drop table rowq_migration_log purge
/
drop table rowq_migration_lock purge
/
drop table rowq_migration purge
/

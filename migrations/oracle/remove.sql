-- This is the end of a rollback to nothing: it removes the bookkeeping, and what wakeup.sql and
-- maintain_job.sql have made. The roles stay, so that their members need not be given them again.
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
        -- This is dynamic SQL, so that the block compiles without a right to dbms_aqadm.
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

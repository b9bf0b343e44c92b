-- Optional: this makes a job of the Scheduler that calls maintain once a second. You need it only
-- where no rowq worker runs, because workers call maintain themselves. Run it as the owner, who
-- needs "create job", in SQL*Plus or SQLcl; a second run makes the job anew, for instance with
-- other seconds below. To remove it: exec dbms_scheduler.drop_job('ROWQ_MAINTAIN', force => true)
--
-- A job that is started every second would be started 86,400 times a day. This one runs for most of
-- a minute and is started each minute, so that replacing the packages waits for it no longer than
-- that. Only failed runs are logged (user_scheduler_job_run_details); the next minute tries again.
declare
    c_seconds constant pls_integer := 1;
    v_count   pls_integer;
begin
    select count(*) into v_count
    from user_scheduler_jobs j
    where j.job_name = 'ROWQ_MAINTAIN';
    if v_count > 0 then
        -- This is dynamic SQL, so that the block compiles without a right to dbms_scheduler.
        execute immediate q'[
            begin
                dbms_scheduler.drop_job(job_name => 'ROWQ_MAINTAIN', force => true);
            end;
        ]';
    end if;

    dbms_scheduler.create_job(
        job_name        => 'ROWQ_MAINTAIN',
        job_type        => 'PLSQL_BLOCK',
        job_action      => replace(q'[
            declare
                v_until constant timestamp(6) :=
                    sys_extract_utc(systimestamp) + numtodsinterval(58 - {seconds}, 'second');
                v_rows sys_refcursor;
            begin
                loop
                    rowq.maintain(p_rows => v_rows);
                    close v_rows;
                    commit;
                    exit when sys_extract_utc(systimestamp) >= v_until;
                    dbms_session.sleep({seconds});
                end loop;
            end;
        ]', '{seconds}', to_char(c_seconds, 'fm90')),
        repeat_interval => 'freq=minutely',
        enabled         => false,
        auto_drop       => false,
        comments        => 'rowq: delayed messages, expired leases, archive'
    );
    dbms_scheduler.set_attribute(
        'ROWQ_MAINTAIN', 'logging_level', dbms_scheduler.logging_failed_runs
    );
    dbms_scheduler.enable('ROWQ_MAINTAIN');
end;
/

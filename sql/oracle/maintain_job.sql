-- Optional: creates a Scheduler job that calls maintain every second, needed only if no rowq worker
-- runs. Run it as the owner, with "create job", in SQL*Plus or SQLcl. A second run recreates the
-- job, for instance with other seconds below. To remove it:
-- exec dbms_scheduler.drop_job('ROWQ_MAINTAIN', force => true)
--
-- Starting a job every second means 86,400 runs a day. This job runs for most of a minute and
-- starts every minute, so replacing the packages waits at most that long. Each queue is maintained
-- in its own short transaction; an error does not stop the others. A run fails with the first error
-- at its end, only failed runs are logged (user_scheduler_job_run_details), and the next minute
-- retries.
declare
    c_seconds constant pls_integer := 1;
    v_count   pls_integer;
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

    dbms_scheduler.create_job(
        job_name        => 'ROWQ_MAINTAIN',
        job_type        => 'PLSQL_BLOCK',
        job_action      => replace(q'[
            declare
                v_until constant timestamp(6) :=
                    sys_extract_utc(systimestamp) + numtodsinterval(58 - {seconds}, 'second');
                type t_names is table of rowq_queue.queue_name%type index by pls_integer;
                -- ORA-20701: the queue was dropped. ORA-01013: the job is stopped.
                e_gone exception;
                e_cancelled exception;
                pragma exception_init(e_gone, -20701);
                pragma exception_init(e_cancelled, -1013);
                v_names t_names;
                v_rows  sys_refcursor;
                v_error varchar2(2000 char);
            begin
                loop
                    select q.queue_name bulk collect into v_names
                    from rowq_queue q
                    order by q.queue_id;
                    for i in 1 .. v_names.count loop
                        begin
                            rowq.maintain(p_queue_name => v_names(i), p_rows => v_rows);
                            close v_rows;
                            commit;
                        exception
                            when e_gone then
                                rollback;
                            when e_cancelled then
                                raise;
                            when others then
                                v_error := coalesce(
                                    v_error, 'maintain of ' || v_names(i) || ': ' || sqlerrm
                                );
                                rollback;
                        end;
                    end loop;
                    exit when sys_extract_utc(systimestamp) >= v_until;
                    dbms_session.sleep({seconds});
                end loop;
                if v_error is not null then
                    raise_application_error(-20700, substr(v_error, 1, 1000));
                end if;
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

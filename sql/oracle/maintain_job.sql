-- Optional: this makes a job of the Scheduler that calls maintain once a second. You need it only
-- where no rowq worker runs, because workers call maintain themselves. Run it as the owner, who
-- needs "create job", in SQL*Plus or SQLcl; a second run makes the job anew, for instance with
-- other seconds below. To remove it: exec dbms_scheduler.drop_job('ROWQ_MAINTAIN', force => true)
--
-- A job that is started every second would be started 86,400 times a day. This one runs for most of
-- a minute and is started each minute, so that replacing the packages waits for it no longer than
-- that. Each queue is maintained in a transaction of its own, which is short, and an error in one
-- does not stop the others. The run fails with the first error at its end, and failed runs alone
-- are logged (user_scheduler_job_run_details); the next minute tries again.
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
                type t_names is table of rowq_queue.queue_name%type index by pls_integer;
                -- ORA-20701: the queue was dropped meanwhile. ORA-01013: the job is stopped.
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

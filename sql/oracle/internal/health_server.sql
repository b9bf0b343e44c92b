procedure internal_health_server(p_checks in out nocopy rowq_checks)
is
-- routine   internal_health_server
-- purpose   Append the checks that concern all queues: old transactions, errors in maintain, sequences that are behind.
-- differs   this engine's own
    -- ORA-00942 (no such table or view), ORA-01031 (no privilege) and ORA-41900 (the same of 23ai,
    -- which names the privilege) mean that it may not look.
    e_no_view exception;
    e_no_right exception;
    pragma exception_init(e_no_view, -942);
    pragma exception_init(e_no_right, -1031);
    e_no_right_named exception;
    pragma exception_init(e_no_right_named, -41900);
    v_seconds  number;
    v_session  varchar2(200 char);
    v_horizon  varchar2(500 char) := 'no transaction is older than a second';
    v_fault    rowq_meta.value%type;
    v_fault_at rowq_meta.changed_at%type;
    -- A worker may hold a claim that is newer than any which was restored or replicated.
    c_margin   constant number := 1000000;
    v_newest   number := 0;
    v_claim    number := 0;
    v_behind   number := 0;
    v_restart  varchar2(500 char);
    v_some     number;
    v_parts    t_numbers;

    procedure compare_sequence(p_name in varchar2, p_newest in number)
    is
        v_last number;
    begin
        -- last_number is the first number that no session has in its cache.
        select max(s.last_number) into v_last
        from user_sequences s
        where s.sequence_name = upper(p_name);
        if p_newest >= v_last then
            v_behind := greatest(v_behind, p_newest - v_last + 1);
            v_restart := v_restart || ' alter sequence ' || p_name || ' restart start with '
                || internal_number_text(p_newest + c_margin) || ';';
        end if;
    end compare_sequence;
begin
    begin
        -- This is dynamic SQL, so that the package compiles without a right to these views.
        execute immediate q'[
            select max((sysdate - t.start_date) * 86400),
                   max(s.sid || ',' || s.serial#) keep (dense_rank first order by t.start_date)
            from v$transaction t
            join v$session s on s.taddr = t.addr
            where s.sid <> to_number(sys_context('userenv', 'sid'))
        ]' into v_seconds, v_session;
        if v_seconds >= 1 then
            v_horizon := 'session ' || v_session
                || ' has the oldest open transaction; what it has taken or sent stays with it';
        end if;
    exception
        when e_no_view or e_no_right or e_no_right_named then
            v_horizon := 'unknown: the owner of rowq has no right to v_$transaction and v_$session';
    end;
    p_checks.extend;
    p_checks(p_checks.last) := rowq_check(
        'clean_up_horizon', null, coalesce(v_seconds, 0), 300, 3600, v_horizon
    );

    select max(m.value) keep (dense_rank last order by m.changed_at), max(m.changed_at)
    into v_fault, v_fault_at
    from rowq_meta m
    where m.name like 'maintain_fault.%';
    p_checks.extend;
    p_checks(p_checks.last) := rowq_check(
        'maintain_fault', null, case when v_fault is null then 0 else 1 end, 1, 1,
        case
            when v_fault is null then 'maintain had no error'
            else substr(
                to_char(v_fault_at, 'yyyy-mm-dd"T"hh24:mi:ss', 'nls_calendar=gregorian') || 'Z '
                || v_fault, 1, 500
            )
        end
    );

    select q.part_id bulk collect into v_parts
    from rowq_queue q;
    for i in 1 .. v_parts.count loop
        select max(m.message_id) into v_some
        from rowq_message m
        where m.part_id = v_parts(i);
        v_newest := greatest(v_newest, coalesce(v_some, 0));
        select max(r.message_id) into v_some
        from rowq_result r
        where r.part_id = v_parts(i);
        v_newest := greatest(v_newest, coalesce(v_some, 0));
        select max(h.message_id) into v_some
        from rowq_history h
        where h.part_id = v_parts(i);
        v_newest := greatest(v_newest, coalesce(v_some, 0));
        select max(c.claim_id) into v_some
        from rowq_claim c
        where c.part_id = v_parts(i);
        v_claim := greatest(v_claim, coalesce(v_some, 0));
        select max(f.finish_id) into v_some
        from rowq_finished f
        where f.part_id = v_parts(i);
        v_claim := greatest(v_claim, coalesce(v_some, 0));
    end loop;
    compare_sequence('rowq_message_seq', v_newest);
    compare_sequence('rowq_claim_seq', v_claim);
    p_checks.extend;
    p_checks(p_checks.last) := rowq_check(
        'sequence_behind', null, v_behind, 1, 1,
        case
            when v_restart is null then 'every sequence is ahead of the ids that are stored'
            else 'ids that are in use would be given out again:' || v_restart
        end
    );
end internal_health_server;

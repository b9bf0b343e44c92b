function internal_drop_days
return number
is
-- routine   internal_drop_days
-- purpose   Drop partitions of the archive that are too old for every queue; returns how many.
-- promise   P19
-- locks     the archive's partition, tried
-- commits   a transaction of its own, as DDL commits; never the caller's
-- differs   PostgreSQL drops them in the transaction of the caller
    pragma autonomous_transaction;
    -- Another session, or the caller's own open transaction, uses the partition: it is dropped
    -- another time.
    e_busy exception;
    e_deadlock exception;
    pragma exception_init(e_busy, -54);
    pragma exception_init(e_deadlock, -60);
    v_keep_from timestamp(6);
    v_bound     varchar2(4000 char);
    v_ends_at   timestamp(6);
    v_dropped   pls_integer := 0;
begin
    select cast(trunc(sys_extract_utc(systimestamp), 'dd') as timestamp)
           - numtodsinterval(max(q.archive_days), 'day')
    into v_keep_from
    from rowq_queue q;

    for each_day in (
        select p.partition_name, p.high_value
        from user_tab_partitions p
        where p.table_name = 'ROWQ_ARCHIVE'
          and p.interval = 'YES'
        order by p.partition_position
    ) loop
        -- high_value is a LONG, such as TIMESTAMP' 2026-11-22 00:00:00'.
        v_bound := each_day.high_value;
        v_ends_at := to_timestamp(
            regexp_substr(v_bound, '[0-9]{4}-[0-9]{2}-[0-9]{2}'), 'yyyy-mm-dd',
            'nls_calendar=gregorian'
        );
        exit when v_ends_at > v_keep_from or v_keep_from is null;
        begin
            execute immediate 'alter table rowq_archive drop partition '
                || dbms_assert.enquote_name(each_day.partition_name) || ' update indexes';
            v_dropped := v_dropped + 1;
        exception
            when e_busy or e_deadlock then
                exit;
        end;
    end loop;
    commit;
    return v_dropped;
end internal_drop_days;

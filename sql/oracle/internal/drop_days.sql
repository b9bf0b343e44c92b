function internal_drop_days(p_is_asked in boolean)
return number
is
-- routine   internal_drop_days
-- purpose   Drop partitions of the archive that are too old for every queue; returns how many. Unless p_is_asked, only once for each day that becomes too old.
-- promise   P19
-- locks     the archive's partition, tried; a row of meta
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
    v_is_busy   boolean := false;
    c_done      constant rowq_meta.name%type := 'archive_dropped_before';
    v_done      rowq_meta.value%type;
    v_day       rowq_meta.value%type;
begin
    select cast(trunc(sys_extract_utc(systimestamp), 'dd') as timestamp)
           - numtodsinterval(max(q.archive_days), 'day')
    into v_keep_from
    from rowq_queue q;
    -- The catalog is slow to read, and maintain asks each second for each queue with an archive.
    v_day := to_char(v_keep_from, 'yyyy-mm-dd', 'nls_calendar=gregorian');
    select max(m.value) into v_done
    from rowq_meta m
    where m.name = c_done;
    if v_done = v_day and not p_is_asked then
        commit;
        return 0;
    end if;

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
                v_is_busy := true;
                exit;
        end;
    end loop;
    if v_day is not null and not v_is_busy then
        internal_note_value(c_done, v_day);
    end if;
    commit;
    return v_dropped;
end internal_drop_days;

-- Remove what wakeup.sql has created, if anything. Waiting sessions continue by polling.
declare
    v_count pls_integer;
begin
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

-- Optional: partitions the archive by day, so that purge_archive and maintain drop whole days. Run
-- it once as the owner, in SQL*Plus or SQLcl; a second run does nothing. It requires the
-- Partitioning option, which Oracle Database Free and the autonomous services include. Enterprise
-- Edition enables it even if it was not bought, so rowq does not decide. The table stays available
-- during the rebuild.
declare
    v_is_partitioned pls_integer;
begin
    select count(*) into v_is_partitioned
    from user_part_tables p
    where p.table_name = 'ROWQ_ARCHIVE';

    if v_is_partitioned = 0 then
        execute immediate q'[
            alter table rowq_archive modify
            partition by range (finished_at) interval (numtodsinterval(1, 'day')) (
                partition rowq_archive_first values less than (timestamp '2020-01-01 00:00:00')
            )
            online
            update indexes (rowq_archive_pk local, rowq_archive_message_ix local)
        ]';
    end if;
end;
/

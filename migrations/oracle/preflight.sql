-- Runs first in every install, upgrade and rollback: refuses here, before anything is changed, what
-- would go wrong later.
-- RQ801: older than 19c.
-- RQ802: tables with rowq's names that rowq did not make; with nothing but bookkeeping, it is a
--        beginning of ours.
declare
    v_tables     pls_integer;
    v_known      pls_integer;
    v_bookkeeper pls_integer;
begin
    if dbms_db_version.version < 19 then
        raise_application_error(-20801, 'RQ801 server_too_old: rowq needs Oracle 19c or newer');
    end if;

    select count(*),
           count(case when t.table_name in ('ROWQ_META', 'ROWQ_QUEUE', 'ROWQ_READY') then 1 end),
           count(case when t.table_name = 'ROWQ_MIGRATION' then 1 end)
    into v_tables, v_known, v_bookkeeper
    from user_tables t
    where t.table_name like 'ROWQ\_%' escape '\';
    if v_tables > 0 and v_known < 3 and v_bookkeeper = 0 then
        raise_application_error(
            -20802, 'RQ802 foreign_schema: the schema has tables ROWQ_ that rowq did not make'
        );
    end if;
end;
/

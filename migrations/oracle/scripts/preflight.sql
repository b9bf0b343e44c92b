-- The checks before every install, upgrade and rollback. They refuse what would fail later or run
-- foreign code.
-- RQ803: the current schema is another account's. Its owner's replacement of DUAL or of a table of
--        rowq would run with the migrating account's rights; so every name has the schema SYS.
begin
    if sys.standard.sys_context('userenv', 'current_schema')
        <> sys.standard.sys_context('userenv', 'session_user')
    then
        sys.dbms_standard.raise_application_error(
            -20803,
            'RQ803 missing_privilege: '
            || sys.standard.sys_context('userenv', 'session_user') || ' is in the schema of '
            || sys.standard.sys_context('userenv', 'current_schema')
        );
    end if;
end;
/
-- RQ801: the server is older than 19c.
-- RQ803: this is the root of a container database.
-- RQ803: the owner may not call a SYS package that rowq calls (PUBLIC may, unless the server was
--        hardened); roles do not count in stored code.
-- RQ802: rowq did not create the tables with rowq's names (only a migration record is an unfinished
--        installation), another object replaces a table, or code runs when a table is used.
declare
    v_tables     pls_integer;
    v_known      pls_integer;
    v_bookkeeper pls_integer;
    v_why        varchar2(1000 char);
    v_packages   constant sys.odcivarchar2list := sys.odcivarchar2list(
        'DBMS_ASSERT', 'DBMS_LOB', 'DBMS_OUTPUT', 'DBMS_SESSION', 'DBMS_STATS', 'DBMS_TRANSACTION',
        'DBMS_UTILITY', 'UTL_ENCODE', 'UTL_RAW'
    );
begin
    if dbms_db_version.version < 19 then
        raise_application_error(-20801, 'RQ801 server_too_old: rowq needs Oracle 19c or newer');
    end if;

    if sys_context('userenv', 'con_name') = 'CDB$ROOT' then
        raise_application_error(
            -20803,
            'RQ803 missing_privilege: this is the root container CDB$ROOT; connect to a pluggable'
            || ' database'
        );
    end if;

    select listagg('sys.' || lower(n.column_value), ', ') within group (order by n.column_value)
    into v_why
    from table(v_packages) n
    where not exists (
        select null
        from all_tab_privs p
        where p.table_schema = 'SYS'
          and p.table_name = n.column_value
          and p.privilege = 'EXECUTE'
          and p.grantee in (sys_context('userenv', 'session_user'), 'PUBLIC')
    );
    if v_why is not null then
        raise_application_error(
            -20803,
            'RQ803 missing_privilege: the owner may not call ' || v_why
            || ': grant execute on each to ' || sys_context('userenv', 'session_user')
        );
    end if;

    select count(*),
           count(case when t.table_name in ('ROWQ_META', 'ROWQ_QUEUE', 'ROWQ_READY') then 1 end),
           count(case when t.table_name = 'ROWQ_MIGRATION' then 1 end)
    into v_tables, v_known, v_bookkeeper
    from user_tables t
    where t.table_name like 'ROWQ\_%' escape '\';
    if v_tables > 0 and v_known < 3 and v_bookkeeper = 0 then
        v_why := 'tables ROWQ_ were not created by rowq';
    end if;

    select coalesce(v_why, min(f.why))
    into v_why
    from (
        select o.object_name || ' is a ' || lower(o.object_type) as why
        from user_objects o
        where (o.object_name = 'ROWQ' or o.object_name like 'ROWQ\_%' escape '\')
          and o.object_type in ('VIEW', 'MATERIALIZED VIEW', 'SYNONYM')
        union all
        select t.table_name || ' is a temporary table'
        from user_tables t
        where t.table_name like 'ROWQ\_%' escape '\'
          and t.temporary = 'Y'
        union all
        select t.table_name || ' has trigger ' || t.owner || '.' || t.trigger_name
               || ', which must be disabled for the migration'
        from all_triggers t
        where t.table_owner = sys_context('userenv', 'session_user')
          and t.table_name like 'ROWQ\_%' escape '\'
          and t.status = 'ENABLED'
        union all
        select c.table_name || ' has virtual column ' || c.column_name
        from user_tab_cols c
        where c.table_name like 'ROWQ\_%' escape '\'
          and c.virtual_column = 'YES'
          and c.user_generated = 'YES'
        union all
        select i.table_name || ' has a function-based index, ' || i.owner || '.' || i.index_name
        from all_indexes i
        where i.table_owner = sys_context('userenv', 'session_user')
          and i.table_name like 'ROWQ\_%' escape '\'
          and i.index_type like 'FUNCTION-BASED%'
        union all
        select p.object_name || ' has policy ' || p.policy_name
        from user_policies p
        where p.object_name like 'ROWQ\_%' escape '\'
          and p.enable = 'YES'
    ) f;
    if v_why is not null then
        raise_application_error(-20802, 'RQ802 foreign_schema: ' || v_why);
    end if;
end;
/

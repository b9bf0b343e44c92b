-- Create the roles and grant each execute on its package, and on the type of id lists if its
-- routines need it. The script can be run again, revokes other rights, and grants only missing
-- ones: a grant on a package waits for all running calls.
--
-- Roles are database-wide, so grant only to a role that the owner has with admin option, as its
-- creator does: another installation's role gets no rights by mistake. The script skips other roles
-- with a line of output: a DBA creates the missing role, grants it to the owner with admin option,
-- and the owner runs this again. A role is not enabled in a caller's stored procedures: grant the
-- package to their owner directly.
declare
    -- ORA-01031, and from 23ai ORA-41900: missing privilege; ORA-01921: the role exists.
    e_may_not exception;
    e_may_not_named exception;
    e_is_there exception;
    pragma exception_init(e_may_not, -1031);
    pragma exception_init(e_may_not_named, -41900);
    pragma exception_init(e_is_there, -1921);

    procedure make(p_role in varchar2) is
    begin
        execute immediate 'create role ' || p_role;
    exception
        when e_is_there or e_may_not or e_may_not_named then
            null;
    end make;

    procedure give(p_role in varchar2, p_object in varchar2) is
        v_own   pls_integer;
        v_given pls_integer;
    begin
        select count(*) into v_own
        from user_role_privs r
        where r.granted_role = upper(p_role)
          and r.admin_option = 'YES';
        select count(*) into v_given
        from user_tab_privs_made p
        where p.type in ('PACKAGE', 'TYPE')
          and p.grantee = upper(p_role)
          and p.table_name = upper(p_object)
          and p.privilege = 'EXECUTE';
        if v_own = 0 then
            dbms_output.put_line(
                'role ' || p_role || ' is missing or not the owner''s, and gets no right to '
                || p_object
            );
        elsif v_given = 0 then
            execute immediate 'grant execute on ' || p_object || ' to ' || p_role;
        end if;
    end give;
begin
    make('rowq_producer');
    make('rowq_consumer');
    make('rowq_monitor');
    make('rowq_admin');

    -- rights: generated from contract.toml by make generate
    give('rowq_admin', 'rowq');
    give('rowq_admin', 'rowq_ids');
    give('rowq_producer', 'rowq_produce');
    give('rowq_producer', 'rowq_ids');
    give('rowq_consumer', 'rowq_consume');
    give('rowq_consumer', 'rowq_ids');
    give('rowq_monitor', 'rowq_look');
    -- end of rights

    for each_right in (
        select distinct p.privilege, p.table_name, p.grantee
        from user_tab_privs_made p
        -- A row of type USER is a right on the account itself, which may be named ROWQ_..., and
        -- PUBLIC has INHERIT PRIVILEGES on it.
        where p.type <> 'USER'
          and (p.table_name = 'ROWQ' or p.table_name like 'ROWQ\_%' escape '\')
          and p.grantee in (
              'ROWQ_PRODUCER', 'ROWQ_CONSUMER', 'ROWQ_MONITOR', 'ROWQ_ADMIN', 'PUBLIC'
          )
          and (p.privilege <> 'EXECUTE' or (p.grantee, p.table_name) not in (
              -- kept rights: generated from contract.toml by make generate
              ('ROWQ_ADMIN', 'ROWQ'),
              ('ROWQ_ADMIN', 'ROWQ_IDS'),
              ('ROWQ_PRODUCER', 'ROWQ_PRODUCE'),
              ('ROWQ_PRODUCER', 'ROWQ_IDS'),
              ('ROWQ_CONSUMER', 'ROWQ_CONSUME'),
              ('ROWQ_CONSUMER', 'ROWQ_IDS'),
              ('ROWQ_MONITOR', 'ROWQ_LOOK')
              -- end of kept rights
          ))
    ) loop
        execute immediate 'revoke ' || each_right.privilege || ' on '
            || dbms_assert.enquote_name(each_right.table_name) || ' from ' || each_right.grantee;
    end loop;
end;
/

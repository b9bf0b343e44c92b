-- This makes the roles and gives each one execute on its package and on the type of lists of ids
-- where its routines take them, and nothing else. It may run any number of times and takes back
-- what it does not give. A role that is missing and may not be created here ("create role" is a
-- system privilege) is left out with a line of output: create it and run this again. A role is
-- enabled in sessions, but not in a caller's own stored procedures: grant the package to the owner
-- of those directly.
declare
    e_may_not exception;
    e_is_there exception;
    e_no_role exception;
    e_no_such_role exception;
    pragma exception_init(e_may_not, -1031);
    pragma exception_init(e_is_there, -1921);
    pragma exception_init(e_no_role, -1917);
    pragma exception_init(e_no_such_role, -1919);

    procedure make(p_role in varchar2) is
    begin
        execute immediate 'create role ' || p_role;
    exception
        when e_is_there or e_may_not then
            null;
    end make;

    procedure give(p_role in varchar2, p_object in varchar2) is
    begin
        execute immediate 'grant execute on ' || p_object || ' to ' || p_role;
    exception
        when e_no_role or e_no_such_role then
            dbms_output.put_line(
                'role ' || p_role || ' is missing and has no right to ' || p_object
            );
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
        -- A row of type USER is a right on the account itself, which may be called ROWQ_something,
        -- and everybody has the right INHERIT PRIVILEGES on it.
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

function internal_waiters_lock_number(p_part_id in number)
return number
is
-- routine   internal_waiters_lock_number
-- version   1
-- purpose   The number of the lock by which waiters of a queue elect their leader; 0 where the owner may not use dbms_lock.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   this engine's own: the server has numbers and no names for locks that need no row
    v_count pls_integer;
begin
    -- Looked up rather than tried: a statement that fails to parse is parsed anew each time. Roles
    -- do not count in stored code, and "execute any procedure" leaves out what belongs to SYS.
    select count(*) into v_count
    from all_tab_privs p
    where p.table_schema = 'SYS'
      and p.table_name = 'DBMS_LOCK'
      and p.privilege = 'EXECUTE'
      and p.grantee in (sys_context('userenv', 'current_user'), 'PUBLIC');
    if v_count = 0 then
        return 0;
    end if;
    -- The numbers up to 1073741823 are for all applications of the database. One that happens to
    -- use the same delays waiters by a second at most.
    return dbms_utility.get_hash_value(
        sys_context('userenv', 'current_user') || '.rowq.wait.' || internal_number_text(p_part_id),
        1, 1073741823
    );
end internal_waiters_lock_number;

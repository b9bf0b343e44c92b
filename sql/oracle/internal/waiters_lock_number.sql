function internal_waiters_lock_number(p_part_id in number)
return number
is
-- routine   internal_waiters_lock_number
-- purpose   Return the number of the lock that elects a queue's leading waiter; 0 if the owner may not use dbms_lock.
-- differs   this engine's own: the server has numbers and no names for locks that need no row
    v_count pls_integer;
begin
    -- Look the right up and do not try it, because a statement that fails to parse is parsed anew
    -- each time. Roles do not count in stored code, and "execute any procedure" leaves out what
    -- belongs to SYS.
    select count(*) into v_count
    from all_tab_privs p
    where p.table_schema = 'SYS'
      and p.table_name = 'DBMS_LOCK'
      and p.privilege = 'EXECUTE'
      and p.grantee in (sys_context('userenv', 'current_user'), 'PUBLIC');
    if v_count = 0 then
        return 0;
    end if;
    -- All applications of the database share the lock numbers up to 1073741823. One that happens to
    -- use the same number delays waiters by a second at most.
    return dbms_utility.get_hash_value(
        sys_context('userenv', 'current_user') || '.rowq.wait.' || internal_number_text(p_part_id),
        1, 1073741823
    );
end internal_waiters_lock_number;

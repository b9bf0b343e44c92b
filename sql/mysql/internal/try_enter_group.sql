drop procedure if exists rowq.internal_try_enter_group;

delimiter //
create procedure rowq.internal_try_enter_group(
    p_part_id int,
    p_group_key varbinary(800),
    p_owns_transaction boolean,
    out p_has_token boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_try_enter_group
-- purpose   Do what internal_enter_group does, but return null where that takes longer than a moment.
-- promise   P22
-- locks     as internal_enter_group, not waited for on MariaDB, for a second at most on MySQL
-- differs   the shortest wait that MySQL has is a second
    declare v_patience bigint default @@session.innodb_lock_wait_timeout;
    declare exit handler for 1205
    begin
        set session innodb_lock_wait_timeout = v_patience;
        if @@innodb_rollback_on_timeout then
            resignal;
        end if;
        set p_has_token = null;
    end;
    declare exit handler for sqlexception
    begin
        set session innodb_lock_wait_timeout = v_patience;
        resignal;
    end;
    set p_has_token = null;

    if p_owns_transaction or
       /*!80000 @@session.transaction_isolation */ /*M!100600 @@session.tx_isolation */
           in ('READ-COMMITTED', 'READ-UNCOMMITTED') then
        set session innodb_lock_wait_timeout = /*!80000 1 */ /*M!100600 0 */;
        call rowq.internal_enter_group(p_part_id, p_group_key, p_has_token);
        set session innodb_lock_wait_timeout = v_patience;
    end if;
end//
delimiter ;

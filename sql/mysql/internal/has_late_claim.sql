drop procedure if exists rowq.internal_has_late_claim;

delimiter //
create procedure rowq.internal_has_late_claim(
    p_part_id int,
    p_from bigint,
    p_before bigint,
    out p_has_late boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_has_late_claim
-- purpose   Return whether a claim with a number from p_from to below p_before is there, or was made by a transaction that is still open.
-- promise   P28
-- locks     claim rows of that range, not waited for; a time-out may roll the transaction back, so
--           call it before anything is changed
-- differs   PostgreSQL knows which transactions are open
    declare v_patience bigint default @@session.innodb_lock_wait_timeout;
    declare v_claim_id bigint;
    declare v_is_range boolean;
    -- MariaDB allows no "nowait" in procedures (1314), but a time-out of 0, which MySQL does not
    -- have.
    declare exit handler for 1205, 3572
    begin
        set session innodb_lock_wait_timeout = v_patience;
        set p_has_late = true;
    end;
    declare exit handler for sqlexception
    begin
        set session innodb_lock_wait_timeout = v_patience;
        resignal;
    end;

    /*M!100600 set session innodb_lock_wait_timeout = 0; */
    select c.claim_id, c.messages is null into v_claim_id, v_is_range
    from rowq.claim c force index (primary)
    where c.part_id = p_part_id
      and c.claim_id > 0
      and c.claim_id >= p_from
      and c.claim_id < p_before
    limit 1
    for update /*!80000 nowait */;
    set session innodb_lock_wait_timeout = v_patience;
    set p_has_late = v_claim_id is not null;
end//
delimiter ;

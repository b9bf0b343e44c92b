drop procedure if exists rowq.internal_shape_archive;

delimiter //
create procedure rowq.internal_shape_archive(p_statement longtext, out p_is_done boolean)
sql security definer
modifies sql data
begin
-- routine   internal_shape_archive
-- purpose   Add or drop a partition of the archive, if nobody reads it for a second.
-- promise   P19
-- locks     the archive, waiting for a second at most
-- commits   implicitly, as all statements that change a table; call it outside transactions
-- differs   only engines where such a statement commits need it
    declare v_patience bigint default @@session.lock_wait_timeout;
    -- The statement fails where another session reads the archive, or where another maintain was
    -- faster: leave it to the next call.
    declare continue handler for sqlexception set p_is_done = false;
    -- A call that was killed (1317) or ran out of its time (1969, 3024) must end with that error.
    declare exit handler for 1317, 1969, 3024
    begin
        set session lock_wait_timeout = v_patience;
        set @rowq_statement = null;
        resignal;
    end;
    set p_is_done = true;

    -- A prepared statement can take its text only from a variable of the session. On MariaDB the
    -- caller's alter_algorithm would decide how the partition is made, or refuse it.
    set @rowq_statement = concat(
        if(version() like '%MariaDB%', 'set statement alter_algorithm = default for ', ''),
        p_statement
    );
    set session lock_wait_timeout = 1;
    prepare rowq_shape from @rowq_statement;
    if p_is_done then
        execute rowq_shape;
        deallocate prepare rowq_shape;
    end if;
    set session lock_wait_timeout = v_patience;
    set @rowq_statement = null;
end//
delimiter ;

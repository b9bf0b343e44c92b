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
    -- Whoever reads the archive keeps its shape; another maintain may have been faster.
    declare continue handler for sqlexception set p_is_done = false;
    -- Who breaks the call off, or has given it a time, must hear of it.
    declare exit handler for 1317, 1969, 3024
    begin
        set session lock_wait_timeout = v_patience;
        set @rowq_statement = null;
        resignal;
    end;
    set p_is_done = true;

    -- Prepared statements take their text from a variable of the session only.
    -- MariaDB would shape it as the caller's alter_algorithm says, or not at all.
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

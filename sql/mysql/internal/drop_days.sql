drop procedure if exists rowq.internal_drop_days;

delimiter //
create procedure rowq.internal_drop_days(out p_partitions_dropped int)
sql security definer
modifies sql data
begin
-- routine   internal_drop_days
-- purpose   Drop partitions of the archive that are too old for every queue.
-- promise   P19
-- locks     the archive, waiting for a second at most
-- commits   implicitly; call it outside transactions
-- differs   PostgreSQL drops them in the transaction of the caller
    declare v_keep_from varchar(20);
    declare v_name varchar(64);
    declare v_is_done boolean default true;
    set p_partitions_dropped = 0;

    select concat("'", date(utc_timestamp() - interval max(q.archive_days) day)) into v_keep_from
    from rowq.queue q;

    while v_is_done do
        set v_name = null;
        select p.partition_name into v_name
        from information_schema.partitions p
        where p.table_schema = 'rowq'
          and p.table_name = 'archive'
          and p.partition_description <> 'MAXVALUE'
          and left(p.partition_description, 11) <= v_keep_from
        order by p.partition_ordinal_position
        limit 1;
        set v_is_done = v_name is not null;
        if v_is_done then
            call rowq.internal_shape_archive(
                concat('alter table rowq.archive drop partition ', v_name), v_is_done
            );
            set p_partitions_dropped = p_partitions_dropped + v_is_done;
        end if;
    end while;
end//
delimiter ;

drop procedure if exists rowq.internal_open_day;

delimiter //
create procedure rowq.internal_open_day(p_day date)
sql security definer
modifies sql data
begin
-- routine   internal_open_day
-- purpose   Make sure that the archive has a partition that ends with this day.
-- promise   P19
-- locks     the archive, waiting for a second at most
-- commits   implicitly; call it outside transactions
-- differs   PostgreSQL makes the partition in the transaction that needs it
    declare v_name varchar(64) default concat('p', date_format(p_day, '%Y%m%d'));
    declare v_end varchar(20) default concat("'", p_day + interval 1 day, "'");
    declare v_covering, v_bound varchar(64);
    declare v_is_done boolean;

    select p.partition_name, p.partition_description into v_covering, v_bound
    from information_schema.partitions p
    where p.table_schema = 'rowq'
      and p.table_name = 'archive'
      and (
          p.partition_description = 'MAXVALUE'
          or left(p.partition_description, 11) >= left(v_end, 11)
      )
    order by p.partition_ordinal_position
    limit 1;
    if v_covering <> v_name then
        -- Split the day off the partition that has covered it so far. Rows of the day that are
        -- there already move with it.
        call rowq.internal_shape_archive(
            concat(
                'alter table rowq.archive reorganize partition ', v_covering, ' into (partition ',
                v_name, ' values less than (', v_end, '), partition ', v_covering,
                ' values less than (', v_bound, '))'
            ),
            v_is_done
        );
    end if;
end//
delimiter ;

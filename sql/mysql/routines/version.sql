drop procedure if exists rowq.version;

delimiter //
create procedure rowq.version()
sql security definer
reads sql data
comment 'Return the installed versions.'
begin
-- routine   version
-- version   1
-- purpose   Return the installed versions.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    select
        (select m.value from rowq.meta m where m.name = 'rowq_version') as rowq_version,
        (select cast(m.value as signed) from rowq.meta m where m.name = 'schema_version')
            as schema_version,
        concat(
            if(version() like '%MariaDB%', 'MariaDB ', 'MySQL '),
            substring_index(version(), '-', 1)
        ) as engine;
end//
delimiter ;

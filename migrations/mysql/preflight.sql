-- Runs first in every install, upgrade and rollback: lets one in at a time, for as long as its
-- session lasts, and refuses here, before anything is changed, what would go wrong later. Without a
-- procedure there is no signal: the text of a fault is the name of a table that is not there.
set names utf8mb4;
set session sql_mode = concat(
    'STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,',
    'NO_ENGINE_SUBSTITUTION'
);
set session autocommit = 1;
set session lock_wait_timeout = 10;
set session innodb_lock_wait_timeout = 10;

-- RQ801: JSON tables and skip locked need MariaDB 10.6 or MySQL 8.0.21; the tables need InnoDB.
-- RQ806: another migration has not ended for 60 seconds.
-- RQ802: a database rowq that rowq did not make; an empty one, or one with nothing but bookkeeping,
--        is a beginning of ours.
-- RQ803: a right that the account lacks, globally and in this database. What comes by a role is not
--        shown to its owner, so that with a role nothing is refused here.
set @rowq_version = cast(substring_index(version(), '.', 1) as unsigned) * 1000000
    + cast(substring_index(substring_index(version(), '.', 2), '.', -1) as unsigned) * 1000
    + cast(substring_index(substring_index(version(), '-', 1), '.', -1) as unsigned);
set @rowq_fault = if(
    @rowq_version < if(version() like '%MariaDB%', 10006000, 8000021),
    'RQ801 server_too_old', null
);
select if(
    @rowq_fault is null and count(*) = 0,
    'RQ801 server_too_old: it has no InnoDB', @rowq_fault
)
into @rowq_fault
from information_schema.engines e
where e.engine = 'InnoDB'
  and e.support in ('YES', 'DEFAULT');
set @rowq_fault = if(
    @rowq_fault is null and coalesce(get_lock('rowq.migrate', 60), 0) = 0,
    'RQ806 migration_busy', @rowq_fault
);
select if(
    @rowq_fault is null
        and count(*) > coalesce(sum(c.column_name is not null), 0)
        and coalesce(sum(c.column_name is not null), 0) < 2
        and coalesce(sum(t.table_name in ('meta', 'queue', 'part')), 0) < 3,
    'RQ802 foreign_schema', @rowq_fault
)
into @rowq_fault
from information_schema.tables t
left join information_schema.columns c
    on c.table_schema = t.table_schema
   and c.table_name = t.table_name
   and c.table_name in ('migration', 'migration_log')
   and c.column_name = 'migration_hash'
where t.table_schema = 'rowq';
set @rowq_account = concat(
    '''',
    left(
        current_user(),
        char_length(current_user())
            - char_length(substring_index(current_user(), '@', -1)) - 1
    ),
    '''@''', substring_index(current_user(), '@', -1), ''''
);
select if(
    @rowq_fault is null and coalesce(current_role(), 'NONE') = 'NONE' and min(n.name) is not null,
    concat('RQ803 missing_privilege: ', min(n.name)), @rowq_fault
)
into @rowq_fault
from (
    select 'ALTER' as name
    union all select 'ALTER ROUTINE'
    union all select 'CREATE'
    union all select 'CREATE ROUTINE'
    union all select 'DELETE'
    union all select 'DROP'
    union all select 'EXECUTE'
    union all select 'INSERT'
    union all select 'SELECT'
    union all select 'UPDATE'
) n
where n.name not in (
        select g.privilege_type
        from information_schema.user_privileges g
        where g.grantee = @rowq_account
    )
  and n.name not in (
        select d.privilege_type
        from information_schema.schema_privileges d
        where d.grantee = @rowq_account
          and 'rowq' like d.table_schema
    );
set @rowq_text = if(
    @rowq_fault is null, 'do 0', concat('select 1 from information_schema.`', @rowq_fault, '`')
);
prepare rowq_check from @rowq_text;
execute rowq_check;
deallocate prepare rowq_check;

-- The checks before every install, upgrade and rollback. They refuse what would fail later or run
-- foreign code with the rights of the migrating account, so they read only the catalog. Outside a
-- procedure there is no signal, so an error's text is the name of a missing table.
set names utf8mb4;
set session sql_mode = concat(
    'STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,',
    'NO_ENGINE_SUBSTITUTION'
);
set session autocommit = 1;
set session lock_wait_timeout = 10;
set session innodb_lock_wait_timeout = 10;

-- RQ801: JSON tables and skip locked require MariaDB 10.6 or MySQL 8.0.21; the tables require
--        InnoDB.
-- RQ802: rowq did not create the database rowq (an empty one, or one with only the migration
--        record, is an unfinished installation). Or it has a view, trigger or invoker routine. Or
--        an account with fewer rights than this one may create such objects in it. Or rowq_owner
--        differs from owner.sql.
-- RQ803: the account lacks a right globally and in this database. An account with a role is not
--        checked, because it cannot read rights by a role.
set @rowq_version = cast(substring_index(version(), '.', 1) as unsigned) * 1000000
    + cast(substring_index(substring_index(version(), '.', 2), '.', -1) as unsigned) * 1000
    + cast(substring_index(substring_index(version(), '-', 1), '.', -1) as unsigned);
set @rowq_fault = if(
    @rowq_version < if(version() like '%MariaDB%', 10006000, 8000021),
    'RQ801 server_too_old', null
);
select if(
    @rowq_fault is null and count(*) = 0,
    'RQ801 server_too_old: InnoDB is missing', @rowq_fault
)
into @rowq_fault
from information_schema.engines e
where e.engine = 'InnoDB'
  and e.support in ('YES', 'DEFAULT');
select if(
    @rowq_fault is null
        and count(*) > coalesce(sum(c.column_name is not null), 0)
        and coalesce(sum(c.column_name is not null), 0) < 2
        and coalesce(sum(t.table_name in ('meta', 'queue', 'queue_lock')), 0) < 3,
    'RQ802 foreign_schema', @rowq_fault
)
into @rowq_fault
from information_schema.tables t
left join information_schema.columns c
    on c.table_schema = t.table_schema
   and c.table_name = t.table_name
   and c.table_name in ('migration', 'migration_log', 'migration_lock')
   and c.column_name in ('migration_hash', 'lock_name')
where t.table_schema = 'rowq';
select if(
    @rowq_fault is null and min(x.name) is not null,
    concat(
        'RQ802 foreign_schema: it has ',
        left(regexp_replace(min(x.name), '[^0-9A-Za-z_]', '_'), 30)
    ),
    @rowq_fault
)
into @rowq_fault
from (
    select t.table_name as name
    from information_schema.tables t
    where t.table_schema = 'rowq'
      and t.table_type <> 'BASE TABLE'
    union all
    select g.trigger_name
    from information_schema.triggers g
    where g.event_object_schema = 'rowq'
    union all
    select r.routine_name
    from information_schema.routines r
    where r.routine_schema = 'rowq'
      and r.security_type = 'INVOKER'
      and r.routine_name <> 'internal_grant'
) x;
set @rowq_account = concat(
    '''',
    left(
        current_user(),
        char_length(current_user())
            - char_length(substring_index(current_user(), '@', -1)) - 1
    ),
    '''@''', substring_index(current_user(), '@', -1), ''''
);
select min(n.name) into @rowq_lacks
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
          and 'rowq' collate utf8mb4_bin like d.table_schema
    );
set @rowq_fault = if(
    @rowq_fault is null and coalesce(current_role(), 'NONE') = 'NONE' and @rowq_lacks is not null,
    concat('RQ803 missing_privilege: ', @rowq_lacks), @rowq_fault
);
select count(*) into @rowq_rights
from information_schema.user_privileges g
where g.grantee = @rowq_account
  and g.privilege_type <> 'USAGE';
-- Rights by a role are not listed there. A role that can read others' rights counts as rights
-- outside rowq. Another account with that role gains nothing, so the role is omitted below.
set @rowq_role = if(@rowq_rights = 0, concat('''', current_role(), '''@'''''), null);
select if(
    @rowq_rights = 0 and coalesce(current_role(), 'NONE') <> 'NONE' and count(*) > 0,
    1, @rowq_rights
)
into @rowq_rights
from information_schema.columns c
where c.table_schema = 'mysql'
  and c.table_name in ('global_priv', 'user')
  and find_in_set('select', c.privileges);
-- Another account gains nothing from this account's rights if it has all of them, is SUPER, or may
-- create accounts and so log in as this one (MySQL protects an account with SYSTEM_USER from that).
-- A trigger runs as its creator, and dumps need the right everywhere, so it counts in rowq only. An
-- account that cannot read others' rights, or has none outside rowq, is not refused.
select if(
    @rowq_fault is null and min(a.grantee) is not null,
    concat(
        'RQ802 foreign_schema: it is open to ',
        left(trim(regexp_replace(min(a.grantee), '[^0-9A-Za-z_]+', ' ')), 25)
    ),
    @rowq_fault
)
into @rowq_fault
from (
    select p.grantee
    from (
        select s.grantee, s.privilege_type, false as is_global
        from information_schema.schema_privileges s
        where 'rowq' collate utf8mb4_bin like s.table_schema
        union all
        select t.grantee, t.privilege_type, false
        from information_schema.table_privileges t
        where 'rowq' collate utf8mb4_bin like t.table_schema
        union all
        select u.grantee, u.privilege_type, true
        from information_schema.user_privileges u
    ) p
    left join information_schema.user_privileges m
        on m.grantee = @rowq_account
       and m.privilege_type = p.privilege_type
       and m.privilege_type <> 'USAGE'
       and p.is_global
    left join information_schema.user_privileges y
        on y.grantee = @rowq_account
       and y.privilege_type = 'SYSTEM_USER'
    where p.grantee not in (
            @rowq_account, '''rowq_owner''@''localhost''', coalesce(@rowq_role, '')
        )
    group by p.grantee
    having max(
            p.privilege_type in (
                'ALTER', 'ALTER ROUTINE', 'CREATE', 'CREATE ROUTINE', 'CREATE VIEW', 'DROP'
            )
            or p.privilege_type = 'TRIGGER' and not p.is_global
        )
       and not max(
            p.is_global
            and (
                p.privilege_type = 'SUPER'
                or p.privilege_type = 'CREATE USER' and y.grantee is null
            )
        )
       and count(m.grantee) < @rowq_rights
) a;
select if(
    @rowq_fault is null and @rowq_rights > 0 and count(*) > 0,
    'RQ802 foreign_schema: rowq_owner has more rights', @rowq_fault
)
into @rowq_fault
from (
    select g.grantee
    from information_schema.user_privileges g
    where g.privilege_type not in ('USAGE', 'PROCESS')
    union all
    select s.grantee
    from information_schema.schema_privileges s
    where 'rowq' collate utf8mb4_bin not like s.table_schema
    union all
    select t.grantee
    from information_schema.table_privileges t
    where 'rowq' collate utf8mb4_bin not like t.table_schema
) p
where p.grantee = '''rowq_owner''@''localhost''';
-- Only tables that not every account may read show whether an account is locked and which rights a
-- MariaDB role has. MySQL's roles are accounts, checked above.
select if(
    @rowq_fault is null and @rowq_rights > 0 and count(*) > 0,
    if(
        version() like '%MariaDB%',
        'select min(if(
             g.user = ''rowq_owner'', ''rowq_owner may log in'',
             concat(
                 ''it is open to '', left(regexp_replace(g.user, ''[^0-9A-Za-z_]+'', '' ''), 25)
             )
         ))
         into @rowq_found
         from mysql.global_priv g
         join mysql.user u on u.user = g.user and u.host = g.host
         join mysql.global_priv m
             on concat(m.user, ''@'', m.host) = current_user()
             or m.user = current_role() and m.host = ''''
         where g.user = ''rowq_owner''
           and g.host = ''localhost''
           and coalesce(json_value(g.priv, ''$.account_locked''), 0) = 0
            or u.is_role = ''Y''
           and ''Y'' in (
               u.alter_priv, u.alter_routine_priv, u.create_priv, u.create_routine_priv,
               u.create_view_priv, u.drop_priv
           )
           and ''Y'' not in (u.super_priv, u.create_user_priv)
           and cast(json_value(m.priv, ''$.access'') as unsigned)
               & ~cast(json_value(g.priv, ''$.access'') as unsigned) <> 0',
        'select min(''rowq_owner may log in'') into @rowq_found
         from mysql.user u
         where u.user = ''rowq_owner''
           and u.host = ''localhost''
           and u.account_locked <> ''Y'''
    ),
    'do 0'
)
into @rowq_text
from information_schema.columns c
where c.table_schema = 'mysql'
  and (
      c.table_name = 'global_priv' and c.column_name = 'Priv'
      or c.table_name = 'user' and c.column_name = 'account_locked'
  )
  and find_in_set('select', c.privileges);
set @rowq_found = null;
prepare rowq_check from @rowq_text;
execute rowq_check;
deallocate prepare rowq_check;
set @rowq_fault = coalesce(@rowq_fault, concat('RQ802 foreign_schema: ', @rowq_found));
set @rowq_text = if(
    @rowq_fault is null, 'do 0', concat('select `', @rowq_fault, '`')
);
prepare rowq_check from @rowq_text;
execute rowq_check;
deallocate prepare rowq_check;

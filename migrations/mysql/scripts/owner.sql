-- Create the routines' definer account, which cannot log in and has only these rights.
set @rowq_text = concat(
    'create user if not exists ''rowq_owner''@''localhost'' identified by ''',
    sha2(concat(uuid(), rand(), rand(), utc_timestamp(6)), 256), '-Aa1'' account lock'
);
prepare rowq_owner from @rowq_text;
execute rowq_owner;
deallocate prepare rowq_owner;
set @rowq_text = null;
alter user 'rowq_owner'@'localhost' account lock;
grant select, insert, update, delete, create, drop, alter, execute
on rowq.* to 'rowq_owner'@'localhost';

-- The rows say what is installed: schema_version and rowq_version. For a queue whose archive could
-- not be maintained, archive_fault.<part_id> is the last error, until it succeeds.
create table rowq_meta (
    name       varchar2(100 char) not null,
    value      varchar2(500 char) not null,
    changed_at timestamp(6) default sys_extract_utc(systimestamp) not null,
    constraint rowq_meta_pk primary key (name)
)
/
merge into rowq_meta m
using (
    select 'schema_version' as name, '1' as value from dual
    union all
    select 'rowq_version' as name, '0.1.0' as value from dual
) n on (m.name = n.name)
when matched then update
    set m.value      = n.value,
        m.changed_at = sys_extract_utc(systimestamp)
when not matched then insert (name, value, changed_at)
    values (n.name, n.value, sys_extract_utc(systimestamp))
/

-- The rows say what is installed: schema_version and rowq_version, which each migration writes.
-- For a queue whose archive could not be maintained, archive_fault.<part_id> is the last error,
-- until it succeeds.
create table rowq_meta (
    name       varchar2(100 char) not null,
    value      varchar2(500 char) not null,
    changed_at timestamp(6) default sys_extract_utc(systimestamp) not null,
    constraint rowq_meta_pk primary key (name)
)
/

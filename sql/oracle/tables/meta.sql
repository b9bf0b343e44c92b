-- The rows say what is installed: schema_version and rowq_version, which each migration writes.
-- For a queue that could not be maintained, maintain_fault.<part_id> is the last error, until
-- maintain succeeds. archive_dropped_before is the day up to which maintain has dropped partitions
-- of the archive.
create table rowq_meta (
    name       varchar2(100 char) not null,
    value      varchar2(500 char) not null,
    changed_at timestamp(6) default sys_extract_utc(systimestamp) not null,
    constraint rowq_meta_pk primary key (name)
)
segment creation immediate
/

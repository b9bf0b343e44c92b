-- The rows say what is installed: schema_version and rowq_version. Each migration writes them.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.meta') is null
create table rowq.meta (
    name       nvarchar(100) collate Latin1_General_100_BIN2 not null,
    value      nvarchar(100) collate Latin1_General_100_BIN2 not null,
    changed_at datetime2(6) not null constraint meta_changed_at_df default sysutcdatetime(),
    constraint meta_pk primary key clustered (name)
);
go

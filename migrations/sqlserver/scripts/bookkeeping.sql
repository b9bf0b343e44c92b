-- Create the record of installed migrations in yoyo's columns. Times are UTC. The schema has its
-- own owner, which cannot log in: see tables.sql.
if user_id(N'rowq_owner') is null
    create user rowq_owner without login;
go
if schema_id(N'rowq') is null
begin
    exec (N'create schema rowq authorization rowq_owner;');
end;
go
if object_id(N'rowq.migration') is null
begin
    create table rowq.migration (
        migration_hash nvarchar(64) collate Latin1_General_100_BIN2 not null,
        migration_id   nvarchar(255) collate Latin1_General_100_BIN2 not null,
        applied_at_utc datetime2(6) not null,
        constraint migration_pk primary key clustered (migration_hash)
    );
end;
go
if object_id(N'rowq.migration_log') is null
begin
    create table rowq.migration_log (
        id             nvarchar(36) collate Latin1_General_100_BIN2 not null,
        migration_hash nvarchar(64) collate Latin1_General_100_BIN2 not null,
        migration_id   nvarchar(255) collate Latin1_General_100_BIN2 not null,
        operation      nvarchar(10) collate Latin1_General_100_BIN2 not null,
        username       nvarchar(255) collate Latin1_General_100_BIN2 not null,
        hostname       nvarchar(255) collate Latin1_General_100_BIN2 not null,
        created_at_utc datetime2(6) not null,
        constraint migration_log_pk primary key clustered (id)
    );
end;
go

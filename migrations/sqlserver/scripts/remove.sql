-- The end of a rollback to 0. It fails if the schema has foreign objects, or its owner owns any.
-- The roles stay, so that users keep them.
drop table if exists rowq.migration_log;
drop table if exists rowq.migration;
go
declare @text nvarchar(max);

select @text = string_agg(concat(N'drop partition scheme ', quotename(s.name), N';'), N' ')
from sys.partition_schemes s
where s.name = N'rowq_day';
if @text is not null
    exec (@text);

select @text = string_agg(concat(N'drop partition function ', quotename(f.name), N';'), N' ')
from sys.partition_functions f
where f.name = N'rowq_day';
if @text is not null
    exec (@text);
go
drop schema if exists rowq;
go
drop user if exists rowq_owner;
go

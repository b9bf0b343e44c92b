-- The end of a rollback to nothing. What others put into the schema stops it. The roles stay: who
-- has them need not be given them again.
drop table if exists rowq.migration_log;
drop table if exists rowq.migration;
go
declare @text nvarchar(max);

select @text = string_agg(concat(N'drop partition scheme ', quotename(s.name), N';'), N' ')
from sys.partition_schemes s
where s.name like N'rowq[_]%';
exec (@text);

select @text = string_agg(concat(N'drop partition function ', quotename(f.name), N';'), N' ')
from sys.partition_functions f
where f.name like N'rowq[_]%';
exec (@text);
go
drop schema if exists rowq;
go

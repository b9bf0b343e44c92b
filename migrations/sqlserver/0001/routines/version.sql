set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Version
as
begin
-- routine   Version
-- version   1
-- purpose   What is installed.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    set nocount on;
    set rowcount 0;
    select
        (select m.value from rowq.meta m where m.name = N'rowq_version') as rowq_version,
        (select cast(m.value as int) from rowq.meta m where m.name = N'schema_version')
            as schema_version,
        concat(
            iif(cast(serverproperty('EngineEdition') as int) = 5, N'Azure SQL ', N'SQL Server '),
            cast(serverproperty('ProductVersion') as nvarchar(100))
        ) as engine;
end
go

set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Version
as
begin
-- routine   Version
-- version   1
-- purpose   Return the installed versions.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    select
        (select m.value from rowq.meta m where m.name = N'rowq_version') as rowq_version,
        (select cast(m.value as int) from rowq.meta m where m.name = N'schema_version')
            as schema_version,
        -- The first line of @@version has product, version and build.
        rtrim(left(@@version, charindex(nchar(10), @@version + nchar(10)) - 1)) as engine;
end
go

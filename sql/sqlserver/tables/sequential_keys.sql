-- Every producer or consumer of a queue appends at the same place. SQL Server 2019 and newer can
-- bring order into the crowd at the last page (optimize_for_sequential_key); older servers do not
-- know the option.
set quoted_identifier on;
set ansi_nulls on;
go
declare @statement nvarchar(max);
if cast(serverproperty('EngineEdition') as int) in (5, 8)
    or cast(serverproperty('ProductMajorVersion') as int) >= 15
    select @statement = string_agg(
        cast(concat(
            N'alter index ', quotename(i.name), N' on rowq.',
            quotename(object_name(i.object_id)),
            N' set (optimize_for_sequential_key = on);'
        ) as nvarchar(max)),
        N' '
    )
    from sys.indexes i
    where i.object_id in (
              object_id(N'rowq.message'), object_id(N'rowq.ready'), object_id(N'rowq.claim'),
              object_id(N'rowq.leased')
          )
      and i.index_id = 1;
if @statement is not null
    exec sys.sp_executesql @statement;
go

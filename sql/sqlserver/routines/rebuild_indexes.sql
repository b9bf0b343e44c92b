set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.RebuildIndexes
    @min_pages int = 1000,
    @max_seconds int = 300
with execute as owner
as
begin
-- routine   RebuildIndexes
-- version   1
-- purpose   Rebuild or reorganize worn indexes, online if the edition allows.
-- promise   P17
-- locks     online, the table briefly at the end; offline, the table during the rebuild
-- commits   after each index; refuses to run inside a transaction
-- errors    RQ711 RQ713
-- differs   this engine only: other engines reclaim space automatically
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    set lock_timeout 1000;
    set transaction isolation level read committed;
    -- An offline rebuild blocks the table: about 1 s for 12800 pages (100 MB).
    declare @most_offline bigint = 12800;
    declare @edition int = cast(serverproperty('EngineEdition') as int);
    declare @is_online bit = iif(@edition in (3, 5, 8, 12), 1, 0);
    declare @until datetime2(6) = dateadd(second, @max_seconds, sysutcdatetime());
    declare @position int = 0;
    declare @last int, @how nvarchar(20), @statement nvarchar(2000);
    declare @worn table (
        position         int not null identity primary key,
        table_name       nvarchar(128) not null,
        index_name       nvarchar(128) not null,
        partition_number int not null,
        is_partitioned   bit not null,
        is_movable       bit not null,
        is_norecompute   bit not null,
        is_sparse        bit not null,
        pages            bigint not null,
        density          float not null,
        fragmentation    float not null,
        outcome          nvarchar(20) not null default N'left',
        detail           nvarchar(2000) null default N'max_seconds has passed'
    );

    exec rowq.InternalCheckRange N'min_pages', @min_pages, 1, 1000000000, @is_required = 1;
    exec rowq.InternalCheckRange N'max_seconds', @max_seconds, 1, 86400, @is_required = 1;
    if @@trancount > 0 or @@options & 2 = 2
        throw 52713,
            N'RQ713 wrong_transaction_state: rebuild_indexes cannot run in a transaction', 1;

    insert into @worn (
        table_name, index_name, partition_number, is_partitioned, is_movable, is_norecompute,
        is_sparse, pages, density, fragmentation
    )
    select o.name, i.name, p.partition_number,
           iif(d.data_space_id is null, 0, 1), i.allow_page_locks, s.no_recompute, t.is_sparse,
           p.page_count, p.avg_page_space_used_in_percent, p.avg_fragmentation_in_percent
    from sys.objects o
    inner join sys.indexes i on i.object_id = o.object_id
    inner join sys.stats s on s.object_id = i.object_id and s.stats_id = i.index_id
    left join sys.partition_schemes d on d.data_space_id = i.data_space_id
    cross apply sys.dm_db_index_physical_stats(
        db_id(), i.object_id, i.index_id, null, N'SAMPLED'
    ) p
    cross apply (
        -- A page with fewer than four rows is never full, so it is not sparse.
        values (
            iif(p.avg_page_space_used_in_percent < 60 and p.avg_record_size_in_bytes < 2000, 1, 0)
        )
    ) t (is_sparse)
    where o.schema_id = schema_id(N'rowq')
      and o.type = 'U'
      and p.alloc_unit_type_desc = N'IN_ROW_DATA'
      and p.index_level = 0
      and p.page_count >= @min_pages
      and (p.avg_fragmentation_in_percent >= 10 or t.is_sparse = 1)
    order by p.page_count * (100 - p.avg_page_space_used_in_percent) desc;
    set @last = @@rowcount;

    while @position < @last and sysutcdatetime() < @until
    begin
        set @position += 1;
        -- Reorganizing requires page locks, which are off for hot tables (is_movable is 0).
        select @how = case
                   when w.fragmentation < 30 and w.is_sparse = 0
                       then iif(w.is_movable = 1, N'reorganized', N'left')
                   when @is_online = 1 then N'rebuilt_online'
                   when w.pages <= @most_offline then N'rebuilt'
                   else iif(w.is_movable = 1, N'reorganized', N'left')
               end
        from @worn w
        where w.position = @position;
        if @how = N'left'
        begin
            update w
            set w.detail = iif(
                    w.fragmentation < 30 and w.is_sparse = 0,
                    N'not fragmented enough to be rebuilt',
                    N'too large to be rebuilt offline; this edition has no online rebuild'
                )
            from @worn w
            where w.position = @position;
            continue;
        end;

        -- Not resumable: while paused, every write would maintain two copies. Repeat
        -- statistics_norecompute: a rebuild turns it off otherwise, and sys.indexes does not store
        -- it.
        select @statement = concat(
                   N'alter index ', quotename(w.index_name), N' on rowq.', quotename(w.table_name),
                   iif(@how = N'reorganized', N' reorganize', N' rebuild'),
                   iif(w.is_partitioned = 1, concat(N' partition = ', w.partition_number), N''),
                   case
                       when @how = N'reorganized' then N''
                       else concat(
                           N' with (maxdop = 1',
                           iif(
                               w.is_norecompute = 1 and w.is_partitioned = 0,
                               N', statistics_norecompute = on', N''
                           ),
                           iif(
                               @how = N'rebuilt_online',
                               N', online = on (wait_at_low_priority ('
                                   + N'max_duration = 1 minutes, abort_after_wait = self))',
                               N''
                           ),
                           N')'
                       )
                   end
               )
        from @worn w
        where w.position = @position;
        begin try
            exec sys.sp_executesql @statement;
            update w
            set w.outcome = @how, w.detail = null
            from @worn w
            where w.position = @position;
        end try
        begin catch
            -- Report an error, such as a locked table, in the row and leave the index.
            update w
            set w.detail = left(error_message(), 2000)
            from @worn w
            where w.position = @position;
        end catch;
    end;

    select w.table_name, w.index_name, w.partition_number, w.pages, w.density, w.fragmentation,
           w.outcome, w.detail
    from @worn w
    order by w.position;
end
go

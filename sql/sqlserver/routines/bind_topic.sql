set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.BindTopic
    @queue_name nvarchar(max),
    @topic_pattern nvarchar(max)
as
begin
-- routine   BindTopic
-- version   1
-- purpose   Bind a queue to the topics that match a pattern.
-- promise   P15 P35
-- locks     the queue, shared; the new topic_binding row; waits for a session that inserts it
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @queue_id int;
    declare @pattern nvarchar(200);
    declare @error nvarchar(200);
    declare @outcome nvarchar(20);

    -- With xact_abort on, a refusal would make the caller's transaction uncommittable.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read opens the caller's transaction, at the caller's
            -- isolation level. @begun keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalTopicError N'topic_pattern', @topic_pattern, 1, @error output;
            if @error is not null
                exec rowq.InternalRefuse @error;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue @queue_name, @queue_id output;
            set @pattern = @topic_pattern;

            -- Writes start here. If the client disconnects, xact_abort rolls back the transaction.
            set xact_abort on;
            -- If another session has inserted the pattern, this inserts no row and raises no error
            -- (ignore_dup_key).
            insert into rowq.topic_binding with (rowlock) (
                queue_id, topic_pattern, word_count, matches_rest, literal_prefix, like_pattern,
                shape
            )
            select @queue_id, w.pattern,
                   iif(w.words = N'', 0, len(w.words) - len(replace(w.words, N'.', N'')) + 1),
                   iif(right(w.pattern, 1) = N'#', 1, 0),
                   case
                       when charindex(N'*', w.words) = 0 then w.words
                       when charindex(N'*', w.words) > 2
                           then left(w.words, charindex(N'*', w.words) - 2)
                       else N''
                   end,
                   iif(
                       charindex(N'*', w.words) = 0, null,
                       replace(replace(w.words, N'_', N'!_'), N'*', N'%')
                   ),
                   (
                       select string_agg(
                                  case e.value when N'*' then '1' when N'#' then '2' else '0' end,
                                  ''
                              ) within group (order by cast(e.[key] as int))
                       from openjson(concat(N'["', replace(w.pattern, N'.', N'","'), N'"]')) e
                   )
            from (
                -- words is the pattern without its #.
                select p.pattern,
                       case
                           when p.pattern = N'#' then N''
                           when right(p.pattern, 1) = N'#' then left(p.pattern, len(p.pattern) - 2)
                           else p.pattern
                       end as words
                from (select @pattern collate Latin1_General_100_BIN2 as pattern) p
            ) w
            where not exists (
                select 1
                from rowq.topic_binding b with (rowlock, readcommittedlock, forceseek)
                where b.queue_id = @queue_id
                  and b.topic_pattern = @pattern
            )
            option (loop join, maxdop 1, keepfixed plan);
            set @outcome = iif(@@rowcount = 1, N'bound', N'exists');

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- Do not end the caller's transaction. If the call had written, it is uncommittable.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- Retry a deadlock (1205) in our own transaction.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left > 0
                exec rowq.InternalPauseBeforeRetry;
            if @tries_left = 0
                throw;
        end catch;
    end;

    select cast(@queue_name as nvarchar(200)) as queue_name,
           cast(@topic_pattern as nvarchar(200)) as topic_pattern, @outcome as outcome;
end
go

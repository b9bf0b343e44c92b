set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPushHistory
    @part_id int,
    @claim_id bigint,
    @worker_name nvarchar(400),
    @leased_at datetime2(6),
    @messages rowq.message_list readonly,
    @outcome nvarchar(20),
    @error nvarchar(max) = null
as
begin
-- routine   InternalPushHistory
-- purpose   Keep how attempts of a claim have ended: cancelled where is_cancelled says so, else as @outcome.
-- promise   P37
-- locks     new history rows
    set nocount on;
    -- The collation counts an emoji as one character.
    declare @text nvarchar(4000) = left(@error collate Latin1_General_100_CI_AS_SC, 2000);

    insert into rowq.history with (rowlock) (
        part_id, ended_at, message_id, claim_id, attempt, leased_at, outcome, worker_name, error
    )
    select @part_id, sysutcdatetime(), j.message_id, @claim_id, j.attempt, @leased_at,
           iif(j.is_cancelled = 1, N'cancelled', @outcome), @worker_name,
           iif(j.is_cancelled = 1, null, @text)
    from @messages j
    option (maxdop 1, keepfixed plan);
end
go

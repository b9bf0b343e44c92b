set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckSettings
    @queue_name nvarchar(max),
    @lease_seconds int,
    @max_attempts int,
    @backoff_base_seconds float,
    @backoff_factor float,
    @backoff_cap_seconds float,
    @backoff_jitter float,
    @archive_days int,
    @max_body_length int,
    @group_limit int,
    @group_after_dead nvarchar(max),
    @group_pause_seconds float,
    @max_leased int,
    @rate_limit int,
    @rate_seconds float,
    @result_seconds float,
    @history_days int
as
begin
-- routine   InternalCheckSettings
-- purpose   Refuse a bad queue name or a setting out of range; null passes for settings.
-- promise   P15
-- errors    RQ711
    set nocount on;
    declare @fault nvarchar(200);

    exec rowq.InternalCheckName N'queue_name', @queue_name;
    exec rowq.InternalCheckRange N'lease_seconds', @lease_seconds, 1, 86400;
    exec rowq.InternalCheckRange N'max_attempts', @max_attempts, 1, 10000;
    exec rowq.InternalCheckRange N'backoff_base_seconds', @backoff_base_seconds, 0, 86400;
    exec rowq.InternalCheckRange N'backoff_factor', @backoff_factor, 1, 10;
    exec rowq.InternalCheckRange N'backoff_cap_seconds', @backoff_cap_seconds, 0, 31536000;
    exec rowq.InternalCheckRange N'backoff_jitter', @backoff_jitter, 0, 1;
    exec rowq.InternalCheckRange N'archive_days', @archive_days, 0, 36500;
    exec rowq.InternalCheckRange N'max_body_length', @max_body_length, 1, 33554432;
    exec rowq.InternalCheckRange N'group_limit', @group_limit, 1, 100;
    exec rowq.InternalCheckRange N'group_pause_seconds', @group_pause_seconds, 0, 86400;
    exec rowq.InternalCheckRange N'max_leased', @max_leased, 0, 100000;
    exec rowq.InternalCheckRange N'rate_limit', @rate_limit, 0, 100000;
    exec rowq.InternalCheckRange N'rate_seconds', @rate_seconds, 0.1e0, 86400;
    exec rowq.InternalCheckRange N'result_seconds', @result_seconds, 0, 31536000;
    exec rowq.InternalCheckRange N'history_days', @history_days, 0, 36500;
    -- A dot at the end makes trailing blanks count.
    if (@group_after_dead + N'.') collate Latin1_General_100_BIN2
        not in (N'continue.', N'hold.')
    begin
        set @fault = concat(
            N'group_after_dead must be continue or hold, got ', left(@group_after_dead, 100)
        );
        exec rowq.InternalRefuse @fault;
    end;
end
go

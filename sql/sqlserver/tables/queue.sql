-- A row holds the settings of a queue. part_id stands for the queue in the tables below and is
-- never reused. queue_key is what is compared: the bytes of the name and a dot, because SQL Server
-- ignores trailing blanks when it compares texts, and trailing zeros when it compares bytes. All
-- times are UTC.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.queue') is null
create table rowq.queue (
    part_id              int identity (1, 1) not null,
    queue_key            varbinary(402) not null,
    queue_name           nvarchar(200) collate Latin1_General_100_BIN2 not null,
    lease_seconds        int not null constraint queue_lease_seconds_df default 30,
    max_attempts         smallint not null constraint queue_max_attempts_df default 10,
    backoff_base_seconds float not null constraint queue_backoff_base_seconds_df default 5,
    backoff_factor       float not null constraint queue_backoff_factor_df default 2,
    backoff_cap_seconds  float not null constraint queue_backoff_cap_seconds_df default 3600,
    backoff_jitter       float not null constraint queue_backoff_jitter_df default 0.2,
    archive_days         int not null constraint queue_archive_days_df default 0,
    max_body_length      int not null constraint queue_max_body_length_df default 1048576,
    group_limit          smallint not null constraint queue_group_limit_df default 1,
    group_after_dead     nvarchar(20) collate Latin1_General_100_BIN2 not null
        constraint queue_group_after_dead_df default N'continue',
    group_pause_seconds  float not null constraint queue_group_pause_seconds_df default 0,
    has_recheck          bit not null constraint queue_has_recheck_df default 0,
    max_leased           int not null constraint queue_max_leased_df default 0,
    rate_limit           int not null constraint queue_rate_limit_df default 0,
    rate_seconds         float not null constraint queue_rate_seconds_df default 1,
    result_seconds       float not null constraint queue_result_seconds_df default 0,
    history_days         int not null constraint queue_history_days_df default 0,
    paused_at            datetime2(6) null,
    created_at           datetime2(6) not null,
    constraint queue_pk primary key nonclustered (part_id),
    constraint queue_queue_key_uq unique clustered (queue_key),
    constraint queue_lease_seconds_ck check (lease_seconds between 1 and 86400),
    constraint queue_max_attempts_ck check (max_attempts between 1 and 10000),
    constraint queue_backoff_base_seconds_ck check (backoff_base_seconds between 0 and 86400),
    constraint queue_backoff_factor_ck check (backoff_factor between 1 and 10),
    constraint queue_backoff_cap_seconds_ck check (backoff_cap_seconds between 0 and 31536000),
    constraint queue_backoff_jitter_ck check (backoff_jitter between 0 and 1),
    constraint queue_archive_days_ck check (archive_days between 0 and 36500),
    constraint queue_max_body_length_ck check (max_body_length between 1 and 33554432),
    constraint queue_group_limit_ck check (group_limit between 1 and 100),
    constraint queue_group_after_dead_ck check (group_after_dead in (N'continue', N'hold')),
    constraint queue_group_pause_seconds_ck check (group_pause_seconds between 0 and 86400),
    constraint queue_max_leased_ck check (max_leased between 0 and 100000),
    constraint queue_rate_limit_ck check (rate_limit between 0 and 100000),
    constraint queue_rate_seconds_ck check (rate_seconds between 0.1e0 and 86400),
    constraint queue_result_seconds_ck check (result_seconds between 0 and 31536000),
    constraint queue_history_days_ck check (history_days between 0 and 36500)
);
go

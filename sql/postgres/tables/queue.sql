-- A row holds the settings of a queue. part_id stands first in the key of every table below and is
-- never reused.
create table if not exists rowq.queue (
    part_id              integer generated always as identity,
    queue_name           text not null,
    lease_seconds        integer not null default 30,
    max_attempts         smallint not null default 10,
    backoff_base_seconds double precision not null default 5,
    backoff_factor       double precision not null default 2,
    backoff_cap_seconds  double precision not null default 3600,
    backoff_jitter       double precision not null default 0.2,
    archive_days         integer not null default 0,
    max_body_length      integer not null default 1048576,
    group_limit          smallint not null default 1,
    group_after_dead     text not null default 'continue',
    group_pause_seconds  double precision not null default 0,
    has_recheck          boolean not null default false,
    max_leased           integer not null default 0,
    rate_limit           integer not null default 0,
    rate_seconds         double precision not null default 1,
    paused_at            timestamp with time zone,
    created_at           timestamp with time zone not null default clock_timestamp(),
    constraint queue_pk primary key (part_id),
    constraint queue_name_uq unique (queue_name),
    constraint queue_name_ck check (
        char_length(queue_name) between 1 and 100
        and queue_name !~ '[[:cntrl:]]'
    ),
    constraint queue_lease_seconds_ck check (lease_seconds between 1 and 86400),
    constraint queue_max_attempts_ck check (max_attempts between 1 and 10000),
    constraint queue_backoff_base_seconds_ck check (backoff_base_seconds between 0 and 86400),
    constraint queue_backoff_factor_ck check (backoff_factor between 1 and 10),
    constraint queue_backoff_cap_seconds_ck check (backoff_cap_seconds between 0 and 31536000),
    constraint queue_backoff_jitter_ck check (backoff_jitter between 0 and 1),
    constraint queue_archive_days_ck check (archive_days between 0 and 36500),
    constraint queue_max_body_length_ck check (max_body_length between 1 and 33554432),
    constraint queue_group_limit_ck check (group_limit between 1 and 100),
    constraint queue_group_after_dead_ck check (group_after_dead in ('continue', 'hold')),
    constraint queue_group_pause_seconds_ck check (group_pause_seconds between 0 and 86400),
    constraint queue_max_leased_ck check (max_leased between 0 and 100000),
    constraint queue_rate_limit_ck check (rate_limit between 0 and 100000),
    constraint queue_rate_seconds_ck check (rate_seconds between 0.1 and 86400)
);

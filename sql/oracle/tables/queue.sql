-- A row holds the settings of a queue. part_id stands first in the key of every table below and is
-- never reused. queue_key is what is compared: the bytes of the name, so that upper case, accents
-- and trailing blanks matter whatever NLS_COMP and NLS_SORT a session has. All times are UTC. Until
-- listened_until a session waits for a ring of doorbell.sql; it is null where that was never run.
-- initrans and pctfree leave the blocks room for many lock entries, because sessions that wait at
-- many queues note it at the same time.
create table rowq_queue (
    part_id              number(10) not null,
    queue_name           varchar2(100 char) not null,
    queue_key            raw(400) not null,
    lease_seconds        number(5) default 30 not null,
    max_attempts         number(5) default 10 not null,
    backoff_base_seconds number default 5 not null,
    backoff_factor       number default 2 not null,
    backoff_cap_seconds  number default 3600 not null,
    backoff_jitter       number default 0.2 not null,
    archive_days         number(5) default 0 not null,
    max_body_length      number(8) default 1048576 not null,
    group_limit          number(3) default 1 not null,
    group_after_dead     varchar2(10 char) default 'continue' not null,
    group_pause_seconds  number default 0 not null,
    max_leased           number(6) default 0 not null,
    rate_limit           number(6) default 0 not null,
    rate_seconds         number default 1 not null,
    result_seconds       number default 0 not null,
    history_days         number(5) default 0 not null,
    paused_at            timestamp(6),
    listened_until       timestamp(6),
    created_at           timestamp(6) not null,
    constraint rowq_queue_pk primary key (part_id),
    constraint rowq_queue_key_uq unique (queue_key),
    constraint rowq_queue_lease_ck check (lease_seconds between 1 and 86400),
    constraint rowq_queue_attempts_ck check (max_attempts between 1 and 10000),
    constraint rowq_queue_base_ck check (backoff_base_seconds between 0 and 86400),
    constraint rowq_queue_factor_ck check (backoff_factor between 1 and 10),
    constraint rowq_queue_cap_ck check (backoff_cap_seconds between 0 and 31536000),
    constraint rowq_queue_jitter_ck check (backoff_jitter between 0 and 1),
    constraint rowq_queue_archive_ck check (archive_days between 0 and 36500),
    constraint rowq_queue_body_ck check (max_body_length between 1 and 33554432),
    constraint rowq_queue_group_limit_ck check (group_limit between 1 and 100),
    constraint rowq_queue_after_dead_ck check (group_after_dead in ('continue', 'hold')),
    constraint rowq_queue_group_pause_ck check (group_pause_seconds between 0 and 86400),
    constraint rowq_queue_max_leased_ck check (max_leased between 0 and 100000),
    constraint rowq_queue_rate_limit_ck check (rate_limit between 0 and 100000),
    constraint rowq_queue_rate_seconds_ck check (rate_seconds between 0.1 and 86400),
    constraint rowq_queue_result_ck check (result_seconds between 0 and 31536000),
    constraint rowq_queue_history_ck check (history_days between 0 and 36500)
)
segment creation immediate
initrans 16 pctfree 40
/
create sequence rowq_part_seq start with 1 increment by 1 cache 20 noorder
/

-- The rows say what is installed: schema_version and rowq_version, which each migration writes. A
-- further row is the first part of the names of the channels of notifications, and for a queue for
-- which maintain has failed, maintain_fault.<part_id> is the error.
create table if not exists rowq.meta (
    name       text not null,
    value      text not null,
    changed_at timestamp with time zone not null default clock_timestamp(),
    constraint meta_pk primary key (name)
);

-- Every account may listen to a channel, or notify it, if it can name it. So the names of the
-- channels begin with a text of this installation that no other account can guess.
insert into rowq.meta (name, value)
values ('channel', 'rowq_' || replace(gen_random_uuid()::text, '-', ''))
on conflict (name) do nothing;

-- Ten messages at a time are marked as claimed by this session, then those are selected. PostgreSQL
-- has no update with a limit; the nearest is an update of what a locking select with a limit finds.

-- name: install
create table seed.unsent_email (
    id     bigint generated always as identity primary key,
    status text not null default 'unsent' check (status in ('unsent', 'claimed', 'sent')),
    owner  integer not null default 0,
    ts     timestamp with time zone not null default clock_timestamp(),
    body   text not null
);
create index email_ix on seed.unsent_email (owner, status, ts);

-- name: enqueue
insert into seed.unsent_email (body) values (:body)

-- name: fill
insert into seed.unsent_email (body)
select x.message ->> 'body'
from jsonb_array_elements(:messages::jsonb) with ordinality x (message, place)
order by x.place

-- name: settle
vacuum (analyze) seed.unsent_email

-- name: claim
update seed.unsent_email
set status = 'claimed', owner = pg_backend_pid(), ts = clock_timestamp()
where id = any (array(
    select x.id
    from seed.unsent_email x
    where x.owner = 0 and x.status = 'unsent'
    limit :batch::integer
    for update
))

-- name: own
select id, body
from seed.unsent_email
where owner = pg_backend_pid() and status = 'claimed'

-- name: complete
delete from seed.unsent_email where id = any (:ids)

-- name: reset_by_age
update seed.unsent_email
set owner = 0, status = 'unsent'
where status = 'claimed'
  and ts < clock_timestamp() - :seconds::integer * interval '1 second'

-- name: sessions
select pid from pg_stat_activity

-- name: reset_by_age_and_session
update seed.unsent_email
set owner = 0, status = 'unsent'
where owner <> all (:sessions)
  and status = 'claimed'
  and ts < clock_timestamp() - :seconds::integer * interval '1 second'

-- Ten messages at a time are selected for update, then marked as claimed by this session.

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

-- name: find
select id, body
from seed.unsent_email
where owner = 0 and status = 'unsent'
limit :batch::integer
for update

-- name: mark
update seed.unsent_email
set status = 'claimed', owner = pg_backend_pid(), ts = clock_timestamp()
where id = any (:ids)

-- name: complete
delete from seed.unsent_email where id = any (:ids)

-- A message may name its predecessor, and is taken only when that is gone: by a join at dequeue.
-- The consumer's transaction is open until the message is deleted. Locked rows are passed over.
-- The predecessor is read under a shared lock, as in a database without row versions.

-- name: install
create table dbo.queue (
    id                bigint identity not null constraint queue_pk primary key clustered,
    predecessor_id    bigint null,
    queue_name        nvarchar(255) not null,
    data_type         nvarchar(255) not null,
    data              nvarchar(max) not null,
    retries_remaining int null constraint queue_retries_ck check (retries_remaining >= 0),
    is_failed         as (case when retries_remaining = 0 then 1 else 0 end) persisted not null,
    queued_on         datetime not null default getutcdate(),
    delay_until       datetime null,
    last_failed_on    datetime null,
    last_failure      nvarchar(max) null
);
create nonclustered index queue_ix on dbo.queue (is_failed, queue_name, delay_until);
go
create view dbo.number as
with digit (n) as (
    select v.n from (values (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) v (n)
)
select 1 + a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n as n
from digit a
cross join digit b
cross join digit c
cross join digit d
cross join digit e;
go

-- name: fill
insert into dbo.queue (predecessor_id, queue_name, data_type, data, delay_until)
select iif(n.n > 1 and (n.n <= :stuck or n.n % :length <> 1), n.n - 1, null),
       N'bench', N'text', left(concat(n.n, replicate(N'x', 200)), 200),
       iif(n.n = 1 and :stuck > 0, dateadd(day, 1, getutcdate()), null)
from dbo.number n
where n.n <= :count
order by n.n

-- name: settle
alter index all on dbo.queue rebuild

-- name: enqueue
insert into dbo.queue (predecessor_id, queue_name, data_type, data)
output inserted.id
values (
    nullif(:predecessor, 0), N'bench', N'text',
    left(concat(:predecessor, replicate(N'x', 200)), 200)
)

-- name: dequeue
select top (1) one.id, one.data
-- part: queue
left join dbo.queue predecessor with (readcommittedlock)
    on predecessor.id = one.predecessor_id
where one.is_failed = 0
  and one.queue_name = N'bench'
  and (one.delay_until is null or one.delay_until < getutcdate())
  and predecessor.id is null

-- name: queue
from dbo.queue one with (rowlock, updlock, readpast, readcommittedlock)

-- name: finish
delete from dbo.queue where id = :id

-- What has a predecessor waits in a table of its own, and is moved by the transaction that finishes
-- the predecessor: the dequeue joins nothing. The consumer's transaction is open until then.
-- (A message that is due later would wait in a third table; the stuck one is just not ready.)

-- name: install
create table dbo.message (
    id        bigint identity not null constraint message_pk primary key clustered,
    data_type nvarchar(255) not null,
    data      nvarchar(max) not null
);
create table dbo.ready (
    id bigint not null constraint ready_pk primary key clustered
);
create table dbo.blocked (
    predecessor_id bigint not null,
    id             bigint not null,
    constraint blocked_pk primary key clustered (predecessor_id, id)
);
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
insert into dbo.message (data_type, data)
select N'text', left(concat(n.n, replicate(N'x', 200)), 200)
from dbo.number n
where n.n <= :count
order by n.n;
insert into dbo.ready (id)
select n.n
from dbo.number n
where n.n <= :count and n.n % :length = 1 and n.n > :stuck;
insert into dbo.blocked (predecessor_id, id)
select n.n - 1, n.n
from dbo.number n
where n.n <= :count and n.n > 1 and (n.n <= :stuck or n.n % :length <> 1)

-- name: settle
update statistics dbo.message;
update statistics dbo.ready;
update statistics dbo.blocked

-- name: hold
select m.id from dbo.message m with (rowlock, repeatableread) where m.id = :predecessor

-- name: enqueue
insert into dbo.message (data_type, data)
output inserted.id
values (N'text', left(concat(:predecessor, replicate(N'x', 200)), 200))

-- name: block
insert into dbo.blocked (predecessor_id, id) values (:predecessor, :id)

-- name: ready
insert into dbo.ready (id) values (:id)

-- name: dequeue
select top (1) r.id
from dbo.ready r with (rowlock, updlock, readpast, readcommittedlock)
order by r.id

-- name: read
select m.data from dbo.message m where m.id = :id

-- name: finish
delete from dbo.message where id = :id;
delete from dbo.ready where id = :id;
insert into dbo.ready (id) select b.id from dbo.blocked b where b.predecessor_id = :id;
delete from dbo.blocked where predecessor_id = :id

-- One wide table. Dequeue puts rows into a table variable, bodies among them, updates them, and
-- returns the variable. Rows that were processed stay until an archiver moves them. `holdlock` is
-- the document's; times are given by the server.

-- name: install
create table dbo.queue_slow (
    queue_id        int identity not null,
    queue_date_time datetime not null default sysutcdatetime(),
    title           nvarchar(255) not null,
    status          int not null default 0,
    text_data       nvarchar(max) not null
);
create unique clustered index queue_slow_pk on dbo.queue_slow (queue_id);
create nonclustered index queue_slow_ix on dbo.queue_slow (queue_date_time, status)
    include (title);
go
create procedure dbo.dequeue_slow
    @batch_size int
as
begin
    set nocount on;
    set xact_abort on;
    declare @taken int;
    declare @batch table (
        queue_id        int,
        queue_date_time datetime,
        title           nvarchar(255),
        text_data       nvarchar(max)
    );
    begin transaction;
    insert into @batch (queue_id, queue_date_time, title, text_data)
    select top (@batch_size) q.queue_id, q.queue_date_time, q.title, q.text_data
    from dbo.queue_slow q with (updlock, holdlock)
    where q.status = 0
    order by q.queue_date_time;
    set @taken = @@rowcount;

    update dbo.queue_slow
    set status = 1
    where queue_id in (select b.queue_id from @batch b)
      and status = 0;
    if @@rowcount <> @taken
        throw 50001, N'another session has taken some of them', 1;
    commit transaction;
    select b.queue_id, b.text_data, b.queue_date_time, b.title
    from @batch b;
end
go

-- name: enqueue
insert into dbo.queue_slow (title, text_data) values (N'Item', :body)

-- name: fill
insert into dbo.queue_slow (title, text_data)
select concat(N'Item no: ', j.[key]), b.body
from openjson(:messages) j
cross apply openjson(j.value) with (body nvarchar(max) '$.body') b
order by cast(j.[key] as int)

-- name: settle
alter index all on dbo.queue_slow rebuild

-- name: dequeue
exec dbo.dequeue_slow :batch

-- name: complete
update dbo.queue_slow set status = 2 where queue_id in (:ids)

-- Two tables, a narrow one to look in and one with the bodies, a heap as in the document. Dequeue
-- puts keys into a table variable, updates them, and joins the bodies.

-- name: install
create table dbo.queue_meta (
    queue_id        int identity not null constraint queue_meta_pk primary key clustered,
    queue_date_time datetime not null default sysutcdatetime(),
    title           nvarchar(255) not null,
    status          int not null default 0
);
create nonclustered index queue_meta_ix on dbo.queue_meta (queue_date_time, status)
    include (title);
create table dbo.queue_data (
    queue_id  int not null,
    text_data nvarchar(max) not null
);
create unique nonclustered index queue_data_ix on dbo.queue_data (queue_id);
go
create procedure dbo.enqueue
    @body nvarchar(max)
as
begin
    set nocount on;
    set xact_abort on;
    begin transaction;
    insert into dbo.queue_meta (title) values (N'Item');
    insert into dbo.queue_data (queue_id, text_data) values (scope_identity(), @body);
    commit transaction;
end
go
create procedure dbo.fill
    @messages nvarchar(max)
as
begin
    set nocount on;
    set xact_abort on;
    declare @first int = coalesce((select max(q.queue_id) from dbo.queue_meta q), 0);
    declare @given table (place int not null primary key, body nvarchar(max) not null);
    insert into @given (place, body)
    select cast(j.[key] as int) + 1, b.body
    from openjson(@messages) j
    cross apply openjson(j.value) with (body nvarchar(max) '$.body') b;

    begin transaction;
    insert into dbo.queue_meta (title)
    select concat(N'Item no: ', g.place)
    from @given g
    order by g.place;
    insert into dbo.queue_data (queue_id, text_data)
    select m.queue_id, g.body
    from (
        select q.queue_id, row_number() over (order by q.queue_id) as place
        from dbo.queue_meta q
        where q.queue_id > @first
    ) m
    inner join @given g on g.place = m.place;
    commit transaction;
end
go
-- part: dequeue_procedure

-- name: dequeue_procedure
create procedure dbo.dequeue
    @batch_size int
as
begin
    set nocount on;
    set xact_abort on;
    declare @taken int;
    declare @batch table (queue_id int, queue_date_time datetime, title nvarchar(255));
    begin transaction;
    insert into @batch (queue_id, queue_date_time, title)
    select top (@batch_size) q.queue_id, q.queue_date_time, q.title
    from dbo.queue_meta q with (updlock, holdlock)
    where q.status = 0
    order by q.queue_date_time;
    set @taken = @@rowcount;

    update dbo.queue_meta
    set status = 1
    where queue_id in (select b.queue_id from @batch b)
      and status = 0;
    if @@rowcount <> @taken
        throw 50001, N'another session has taken some of them', 1;
    commit transaction;
    select b.queue_id, d.text_data, b.queue_date_time, b.title
    from @batch b
    inner join dbo.queue_data d on d.queue_id = b.queue_id;
end
go

-- name: enqueue
exec dbo.enqueue :body

-- name: fill
exec dbo.fill :messages

-- name: settle
alter index all on dbo.queue_meta rebuild;
alter index all on dbo.queue_data rebuild

-- name: dequeue
exec dbo.dequeue :batch

-- name: complete
update dbo.queue_meta set status = 2 where queue_id in (:ids)

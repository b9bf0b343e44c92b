-- The same two tables. One statement takes rows that nobody has locked, marks them and returns them
-- with their bodies; as in the document, in no order and without `rowlock`. `readcommittedlock` is
-- for databases with row versions, as those of this experiment are.

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
create procedure dbo.dequeue_fast
    @batch_size int
as
begin
    set nocount on;
    update top (@batch_size) m
    set status = 1
    output inserted.queue_id, d.text_data, inserted.queue_date_time, inserted.title
    from dbo.queue_meta m with (updlock, readpast, readcommittedlock)
    inner join dbo.queue_data d on d.queue_id = m.queue_id
    where m.status = 0;
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
exec dbo.dequeue_fast :batch

-- name: complete
update dbo.queue_meta set status = 2 where queue_id in (:ids)

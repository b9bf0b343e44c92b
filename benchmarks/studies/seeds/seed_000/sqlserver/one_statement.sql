-- The same two tables. One statement takes rows that nobody has locked, marks them and returns them
-- with their bodies; as in the document, in no order and without `rowlock`. `readcommittedlock` is
-- for databases with row versions, as those of this experiment are.
-- like: split_tables.sql

-- name: dequeue_procedure
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

-- name: dequeue
exec dbo.dequeue_fast :batch

set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalDeleteQueue
    @part_id int
as
begin
-- routine   InternalDeleteQueue
-- version   1
-- purpose   Delete everything that belongs to a queue, and the queue.
-- promise   P15
-- locks     all rows of the queue
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: part of drop_queue
    set nocount on;
    delete from rowq.ready where part_id = @part_id;
    delete from rowq.delayed where part_id = @part_id;
    delete from rowq.claim where part_id = @part_id;
    delete from rowq.leased where part_id = @part_id;
    delete from rowq.dead where part_id = @part_id;
    delete from rowq.dedup where part_id = @part_id;
    delete from rowq.finished where part_id = @part_id;
    delete from rowq.message where part_id = @part_id;
    delete from rowq.archived where part_id = @part_id;
    delete from rowq.lane where part_id = @part_id;
    delete from rowq.part where part_id = @part_id;
    delete from rowq.queue where part_id = @part_id;
end
go

set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalDeleteQueue
    @part_id int
as
begin
-- routine   InternalDeleteQueue
-- purpose   Delete everything that belongs to a queue, and the queue.
-- promise   P15
-- locks     all rows of the queue
-- differs   no such helper elsewhere: part of drop_queue
    set nocount on;
    -- The name goes first: what a call leaves that is broken off half-way is then out of reach, and
    -- never a queue without some of its messages.
    delete from rowq.queue where part_id = @part_id;
    delete from rowq.ready where part_id = @part_id;
    delete from rowq.delayed where part_id = @part_id;
    delete from rowq.claim where part_id = @part_id;
    delete from rowq.leased where part_id = @part_id;
    delete from rowq.dead with (rowlock) where part_id = @part_id;
    delete from rowq.dedup where part_id = @part_id;
    delete from rowq.grouped where part_id = @part_id;
    delete from rowq.message_group where part_id = @part_id;
    delete from rowq.recheck where part_id = @part_id;
    delete from rowq.blocked where part_id = @part_id;
    delete from rowq.successor where part_id = @part_id;
    delete from rowq.expiry where part_id = @part_id;
    delete from rowq.result where part_id = @part_id;
    delete from rowq.history where part_id = @part_id;
    delete from rowq.started where part_id = @part_id;
    delete from rowq.gate where part_id = @part_id;
    delete from rowq.topic_binding where part_id = @part_id;
    delete from rowq.worker where part_id = @part_id;
    delete from rowq.schedule where part_id = @part_id;
    delete from rowq.finished where part_id = @part_id;
    delete from rowq.message with (rowlock) where part_id = @part_id;
    delete from rowq.archived where part_id = @part_id;
    delete from rowq.lane where part_id = @part_id;
    delete from rowq.part where part_id = @part_id;
end
go

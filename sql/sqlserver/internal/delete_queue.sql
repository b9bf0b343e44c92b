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
    -- never a queue without some of its messages. forceseek keeps each statement at the rows of
    -- this queue: a scan of a small table would wait for the rows of others, or hold them.
    delete t from rowq.queue t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.ready t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.delayed t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.claim t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.leased t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.dead t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.dedup t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.grouped t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.message_group t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.recheck t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.blocked t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.successor t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.expiry t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t
    from rowq.result t with (index (result_pk), rowlock, forceseek)
    where t.part_id = @part_id;
    delete t
    from rowq.history t with (index (history_pk), rowlock, forceseek)
    where t.part_id = @part_id;
    delete t from rowq.started t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.gate t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.topic_binding t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.worker t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.schedule t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.finished t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.message t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.archived t with (index (archived_pk), forceseek) where t.part_id = @part_id;
    delete t from rowq.lane t with (rowlock, forceseek) where t.part_id = @part_id;
    delete t from rowq.part t with (rowlock, forceseek) where t.part_id = @part_id;
end
go

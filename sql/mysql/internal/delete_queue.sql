drop procedure if exists rowq.internal_delete_queue;

delimiter //
create procedure rowq.internal_delete_queue(p_part_id int)
sql security definer
modifies sql data
begin
-- routine   internal_delete_queue
-- purpose   Delete everything that belongs to a queue, and the queue.
-- promise   P15
-- locks     all rows of the queue
-- differs   no such helper elsewhere: part of drop_queue
    -- A dequeue and a complete hold no lock on the part. They move messages from blocked to all
    -- other places, from delayed to grouped or ready, from grouped to ready, and from ready to
    -- claim or dead, so look in this order: a look waits for a call that has taken a row there, and
    -- the looks after it see where the message went.
    delete m
    from rowq.blocked b force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = b.message_id
    where b.part_id = p_part_id;
    delete m
    from rowq.delayed d force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = d.message_id
    where d.part_id = p_part_id;
    delete m
    from rowq.grouped g force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = g.message_id
    where g.part_id = p_part_id;
    delete m
    from rowq.ready r force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = r.message_id
    where r.part_id = p_part_id;
    delete m
    from rowq.dead d force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = d.message_id
    where d.part_id = p_part_id;
    -- An array of as many empty ones stands for the messages of a range.
    delete m
    from rowq.claim c force index (primary)
    straight_join json_table(
        coalesce(c.messages, concat('[[]', repeat(',[]', c.last_id - c.first_id), ']')),
        '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
    ) j
    straight_join rowq.message m force index (primary)
        on m.message_id = coalesce(j.message_id, c.first_id + j.place - 1)
    where c.part_id = p_part_id;
    delete m
    from rowq.finished f force index (primary)
    straight_join json_table(f.messages, '$[*]' columns (message_id bigint path '$[0]')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    where f.part_id = p_part_id;

    -- Name the index, because MariaDB 11 would read the whole of a table of which the queue has the
    -- most rows, and wait for those of other queues.
    delete r from rowq.ready r force index (primary) where r.part_id = p_part_id;
    delete d from rowq.delayed d force index (primary) where d.part_id = p_part_id;
    delete c from rowq.claim c force index (primary) where c.part_id = p_part_id;
    delete d from rowq.dead d force index (primary) where d.part_id = p_part_id;
    delete k from rowq.dedup k force index (primary) where k.part_id = p_part_id;
    delete b from rowq.blocked b force index (primary) where b.part_id = p_part_id;
    delete s from rowq.successor s force index (primary) where s.part_id = p_part_id;
    delete r from rowq.recheck r force index (primary) where r.part_id = p_part_id;
    delete g from rowq.grouped g force index (primary) where g.part_id = p_part_id;
    delete t from rowq.message_group t force index (primary) where t.part_id = p_part_id;
    delete s from rowq.started s force index (primary) where s.part_id = p_part_id;
    delete e from rowq.expiry e force index (primary) where e.part_id = p_part_id;
    delete f from rowq.finished f force index (primary) where f.part_id = p_part_id;
    delete s from rowq.schedule s force index (primary) where s.part_id = p_part_id;
    delete b from rowq.topic_binding b force index (primary) where b.part_id = p_part_id;
    delete w from rowq.worker w force index (primary) where w.part_id = p_part_id;
    delete r from rowq.result r force index (primary) where r.part_id = p_part_id;
    delete h from rowq.history h force index (primary) where h.part_id = p_part_id;
    delete from rowq.archive where part_id = p_part_id;
    delete l from rowq.lane l force index (primary) where l.part_id = p_part_id;
    delete from rowq.part where part_id = p_part_id;
    delete from rowq.queue where part_id = p_part_id;
end//
delimiter ;

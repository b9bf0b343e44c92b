procedure internal_delete_queue(p_part_id in number)
is
-- routine   internal_delete_queue
-- purpose   Delete everything that belongs to a queue, and the queue.
-- promise   P15
-- locks     all rows of the queue
-- differs   no such helper elsewhere: part of drop_queue
begin
    delete from rowq_schedule s where s.part_id = p_part_id;
    delete from rowq_topic_binding b where b.part_id = p_part_id;
    delete from rowq_worker w where w.part_id = p_part_id;
    delete from rowq_ready r where r.part_id = p_part_id;
    delete from rowq_delayed d where d.part_id = p_part_id;
    delete from rowq_leased l where l.part_id = p_part_id;
    delete from rowq_claim c where c.part_id = p_part_id;
    delete from rowq_dead d where d.part_id = p_part_id;
    delete from rowq_dedup d where d.part_id = p_part_id;
    delete from rowq_blocked b where b.part_id = p_part_id;
    delete from rowq_successor s where s.part_id = p_part_id;
    delete from rowq_grouped g where g.part_id = p_part_id;
    delete from rowq_message_group t where t.part_id = p_part_id;
    delete from rowq_recheck r where r.part_id = p_part_id;
    delete from rowq_expiry e where e.part_id = p_part_id;
    delete from rowq_result r where r.part_id = p_part_id;
    delete from rowq_history h where h.part_id = p_part_id;
    delete from rowq_finished f where f.part_id = p_part_id;
    delete from rowq_message m where m.part_id = p_part_id;
    delete from rowq_archive a where a.part_id = p_part_id;
    delete from rowq_started s where s.part_id = p_part_id;
    delete from rowq_gate g where g.part_id = p_part_id;
    delete from rowq_door d where d.part_id = p_part_id;
    delete from rowq_lane l where l.part_id = p_part_id;
    delete from rowq_queue q where q.part_id = p_part_id;
end internal_delete_queue;

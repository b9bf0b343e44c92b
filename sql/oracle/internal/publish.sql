procedure internal_publish(
    p_new  in t_new_messages,
    p_sent out nocopy rowq_sent_list
)
is
-- routine   internal_publish
-- purpose   Store messages, which are checked but for the lengths of their bodies, in each queue that is bound to their topics, queue by queue.
-- promise   P01 P05 P12 P15 P35
-- locks     as internal_bound_queues; as internal_store, queue by queue in the order of their names
-- errors    RQ711
-- differs   no such helper elsewhere: part of publish and publish_batch
    v_bound t_bound_queues;
    v_place pls_integer;
    v_fault varchar2(32767);
    v_own   t_new_messages;
begin
    p_sent := rowq_sent_list();
    v_bound := internal_bound_queues(p_new);
    -- Check all before anything is stored, because a trigger has no savepoint.
    for i in 1 .. v_bound.count loop
        v_place := v_bound(i).place;
        v_fault := internal_body_fault(
            p_new(v_place).body, p_new(v_place).body_binary, v_bound(i).max_body_length
        );
        if v_fault is not null then
            v_fault := v_fault || ' of ' || v_bound(i).queue_name;
            -- What publish itself hands over has no place.
            if p_new(v_place).place > 0 then
                v_fault := v_fault || ' (message ' || internal_number_text(v_place) || ')';
            end if;
            internal_refuse(v_fault);
        end if;
    end loop;

    for i in 1 .. v_bound.count loop
        v_own(v_own.count + 1) := p_new(v_bound(i).place);
        if i = v_bound.count or v_bound(i).part_id <> v_bound(i + 1).part_id then
            internal_store_bound(v_bound(i), v_own, p_sent);
            v_own.delete;
        end if;
    end loop;
end internal_publish;

procedure internal_reserve_dedup_keys(p_part_id in number, p_new in out nocopy t_new_messages)
is
-- routine   internal_reserve_dedup_keys
-- purpose   Give each message an id and reserve its dedup key; where another message has the key, return that one's id.
-- promise   P12
-- locks     new dedup rows; waits for open enqueues of the same keys, in key order; the door of a
--           schedule's key, passed over when locked
    c_most_tries constant pls_integer := 100;
    v_count constant pls_integer := p_new.count;
    v_ids      t_numbers;
    v_order    t_places;
    v_at       varchar2(4000 char);
    v_key      raw(800);
    v_has_door boolean;
    v_tries    pls_integer;
    v_other    rowq_dedup.message_id%type;
begin
    -- One statement takes all numbers, because each statement is a change from PL/SQL to SQL.
    select rowq_message_seq.nextval
    bulk collect into v_ids
    from dual
    connect by level <= v_count;

    for i in 1 .. v_count loop
        p_new(i).outcome := 'enqueued';
        p_new(i).message_id := v_ids(i);
        if p_new(i).dedup_key is not null then
            v_order(internal_dedup_order(p_new(i).dedup_key, i)) := i;
        end if;
    end loop;

    -- Reserve the keys in key order, so that batches with the same keys cannot wait for each other.
    v_at := v_order.first;
    while v_at is not null loop
        v_key := utl_raw.cast_to_raw(p_new(v_order(v_at)).dedup_key);
        if instr(p_new(v_order(v_at)).dedup_key, 'schedule:') = 1 then
            -- This session goes on without the door: it may wait for the key.
            v_has_door := internal_lock_door(p_part_id, v_key);
        end if;
        v_tries := 0;
        loop
            begin
                insert into rowq_dedup (part_id, dedup_key, message_id)
                values (p_part_id, v_key, p_new(v_order(v_at)).message_id);
                exit;
            exception
                when dup_val_on_index then
                    -- Another producer had the key before, or has committed it while this one
                    -- waited for it.
                    select max(d.message_id) into v_other
                    from rowq_dedup d
                    where d.part_id = p_part_id
                      and d.dedup_key = v_key;
                    if v_other is not null then
                        p_new(v_order(v_at)).message_id := v_other;
                        p_new(v_order(v_at)).outcome := 'duplicate';
                        exit;
                    end if;
                    -- The key is free by now, so try again. The tries are limited for a
                    -- serializable transaction, which never sees the row that it collides with.
                    v_tries := v_tries + 1;
                    if v_tries = c_most_tries then
                        raise;
                    end if;
            end;
        end loop;
        v_at := v_order.next(v_at);
    end loop;
end internal_reserve_dedup_keys;

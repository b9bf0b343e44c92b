procedure internal_reserve_dedup_keys(p_part_id in number, p_new in out nocopy t_new_messages)
is
-- routine   internal_reserve_dedup_keys
-- version   1
-- purpose   Give every message an id and take its dedup key; where another one has the key, its id.
-- promise   P12
-- locks     new dedup rows; waits for open enqueues of the same keys, in key order
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    c_most_tries constant pls_integer := 100;
    v_order t_places;
    v_at    varchar2(4000 char);
    v_key   raw(800);
    v_tries pls_integer;
    v_other rowq_dedup.message_id%type;
begin
    for i in 1 .. p_new.count loop
        p_new(i).outcome := 'enqueued';
        if p_new(i).dedup_key is null then
            p_new(i).message_id := rowq_message_seq.nextval;
        else
            v_order(internal_dedup_order(p_new(i).dedup_key, i)) := i;
        end if;
    end loop;

    -- By key, so that two batches with the same keys cannot wait for each other.
    v_at := v_order.first;
    while v_at is not null loop
        v_key := utl_raw.cast_to_raw(p_new(v_order(v_at)).dedup_key);
        p_new(v_order(v_at)).message_id := rowq_message_seq.nextval;
        v_tries := 0;
        loop
            begin
                insert into rowq_dedup (part_id, dedup_key, message_id)
                values (p_part_id, v_key, p_new(v_order(v_at)).message_id);
                exit;
            exception
                when dup_val_on_index then
                    -- Another producer had the key before, or while this one waited for it.
                    select max(d.message_id) into v_other
                    from rowq_dedup d
                    where d.part_id = p_part_id
                      and d.dedup_key = v_key;
                    if v_other is not null then
                        p_new(v_order(v_at)).message_id := v_other;
                        p_new(v_order(v_at)).outcome := 'duplicate';
                        exit;
                    end if;
                    -- Free by now: once more. Endless only for a serializable transaction, which
                    -- does not see what it has collided with.
                    v_tries := v_tries + 1;
                    if v_tries = c_most_tries then
                        raise;
                    end if;
            end;
        end loop;
        v_at := v_order.next(v_at);
    end loop;
end internal_reserve_dedup_keys;

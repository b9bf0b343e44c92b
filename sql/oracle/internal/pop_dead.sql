procedure internal_pop_dead(
    p_part_id  in number,
    p_ids      in rowq_ids,
    p_locked   in t_locked_rows,
    p_messages out nocopy t_messages,
    p_lines    out nocopy rowq_lines
)
is
-- routine   internal_pop_dead
-- version   1
-- purpose   Take dead messages that are locked out of their place; a key that a newer message holds keeps one dead.
-- promise   P12
-- locks     dead rows, which the caller holds already; new dedup rows, in key order
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: part of reset
    v_found  t_messages;
    v_wanted rowq_ids;
    v_ids    t_numbers;
    v_keys   t_texts;
    v_order  t_places;
    v_taken  t_places;
    v_at     varchar2(4000 char);
    v_key    raw(800);
    v_free   t_locked_rows;
begin
    for i in 1 .. p_locked.count loop
        v_found(i).message_id := p_locked(i).message_id;
    end loop;
    v_wanted := internal_ids_of(v_found);
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id, m.dedup_key
    bulk collect into v_ids, v_keys
    from table(v_wanted) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value
    where m.dedup_key is not null;
    for i in 1 .. v_ids.count loop
        v_order(internal_dedup_order(v_keys(i), v_ids(i))) := i;
    end loop;

    v_at := v_order.first;
    while v_at is not null loop
        v_key := utl_raw.cast_to_raw(v_keys(v_order(v_at)));
        begin
            insert into rowq_dedup (part_id, dedup_key, message_id)
            values (p_part_id, v_key, v_ids(v_order(v_at)));
        exception
            when dup_val_on_index then
                v_taken(internal_number_text(v_ids(v_order(v_at)))) := 1;
        end;
        v_at := v_order.next(v_at);
    end loop;

    for i in 1 .. p_locked.count loop
        if not v_taken.exists(internal_number_text(p_locked(i).message_id)) then
            v_free(v_free.count + 1) := p_locked(i);
        end if;
    end loop;
    p_messages.delete;
    internal_delete_dead(v_free, p_messages);
    if p_ids is not null then
        v_wanted := p_ids;
    end if;
    p_lines := internal_outcomes(v_wanted, p_messages, 'reset', 'not_found');
    for i in 1 .. p_lines.count loop
        if v_taken.exists(internal_number_text(p_lines(i).message_id)) then
            p_lines(i).outcome := 'duplicate';
        end if;
    end loop;
    for i in 1 .. p_messages.count loop
        p_messages(i).lane := trunc(p_messages(i).lane / 2) * 2 + 1;
        p_messages(i).attempt := 0;
    end loop;
end internal_pop_dead;

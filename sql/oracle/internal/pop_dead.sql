procedure internal_pop_dead(
    p_part_id  in number,
    p_ids      in rowq_ids,
    p_locked   in t_locked_rows,
    p_messages out nocopy t_messages,
    p_lines    out nocopy rowq_lines
)
is
-- routine   internal_pop_dead
-- purpose   Take locked dead messages out of their place; one whose dedup key another message has stays dead. Those without a token get their group_key, as they are to join their groups.
-- promise   P12 P21
-- locks     dead rows, which the caller holds already; new dedup rows, in key order
-- differs   no such helper elsewhere: part of reset
    v_found  t_messages;
    v_wanted rowq_ids;
    v_ids    t_numbers;
    v_keys   t_texts;
    v_groups t_texts;
    v_flags  t_numbers;
    v_tied   t_places;
    v_order  t_places;
    v_taken  t_places;
    v_at     varchar2(4000 char);
    v_text   varchar2(50 char);
    v_key    raw(800);
    v_free   t_locked_rows;
begin
    for i in 1 .. p_locked.count loop
        v_found(i).message_id := p_locked(i).message_id;
    end loop;
    v_wanted := internal_ids_of(v_found);
    internal_read_ties(p_part_id, v_found, v_ids, v_keys, v_groups, v_flags);
    for i in 1 .. v_ids.count loop
        v_tied(internal_number_text(v_ids(i))) := i;
        if v_keys(i) is not null then
            v_order(internal_dedup_order(v_keys(i), v_ids(i))) := i;
        end if;
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
        v_text := internal_number_text(p_messages(i).message_id);
        if p_messages(i).is_tokenless = 1 and v_tied.exists(v_text) then
            p_messages(i).group_key := v_groups(v_tied(v_text));
        end if;
    end loop;
end internal_pop_dead;

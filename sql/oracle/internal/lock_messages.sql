procedure internal_lock_messages(
    p_part_id in number,
    p_ids     in rowq_ids,
    p_locked  out nocopy rowq_ids,
    p_held    out nocopy rowq_ids
)
is
-- routine   internal_lock_messages
-- purpose   Lock those of these message rows that nobody holds (p_locked); p_held are those that are there and that others hold.
-- promise   P25 P26 P27
-- locks     message rows, passing over locked ones
-- differs   no such helper elsewhere: part of the statements that need it
    -- ORA-08177: this transaction is serializable, and another has written to a row since it began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    c_most constant pls_integer := 10000;
    v_places t_places;
    v_shown  t_numbers;
    cursor message_rows is
        select /*+ leading(a@asked m) use_nl(m) index(m rowq_message_pk) */ m.message_id
        from rowq_message m
        where m.part_id = p_part_id
          and m.message_id in (
              select /*+ qb_name(asked) unnest cardinality(a 10) */ a.column_value
              from table(p_ids) a
          )
        for update skip locked;
begin
    p_locked := rowq_ids();
    p_held := rowq_ids();
    begin
        open message_rows;
        fetch message_rows bulk collect into p_locked limit c_most;
        close message_rows;
    exception
        when e_not_serial then
            p_locked := rowq_ids();
    end;
    if p_locked.count = p_ids.count then
        return;
    end if;

    for i in 1 .. p_locked.count loop
        v_places(internal_number_text(p_locked(i))) := i;
    end loop;
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id
    bulk collect into v_shown
    from table(p_ids) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value;
    for i in 1 .. v_shown.count loop
        if not v_places.exists(internal_number_text(v_shown(i))) then
            p_held.extend;
            p_held(p_held.last) := v_shown(i);
        end if;
    end loop;
end internal_lock_messages;

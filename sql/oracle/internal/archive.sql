function internal_archive(p_part_id in number, p_limit in number)
return number
is
-- routine   internal_archive
-- purpose   Move up to p_limit finished messages to the archive, oldest first.
-- promise   P19 P26
-- locks     finished and message rows, passing over locked ones; new archive rows; as
--           internal_free_successors
    type t_finished is record (
        finish_id   rowq_finished.finish_id%type,
        message_id  rowq_finished.message_id%type,
        lane        rowq_finished.lane%type,
        attempt     rowq_finished.attempt%type,
        state       rowq_finished.state%type,
        finished_at rowq_finished.finished_at%type
    );
    type t_finished_list is table of t_finished index by pls_integer;
    v_floor rowq_lane.floor_seq%type := internal_read_floor(p_part_id, -3 /* finished */);
    v_found   t_finished_list;
    v_some    t_finished_list;
    v_ids     rowq_ids := rowq_ids();
    v_locked  rowq_ids;
    v_held    rowq_ids;
    v_places  t_places;
    v_awaited rowq_ids;
    cursor finished_rows is
        select /*+ index_rs_asc(f rowq_finished_pk) no_batch_table_access_by_rowid(f) */
               f.finish_id, f.message_id, f.lane, f.attempt, f.state, f.finished_at
        from rowq_finished f
        where f.part_id = p_part_id
          and f.finish_id >= v_floor
        order by f.part_id, f.finish_id, f.message_id
        for update skip locked;
begin
    open finished_rows;
    fetch finished_rows bulk collect into v_found limit p_limit;
    close finished_rows;
    if v_found.count = 0 then
        return 0;
    end if;

    -- Leave a message alone while a producer is adding one that waits for it.
    v_ids.extend(v_found.count);
    for i in 1 .. v_found.count loop
        v_ids(i) := v_found(i).message_id;
    end loop;
    internal_lock_messages(p_part_id, v_ids, v_locked, v_held);
    v_awaited := internal_awaited_of(p_part_id, v_locked);
    for i in 1 .. v_held.count loop
        v_places(internal_number_text(v_held(i))) := i;
    end loop;
    for i in 1 .. v_found.count loop
        if not v_places.exists(internal_number_text(v_found(i).message_id)) then
            v_some(v_some.count + 1) := v_found(i);
        end if;
    end loop;

    forall i in 1 .. v_some.count
        insert into rowq_archive (
            part_id, finished_at, message_id, lane, attempt, enqueued_at, state, message_type,
            dedup_key, group_key, headers, body, body_binary
        )
        select m.part_id, v_some(i).finished_at, m.message_id, v_some(i).lane,
               v_some(i).attempt, m.enqueued_at, v_some(i).state, m.message_type,
               m.dedup_key, m.group_key, m.headers, m.body, m.body_binary
        from rowq_message m
        where m.part_id = p_part_id
          and m.message_id = v_some(i).message_id;
    forall i in 1 .. v_some.count
        delete from rowq_message m
        where m.part_id = p_part_id
          and m.message_id = v_some(i).message_id;
    forall i in 1 .. v_some.count
        delete from rowq_finished f
        where f.part_id = p_part_id
          and f.finish_id = v_some(i).finish_id
          and f.message_id = v_some(i).message_id;
    -- The end of a message did not see what its producer had not committed then.
    for i in 1 .. v_awaited.count loop
        internal_free_successors(p_part_id, v_awaited(i));
    end loop;
    return v_some.count;
end internal_archive;

function internal_rest_unfinished(p_part_id in number, p_ids in rowq_ids, p_from in number)
return rowq_ids
is
-- routine   internal_rest_unfinished
-- purpose   Return those of these messages, from the place p_from on, that the archiver has not still to move, newest first.
-- promise   P25
-- differs   no such helper elsewhere: part of internal_await_predecessor
    v_rest rowq_ids := rowq_ids();
    v_kept rowq_ids;
begin
    for i in p_from .. p_ids.count loop
        v_rest.extend;
        v_rest(v_rest.last) := p_ids(i);
    end loop;
    select a.column_value
    bulk collect into v_kept
    from table(v_rest) a
    where a.column_value not in (
        select /*+ hash_aj index_rs_asc(f rowq_finished_pk) */ f.message_id
        from rowq_finished f
        where f.part_id = p_part_id
          and f.finish_id >= (
              select l.floor_seq
              from rowq_lane l
              where l.part_id = p_part_id
                and l.lane = -3 /* finished */
          )
    )
    order by a.column_value desc;
    return v_kept;
end internal_rest_unfinished;

function internal_waiting_of(p_part_id in number, p_ids in rowq_ids)
return rowq_ids
is
-- routine   internal_waiting_of
-- purpose   Return those of these messages that no claim holds and that are not finished and on their way to the archive.
-- promise   P03
-- differs   no such helper elsewhere: part of cancel_many
    v_ids rowq_ids;
begin
    select a.column_value
    bulk collect into v_ids
    from table(p_ids) a
    where not exists (
        select /*+ hash_aj index_rs_asc(l rowq_leased_pk) */ null
        from rowq_leased l
        where l.part_id = p_part_id
          and l.message_id = a.column_value
    )
      and not exists (
        select /*+ hash_aj index_rs_asc(f rowq_finished_pk) */ null
        from rowq_finished f
        where f.part_id = p_part_id
          and f.message_id = a.column_value
    );
    return v_ids;
end internal_waiting_of;

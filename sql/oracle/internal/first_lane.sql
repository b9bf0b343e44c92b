procedure internal_first_lane(
    p_part_id in number,
    p_from    in number,
    p_to      in number,
    p_lane    out number,
    p_seq     out number
)
is
-- routine   internal_first_lane
-- purpose   Find the first lane from p_from to p_to that has messages, and its first place; p_to + 1 where none has.
-- promise   P13 P14
-- differs   this engine's own: one look in place of one for each empty lane
    cursor ready_rows is
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.lane, r.seq
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane between p_from and p_to
        order by r.part_id, r.lane, r.seq, r.message_id;
begin
    p_lane := p_to + 1;
    p_seq := null;
    open ready_rows;
    fetch ready_rows into p_lane, p_seq;
    close ready_rows;
end internal_first_lane;

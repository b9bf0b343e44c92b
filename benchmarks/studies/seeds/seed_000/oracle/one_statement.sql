-- The same two tables. Rows that nobody has locked are taken, marked and returned with their
-- bodies, in no order, as in the document. Oracle's update passes over no locked row, and a batch
-- of what `skip locked` leaves is bounded by the fetch alone: where the document has one statement
-- there are three in one call, which touch each row as often as the one would.
-- like: split_tables.sql

-- name: dequeue_procedure
create procedure dequeue(p_batch_size in number, p_rows out sys_refcursor)
is
    type t_rowids is table of rowid;
    cursor free_rows is
        select m.rowid
        from queue_meta m
        where m.status = 0
        for update skip locked;
    v_found t_rowids;
    v_ids   queue_ids := queue_ids();
begin
    open free_rows;
    fetch free_rows bulk collect into v_found limit p_batch_size;
    close free_rows;

    forall i in 1 .. v_found.count
        update queue_meta m
        set m.status = 1
        where m.rowid = v_found(i)
          and m.status = 0
        returning m.queue_id bulk collect into v_ids;

    open p_rows for
        select /*+ leading(x m d) use_nl(m d) index(m queue_meta_pk) index(d queue_data_uq) */
               m.queue_id, d.text_data, m.queue_date_time, m.title
        from table(v_ids) x
        join queue_meta m on m.queue_id = x.column_value
        join queue_data d on d.queue_id = m.queue_id;
end dequeue;
/

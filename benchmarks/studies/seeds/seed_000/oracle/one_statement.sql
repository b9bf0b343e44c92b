-- The same two tables. Rows that nobody has locked are taken, marked and returned with their
-- bodies, in no order, as in the document. Oracle's update passes over no locked row, and a batch
-- of what `skip locked` leaves is bounded by the fetch alone: where the document has one statement
-- there are three in one call, which touch each row as often as the one would.

-- name: install
create table queue_meta (
    queue_id        number(10) generated always as identity constraint queue_meta_pk primary key,
    queue_date_time timestamp(6) default sys_extract_utc(systimestamp) not null,
    title           varchar2(255 char) not null,
    status          number(10) default 0 not null
)
/
create index queue_meta_ix on queue_meta (queue_date_time, status, title)
/
create table queue_data (
    queue_id  number(10) not null constraint queue_data_uq unique,
    text_data clob not null
)
/
create type queue_ids as table of number(10)
/
create procedure enqueue(p_title in varchar2, p_body in clob)
is
    v_id number(10);
begin
    insert into queue_meta (title) values (p_title) returning queue_id into v_id;
    insert into queue_data (queue_id, text_data) values (v_id, p_body);
end enqueue;
/
create procedure fill(p_messages in clob)
is
begin
    for one in (
        select j.place, j.body
        from json_table(
            p_messages, '$[*]' columns (place for ordinality, body clob path '$.body')
        ) j
        order by j.place
    ) loop
        enqueue('Item no: ' || one.place, one.body);
    end loop;
end fill;
/
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

-- name: enqueue
begin
    enqueue('Item', :body);
end;

-- name: fill
begin
    fill(:messages);
end;

-- name: settle
call dbms_stats.gather_schema_stats(user)

-- name: dequeue
begin
    dequeue(:batch, :rows);
end;

-- name: complete
update queue_meta set status = 2 where queue_id in (:ids)

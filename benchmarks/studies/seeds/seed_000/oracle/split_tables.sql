-- Two tables, a narrow one to look in and one with the bodies. Dequeue selects rows for update,
-- updates them, and joins the bodies. An ordered `for update` would lock all that it finds, so the
-- first ones are chosen by a subquery and then locked: where another session was faster, Oracle
-- begins that statement anew.

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
    for message in (
        select j.place, j.body
        from json_table(
            p_messages, '$[*]' columns (place for ordinality, body clob path '$.body')
        ) j
        order by j.place
    ) loop
        enqueue('Item no: ' || message.place, message.body);
    end loop;
end fill;
/
-- part: dequeue_procedure

-- name: dequeue_procedure
create procedure dequeue(p_batch_size in number, p_rows out sys_refcursor)
is
    e_lost exception;
    pragma exception_init(e_lost, -8177);
    v_ids queue_ids;
begin
    select /*+ use_nl(m) index(m queue_meta_pk) */ m.queue_id
    bulk collect into v_ids
    from queue_meta m
    where m.status = 0
      and m.queue_id in (
        select y.queue_id
        from (
            select /*+ index_asc(x queue_meta_ix) */ x.queue_id
            from queue_meta x
            where x.status = 0
            order by x.queue_date_time
        ) y
        where rownum <= p_batch_size
    )
    for update;

    forall i in 1 .. v_ids.count
        update queue_meta m
        set m.status = 1
        where m.queue_id = v_ids(i)
          and m.status = 0;
    if v_ids.count > 0 and sql%rowcount <> v_ids.count then
        -- Another session has taken some of them.
        raise e_lost;
    end if;

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

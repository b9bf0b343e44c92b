-- One wide table. Dequeue selects rows for update, updates them, and reads them again. Rows that
-- were processed stay until an archiver moves them. Its batch is a collection of keys, where the
-- document has a table variable with the bodies in it. An ordered `for update` would lock all that
-- it finds, so the first ones are chosen by a subquery and then locked: where another session was
-- faster, Oracle begins that statement anew.

-- name: install
create table queue_slow (
    queue_id        number(10) generated always as identity constraint queue_slow_pk primary key,
    queue_date_time timestamp(6) default sys_extract_utc(systimestamp) not null,
    title           varchar2(255 char) not null,
    status          number(10) default 0 not null,
    text_data       clob not null
)
/
create index queue_slow_ix on queue_slow (queue_date_time, status, title)
/
create type queue_ids as table of number(10)
/
create procedure dequeue_slow(p_batch_size in number, p_rows out sys_refcursor)
is
    e_lost exception;
    pragma exception_init(e_lost, -8177);
    v_ids queue_ids;
begin
    select /*+ use_nl(q) index(q queue_slow_pk) */ q.queue_id
    bulk collect into v_ids
    from queue_slow q
    where q.status = 0
      and q.queue_id in (
        select y.queue_id
        from (
            select /*+ index_asc(x queue_slow_ix) */ x.queue_id
            from queue_slow x
            where x.status = 0
            order by x.queue_date_time
        ) y
        where rownum <= p_batch_size
    )
    for update;

    forall i in 1 .. v_ids.count
        update queue_slow q
        set q.status = 1
        where q.queue_id = v_ids(i)
          and q.status = 0;
    if v_ids.count > 0 and sql%rowcount <> v_ids.count then
        -- Another session has taken some of them.
        raise e_lost;
    end if;

    open p_rows for
        select /*+ leading(x) use_nl(q) index(q queue_slow_pk) */
               q.queue_id, q.text_data, q.queue_date_time, q.title
        from table(v_ids) x
        join queue_slow q on q.queue_id = x.column_value;
end dequeue_slow;
/

-- name: enqueue
begin
    insert into queue_slow (title, text_data) values ('Item', :body);
end;

-- name: fill
insert into queue_slow (title, text_data)
select 'Item no: ' || j.place, j.body
from json_table(:messages, '$[*]' columns (place for ordinality, body clob path '$.body')) j
order by j.place

-- name: settle
call dbms_stats.gather_schema_stats(user)

-- name: dequeue
begin
    dequeue_slow(:batch, :rows);
end;

-- name: complete
update queue_slow set status = 2 where queue_id in (:ids)

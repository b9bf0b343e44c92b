-- One wide table. Dequeue selects rows for update, updates them, and reads them again. Rows that
-- were processed stay until an archiver moves them. Its batch is a JSON array of keys, where the
-- document has a table variable with the bodies in it. Isolation is the engine's own, repeatable
-- read, which keeps what has been read as the document's `holdlock` does.

-- name: install
create table rowq_bench.queue_slow (
    queue_id        int not null auto_increment primary key,
    queue_date_time datetime(6) not null default current_timestamp(6),
    title           varchar(255) not null,
    status          int not null default 0,
    text_data       longtext not null,
    key queue_slow_ix (queue_date_time, status, title)
) engine = innodb;

create procedure rowq_bench.take(p_batch_size int)
begin
    declare v_ids longtext;
    declare v_updated int;
    select json_arrayagg(x.queue_id) into v_ids
    from (
        select q.queue_id
        from rowq_bench.queue_slow q
        where q.status = 0
        order by q.queue_date_time
        limit p_batch_size
        for update
    ) x;

    update json_table(v_ids, '$[*]' columns (queue_id int path '$')) j
    straight_join rowq_bench.queue_slow q on q.queue_id = j.queue_id
    set q.status = 1
    where q.status = 0;
    set v_updated = row_count();
    if v_updated <> json_length(v_ids) then
        signal sqlstate '40001' set mysql_errno = 1213,
            message_text = 'another session has taken some of them';
    end if;

    select q.queue_id, q.text_data, q.queue_date_time, q.title
    from json_table(v_ids, '$[*]' columns (queue_id int path '$')) j
    straight_join rowq_bench.queue_slow q on q.queue_id = j.queue_id;
end;

create procedure rowq_bench.dequeue(p_batch_size int)
begin
    start transaction;
    call rowq_bench.take(p_batch_size);
    commit;
end;

-- name: enqueue
insert into rowq_bench.queue_slow (title, text_data) values ('Item', :body)

-- name: fill
insert into rowq_bench.queue_slow (title, text_data)
select concat('Item no: ', j.place), j.body
from json_table(:messages, '$[*]' columns (place for ordinality, body longtext path '$.body')) j

-- name: settle
analyze table rowq_bench.queue_slow

-- name: dequeue
call rowq_bench.dequeue(:batch)

-- name: dequeue_held
call rowq_bench.take(:batch)

-- name: complete
update rowq_bench.queue_slow set status = 2 where queue_id in (:ids)

-- Two tables, a narrow one to look in and one with the bodies. Dequeue selects rows for update,
-- updates them, and joins the bodies. Isolation is the engine's own, repeatable read, which keeps
-- what has been read as the document's `holdlock` does.

-- name: install
create table rowq_bench.queue_meta (
    queue_id        int not null auto_increment primary key,
    queue_date_time datetime(6) not null default current_timestamp(6),
    title           varchar(255) not null,
    status          int not null default 0,
    key queue_meta_ix (queue_date_time, status, title)
) engine = innodb;
create table rowq_bench.queue_data (
    queue_id  int not null primary key,
    text_data longtext not null
) engine = innodb;

create procedure rowq_bench.enqueue(p_body longtext)
begin
    start transaction;
    insert into rowq_bench.queue_meta (title) values ('Item');
    insert into rowq_bench.queue_data (queue_id, text_data) values (last_insert_id(), p_body);
    commit;
end;

create procedure rowq_bench.fill(p_messages longtext)
begin
    declare v_first int;
    start transaction;
    insert into rowq_bench.queue_meta (title)
    select concat('Item no: ', j.place)
    from json_table(p_messages, '$[*]' columns (place for ordinality)) j;
    set v_first = last_insert_id();
    insert into rowq_bench.queue_data (queue_id, text_data)
    select v_first + j.place - 1, j.body
    from json_table(p_messages, '$[*]' columns (place for ordinality, body longtext path '$.body')) j;
    commit;
end;

-- part: take

create procedure rowq_bench.dequeue(p_batch_size int)
begin
    start transaction;
    call rowq_bench.take(p_batch_size);
    commit;
end;

-- name: take
create procedure rowq_bench.take(p_batch_size int)
begin
    declare v_ids longtext;
    declare v_updated int;
    select json_arrayagg(x.queue_id) into v_ids
    from (
        select m.queue_id
        from rowq_bench.queue_meta m
        where m.status = 0
        order by m.queue_date_time
        limit p_batch_size
        for update
    ) x;

    update json_table(v_ids, '$[*]' columns (queue_id int path '$')) j
    straight_join rowq_bench.queue_meta m on m.queue_id = j.queue_id
    set m.status = 1
    where m.status = 0;
    set v_updated = row_count();
    if v_updated <> json_length(v_ids) then
        signal sqlstate '40001' set mysql_errno = 1213,
            message_text = 'another session has taken some of them';
    end if;

    select m.queue_id, d.text_data, m.queue_date_time, m.title
    from json_table(v_ids, '$[*]' columns (queue_id int path '$')) j
    straight_join rowq_bench.queue_meta m on m.queue_id = j.queue_id
    straight_join rowq_bench.queue_data d on d.queue_id = m.queue_id;
end;

-- name: enqueue
call rowq_bench.enqueue(:body)

-- name: fill
call rowq_bench.fill(:messages)

-- name: settle
analyze table rowq_bench.queue_meta, rowq_bench.queue_data

-- name: dequeue
call rowq_bench.dequeue(:batch)

-- name: dequeue_held
call rowq_bench.take(:batch)

-- name: complete
update rowq_bench.queue_meta set status = 2 where queue_id in (:ids)

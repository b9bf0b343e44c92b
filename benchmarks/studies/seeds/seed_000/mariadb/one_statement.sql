-- The same two tables. Rows that nobody has locked are taken, marked and returned with their bodies,
-- in no order, as in the document; in read committed, which is its engine's default. MariaDB 10.11
-- has no update that passes over locked rows or returns what it has changed: where the document has
-- one statement there are three in one call, which touch each row as often as the one would.

-- name: session
set session transaction isolation level read committed

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

create procedure rowq_bench.take(p_batch_size int)
begin
    declare v_ids longtext;
    select json_arrayagg(x.queue_id) into v_ids
    from (
        select m.queue_id
        from rowq_bench.queue_meta m
        where m.status = 0
        limit p_batch_size
        for update skip locked
    ) x;

    update json_table(v_ids, '$[*]' columns (queue_id int path '$')) j
    straight_join rowq_bench.queue_meta m on m.queue_id = j.queue_id
    set m.status = 1;

    select m.queue_id, d.text_data, m.queue_date_time, m.title
    from json_table(v_ids, '$[*]' columns (queue_id int path '$')) j
    straight_join rowq_bench.queue_meta m on m.queue_id = j.queue_id
    straight_join rowq_bench.queue_data d on d.queue_id = m.queue_id;
end;

create procedure rowq_bench.dequeue(p_batch_size int)
begin
    start transaction;
    call rowq_bench.take(p_batch_size);
    commit;
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

-- The same two tables. Rows that nobody has locked are taken, marked and returned with their bodies,
-- in no order, as in the document; in read committed, which is its engine's default. MariaDB 10.11
-- has no update that passes over locked rows or returns what it has changed: where the document has
-- one statement there are three in one call, which touch each row as often as the one would.
-- like: split_tables.sql

-- name: session
set session transaction isolation level read committed

-- name: take
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

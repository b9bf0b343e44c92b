-- The same two tables. One statement takes rows that nobody has locked, marks them and returns them
-- with their bodies; as in the document, in no order. PostgreSQL limits an update by a subquery only.
-- like: split_tables.sql

-- name: dequeue_function

-- name: dequeue
with taken as (
    update seed.queue_meta m
    set status = 1
    from (
        select q.queue_id
        from seed.queue_meta q
        where q.status = 0
        limit :batch
        for update skip locked
    ) x
    where m.queue_id = x.queue_id
    returning m.queue_id, m.queue_date_time, m.title
)
select t.queue_id, d.text_data, t.queue_date_time, t.title
from taken t
join seed.queue_data d on d.queue_id = t.queue_id

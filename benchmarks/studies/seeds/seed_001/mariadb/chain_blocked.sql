-- What has a predecessor waits in a table of its own, and is moved by the transaction that finishes
-- the predecessor: the dequeue joins nothing. The consumer's transaction is open until then.
-- (A message that is due later would wait in a third table; the stuck one is just not ready.)

-- name: install
create table rowq_bench.message (
    id bigint not null auto_increment primary key,
    data_type varchar(255) not null,
    data longtext not null
) engine = innodb;
create table rowq_bench.ready (
    id bigint not null primary key
) engine = innodb;
create table rowq_bench.blocked (
    predecessor_id bigint not null,
    id bigint not null,
    primary key (predecessor_id, id)
) engine = innodb

-- name: session
set session transaction isolation level read committed

-- name: fill
insert into rowq_bench.message (id, data_type, data)
select seq, 'text', rpad(seq, 200, 'x') from rowq_bench.seq_1_to_100000000 where seq <= :count;
insert into rowq_bench.ready
select seq from rowq_bench.seq_1_to_100000000
where seq <= :count and seq % :length = 1 and seq > :stuck;
insert into rowq_bench.blocked
select seq - 1, seq from rowq_bench.seq_1_to_100000000
where seq <= :count and seq > 1 and (seq <= :stuck or seq % :length <> 1)

-- name: settle
analyze table rowq_bench.message, rowq_bench.ready, rowq_bench.blocked

-- name: hold
select id from rowq_bench.message where id = :predecessor lock in share mode

-- name: enqueue
insert into rowq_bench.message (data_type, data)
values ('text', rpad(:predecessor, 200, 'x'))
returning id

-- name: block
insert into rowq_bench.blocked (predecessor_id, id) values (:predecessor, :id)

-- name: ready
insert into rowq_bench.ready (id) values (:id)

-- name: dequeue
select r.id from rowq_bench.ready r order by r.id limit 1 for update skip locked

-- name: read
select data from rowq_bench.message where id = :id

-- name: finish
delete from rowq_bench.message where id = :id;
delete from rowq_bench.ready where id = :id;
insert into rowq_bench.ready (id) select b.id from rowq_bench.blocked b where b.predecessor_id = :id;
delete from rowq_bench.blocked where predecessor_id = :id

-- A row is a worker process that has reported. It is deleted when the worker ends; one that was
-- killed is deleted an hour after its last report, by the report of another worker of the queue.
-- The rates are those between the last two reports. worker_key is what is compared: the bytes of
-- worker_id, whatever NLS_COMP and NLS_SORT a session has. The foreign key needs no index of its
-- own, because part_id stands first in the primary key; it makes an insert fail that has waited for
-- drop_queue.
create table rowq_worker (
    part_id              number(10) not null,
    worker_key           raw(64) not null,
    worker_id            varchar2(64 char) not null,
    worker_name          varchar2(200 char),
    host_name            varchar2(200 char),
    worker_version       varchar2(200 char),
    threads              number(10) not null,
    started_at           timestamp(6) not null,
    last_seen_at         timestamp(6) not null,
    completed            number(19) not null,
    failed               number(19) not null,
    completed_per_second number default 0 not null,
    failed_per_second    number default 0 not null,
    constraint rowq_worker_pk primary key (part_id, worker_key),
    constraint rowq_worker_queue_fk foreign key (part_id) references rowq_queue (part_id)
)
segment creation immediate
initrans 16 pctfree 40
/

-- Everything that rowq is on SQL Server and Azure SQL, for reading and for tests. Run it in this
-- folder, in the database that rowq shall live in: sqlcmd -b -I -d database -i install.sql. To
-- install for use, take the migrations: "rowq migrate", or the script that "rowq sql" prints. Each
-- file says "set quoted_identifier on", because sqlcmd begins with off and a procedure keeps what
-- it is created with. Procedures find each other when they are called; their order does not matter.
:on error exit
:r tables/schema.sql
:r tables/types.sql
:r tables/meta.sql
:r tables/queue.sql
:r tables/part.sql
:r tables/lane.sql
:r tables/message.sql
:r tables/ready.sql
:r tables/delayed.sql
:r tables/claim.sql
:r tables/leased.sql
:r tables/dead.sql
:r tables/dedup.sql
:r tables/finished.sql
:r tables/archive.sql
:r tables/sequential_keys.sql
:r internal/check_batch_size.sql
:r internal/check_given.sql
:r internal/check_ids.sql
:r internal/check_message.sql
:r internal/check_range.sql
:r internal/dequeue.sql
:r internal/end_claim.sql
:r internal/enter.sql
:r internal/finish.sql
:r internal/free_keys.sql
:r internal/hold_claim.sql
:r internal/hold_key.sql
:r internal/moment.sql
:r internal/move_floor.sql
:r internal/note_error.sql
:r internal/open_lanes.sql
:r internal/promote.sql
:r internal/reap.sql
:r internal/refuse.sql
:r internal/refuse_queue.sql
:r internal/require_queue.sql
:r internal/take_ready.sql
:r internal/to_dead.sql
:r internal/to_delayed.sql
:r internal/to_ready.sql
:r routines/complete.sql
:r routines/dequeue_fast.sql
:r routines/dequeue_wait.sql
:r routines/enqueue.sql
:r routines/enqueue_batch.sql
:r routines/extend_lease.sql
:r routines/fail_now.sql
:r routines/peek.sql
:r routines/promote.sql
:r routines/reap.sql
:r routines/release.sql
:r routines/retry_later.sql

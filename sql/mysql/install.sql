-- Everything that rowq is on MariaDB and MySQL, for reading and for tests: run it in this folder,
-- mysql < install.sql. To install for use, take the migrations: "rowq migrate", or the script that
-- "rowq sql" prints. A procedure keeps the sql_mode and the character set it is created with, so
-- both are set here. Procedures find each other when they are called; their order does not matter.
set names utf8mb4;
set session sql_mode = concat(
    'STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,',
    'NO_ENGINE_SUBSTITUTION'
);
source tables/database.sql
source tables/meta.sql
source tables/queue.sql
source tables/part.sql
source tables/lane.sql
source tables/message.sql
source tables/ready.sql
source tables/delayed.sql
source tables/claim.sql
source tables/dead.sql
source tables/dedup.sql
source tables/finished.sql
source tables/archive.sql
source internal/add_part.sql
source internal/back_off.sql
source internal/begin.sql
source internal/check_batch_size.sql
source internal/check_ids.sql
source internal/check_range.sql
source internal/check_settings.sql
source internal/commit.sql
source internal/count_messages.sql
source internal/dequeue.sql
source internal/enter.sql
source internal/find.sql
source internal/finish.sql
source internal/first_key.sql
source internal/free_keys.sql
source internal/health_queue.sql
source internal/health_server.sql
source internal/holder.sql
source internal/message_fault.sql
source internal/move_floor.sql
source internal/note_error.sql
source internal/oldest_ready.sql
source internal/open_lanes.sql
source internal/outcomes.sql
source internal/parse_message.sql
source internal/parse_moment.sql
source internal/pick.sql
source internal/pick_due.sql
source internal/promote.sql
source internal/reap.sql
source internal/refuse.sql
source internal/refuse_claim.sql
source internal/refuse_queue.sql
source internal/require_queue.sql
source internal/rescan_floors.sql
source internal/split.sql
source internal/store.sql
source internal/store_batch.sql
source internal/take.sql
source internal/take_ready.sql
source internal/to_dead.sql
source internal/to_delayed.sql
source internal/to_front.sql
source internal/to_ready.sql
source internal/undo.sql
source routines/alter_queue.sql
source routines/complete.sql
source routines/create_queue.sql
source routines/dequeue_fast.sql
source routines/dequeue_wait.sql
source routines/enqueue.sql
source routines/enqueue_batch.sql
source routines/extend_lease.sql
source routines/fail_now.sql
source routines/get_message.sql
source routines/health.sql
source routines/list_dead.sql
source routines/pause_queue.sql
source routines/peek.sql
source routines/promote.sql
source routines/queue_stats.sql
source routines/reap.sql
source routines/release.sql
source routines/resume_queue.sql
source routines/retry_later.sql
source routines/version.sql

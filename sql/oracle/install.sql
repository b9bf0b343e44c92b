-- This file lists everything that rowq is on Oracle, in the order of installation. The packages are
-- assembled from routines, helpers and internal when rowq reads this list, so SQL*Plus cannot run
-- it: run the script of a release, or what "rowq sql --engine oracle" prints.
prompt Nothing was done: run the script that "rowq sql --engine oracle" prints.
exit failure
@@tables/meta.sql
@@tables/types.sql
@@tables/queue.sql
@@tables/lane.sql
@@tables/message.sql
@@tables/ready.sql
@@tables/delayed.sql
@@tables/claim.sql
@@tables/leased.sql
@@tables/dead.sql
@@tables/dedup.sql
@@tables/finished.sql
@@tables/archive.sql
@@tables/message_group.sql
@@tables/grouped.sql
@@tables/recheck.sql
@@tables/blocked.sql
@@tables/successor.sql
@@tables/door.sql
@@tables/gate.sql
@@tables/started.sql
@@tables/expiry.sql
@@tables/result.sql
@@tables/history.sql
@@tables/schedule.sql
@@tables/topic_binding.sql
@@tables/worker.sql
@@tables/statistics.sql
-- routines: generated from contract.toml by make generate
@@packages/rowq.sql
@@packages/rowq_wait.sql
@@packages/rowq_body.sql
@@packages/rowq_wait_body.sql
@@packages/rowq_produce.sql
@@packages/rowq_produce_body.sql
@@packages/rowq_consume.sql
@@packages/rowq_consume_body.sql
@@packages/rowq_look.sql
@@packages/rowq_look_body.sql
-- end of routines
@@compiled.sql
@@comments.sql
@@grants.sql

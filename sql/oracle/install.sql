-- Everything that rowq is on Oracle, for reading and for tests: run it in this folder, in SQL*Plus or
-- SQLcl, as the account that shall own it, in an empty schema. To install for use, take the
-- migrations: "rowq migrate", or the script that "rowq sql" prints, which may also run again.
set define off
set sqlblanklines on
whenever sqlerror exit failure rollback
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
@@tables/statistics.sql
@@packages/rowq.sql
@@packages/rowq_body.sql
@@packages/rowq_produce.sql
@@packages/rowq_produce_body.sql
@@packages/rowq_consume.sql
@@packages/rowq_consume_body.sql
@@packages/rowq_look.sql
@@packages/rowq_look_body.sql
@@compiled.sql
@@grants.sql
commit
/

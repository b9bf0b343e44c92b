-- Everything that rowq is on Oracle: run it in this folder, in SQL*Plus or SQLcl, as the account
-- that shall own it, in a schema without rowq. After an error drop what is there and run it again.
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

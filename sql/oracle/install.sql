-- This file lists everything that rowq is on Oracle, in the order of installation. The packages are
-- assembled from routines, helpers and internal when rowq reads this list, so SQL*Plus cannot run
-- it: run the script of a release, or what "rowq sql --engine oracle" prints.
prompt Nothing was done: run the script that "rowq sql --engine oracle" prints.
exit failure
@@tables.sql
@@statistics.sql
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

-- These are the schema and its two sequences. Everything has one owner: the routines reach the
-- tables by ownership chaining, and nobody else has a right on them. The owner is not dbo, because
-- many users may write procedures of dbo's, and SQL Server does not ask the caller of a procedure
-- for rights on tables of the procedure's owner. What runs as rowq_owner has no right outside of
-- rowq but the one for partitions (grants.sql). The numbers are unique but never the order of
-- messages; of two notes about one message the later one has the higher number. A dequeue without a
-- message uses one up, and a crash loses as many as the cache holds.
set quoted_identifier on;
set ansi_nulls on;
go
if (select d.compatibility_level from sys.databases d where d.name = db_name()) < 140
    throw 50000, N'rowq needs SQL Server 2017 and a compatibility level of 140 or more', 1;
go
if user_id(N'rowq_owner') is null
    create user rowq_owner without login;
go
if schema_id(N'rowq') is null
    exec (N'create schema rowq authorization rowq_owner');
go
if object_id(N'rowq.message_seq') is null
create sequence rowq.message_seq as bigint start with 1 increment by 1 no cycle cache 1000;
go
if object_id(N'rowq.claim_seq') is null
create sequence rowq.claim_seq as bigint start with 1 increment by 1 no cycle cache 1000;
go

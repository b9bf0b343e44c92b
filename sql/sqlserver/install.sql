-- Everything that rowq is on SQL Server and Azure SQL, for reading and for tests: run it in this
-- folder and in the database that rowq shall live in, sqlcmd -b -I -d database -i install.sql. To
-- install for use, take the migrations: "rowq migrate", or the script that "rowq sql" prints. Each
-- file says "set quoted_identifier on", because sqlcmd begins with off and a procedure keeps what it
-- is created with. Procedures find each other when they are called; their order does not matter.
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

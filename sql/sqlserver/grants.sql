-- Who may call what: four database roles, and nothing for public. They have rights on routines;
-- the tables are reached through those, as all of rowq has one owner. A procedure that declares a
-- variable of a table type asks its caller for a right on the type, which opens nothing else. Give
-- a role to a user with: alter role rowq_consumer add member shop_worker. Run this again after
-- every upgrade.
set quoted_identifier on;
set ansi_nulls on;
go
if database_principal_id(N'rowq_producer') is null
    create role rowq_producer authorization dbo;
go
if database_principal_id(N'rowq_consumer') is null
    create role rowq_consumer authorization dbo;
go
if database_principal_id(N'rowq_admin') is null
    create role rowq_admin authorization dbo;
go
if database_principal_id(N'rowq_monitor') is null
    create role rowq_monitor authorization dbo;
go
grant execute on rowq.Enqueue to rowq_producer;
grant execute on rowq.EnqueueBatch to rowq_producer;
grant execute on rowq.Cancel to rowq_producer;
grant execute on rowq.Version to rowq_producer;
go
grant execute on rowq.DequeueFast to rowq_consumer;
grant execute on rowq.DequeueWait to rowq_consumer;
grant execute on rowq.Peek to rowq_consumer;
grant execute on rowq.Complete to rowq_consumer;
grant execute on rowq.RetryLater to rowq_consumer;
grant execute on rowq.FailNow to rowq_consumer;
grant execute on rowq.Release to rowq_consumer;
grant execute on rowq.ExtendLease to rowq_consumer;
grant execute on rowq.Maintain to rowq_consumer;
grant execute on rowq.Reap to rowq_consumer;
grant execute on rowq.Promote to rowq_consumer;
grant execute on rowq.Archive to rowq_consumer;
grant execute on rowq.QueueStats to rowq_consumer;
grant execute on rowq.Version to rowq_consumer;
go
grant execute on rowq.CreateQueue to rowq_admin;
grant execute on rowq.AlterQueue to rowq_admin;
grant execute on rowq.DropQueue to rowq_admin;
grant execute on rowq.PauseQueue to rowq_admin;
grant execute on rowq.ResumeQueue to rowq_admin;
grant execute on rowq.PurgeQueue to rowq_admin;
grant execute on rowq.Enqueue to rowq_admin;
grant execute on rowq.EnqueueBatch to rowq_admin;
grant execute on rowq.DequeueFast to rowq_admin;
grant execute on rowq.DequeueWait to rowq_admin;
grant execute on rowq.Peek to rowq_admin;
grant execute on rowq.Complete to rowq_admin;
grant execute on rowq.RetryLater to rowq_admin;
grant execute on rowq.FailNow to rowq_admin;
grant execute on rowq.Release to rowq_admin;
grant execute on rowq.ExtendLease to rowq_admin;
grant execute on rowq.Cancel to rowq_admin;
grant execute on rowq.Reset to rowq_admin;
grant execute on rowq.Maintain to rowq_admin;
grant execute on rowq.Reap to rowq_admin;
grant execute on rowq.Promote to rowq_admin;
grant execute on rowq.Archive to rowq_admin;
grant execute on rowq.PurgeArchive to rowq_admin;
grant execute on rowq.CareForIndexes to rowq_admin;
grant execute on rowq.QueueStats to rowq_admin;
grant execute on rowq.GetMessage to rowq_admin;
grant execute on rowq.ListDead to rowq_admin;
grant execute on rowq.Health to rowq_admin;
grant execute on rowq.Version to rowq_admin;
go
grant execute on rowq.QueueStats to rowq_monitor;
grant execute on rowq.ListDead to rowq_monitor;
grant execute on rowq.Health to rowq_monitor;
grant execute on rowq.Version to rowq_monitor;
go
grant execute on type::rowq.message_list to rowq_producer;
grant execute on type::rowq.message_list to rowq_consumer;
grant execute on type::rowq.message_list to rowq_admin;
grant execute on type::rowq.message_list to rowq_monitor;
grant execute on type::rowq.given_list to rowq_producer;
grant execute on type::rowq.given_list to rowq_consumer;
grant execute on type::rowq.given_list to rowq_admin;
grant execute on type::rowq.given_list to rowq_monitor;
go

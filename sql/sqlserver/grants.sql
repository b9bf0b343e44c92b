-- Four database roles may call routines, and public has no right. Rights on routines are enough,
-- because all of rowq has one owner. A procedure that declares a variable of a table type requires
-- its caller's right on the type, which allows nothing else. Give a role to a user with: alter role
-- rowq_consumer add member shop_worker. Run this again after every upgrade.
set quoted_identifier on;
set ansi_nulls on;
go
-- The owner needs this right for the archive's partitions, which are in no schema.
grant alter any dataspace to rowq_owner;
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
-- Revoke all of the roles' grants and denials on rowq; the grants follow below. Grant further
-- rights to other roles.
declare @statement nvarchar(max);
select @statement = string_agg(
    cast(concat(
        N'revoke ', p.permission_name collate database_default, N' on ',
        case p.class
            when 1 then concat(
                N'object::rowq.', quotename(o.name),
                iif(p.minor_id = 0, N'', concat(N' (', quotename(c.name), N')'))
            )
            when 3 then N'schema::rowq'
            else concat(N'type::rowq.', quotename(t.name))
        end,
        N' from ', u.name, N' cascade;'
    ) as nvarchar(max)),
    N' '
)
from sys.database_permissions p
inner join sys.database_principals u on u.principal_id = p.grantee_principal_id
left join sys.objects o on p.class = 1 and o.object_id = p.major_id
left join sys.columns c on p.class = 1 and c.object_id = p.major_id and c.column_id = p.minor_id
left join sys.types t on p.class = 6 and t.user_type_id = p.major_id
where u.name in (N'rowq_producer', N'rowq_consumer', N'rowq_admin', N'rowq_monitor')
  and (
      o.schema_id = schema_id(N'rowq')
      or p.class = 3 and p.major_id = schema_id(N'rowq')
      or t.schema_id = schema_id(N'rowq')
  );
if @statement is not null
    exec sys.sp_executesql @statement;
go
-- rights: generated from contract.toml by make generate
grant execute on rowq.CreateQueue to rowq_admin;
grant execute on rowq.AlterQueue to rowq_admin;
grant execute on rowq.DropQueue to rowq_admin;
grant execute on rowq.PauseQueue to rowq_admin;
grant execute on rowq.ResumeQueue to rowq_admin;
grant execute on rowq.BindTopic to rowq_admin;
grant execute on rowq.UnbindTopic to rowq_admin;
grant execute on rowq.PurgeQueue to rowq_admin;
grant execute on rowq.Enqueue to rowq_admin;
grant execute on rowq.EnqueueBatch to rowq_admin;
grant execute on rowq.Publish to rowq_admin;
grant execute on rowq.PublishBatch to rowq_admin;
grant execute on rowq.DequeueFast to rowq_admin;
grant execute on rowq.CompleteAndDequeue to rowq_admin;
grant execute on rowq.DequeueWait to rowq_admin;
grant execute on rowq.Peek to rowq_admin;
grant execute on rowq.Complete to rowq_admin;
grant execute on rowq.RetryLater to rowq_admin;
grant execute on rowq.FailNow to rowq_admin;
grant execute on rowq.Release to rowq_admin;
grant execute on rowq.ExtendLease to rowq_admin;
grant execute on rowq.Cancel to rowq_admin;
grant execute on rowq.CancelMany to rowq_admin;
grant execute on rowq.Reset to rowq_admin;
grant execute on rowq.AlterMessage to rowq_admin;
grant execute on rowq.DiscardDead to rowq_admin;
grant execute on rowq.CreateSchedule to rowq_admin;
grant execute on rowq.AlterSchedule to rowq_admin;
grant execute on rowq.DropSchedule to rowq_admin;
grant execute on rowq.RunSchedule to rowq_admin;
grant execute on rowq.ListSchedules to rowq_admin;
grant execute on rowq.NextTicks to rowq_admin;
grant execute on rowq.Maintain to rowq_admin;
grant execute on rowq.Reap to rowq_admin;
grant execute on rowq.Promote to rowq_admin;
grant execute on rowq.Archive to rowq_admin;
grant execute on rowq.PurgeArchive to rowq_admin;
grant execute on rowq.ReportWorker to rowq_admin;
grant execute on rowq.AfterFailover to rowq_admin;
grant execute on rowq.QueueStats to rowq_admin;
grant execute on rowq.GetMessage to rowq_admin;
grant execute on rowq.ExplainMessage to rowq_admin;
grant execute on rowq.FindMessage to rowq_admin;
grant execute on rowq.GetResult to rowq_admin;
grant execute on rowq.WaitForResult to rowq_admin;
grant execute on rowq.GetHistory to rowq_admin;
grant execute on rowq.ListDead to rowq_admin;
grant execute on rowq.ListClaims to rowq_admin;
grant execute on rowq.ListWorkers to rowq_admin;
grant execute on rowq.ListDelayed to rowq_admin;
grant execute on rowq.ListTopics to rowq_admin;
grant execute on rowq.Health to rowq_admin;
grant execute on rowq.Version to rowq_admin;
grant execute on rowq.RebuildIndexes to rowq_admin;
grant execute on type::rowq.message_list to rowq_admin;
grant execute on type::rowq.link_list to rowq_admin;
grant execute on type::rowq.new_list to rowq_admin;
grant execute on type::rowq.input_list to rowq_admin;
grant execute on type::rowq.parsed_list to rowq_admin;
go
grant execute on rowq.Enqueue to rowq_producer;
grant execute on rowq.EnqueueBatch to rowq_producer;
grant execute on rowq.Publish to rowq_producer;
grant execute on rowq.PublishBatch to rowq_producer;
grant execute on rowq.Cancel to rowq_producer;
grant execute on rowq.CancelMany to rowq_producer;
grant execute on rowq.AlterMessage to rowq_producer;
grant execute on rowq.NextTicks to rowq_producer;
grant execute on rowq.GetResult to rowq_producer;
grant execute on rowq.WaitForResult to rowq_producer;
grant execute on rowq.Version to rowq_producer;
grant execute on type::rowq.message_list to rowq_producer;
grant execute on type::rowq.link_list to rowq_producer;
grant execute on type::rowq.new_list to rowq_producer;
grant execute on type::rowq.input_list to rowq_producer;
grant execute on type::rowq.parsed_list to rowq_producer;
go
grant execute on rowq.DequeueFast to rowq_consumer;
grant execute on rowq.CompleteAndDequeue to rowq_consumer;
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
grant execute on rowq.ReportWorker to rowq_consumer;
grant execute on rowq.QueueStats to rowq_consumer;
grant execute on rowq.Version to rowq_consumer;
grant execute on type::rowq.message_list to rowq_consumer;
grant execute on type::rowq.link_list to rowq_consumer;
grant execute on type::rowq.new_list to rowq_consumer;
grant execute on type::rowq.input_list to rowq_consumer;
grant execute on type::rowq.parsed_list to rowq_consumer;
go
grant execute on rowq.ListSchedules to rowq_monitor;
grant execute on rowq.NextTicks to rowq_monitor;
grant execute on rowq.QueueStats to rowq_monitor;
grant execute on rowq.ExplainMessage to rowq_monitor;
grant execute on rowq.ListDead to rowq_monitor;
grant execute on rowq.ListClaims to rowq_monitor;
grant execute on rowq.ListWorkers to rowq_monitor;
grant execute on rowq.ListDelayed to rowq_monitor;
grant execute on rowq.ListTopics to rowq_monitor;
grant execute on rowq.Health to rowq_monitor;
grant execute on rowq.Version to rowq_monitor;
grant execute on type::rowq.message_list to rowq_monitor;
grant execute on type::rowq.link_list to rowq_monitor;
grant execute on type::rowq.new_list to rowq_monitor;
grant execute on type::rowq.input_list to rowq_monitor;
grant execute on type::rowq.parsed_list to rowq_monitor;
-- end of rights
go

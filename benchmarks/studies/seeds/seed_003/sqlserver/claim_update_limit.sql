-- Ten messages at a time are marked as claimed by this session, then those are selected. SQL Server
-- gives the number of a session that has ended to the next that begins, where MySQL counts on.

-- name: install
create table dbo.unsent_email (
    id     bigint identity not null constraint unsent_email_pk primary key clustered,
    status varchar(10) not null default 'unsent'
        constraint unsent_email_status_ck check (status in ('unsent', 'claimed', 'sent')),
    owner  int not null default 0,
    ts     datetime2(7) not null default sysutcdatetime(),
    body   nvarchar(max) not null
);
create nonclustered index email_ix on dbo.unsent_email (owner, status, ts);

-- name: enqueue
insert into dbo.unsent_email (body) values (:body)

-- name: fill
insert into dbo.unsent_email (body)
select b.body
from openjson(:messages) j
cross apply openjson(j.value) with (body nvarchar(max) '$.body') b
order by cast(j.[key] as int)

-- name: settle
alter index all on dbo.unsent_email rebuild

-- name: claim
update top (:batch) dbo.unsent_email
set status = 'claimed', owner = @@spid, ts = sysutcdatetime()
where owner = 0 and status = 'unsent'

-- name: own
select e.id, e.body
from dbo.unsent_email e
where e.owner = @@spid and e.status = 'claimed'

-- name: complete
delete from dbo.unsent_email where id in (:ids)

-- name: reset_by_age
update dbo.unsent_email
set owner = 0, status = 'unsent'
where status = 'claimed'
  and ts < dateadd(second, -:seconds, sysutcdatetime())

-- name: sessions
select s.session_id from sys.dm_exec_sessions s where s.is_user_process = 1

-- name: reset_by_age_and_session
update dbo.unsent_email
set owner = 0, status = 'unsent'
where owner not in (:sessions)
  and status = 'claimed'
  and ts < dateadd(second, -:seconds, sysutcdatetime())

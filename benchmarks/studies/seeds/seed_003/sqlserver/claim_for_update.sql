-- Ten messages at a time are selected with update locks, then marked as claimed by this session.

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

-- name: find
select top (:batch) e.id, e.body
from dbo.unsent_email e with (rowlock, updlock)
where e.owner = 0 and e.status = 'unsent'

-- name: mark
update dbo.unsent_email
set status = 'claimed', owner = @@spid, ts = sysutcdatetime()
where id in (:ids)

-- name: complete
delete from dbo.unsent_email where id in (:ids)

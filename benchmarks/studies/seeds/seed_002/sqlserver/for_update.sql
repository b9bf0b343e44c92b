-- Jobs are selected with update locks, then marked: who comes second waits for the first to commit.

-- name: install
create table dbo.job (
    job_id      bigint identity not null constraint job_pk primary key clustered,
    state       char(1) not null default 'N',
    create_time datetime2(7) not null default sysutcdatetime(),
    body        nvarchar(255) not null
);
-- part: index
go
create procedure dbo.get_jobs
    @limit int
as
begin
    set nocount on;
    set xact_abort on;
    declare @taken table (job_id bigint not null primary key);
    begin transaction;
    insert into @taken (job_id)
    select top (@limit) j.job_id
    -- part: jobs
    where j.state = 'N'
    order by j.create_time, j.job_id;

    update j
    set state = 'A'
    from @taken t
    inner join dbo.job j on j.job_id = t.job_id;

    select j.job_id, j.body
    from @taken t
    inner join dbo.job j on j.job_id = t.job_id;
    commit transaction;
end
go

-- name: index
create nonclustered index job_ix on dbo.job (state, create_time, job_id);

-- name: jobs
from dbo.job j with (rowlock, updlock)

-- name: enqueue
insert into dbo.job (body) values (:body)

-- name: fill
insert into dbo.job (body)
select b.body
from openjson(:messages) j
cross apply openjson(j.value) with (body nvarchar(255) '$.body') b
order by cast(j.[key] as int)

-- name: settle
alter index all on dbo.job rebuild

-- name: dequeue
exec dbo.get_jobs :batch

-- name: complete
update dbo.job set state = 'C' where job_id in (:ids)

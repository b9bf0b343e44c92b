set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRefuseNotEmpty
    @part_id int,
    @queue_name nvarchar(max)
as
begin
-- routine   InternalRefuseNotEmpty
-- purpose   Raise an error if a queue still has messages or an archive.
-- promise   P15
-- locks     the first row of each kind, shared while it is read; waits for a session that holds it
-- errors    RQ704
-- differs   no such helper elsewhere: part of drop_queue
    set nocount on;
    declare @text nvarchar(2048) = concat(
        N'RQ704 queue_not_empty: ', left(@queue_name, 200), N'; force drops all of it'
    );
    -- throw reads %% as %, so each % of the text is doubled.
    set @text = replace(@text, N'%', N'%%');
    if exists (select 1 from rowq.ready r with (readcommittedlock) where r.part_id = @part_id)
        or exists (select 1 from rowq.delayed d with (readcommittedlock) where d.part_id = @part_id)
        or exists (select 1 from rowq.claim c with (readcommittedlock) where c.part_id = @part_id)
        or exists (select 1 from rowq.dead d with (readcommittedlock) where d.part_id = @part_id)
        or exists (select 1 from rowq.grouped g with (readcommittedlock) where g.part_id = @part_id)
        or exists (select 1 from rowq.blocked b with (readcommittedlock) where b.part_id = @part_id)
        or exists (
            select 1 from rowq.finished f with (readcommittedlock) where f.part_id = @part_id
        )
        or exists (
            select 1 from rowq.archived a with (readcommittedlock) where a.part_id = @part_id
        )
        throw 52704, @text, 1;
end
go

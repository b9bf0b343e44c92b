set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRefuseQueue
    @queue_name nvarchar(max)
as
begin
-- routine   InternalRefuseQueue
-- purpose   Raise the error for a queue name that is missing or unknown.
-- promise   P15
-- errors    RQ701 RQ711
    set nocount on;
    declare @text nvarchar(2048) = concat(N'RQ701 queue_not_found: ', left(@queue_name, 200));
    if @queue_name is null
        exec rowq.InternalRefuse N'queue_name is missing';
    -- throw reads %% as %, so each % of the text is doubled.
    set @text = replace(@text, N'%', N'%%');
    throw 52701, @text, 1;
end
go

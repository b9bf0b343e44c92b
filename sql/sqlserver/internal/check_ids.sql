set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckIds
    @message_ids nvarchar(max),
    @name nvarchar(40) = N'message_ids'
as
begin
-- routine   InternalCheckIds
-- purpose   Refuse a list of messages that is no JSON array of ids, or too long; null passes.
-- promise   P15
-- errors    RQ711
-- differs   other engines that have arrays check only their length
    set nocount on;
    declare @count int;
    declare @good int;
    declare @fault nvarchar(200) = concat(
        @name, N' must be a flat list of at most 10000 ids, no null'
    );
    if @message_ids is null
        return;

    -- openjson reports an array as type 4 and a number as type 2. It raises an error for text that
    -- is not JSON or is nested more than 128 deep, so isjson looks first: at the list alone, and at
    -- the list inside another array, as it is read here.
    if isjson(@message_ids) = 1 and isjson(concat(N'[', @message_ids, N']')) = 1
    begin
        if 4 = (select top (1) j.[type] from openjson(concat(N'[', @message_ids, N']')) j)
            select @count = count(*),
                   @good = sum(
                       iif(j.[type] = 2 and try_cast(j.value as bigint) is not null, 1, 0)
                   )
            from openjson(@message_ids) j;
    end;
    if @count is null or @count > 10000 or @good < @count
        exec rowq.InternalRefuse @fault;
end
go

set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckResults
    @results nvarchar(max),
    @count int,
    @result_seconds float
as
begin
-- routine   InternalCheckResults
-- purpose   Refuse results that are not @count good ones, or that the queue does not keep.
-- promise   P15
-- errors    RQ711
    set nocount on;
    declare @longest int = 1048576;
    declare @kind int;
    declare @given int;
    declare @fault nvarchar(200);

    if @result_seconds = 0
        exec rowq.InternalRefuse N'the queue keeps no results: its result_seconds is 0';
    -- openjson reports an array as type 4. It raises an error for text that is not JSON or is
    -- nested more than 128 deep, so isjson looks first: at the array alone, and at the array as
    -- deep inside other JSON as it is read below.
    if isjson(@results) = 1 and isjson(concat(N'[{"headers":{"results":', @results, N'}}]')) = 1
        select @kind = max(j.[type])
        from openjson(concat(N'[', @results, N']')) j;
    if @kind is null or @kind <> 4
        exec rowq.InternalRefuse N'results must be a JSON array';

    select @given = count(*) from openjson(@results) j;
    if @given <> @count
        set @fault = concat(N'results are ', @given, N', and message_ids are ', @count);
    -- The collation counts an emoji as one character. It counts slowly, so use it only where there
    -- are more UTF-16 units than characters are allowed. A text has its two quotes besides.
    else if datalength(@results) / 2 > @longest
        select top (1) @fault = concat(N'a result is longer than ', @longest, N' characters')
        from openjson(@results) j
        where datalength(j.value) / 2 + 2 > @longest
          and len((j.value + N'.') collate Latin1_General_100_CI_AS_SC) - 1
              + iif(j.[type] = 1, 2, 0) > @longest;
    if @fault is not null
        exec rowq.InternalRefuse @fault;

    -- A result may be 20 deep, and stands two levels below the headers.
    set @results = concat(N'[{"headers":{"results":', @results, N'}}]');
    exec rowq.InternalCheckHeaders @results, @is_batch = 0, @name = N'results', @deepest = 22;
end
go

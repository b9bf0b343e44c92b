set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalTopicFault
    @name nvarchar(40),
    @topic nvarchar(max),
    @is_pattern bit,
    @fault nvarchar(200) output
as
begin
-- routine   InternalTopicFault
-- purpose   Return what is wrong with a topic or a pattern; null means nothing.
-- promise   P15
-- differs   elsewhere a regular expression says it
    set nocount on;
    -- Two dots between words give each word its own, so that every * becomes a letter at once.
    declare @words nvarchar(max) = concat(
        N'.', replace(@topic collate Latin1_General_100_BIN2, N'.', N'..'), N'.'
    );
    if @is_pattern = 1
    begin
        set @words = replace(@words collate Latin1_General_100_BIN2, N'.*.', N'.x.');
        if right(@words, 3) collate Latin1_General_100_BIN2 = N'.#.'
            set @words = stuff(@words, len(@words) - 1, 1, N'x');
    end;

    -- A dot at the end makes trailing blanks count. The collation counts an emoji as one character.
    set @fault = case
        when @topic is null
            then concat(@name, N' is missing')
        when len((@topic + N'.') collate Latin1_General_100_CI_AS_SC) > 201
            then concat(@name, N' is longer than 200 characters')
        when @words collate Latin1_General_100_BIN2 not like N'%[^A-Za-z0-9_.-]%'
            and @words collate Latin1_General_100_BIN2 not like N'%...%'
            and @words collate Latin1_General_100_BIN2 <> N'..'
            then null
        when @is_pattern = 1
            then concat(
                @name, N' must be words of letters, digits, _, - or *, dots between, # last'
            )
        else concat(@name, N' must be words of letters, digits, _, -, with dots between')
    end;
end
go

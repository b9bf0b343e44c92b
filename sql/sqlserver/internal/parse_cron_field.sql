set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalParseCronField
    @field nvarchar(200),
    @name nvarchar(20),
    @low int,
    @high int,
    @words nvarchar(60),
    @bits nvarchar(60) output
as
begin
-- routine   InternalParseCronField
-- purpose   Turn a field of a cron expression into a text of 0 and 1, one for each value from @low on. @words are names of three letters for these values.
-- promise   P15
-- errors    RQ711
    set nocount on;
    declare @rest nvarchar(201) = lower(@field collate Latin1_General_100_BIN2) + N',';
    declare @comma int;
    declare @slash int;
    declare @dash int;
    declare @item nvarchar(200);
    declare @range nvarchar(200);
    declare @first_word nvarchar(200);
    declare @last_word nvarchar(200);
    declare @step_word nvarchar(200);
    declare @first int;
    declare @last int;
    declare @step int;
    declare @fault nvarchar(400);
    set @bits = replicate(N'0', @high - @low + 1);

    while datalength(@rest) > 0
    begin
        set @comma = charindex(N',', @rest);
        set @item = left(@rest, @comma - 1);
        set @rest = substring(@rest, @comma + 1, 200);

        set @slash = charindex(N'/', @item);
        set @step_word = iif(@slash = 0, N'1', substring(@item, @slash + 1, 200));
        set @range = iif(@slash = 0, @item, left(@item, @slash - 1));
        if @range = N'*'
            set @range = concat(@low, N'-', @high);
        set @dash = charindex(N'-', @range);
        set @first_word = iif(@dash = 0, @range, left(@range, @dash - 1));
        -- A value with a step goes on to the end.
        set @last_word = case
            when @dash > 0 then substring(@range, @dash + 1, 200)
            when @slash > 0 then concat(@high, N'')
            else @first_word
        end;
        exec rowq.InternalParseCronValue @first_word, @low, @words, @first output;
        exec rowq.InternalParseCronValue @last_word, @low, @words, @last output;
        exec rowq.InternalParseCronValue @step_word, 0, null, @step output;
        if @first < @low or @last > @high or @first > @last or @step < 1
        begin
            set @fault = concat(
                N'the ', @name, N' of cron must be *, values from ', @low, N' to ', @high,
                N', ranges or steps of these, got ', left(@field, 60)
            );
            exec rowq.InternalRefuse @fault;
        end;

        while @first <= @last
        begin
            set @bits = stuff(@bits, @first - @low + 1, 1, N'1');
            set @first += @step;
        end;
    end;
end
go

drop procedure if exists rowq.internal_check_results;

delimiter //
create procedure rowq.internal_check_results(
    p_results longtext,
    p_count int,
    p_result_seconds double
)
sql security definer
modifies sql data
begin
-- routine   internal_check_results
-- purpose   Refuse results that are not p_count good ones, or that the queue does not keep.
-- promise   P15
-- errors    RQ711
    declare c_longest int default 1048576;
    declare v_fault varchar(120);
    declare v_place int default 0;
    declare v_result longtext;
    declare v_length bigint;

    if p_result_seconds = 0 then
        call rowq.internal_refuse('the queue keeps no results: its result_seconds is 0');
    end if;
    if locate(x'ED', cast(p_results as binary)) > 0 then
        call rowq.internal_check_text('results', p_results);
    end if;
    call rowq.internal_json_fault('results', p_results, 'ARRAY', 21, null, v_fault);
    if v_fault is null and json_length(p_results) <> p_count then
        set v_fault = concat(
            'results are ', json_length(p_results), ', and message_ids are ', p_count
        );
    end if;
    while v_fault is null and v_place is not null and char_length(p_results) > c_longest do
        set v_result = null;
        select j.place, j.result into v_place, v_result
        from json_table(
            p_results, '$[*]' columns (place for ordinality, result json path '$')
        ) j
        where j.place > v_place
          and char_length(j.result) > c_longest
        limit 1;
        if v_result is null then
            set v_place = null;
        else
            call rowq.internal_json_length(v_result, v_length);
            if v_length > c_longest then
                set v_fault = concat('a result is longer than ', c_longest, ' characters');
            end if;
        end if;
    end while;
    if v_fault is not null then
        call rowq.internal_refuse(v_fault);
    end if;
end//
delimiter ;

-- These tables may be empty now and hold a million rows an hour later, and their plans must not
-- change with that. So they and their indexes are given the statistics of a queue at work, and keep
-- them. An index without its own would have those of the empty table that it was made on.
declare
    -- Without quotes the server would change a name in lower case to upper case.
    v_owner constant varchar2(130 char) :=
        dbms_assert.enquote_name(sys_context('userenv', 'current_schema'), false);

    procedure pin_index(p_index_name in varchar2, p_rows in number, p_row_length in number) is
    begin
        dbms_stats.set_index_stats(
            ownname       => v_owner,
            indname       => p_index_name,
            numrows       => p_rows,
            numlblks      => ceil(p_rows * p_row_length / 6000),
            numdist       => p_rows,
            avglblk       => 1,
            avgdblk       => 1,
            clstfct       => ceil(p_rows * p_row_length / 6000),
            indlevel      => 2,
            no_invalidate => false,
            force         => true
        );
    end pin_index;

    procedure pin(
        p_table_name in varchar2, p_rows in number, p_row_length in number,
        p_second_index in varchar2 default null
    )
    is
    begin
        dbms_stats.set_table_stats(
            ownname       => v_owner,
            tabname       => p_table_name,
            numrows       => p_rows,
            numblks       => ceil(p_rows * p_row_length / 6000),
            avgrlen       => p_row_length,
            no_invalidate => false,
            force         => true
        );
        pin_index(p_table_name || '_PK', p_rows, p_row_length);
        if p_second_index is not null then
            pin_index(p_second_index, p_rows, 30);
        end if;
        dbms_stats.lock_table_stats(ownname => v_owner, tabname => p_table_name);
    end pin;
begin
    pin('ROWQ_MESSAGE', 1000000, 400);
    pin('ROWQ_READY', 1000000, 30);
    pin('ROWQ_DELAYED', 100000, 35);
    pin('ROWQ_CLAIM', 10000, 60);
    pin('ROWQ_LEASED', 100000, 35);
    pin('ROWQ_DEAD', 100000, 35);
    pin('ROWQ_DEDUP', 100000, 60);
    pin('ROWQ_FINISHED', 100000, 45);
    pin('ROWQ_BLOCKED', 100000, 80);
    pin('ROWQ_SUCCESSOR', 100000, 40);
    pin('ROWQ_GROUP_WAITING', 100000, 60);
    pin('ROWQ_GROUP_SLOT', 100000, 60);
    pin('ROWQ_DEFERRED', 10000, 60);
    pin('ROWQ_STARTED', 10000, 40);
    pin('ROWQ_EXPIRY', 100000, 45);
    pin('ROWQ_RESULT', 100000, 100, 'ROWQ_RESULT_FINISHED_IX');
    pin('ROWQ_HISTORY', 1000000, 80, 'ROWQ_HISTORY_MESSAGE_IX');
end;
/

-- These tables may be empty now and hold a million rows an hour later, and their plans must not
-- change. So set and lock the statistics of a busy queue. An index without its own would have those
-- of the empty table.
declare
    -- Quoted, to keep the case of the name.
    v_owner constant varchar2(130 char) :=
        dbms_assert.enquote_name(sys_context('userenv', 'current_schema'), false);

    procedure set_index(p_index_name in varchar2, p_rows in number, p_row_length in number) is
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
    end set_index;

    procedure set_table(
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
        set_index(p_table_name || '_PK', p_rows, p_row_length);
        if p_second_index is not null then
            set_index(p_second_index, p_rows, 30);
        end if;
        dbms_stats.lock_table_stats(ownname => v_owner, tabname => p_table_name);
    end set_table;
begin
    set_table('ROWQ_MESSAGE', 1000000, 400);
    set_table('ROWQ_READY', 1000000, 30);
    set_table('ROWQ_DELAYED', 100000, 35);
    set_table('ROWQ_CLAIM', 10000, 60);
    set_table('ROWQ_LEASED', 100000, 35);
    set_table('ROWQ_DEAD', 100000, 35);
    set_table('ROWQ_DEDUP', 100000, 60);
    set_table('ROWQ_FINISHED', 100000, 45);
    set_table('ROWQ_BLOCKED', 100000, 80);
    set_table('ROWQ_SUCCESSOR', 100000, 40);
    set_table('ROWQ_GROUP_WAITING', 100000, 60);
    set_table('ROWQ_GROUP_SLOT', 100000, 60);
    set_table('ROWQ_DEFERRED', 10000, 60);
    set_table('ROWQ_STARTED', 10000, 40);
    set_table('ROWQ_EXPIRY', 100000, 45);
    set_table('ROWQ_RESULT', 100000, 100, 'ROWQ_RESULT_FINISHED_IX');
    set_table('ROWQ_HISTORY', 1000000, 80, 'ROWQ_HISTORY_MESSAGE_IX');
end;
/

-- Raise an error if an object of rowq did not compile: "create or replace package" then succeeds
-- with a warning that clients do not report.
declare
    v_text varchar2(2000 char);
begin
    select max(e.type || ' ' || e.name || ', line ' || to_char(e.line, 'fm99999') || ': '
               || substr(e.text, 1, 400))
           keep (dense_rank first order by e.type, e.name, e.sequence)
    into v_text
    from user_errors e
    where e.attribute = 'ERROR'
      and (e.name = 'ROWQ' or e.name like 'ROWQ\_%' escape '\');

    if v_text is not null then
        raise_application_error(-20700, 'rowq did not compile: ' || substr(v_text, 1, 400));
    end if;
end;
/

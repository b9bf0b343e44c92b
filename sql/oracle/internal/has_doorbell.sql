function internal_has_doorbell
return boolean
is
-- routine   internal_has_doorbell
-- purpose   Return whether doorbell.sql was run.
-- differs   this engine's own
    v_count pls_integer;
begin
    select count(*) into v_count
    from user_objects o
    where o.object_name = 'ROWQ_DOORBELL'
      and o.object_type = 'PACKAGE BODY';
    return v_count > 0;
end internal_has_doorbell;

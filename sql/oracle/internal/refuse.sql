procedure internal_refuse(p_fault in varchar2)
is
-- routine   internal_refuse
-- purpose   The error for an argument.
-- promise   P15
-- errors    RQ711
-- differs   nothing elsewhere: other engines raise with an expression
begin
    raise_application_error(-20711, 'RQ711 invalid_argument: ' || substr(p_fault, 1, 400));
end internal_refuse;

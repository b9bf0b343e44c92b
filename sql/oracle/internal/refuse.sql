procedure internal_refuse(p_fault in varchar2)
is
-- routine   internal_refuse
-- purpose   Raise the error for an invalid argument.
-- promise   P15
-- errors    RQ711
-- differs   no such helper elsewhere: other engines raise with an expression
begin
    raise_application_error(-20711, 'RQ711 invalid_argument: ' || substr(p_fault, 1, 400));
end internal_refuse;

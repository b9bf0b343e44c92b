function internal_random_fraction
return number
is
-- routine   internal_random_fraction
-- purpose   Return a number from 0 up to 1, a different one each time; not for secrets.
-- differs   no such helper elsewhere: hardened servers give no right to dbms_random
    c_parts constant number := 1000000;
begin
    return dbms_utility.get_hash_value(rawtohex(sys_guid()), 0, c_parts) / c_parts;
end internal_random_fraction;

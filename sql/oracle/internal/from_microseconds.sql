function internal_from_microseconds(p_microseconds in number)
return timestamp
is
-- routine   internal_from_microseconds
-- version   1
-- purpose   The moment that is so many microseconds after the beginning of 1970; null stays null.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: other engines have a function for it
begin
    return timestamp '1970-01-01 00:00:00' + numtodsinterval(p_microseconds / 1000000, 'second');
end internal_from_microseconds;

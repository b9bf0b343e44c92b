function internal_number_text(p_value in number)
return varchar2
is
-- routine   internal_number_text
-- purpose   Return a number as text, with a point whatever the session's NLS_NUMERIC_CHARACTERS are.
-- differs   no such helper elsewhere: other engines have no such setting
begin
    return coalesce(to_char(p_value, 'tm9', 'nls_numeric_characters=''.,'''), 'null');
end internal_number_text;

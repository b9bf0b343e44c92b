function internal_dedup_order(p_dedup_key in varchar2, p_number in number)
return varchar2
is
-- routine   internal_dedup_order
-- purpose   Return the place of a dedup key among others, as an index of t_places; p_number tells equal keys apart.
-- promise   P12
-- differs   no such helper elsewhere: there no session chooses the order of texts
    v_hex varchar2(1600 char);
begin
    -- Use digits only: two sessions that reserve the same keys must do so in the same order, and
    -- each session's NLS_SORT decides where letters stand.
    v_hex := rawtohex(utl_raw.cast_to_raw(p_dedup_key));
    return translate(v_hex, 'ABCDEF', '999999')
        || translate(v_hex, '0123456789ABCDEF', '0000000000123456')
        || to_char(p_number, 'fm0000000000000000000');
end internal_dedup_order;

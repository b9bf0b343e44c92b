function internal_dedup_order(p_dedup_key in varchar2, p_number in number)
return varchar2
is
-- routine   internal_dedup_order
-- version   1
-- purpose   The place of a dedup key among others, as an index of t_places; p_number tells equal keys apart.
-- promise   P12
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: on other engines the order of texts is not the session's to choose
    v_hex varchar2(1600 char);
begin
    -- Digits alone: where letters stand is for each session's nls_sort to say, and two sessions
    -- that take the same keys must take them in the same order.
    v_hex := rawtohex(utl_raw.cast_to_raw(p_dedup_key));
    return translate(v_hex, 'ABCDEF', '999999')
        || translate(v_hex, '0123456789ABCDEF', '0000000000123456')
        || to_char(p_number, 'fm0000000000000000000');
end internal_dedup_order;

procedure version(p_rows out sys_refcursor)
is
-- routine   version
-- version   1
-- purpose   Return the installed versions.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
begin
    open p_rows for
        select max(case when m.name = 'rowq_version' then m.value end) as rowq_version,
               to_number(max(case when m.name = 'schema_version' then m.value end), '9999')
                   as schema_version,
               max(e.engine) as engine
        from rowq_meta m
        -- A subquery beside an aggregate is ORA-00937.
        cross join (
            select max(p.product || ' ' || p.version_full) as engine
            from product_component_version p
            where p.product like 'Oracle%'
        ) e;
end version;

procedure internal_json_fault(
    p_name    in varchar2,
    p_json    in clob,
    p_kind    in varchar2,
    p_deepest in number,
    p_longest in number,
    p_cuts    out nocopy t_numbers,
    p_fault   out varchar2
)
is
-- routine   internal_json_fault
-- purpose   Return what is wrong with headers or results: p_kind is what they must be, p_deepest how deep 20 levels are, from the outside; null means nothing. p_cuts are the places of the brackets of the first level, and of the commas between.
-- promise   P15
begin
    p_fault := null;
    p_cuts.delete;
    if p_json is null then
        return;
    end if;
    if internal_is_json(p_json) then
        internal_json_limit(p_name, p_json, p_kind, p_deepest, p_longest, p_cuts, p_fault);
    else
        p_fault := p_name || ' must be a JSON ' || p_kind;
    end if;
end internal_json_fault;

"""A lane below 0 means the same table on every engine, and code names it after its number."""

import re

from tests.static.sources import SQL, code_units

_NAMES = {
    int(lane): name
    for lane, name in re.findall(
        r"^\| (-\d+) \| (\w[\w ]*\w)", (SQL / "NAMES.md").read_text("utf-8"), re.MULTILINE
    )
}
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
_NAMED = re.compile(r"\'?\{?(?<![\w)])(-\d+)\}?\'?(?:::smallint(?:\[\])?)? /\* ([\w ]+) \*/")
_BARE = re.compile(
    r"lane (?:=|<>|<=|>=|<|>) -\d+"
    r"|lane (?:not )?in \([^)]*-\d"
    r"|lane between -\d"
    r"|\bwhen -\d+ then"
    r"|queue_id, -\d"
    r"|(?:floor|open_lanes|newest_number|first_key|is_rescan_due|next_number"
    r"|InternalMoveFloor|InternalFirstKey|InternalOpenLanes)\b[^;]*?[ ({]-\d",
    re.IGNORECASE,
)
_NOT_A_TABLE = re.compile(
    r"lane < -1000|queue_id, -1001"  # A request to open a lane.
    r"|queue_id, -\d, '9999-"  # A sentinel row's message, claim or finish.
    r"|(?:declare|set|,) *(?:@lane|v_lane) (?:smallint )?(?:default |= )?-\d+"  # Before the first.
)


def test_table_lane_is_written_with_its_name() -> None:
    assert _NAMES[-1] == "claim"
    wrong = []
    for unit in code_units():
        code = _NOT_A_TABLE.sub("", _COMMENT.sub("", unit.text))
        wrong += [
            f"{unit.engine}/{unit}: {lane} is {_NAMES.get(int(lane))}, not {name}"
            for lane, name in _NAMED.findall(code)
            if _NAMES.get(int(lane)) != name
        ]
        wrong += [
            f"{unit.engine}/{unit}: name the lane: {found[0]}"
            for found in _BARE.finditer(_NAMED.sub("", code))
        ]
    assert wrong == []

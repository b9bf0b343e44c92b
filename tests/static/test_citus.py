"""The scripts for a cluster name no helper and no table of rowq's, and every routine is decided."""

import re
from typing import Any

import pytest

from rowq.contract import load_contract
from rowq.postgres.citus.nodes import url_of
from rowq.postgres.citus.scripts import wrappers
from sql.generate import citus
from tests.static.each import for_each
from tests.static.sources import HEADER_FIELDS, SQL, code_of, header, routines_of, words

SCRIPTS = sorted((SQL / "postgres" / "citus").glob("*.sql"))
CARRIED = [one for one in citus.every() if not one.why_here]


@for_each(SCRIPTS)
def test_a_script_knows_the_contract_s_routines_only(path: Any) -> None:
    text = code_of(path.read_text(encoding="utf-8"))
    named = set(re.findall(r"\browq(?:_node)?\.(\w+)", text))
    assert named - {"here", "is_behind"} <= routines_of("postgres").keys()


@for_each(SCRIPTS)
def test_no_line_of_a_script_is_too_long(path: Any) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 100 and not line.startswith("-- ")] == []


def test_each_routine_that_is_carried_has_a_wrapper_with_a_header() -> None:
    names = [one.routine.name for one in CARRIED]
    assert [f"citus/{name}.sql" for name in names] == list(wrappers())
    for name in names:
        fields = header(wrappers()[f"citus/{name}.sql"])
        entry = routines_of("postgres")[name]
        assert tuple(fields) == HEADER_FIELDS
        assert words(fields["promise"]) == entry["promises"]
        assert words(fields["errors"]) == sorted({*entry["errors"], "RQ706", "RQ711"})
        assert fields["purpose"] == entry["purpose"]


def test_no_wrapper_gives_a_null_name_to_citus() -> None:
    for one in CARRIED:
        text = code_of(wrappers()[f"citus/{one.routine.name}.sql"])
        if one.by_name:
            guard = "(?:if|elsif) p_queue_name is null (?:or .* )?then"
            assert re.search(guard, text)
            assert text.index("p_queue_name is null") < text.index(f"to_{one.routine.name}")


@pytest.mark.parametrize(
    ("name", "nodes"),
    [("version", {}), ("queue_stats", {}), ("enqueue", {"asked": "each"})],
)
def test_a_routine_that_the_contract_leaves_open_is_refused(
    name: str, nodes: dict[str, str]
) -> None:
    routine = load_contract().of("postgres")[name]
    with pytest.raises(ValueError, match=name):
        citus.carried(name, {"nodes": nodes, "promises": []}, routine)


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("postgresql://u:p%40@h:1/d?sslmode=require", "postgresql://u:p%40@w:5/d?sslmode=require"),
        ("postgresql:///d?host=/run&user=u", "postgresql://w:5/d?user=u"),
        ("postgresql://h", "postgresql://w:5"),
    ],
)
def test_another_node_is_reached_by_the_same_url(url: str, other: str) -> None:
    assert url_of(url, "w", 5) == other
    assert "[::1]:5" in url_of(url, "::1", 5)

"""Scripts are split into batches, without a server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowq.tools.engines.sqlserver.script import batches

# Complete pieces of T-SQL that contain `go`, or something like it.
PIECES = [
    *("select 1", "select go from t", "gone\nagone", "go_on", "\ngo1\n", "x = 'it''s'", "  goto l"),
    *("'\ngo\n'", "N'a\nGO'", "'--'", "'/*'", '"\ngo\n"', "[\ngo\n]", "[a]]\ngo\n]", "''"),
    *("/*\ngo\n*/", "/* /*\ngo\n*/\ngo\n*/", "/*'*/", '/*"*/', "/*[*/", "-- it's\n", "--/*\n"),
    *("-- [\n", "a -- go\n", "/* -- */", "1 / 2 * 3", "\n\n", "\t", "\r\n", "\u00e9\U0001f4a5"),
]
SEPARATORS = ["go", "GO", "Go", "  go", "go  ", "\tgo\t", "go -- done", "go\r"]

pieces = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map(" ".join)
batch = pieces.map(lambda text: f"print 1 {text} ;").filter(lambda text: text.strip() == text)


@given(st.lists(batch, min_size=1, max_size=5), st.data())
def test_batches_are_split_as_they_were_joined(parts: list[str], data: st.DataObject) -> None:
    text = parts[0]
    for part in parts[1:]:
        text += f"\n{data.draw(st.sampled_from(SEPARATORS))}\n{part}"
    if data.draw(st.booleans()):
        text += "\ngo\n"
    assert list(batches(text)) == parts


@given(st.lists(batch, max_size=4))
def test_splitting_joined_batches_is_stable(parts: list[str]) -> None:
    once = list(batches("\ngo\n".join(parts)))
    assert list(batches("".join(f"{batch}\ngo\n" for batch in once))) == once


@pytest.mark.parametrize(
    "text", ["", "\n\n", "go\n", "-- only words\n", "/* only\ngo\nwords */\ngo\n-- more\ngo"]
)
def test_text_without_code_is_no_batch(text: str) -> None:
    assert list(batches(text)) == []


def test_comment_before_code_stays_with_it() -> None:
    text = "-- about a\ncreate a;\ngo\n-- about b\ncreate b;\n"
    assert list(batches(text)) == ["-- about a\ncreate a;", "-- about b\ncreate b;"]


@pytest.mark.parametrize("line", ["go 5", "go;", "go select 2", "go /* x */"])
def test_text_after_go_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match="expected go alone"):
        list(batches(f"select 1\n{line}\n"))


def test_comment_without_an_end_is_an_error() -> None:
    with pytest.raises(ValueError, match="unterminated comment"):
        list(batches("select 1 /* /* */\ngo\n"))

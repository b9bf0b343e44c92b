"""Scripts are split into statements as the engine's own client does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowq.tools.engines.mysql.script import owned, replacing, statements
from rowq.tools.migrate.release import release_for

COMMENTS = ("-- a; b;", "-- end//", "-- delimiter //", "--", "", "   ")
LINES = st.text(st.sampled_from("abc;/' \"`-\\\t(),="), min_size=1, max_size=12)


@st.composite
def pieces(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Draw a script under one `delimiter`, and its statements."""
    end = draw(st.sampled_from([";", "//", "$$"]))
    lines = LINES.filter(lambda line: line.strip(" ;/$"))
    text, found = [f"delimiter {end}"], []
    for body in draw(st.lists(st.lists(lines, min_size=1, max_size=4), max_size=5)):
        inner = [line.rstrip() + " -" if line.endswith((";", end)) else line for line in body]
        inner = [f"x {line}" for line in inner]
        text += draw(st.lists(st.sampled_from(COMMENTS), max_size=2))
        middle = draw(st.lists(st.sampled_from(("-- x;", f"   -- y{end}")), max_size=2))
        statement = [inner[0], *middle, *inner[1:]] if len(inner) > 1 else inner
        found.append("\n".join(statement))
        text.append(found[-1] + end)
    return "\n".join([*text, *draw(st.lists(st.sampled_from(COMMENTS), max_size=2))]), found


@pytest.mark.pitfall("mysql 12")
@given(st.lists(pieces(), max_size=4))
def test_any_script_is_split_at_the_ends_of_statements(script: list[tuple[str, list[str]]]) -> None:
    text = "\n".join(part for part, _ in script)
    assert list(statements(text)) == [statement for _, found in script for statement in found]


@given(st.lists(pieces(), max_size=3), st.sampled_from(["do 1", "select ';' as", "delimit"]))
def test_incomplete_script_raises(script: list[tuple[str, list[str]]], rest: str) -> None:
    text = "\n".join([*(part for part, _ in script), rest])
    with pytest.raises(ValueError, match=f"no end: {rest}"):
        list(statements(text))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("do 1;\ndo 2;\n", ["do 1", "do 2"]),
        ("-- a; b;\n\ndo 1\n-- c;\n+ 2;", ["do 1\n-- c;\n+ 2"]),
        ("delimiter //\ndo 1;\nend//\ndelimiter ;\ndo 2;", ["do 1;\nend", "do 2"]),
        ("", []),
    ],
)
def test_script_is_split_as_the_stock_client_does(text: str, found: list[str]) -> None:
    assert list(statements(text)) == found


def test_every_release_file_is_split_into_whole_statements() -> None:
    release = release_for("mysql")
    texts = release.files(release.newest)
    assert len(texts) > 100
    scripts = [path.name for path in release.folder.glob("*.sql")]
    own = [name for name in scripts if not (release.folder / name).with_suffix(".py").exists()]
    for path, text in [*texts.items(), *((name, release.text(name)) for name in own)]:
        for statement in statements(text):
            first = statement.split()[0]
            words = {"create", "alter", "drop", "insert", "set", "select", "grant", "revoke"}
            words |= {"prepare", "execute", "deallocate", "call", "/*!80000"}
            assert first in words, (path, first)
            assert ("\nbegin\n" in statement) == statement.endswith("\nend"), path


def test_drop_and_create_become_create_or_replace() -> None:
    drop, create = "drop procedure if exists rowq.a", "create procedure rowq.a(p int)\nbegin end"
    drop_b = "drop procedure if exists rowq.b"
    replaced = "create or replace procedure rowq.a(p int)\nbegin end"
    assert list(replacing([drop, create])) == [replaced]
    assert list(replacing(["x", drop, create, "y"])) == ["x", replaced, "y"]
    assert list(replacing([drop_b, create, drop])) == [drop_b, create, drop]
    assert list(replacing([drop, drop, create, drop_b])) == [drop, replaced, drop_b]
    owners = owned(create)
    assert owners == create.replace("create", "create definer = 'rowq_owner'@'localhost'")
    assert list(replacing([drop, owners])) == [owners.replace("create", "create or replace")]

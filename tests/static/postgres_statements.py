"""Rules that limit each PostgreSQL statement to the rows of one queue.

With them, each queue can be on its own server. A source is split into statements and words: enough
for SQL in the house style, where each column is qualified.
"""

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from tests.static.sources import code_of, object_name, sql_units

RULES = {
    "a": "an update or delete calls only functions that are known to be immutable",
    "b": "a statement over tables calls no routine that reads tables",
    "c": "a statement compares the queue_id of each table with a variable, directly or not",
    "d": "a with that writes is over one table",
    "e": "a statement over queue is over no table that has a queue_id of its own",
}

EVERYWHERE = {"queue", "meta", "topic_binding"}
"""Tables that every server would have, because they are read without a queue_id."""

TABLES = {unit.stem for unit in sql_units("postgres", "tables") if "create table " in unit.text}

IMMUTABLE = {
    "array_agg", "array_position", "array_remove", "cardinality", "coalesce", "greatest", "least",
    "left", "nullif", "unnest",
}  # fmt: skip

_BEFORE_PARENTHESIS = {
    "all", "and", "any", "array", "as", "conflict", "from", "in", "lateral", "not", "or", "select",
    "set", "then", "using", "values", "when", "where",
}  # fmt: skip
"""Words before a parenthesis other than functions."""

_BEFORE_TABLE = {",", "from", "into", "join", "update", "using"}
_AFTER_TABLE = {
    "cross", "default", "for", "full", "group", "inner", "join", "left", "limit", "offset", "on",
    "order", "returning", "right", "select", "set", "union", "using", "values", "where", "with",
}  # fmt: skip
"""Words after a table other than an alias."""

_QUERY = {"select", "with", "insert", "update", "delete"}
_WRITING = {"insert", "update", "delete"}
_CUT = {"begin", "declare", "else", "elsif", "exception", "loop", "then"}
_TIMES = {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}
_WORD = re.compile(r'"\w+"|[a-z_]\w*(?:\.\w+)*|\d[\d.]*|:=|::|=>|<=|>=|<>|\S')


@dataclass(slots=True)
class Query:
    """A query without its subqueries."""

    above: "Query | None" = None
    words: list[str] = field(default_factory=list)

    def around(self) -> Iterator["Query"]:
        """Yield this query and the queries around it."""
        query: Query | None = self
        while query is not None:
            yield query
            query = query.above

    def tables(self) -> Iterator[tuple[str, str]]:
        """Yield each table and its alias."""
        for before, word, *after in zip(
            ["", *self.words], self.words, [*self.words[1:], ""], [*self.words[2:], "", ""],
            strict=False,
        ):  # fmt: skip
            table = word.removeprefix("rowq.")
            if table != word and table in TABLES and before in _BEFORE_TABLE:
                name = after[1] if after[0] == "as" else after[0]
                is_name = name.isidentifier() and name not in _AFTER_TABLE
                yield table, name if is_name else table

    def knows(self, value: str, seen: Set[str] = frozenset()) -> bool:
        """Return whether a value is a queue_id that leads to a variable."""
        if value.startswith(("p_", "v_", "o_")):
            return value.endswith("queue_id")
        name, _, column = value.partition(".")
        if column != "queue_id" or name in seen:
            return False
        for query in self.around():
            if table := {own: table for table, own in query.tables()}.get(name):
                return table not in EVERYWHERE and query.fixes(name, seen)
        return False

    def fixes(self, name: str, seen: Set[str] = frozenset()) -> bool:
        """Return whether the query fixes the queue_id of one of its tables."""
        column = f"{name}.queue_id"
        return any(
            sign == "=" and self.knows(value, seen | {name})
            for left, sign, right in zip(self.words, self.words[1:], self.words[2:], strict=False)
            for own, value in ((left, right), (right, left))
            if own == column
        )

    def inserted(self) -> str | None:
        """Return an insert's value of queue_id, its first column; None for other statements."""
        if "insert" not in self.words:
            return None
        opened = self.words.index("(", self.words.index("insert"))
        rest = self.words[self.words.index(")", opened) :]
        if self.words[opened + 1] == "queue_id":
            for place, word in enumerate(rest):
                if word in {"select", "values"}:
                    return rest[place + 1].removeprefix("(") or rest[place + 2]
        return ""


def statements_of(text: str) -> list[list[str]]:
    """Split a routine's body into statements and conditions, each a list of words."""
    body = code_of(text).partition("as $$")[2].partition("$$;")[0]
    words = _WORD.findall(body.lower())
    found: list[list[str]] = [[]]
    cases: list[bool] = []  # Open cases: whether each is an expression.
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        in_expression = bool(cases) and cases[-1]
        if before == "end" and not in_expression and word in {"case", "if", "loop"}:
            continue
        if word == "case":
            cases.append(bool(found[-1]))
        if word == "end" and (in_expression or after == "case"):
            cases.pop()
        if word == ";" or (word in _CUT | {"end"} and not in_expression):
            found.append([])
        else:
            found[-1].append(word)
    return [statement for statement in found if statement]


def queries_of(statement: list[str]) -> list[Query]:
    """Return the queries of a statement, itself first."""
    queries = [Query()]
    around = [queries[0]]
    for place, word in enumerate(statement):
        if word == "(":
            first = next((after for after in statement[place:] if after != "("), "")
            if first in _QUERY:
                queries.append(Query(around[-1]))
                around.append(queries[-1])
                continue
            around.append(around[-1])
        elif word == ")":
            left = around.pop()
            if left is not around[-1]:
                continue
        around[-1].words.append(word)
    return queries


def tables_of(statement: list[str]) -> set[str]:
    """Return the tables that a statement reads or writes, except `lock table`."""
    if statement[0] == "lock":
        return set()
    return {table for query in queries_of(statement) for table, _ in query.tables()}


def calls_of(statement: list[str]) -> set[str]:
    """Return the routines that a statement calls."""
    names = {
        word.removeprefix("rowq.")
        for word, after in pairwise(statement)
        if word.startswith("rowq.") and after == "("
    }
    return names - TABLES


@cache
def readers() -> frozenset[str]:
    """Return the routines that read tables, directly or through calls."""
    reading: set[str] = set()
    calls: dict[str, set[str]] = {}
    for unit in sql_units("postgres", "internal", "routines", "overloads"):
        name = object_name(unit)
        for statement in statements_of(unit.text):
            calls.setdefault(name, set()).update(calls_of(statement))
            if tables_of(statement):
                reading.add(name)
    while more := {name for name in calls if calls[name] & reading} - reading:
        reading |= more
    return frozenset(reading)


def broken(text: str) -> set[tuple[str, str]]:
    """Return the rules that a routine breaks, each with the name and the statement."""
    found: set[tuple[str, str]] = set()
    for statement in statements_of(text):
        tables = tables_of(statement)
        if not tables:
            continue
        queries = queries_of(statement)
        names = {("b", name) for name in calls_of(statement) & readers()}
        if "queue" in tables and tables - EVERYWHERE:
            names.add(("e", "queue"))
        if len(tables) > 1 and any(set(query.words[:1]) & _WRITING for query in queries[1:]):
            names.add(("d", "with"))
        for query in queries:
            names |= {("a", name) for name in _called_by_change(query, queries)}
            names |= {("c", name) for name in _without_queue_id(query)}
        found |= {(rule, f"{name} in {' '.join(statement)[:200]}") for rule, name in names}
    return found


def _called_by_change(query: Query, queries: list[Query]) -> Iterator[str]:
    """Yield the calls of an update or delete that may not be immutable."""
    for place, word in enumerate(query.words):
        before = query.words[place - 1] if place else ""
        if word in {"update", "delete"} and before not in {"for", "key"}:
            yield from _called(query.words[place:])
            if before != "do":
                for other in queries:
                    if other is not query and query in other.around():
                        yield from _called(other.words)
            return


def _called(words: list[str]) -> Iterator[str]:
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        # A list of columns follows a function's rows: unnest(...) u (message_id).
        is_call = after == "(" and word[0].isalpha() and before not in {")", "ordinality"}
        if word in _TIMES or (is_call and word not in IMMUTABLE | _BEFORE_PARENTHESIS):
            yield word


def _without_queue_id(query: Query) -> Iterator[str]:
    """Yield the tables of a query whose queue_id it does not fix."""
    given = query.inserted()
    for place, (table, name) in enumerate(query.tables()):
        is_target = place == 0 and given is not None
        is_given = query.knows(given or "") if is_target else query.fixes(name)
        if table not in EVERYWHERE and not is_given:
            yield table

"""What a transactional worker's handler must not do on its connection, and how it is kept from it.

For as long as a handler has the connection, methods of it are replaced. A statement is known by its
first words; what hides its deeds, such as a call of a procedure, is noticed afterwards.
"""

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from rowq.engines.guard import LENT_FOR
from rowq.errors import ForbiddenInHandler

_WORD = re.compile(r"[^\W\d]\w*")
_BLANK = re.compile(r"\s+|--[^\n]*")
_COMMENT_MARK = re.compile(r"/\*|\*/")
_WORDS = 4


def refuse_ending(what: str) -> NoReturn:
    """Raise ForbiddenInHandler for something that would end the transaction."""
    raise ForbiddenInHandler(
        f"{what}: a handler may not end its worker's transaction, which is committed with the"
        " message's completion"
    )


def refuse_after_end() -> NoReturn:
    """Raise ForbiddenInHandler for everything after the transaction's end."""
    raise ForbiddenInHandler(
        "the handler has ended its worker's transaction, or the server has; nothing more is taken"
    )


@contextmanager
def lent(connection: Any, claim_id: int, **methods: Any) -> Iterator[Any]:
    """Yield the connection with `methods` in place of its own, for a handler of this claim."""
    replaced = {LENT_FOR: claim_id, **methods}
    hidden = {name: vars(connection)[name] for name in replaced if name in vars(connection)}
    vars(connection).update(replaced)
    try:
        yield connection
    finally:
        for name in replaced:
            with suppress(KeyError):
                del vars(connection)[name]
        vars(connection).update(hidden)


def refusing(what: str) -> Callable[..., NoReturn]:
    """Return a method that refuses, whatever it is given."""

    def refuse(*_args: Any, **_options: Any) -> NoReturn:
        refuse_ending(what)

    return refuse


def first_words(
    statement: str,
    start: int = 0,
    *,
    blank: re.Pattern[str] = _BLANK,
    comments_nest: bool = False,
) -> list[str]:
    """Return the first four words of a statement in lower case, without comments before them.

    blank: what else than comments in slashes and stars stands between words. comments_nest: whether
    such a comment may hold another one.
    """
    words: list[str] = []
    while len(words) < _WORDS:
        start = _after_blanks(statement, start, blank, comments_nest)
        found = _WORD.match(statement, start)
        if not found:
            break
        words.append(found.group().lower())
        start = found.end()
    return words


def is_one_of(words: list[str], forbidden: Collection[tuple[str, ...]]) -> bool:
    """Whether the words begin with one of these phrases."""
    return any(tuple(words[: len(phrase)]) == phrase for phrase in forbidden)


def _after_blanks(statement: str, start: int, blank: re.Pattern[str], comments_nest: bool) -> int:
    """Return where the next word may begin."""
    while True:
        if found := blank.match(statement, start):
            start = found.end()
        elif statement.startswith("/*", start):
            start = _after_comment(statement, start, comments_nest)
        else:
            return start


def _after_comment(statement: str, start: int, comments_nest: bool) -> int:
    depth = 0
    for mark in _COMMENT_MARK.finditer(statement, start):
        if mark.group() == "*/":
            depth -= 1
        elif comments_nest or depth == 0:
            depth += 1
        if depth == 0:
            return mark.end()
    return len(statement)

"""What a database cannot execute as it is written for another one, and what it is given instead."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Replacement = str | Callable[[re.Match[str]], str]


@dataclass(frozen=True)
class Rule:
    """One thing that is not executed: what it is, where it stands, what is put there.

    is_left_out: whether what was there has no counterpart, so that it does not run at all.
    """

    what: str
    pattern: re.Pattern[str]
    replacement: Replacement
    is_left_out: bool = False


def rule(
    what: str,
    pattern: str,
    replacement: Replacement,
    is_left_out: bool = False,
    *,
    flags: re.RegexFlag = re.NOFLAG,
) -> Rule:
    """Return the rule of a pattern."""
    return Rule(what, re.compile(pattern, flags), replacement, is_left_out)


def applied(rules: Iterable[Rule], text: str) -> tuple[str, list[Rule]]:
    """Return what the rules, one after the other, make of a text, and those that changed it."""
    used = []
    for each in rules:
        text, count = each.pattern.subn(each.replacement, text)
        if count:
            used.append(each)
    return text, used

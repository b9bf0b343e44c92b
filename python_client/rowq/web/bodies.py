"""A message's body as a tree, as text or in hexadecimal."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rowq.messages import MessageDetails, UnreadableHeaders

_LONGEST_TREE = 256 * 1024
_LONGEST_TEXT = 64 * 1024
_LONGEST_HEX = 4 * 1024
_LONGEST_COMMAND = 16 * 1024
_MOST_NODES = 2_000
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class Node:
    """A value in a JSON tree: children of a list or an object, else a text."""

    name: str
    kind: str
    text: str
    children: tuple["Node", ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """A body to show: its form (tree, text, hex or none), all its forms, its size in bytes.

    cut: whether the text is shorter than the body.
    """

    form: str
    forms: tuple[str, ...]
    size: int
    cut: bool = False
    text: str = ""
    tree: Node | None = None


def shown_body(details: MessageDetails, form: str | None) -> Shown:
    """Return a body in the requested form, else in its first form."""
    if details.body_binary is None and details.body is None:
        return Shown("none", (), 0)
    raw = file_of(details)
    tree = None if details.body is None else _tree(details.body)
    forms = tuple(
        name
        for name, is_there in (("tree", tree), ("text", details.body is not None), ("hex", True))
        if is_there
    )
    chosen = form if form in forms else forms[0]
    if chosen == "tree":
        return Shown("tree", forms, len(raw), tree=tree)
    if chosen == "text":
        text = details.body or ""
        return Shown("text", forms, len(raw), len(text) > _LONGEST_TEXT, text[:_LONGEST_TEXT])
    return Shown("hex", forms, len(raw), len(raw) > _LONGEST_HEX, _hex(raw[:_LONGEST_HEX]))


def file_of(details: MessageDetails) -> bytes:
    """Return a body as the bytes of a file."""
    if details.body_binary is not None:
        return details.body_binary
    return (details.body or "").encode("utf-8", "backslashreplace")


def as_command(queue_name: str, details: MessageDetails) -> str | None:
    """Return a command that enqueues the same message; None if it is binary or too long."""
    headers = details.headers
    if details.body_binary is not None or isinstance(headers, UnreadableHeaders):
        return None
    words = ["rowq", "enqueue"]
    if details.message_type is not None:
        words += ["--type", details.message_type]
    if details.priority != 5:
        words += ["--priority", str(details.priority)]
    if details.group_key is not None:
        words += ["--group", details.group_key]
    for name, value in (headers or {}).items():
        if not isinstance(value, str):
            return None
        words += ["--header", f"{name}={value}"]
    if details.body is None:
        words += ["--no-body", "--", queue_name]
    else:
        words += ["--", queue_name, details.body]
    command = shlex.join(words)
    return command if len(command) <= _LONGEST_COMMAND else None


def _tree(body: str) -> Node | None:
    """Return a body as a tree, if it is JSON and not too large."""
    if len(body) > _LONGEST_TREE:
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    left = iter(range(_MOST_NODES))
    return _node("", value, 0, left)


def _node(name: str, value: Any, depth: int, left: Iterator[int]) -> Node | None:
    if next(left, None) is None:
        return None
    if isinstance(value, dict | list) and depth >= _DEEPEST:
        return Node(name, "more", "…")
    if isinstance(value, dict):
        return _parent(name, "object", list(value.items()), depth, left)
    if isinstance(value, list):
        items = [(str(index), item) for index, item in enumerate(value)]
        return _parent(name, "list", items, depth, left)
    kind = {str: "text", bool: "word", type(None): "word"}.get(type(value), "number")
    try:
        text = json.dumps(value, ensure_ascii=False)
    except ValueError:
        text = "number too long to show"
    return Node(name, kind, text)


def _parent(
    name: str, kind: str, items: list[tuple[str, Any]], depth: int, left: Iterator[int]
) -> Node:
    children: list[Node] = []
    for key, item in items:
        child = _node(key, item, depth + 1, left)
        if child is None:
            children.append(Node("", "more", f"… {len(items) - len(children):,} more"))
            break
        children.append(child)
    ends = "{}" if kind == "object" else "[]"
    return Node(name, kind, f"{ends[0]}{len(items):,}{ends[1]}", tuple(children))


def _hex(data: bytes) -> str:
    """Return bytes as lines of 16: offset, digits and printable ASCII."""
    lines = []
    for start in range(0, len(data), 16):
        part = data[start : start + 16]
        plain = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{start:08x}  {part.hex(' '):<47}  {plain}")
    return "\n".join(lines)

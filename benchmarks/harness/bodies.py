"""Bodies of one length, numbered, as text and as an expression of PostgreSQL."""

BODY_BYTES = 200

_HEAD, _MIDDLE, _TAIL = '{"n":"', '","pad":"', '"}'
_PAD = "x" * (BODY_BYTES - 10 - len(_HEAD + _MIDDLE + _TAIL))
BODY_SQL = f"'{_HEAD}' || lpad(g::text, 10, '0') || '{_MIDDLE}{_PAD}{_TAIL}'"


def body(number: int) -> bytes:
    """Return a message's text, a JSON object of exactly BODY_BYTES characters."""
    return f"{_HEAD}{number:010}{_MIDDLE}{_PAD}{_TAIL}".encode()

"""A listener that speaks TDS, parses requests, and sends configured answers.

The packets are those of the protocol's public description, [MS-TDS].
"""

import contextlib
import os
import socket
import struct
import threading
import time
from typing import Protocol
from urllib.parse import quote

import pytest
from _pytest.mark.structures import ParameterSet

from rowq.engines.sqlserver.url import is_freetds
from tests.engines.sqlserver import odbc

_LOGIN, _GREETING = 0x10, 0x12
_FIELDS = {"user": 40, "password": 44, "application": 48, "database": 68}
# The server's first answer: version 16, no encryption.
_HELLO = bytes.fromhex("00000b000601001100 01ff 100000000000 02")

# End tokens; after DONE_MORE more follows.
DONE = b"\xfd" + bytes(12)
DONE_MORE = b"\xfd\x01" + bytes(11)
FAILED = b"\xfd\x02" + bytes(11)
FAILED_MORE = b"\xfd\x03" + bytes(11)


class TdsListener:
    """A listening server.

    port: of 127.0.0.1. logins: what each login expected: user, password, application and database.
    requests: what was sent after that, the headers of its packets taken off.
    answers: what to say to the next requests, made of words below; after that "done". Nothing at
    all hangs up. seconds: how long an answer takes.
    """

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.seconds = 0.0
        self.replies: dict[str, bytes] = {}
        self.logins: list[dict[str, str]] = []
        self.requests: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, driver: str, who: tuple[str, str] = ("u", "p"), database: str = "db") -> str:
        """Return the URL of this listener; `who` is user and password."""
        user, password = (quote(word, safe="") for word in who)
        return (
            f"sqlserver://{user}:{password}@127.0.0.1:{self.port}/{quote(database, safe='')}"
            f"?driver={quote(driver)}&encrypt=no&connect_timeout=5"
        )

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with client, client.makefile("rwb") as stream, contextlib.suppress(OSError):
            while message := _message(stream):
                kind, body = message
                answer = DONE
                if kind == _GREETING:
                    answer = _HELLO
                elif kind == _LOGIN:
                    self.logins.append({name: _field(body, at) for name, at in _FIELDS.items()})
                    answer = _welcome()
                else:
                    self.requests.append(body)
                    answer = self._answer(body)
                if not answer:
                    return
                time.sleep(self.seconds)
                stream.write(struct.pack(">BBHI", 4, 1, len(answer) + 8, 0) + answer)
                stream.flush()

    def _answer(self, body: bytes) -> bytes:
        for words, reply in self.replies.items():
            if words.encode("utf-16-le") in body:
                return reply
        return self.answers.pop(0) if self.answers else DONE


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def error(number: int, text: str, severity: int = 16) -> bytes:
    """Return an error token; severity 0 is a notice."""
    words = text.encode("utf-16-le")
    expected = struct.pack("<H", len(words) // 2) + words
    where = _text("server") + _text("") + struct.pack("<i", 1)
    kind = 0xAA if severity else 0xAB
    return _token(kind, struct.pack("<iBB", number, 1, severity) + expected + where)


def row(value: int) -> bytes:
    """Return the tokens of a result with one integer."""
    column = b"\x81\x01\x00" + bytes(4) + b"\x01\x00\x38" + _text("a")
    return column + b"\xd1" + struct.pack("<i", value)


def _message(stream: _Readable) -> tuple[int, bytes] | None:
    """Return kind and body of the next message."""
    whole = b""
    while header := stream.read(8):
        kind, status, length = struct.unpack(">BBH", header[:4])
        whole += stream.read(length - 8)
        if status & 1:
            return kind, whole
    return None


def _welcome() -> bytes:
    """Return the answer to a login: database, collation, packet size, server name."""
    database = _token(0xE3, b"\x01" + _text("db") + _text(""))
    collation = _token(0xE3, b"\x07\x05" + bytes.fromhex("0904d00034") + b"\x00")
    size = _token(0xE3, b"\x04" + _text("4096") + _text("4096"))
    version = bytes.fromhex("74000004")
    who = _token(0xAD, b"\x01" + version + _text("Microsoft SQL Server") + bytes([16, 0, 15, 160]))
    return database + collation + size + who + DONE


def _token(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + struct.pack("<H", len(body)) + body


def _text(text: str) -> bytes:
    return bytes([len(text)]) + text.encode("utf-16-le")


def _field(body: bytes, at: int) -> str:
    start, length = struct.unpack("<HH", body[at : at + 4])
    text = body[start : start + 2 * length]
    if at == _FIELDS["password"]:
        text = bytes(((byte ^ 0xA5) << 4 | (byte ^ 0xA5) >> 4) & 0xFF for byte in text)
    return text.decode("utf-16-le")


def _drivers() -> dict[str, str]:
    """Return the loadable drivers by their names in test ids."""
    try:
        import pyodbc
    except ImportError:
        return {}
    names = [name for name in pyodbc.drivers() if is_freetds(name) or "SQL Server" in name]
    if fetched := odbc.library():
        names.append(str(fetched))
    if named := os.environ.get("ROWQ_TEST_ODBC_DRIVER"):
        names.append(named)
    return {name.rpartition("/")[2]: name for name in names}


def _missing(driver: str, way: str) -> ParameterSet:
    skip = pytest.mark.skip(reason=f"no {driver}; to run it: {way}")
    return pytest.param("", marks=skip, id=driver)


# Every installed driver for SQL Server, Microsoft's from "make install", and one from
# ROWQ_TEST_ODBC_DRIVER, a name or path.
DRIVERS = [pytest.param(driver, id=shown) for shown, driver in _drivers().items()]
if not any(is_freetds(shown) for shown in _drivers()):
    DRIVERS.append(_missing("FreeTDS", "apt-get install unixodbc tdsodbc"))
if all(is_freetds(shown) for shown in _drivers()):
    DRIVERS.append(_missing("driver of Microsoft's", odbc.FETCH))

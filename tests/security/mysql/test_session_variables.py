"""No variable that a caller may set breaks, loses, steals or forges anything in any routine.

For each of the server's variables, and for some values of each: a whole life of a queue in a
session with it, compared with one in a session that has set nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress

import pymysql
import pytest

from tests.engines.base import Connection, Server
from tests.engines.mysql import Session
from tests.helpers.calls import Row
from tests.helpers.mysql_accounts import accounts
from tests.security.mysql.hostile_values import Variable, variables
from tests.security.mysql.life import Life, Seen

Opened = Callable[[], Session]


def plainly(call: Callable[[], list[Row]]) -> list[Row]:
    """Call in autocommit."""
    return call()

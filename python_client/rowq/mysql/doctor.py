"""What matters to rowq on MariaDB and MySQL."""

import re
from typing import Any

from rowq.doctor.check import EngineChecks, Setting, Status, is_one_of

_LEAST_PACKET = 16 * 1024 * 1024


def _is_supported(version: Any) -> bool:
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", str(version))
    numbers = tuple(map(int, found.groups())) if found else (0, 0, 0)
    return numbers >= ((10, 6, 0) if "mariadb" in str(version).lower() else (8, 0, 21))


CHECKS = EngineChecks(
    now="select timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) / 1000000",
    version="select version()",
    is_supported=_is_supported,
    supported="MariaDB 10.6 or newer, MySQL 8.0.21 or newer",
    settings=(
        Setting(
            "read_only",
            "select @@global.read_only",
            is_one_of(0, "OFF"),
            Status.FAILED,
            "this is a replica, which takes no writes: use the primary's URL",
        ),
        Setting(
            "binlog_format",
            "select if(@@global.log_bin, @@global.binlog_format, 'no binary log')",
            is_one_of("ROW", "MIXED", "no binary log"),
            Status.FAILED,
            "statements that pass over locked rows cannot be repeated on a replica: set it to ROW",
        ),
        Setting(
            "innodb_flush_log_at_trx_commit",
            "select @@global.innodb_flush_log_at_trx_commit",
            is_one_of(1),
            Status.WARNING,
            "messages of the last second before a crash can be lost although they were committed",
        ),
        Setting(
            "innodb_doublewrite",
            "select @@global.innodb_doublewrite",
            lambda value: str(value).upper() not in {"0", "OFF"},
            Status.WARNING,
            "a power failure can damage the database and lose messages",
        ),
        Setting(
            "max_allowed_packet",
            "select @@global.max_allowed_packet",
            lambda value: int(value) >= _LEAST_PACKET,
            Status.WARNING,
            "a longer body or batch is refused: 16 MB or more",
        ),
        Setting(
            "innodb_lock_wait_timeout",
            "select @@global.innodb_lock_wait_timeout",
            lambda value: int(value) <= 100,
            Status.WARNING,
            "who waits for a forgotten transaction waits so many seconds: 50 is the default",
        ),
    ),
)

"""Count the reads of seed 000 on a SQL Server: in a container, or at a given URL.

Prints the counts as JSON and a table; each form has a database of its own, which is dropped.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict

from benchmarks.rowq_bench.report import table
from benchmarks.rowq_bench.sqlserver.seed_000 import FORMS, Count, Size, measure
from tests.engines.base import Unavailable, url_variable
from tests.engines.sqlserver import SqlserverServer
from tests.engines.sqlserver_ways import SqlserverProvider


def main() -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rowq_bench.sqlserver")
    parser.add_argument("--url", default=os.environ.get(url_variable("sqlserver")))
    parser.add_argument("--image", default="2022", help="version in a container, without a URL")
    parser.add_argument("--messages", type=int, default=Size().messages)
    parser.add_argument("--samples", type=int, default=Size().samples)
    given = parser.parse_args()
    size = Size(messages=given.messages, samples=given.samples)
    provider = SqlserverProvider()
    try:
        server = provider.from_url(given.url) if given.url else provider.from_docker(given.image)
    except Unavailable as reason:
        raise SystemExit(f"there is no SQL Server: {reason}") from None
    with closing(server):
        if "genuine" not in server.capabilities:
            raise SystemExit(f"{server.how}: it has no SET STATISTICS IO")
        counts = [count for form in FORMS for count in _of_form(server, form, size)]
    print(json.dumps({"server": server.how, "size": asdict(size), "counts": _data(counts)}))
    print(_table(counts))


def _of_form(server: SqlserverServer, form: str, size: Size) -> list[Count]:
    url = server.fresh_database()
    try:
        return list(measure(form, url, size))
    finally:
        server.drop_database(url)


def _data(counts: Iterable[Count]) -> list[dict[str, object]]:
    return [asdict(count) for count in counts]


def _table(counts: Iterable[Count]) -> str:
    """Return the counts as a table of Markdown."""
    return table(
        ["form", "queue", "batch", "call", "logical reads", "LOB logical reads", "session"],
        (
            [
                *(one.form, one.when, str(one.batch), one.act),
                *(f"{one.reads:g}", f"{one.lob_reads:g}", f"{one.session:g}"),
            ]
            for one in counts
        ),
    )


if __name__ == "__main__":
    main()

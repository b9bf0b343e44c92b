"""All peers, in the order of the report."""

from __future__ import annotations

from benchmarks.rowq_bench.peers.node import NODE_PEERS
from benchmarks.rowq_bench.peers.peer import Peer
from benchmarks.rowq_bench.peers.python_peers import PYTHON_PEERS

PEERS: list[Peer] = [*PYTHON_PEERS, *NODE_PEERS]

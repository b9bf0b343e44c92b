"""All peers, in the order of the report."""

from __future__ import annotations

from benchmarks.studies.peers.node import NODE_PEERS
from benchmarks.studies.peers.peer import Peer
from benchmarks.studies.peers.python_peers import PYTHON_PEERS

PEERS: list[Peer] = [*PYTHON_PEERS, *NODE_PEERS]

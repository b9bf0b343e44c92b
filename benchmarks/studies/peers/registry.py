"""Lists all peers, in the order of the report."""

from benchmarks.studies.peers.node import NODE_PEERS
from benchmarks.studies.peers.peer import Peer
from benchmarks.studies.peers.python_peers import PYTHON_PEERS

PEERS: list[Peer] = [*PYTHON_PEERS, *NODE_PEERS]

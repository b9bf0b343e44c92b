"""Runs rowq with workers that only poll."""

from functools import partial

from benchmarks.studies.peers.clients.rowq import consume, prepare, produce
from benchmarks.studies.peers.protocol import run_role

if __name__ == "__main__":
    run_role({"prepare": prepare, "produce": produce, "consume": partial(consume, listen=False)})

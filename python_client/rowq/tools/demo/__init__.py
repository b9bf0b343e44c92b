"""The demo: real orders through a queue, a worker killed, and the sums compared."""

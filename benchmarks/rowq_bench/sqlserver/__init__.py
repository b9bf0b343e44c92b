"""Reads of queues on SQL Server, counted as SET STATISTICS IO tells them.

Run it with `python -m benchmarks.rowq_bench.sqlserver`; `--help` says with what.
"""

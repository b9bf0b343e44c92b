"""Transactions that a transactional worker lends its handlers: one module per engine, and guard.py.

They import their drivers, so an engine imports its own when a worker needs it.
"""

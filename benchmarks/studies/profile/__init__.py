"""Shows what an enqueue, dequeue and complete cost, by statement and by record of the log.

actions.py says which calls are looked at; calls.py runs them; statements.py reads what the server
noted of the statements inside; wal.py reads the log; report.py writes the page.
"""

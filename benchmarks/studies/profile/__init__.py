"""What one enqueue, dequeue and complete is spent on: statement by statement, WAL record by record.

actions.py says which calls are looked at; calls.py runs them; statements.py reads what the server
noted of the statements inside; wal.py reads the log; report.py writes the page.
"""

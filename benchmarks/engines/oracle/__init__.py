"""Oracle Database as the seeds' experiments need it: sessions, an observer, fresh schemas.

Importing it loads no driver: that happens when the first session is opened.
"""

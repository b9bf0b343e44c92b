"""The study `floor`: what rowq's rows and indexes cost by themselves, beside pgmq's.

Each call is made in four forms: rowq's own, rowq's bare rows, pgmq's own, and pgmq's bare rows.
"""

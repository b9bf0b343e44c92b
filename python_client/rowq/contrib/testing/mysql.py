"""Statements of rowq.contrib.testing on MariaDB and MySQL."""

# Messages keep their order. None may be due before now: promote begins at its last position. Rows
# of message 0 are sentinels.
MAKE_DUE = """
    update rowq.delayed d
    join (
        select e.queue_id, e.due_at, e.message_id,
               row_number() over (order by e.due_at, e.message_id) as position
        from rowq.delayed e
        join rowq.queue q on q.queue_id = e.queue_id
        where q.queue_name = %s
          and e.message_id > 0
    ) n on n.queue_id = d.queue_id and n.due_at = d.due_at and n.message_id = d.message_id
    set d.due_at = least(d.due_at, utc_timestamp(6) + interval n.position microsecond)
"""

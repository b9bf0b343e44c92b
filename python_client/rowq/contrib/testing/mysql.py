"""What rowq.contrib.testing changes in rowq's tables on MariaDB and MySQL."""

# Each message keeps its place in the order. None may be due before now: promote begins where it has
# looked last. Rows of message 0 are fences.
MAKE_DUE = """
    update rowq.delayed d
    join (
        select e.queue_id, e.due_at, e.message_id,
               row_number() over (order by e.due_at, e.message_id) as place
        from rowq.delayed e
        join rowq.queue q on q.queue_id = e.queue_id
        where q.queue_name = %s
          and e.message_id > 0
    ) n on n.queue_id = d.queue_id and n.due_at = d.due_at and n.message_id = d.message_id
    set d.due_at = least(d.due_at, utc_timestamp(6) + interval n.place microsecond)
"""

"""What rowq.testing changes in rowq's tables on PostgreSQL."""

# Each message keeps its place in the order. None may be due before now: promote begins where it has
# looked last.
MAKE_DUE = """
    with moment as materialized (select clock_timestamp() as now)
    update rowq.delayed d
    set due_at = least(d.due_at, m.now + n.place * interval '1 microsecond')
    from moment m
    cross join (
        select e.part_id, e.message_id,
               row_number() over (order by e.due_at, e.message_id) as place
        from rowq.delayed e
        join rowq.queue q on q.part_id = e.part_id
        where q.queue_name = %s
    ) n
    where d.part_id = n.part_id
      and d.message_id = n.message_id
"""

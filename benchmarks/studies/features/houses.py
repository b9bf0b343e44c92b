"""Databases in which nothing is due: queues that were used, and schedules that wait."""

from dataclasses import dataclass

from benchmarks.harness.bodies import body
from benchmarks.harness.session import Session
from rowq import connect

AT_ONCE, EACH_SECOND = "one after the other", "one a second"
"""How maintain is called."""

_CRON = "0 3 1 1 *"
_COLUMNS = """
    select c.column_name
    from information_schema.columns c
    where c.table_schema = 'rowq' and c.table_name = 'schedule'
    order by c.ordinal_position
"""
_MORE = """
    insert into rowq.schedule ({columns})
    with recursive number (n) as (
        select 2
        union all
        select x.n + 1 from number x where x.n < {last}
    )
    select {values}
    from number
    cross join rowq.schedule s
"""


@dataclass(frozen=True, slots=True)
class House:
    """A database that is idle: its queues, and the schedules that each of them has."""

    queues: int
    schedules: int

    @property
    def name(self) -> str:
        """A word."""
        return f"house_{self.queues}_{self.schedules}"


TARGET = (House(200, 5), House(200, 1000))
"""The houses that the target is about, of 1,000 schedules and of 1,000 in each queue."""

HOUSES = (House(1, 0), House(1, 1000), House(200, 0), *TARGET)


def build(house: House, url: str, session: Session) -> None:
    """Make the queues, each of which has had a message, and the schedules, due in January.

    session: in the same database. The first schedule of a queue is made by its call, the others are
    copies of the row.
    """
    with connect(url) as rowq:
        for number in range(house.queues):
            name = f"queue {number}"
            rowq.create_queue(name)
            rowq.enqueue(name, text=body(number).decode())
            (message,) = rowq.dequeue_fast(name)
            rowq.complete(name, message.claim_id)
            if house.schedules:
                rowq.create_schedule(name, "1", cron=_CRON, text=body(number).decode())
    if house.schedules > 1:
        names = [(name or b"").decode() for (name,) in session.run(_COLUMNS)]
        values = ["concat(number.n)" if n == "schedule_name" else f"s.{n}" for n in names]
        session.script(
            _MORE.format(columns=", ".join(names), values=", ".join(values), last=house.schedules)
        )

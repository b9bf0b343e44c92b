"""rowq's queues with a feature."""

import json
from itertools import count
from typing import Any

from benchmarks.harness.bodies import body
from benchmarks.studies.features.courses import KEEP, PUT, TAKE, SessionCourse, Steps
from benchmarks.studies.features.features import RESULT_BYTES, Feature
from benchmarks.studies.queues.statements import LEASE_SECONDS
from rowq import connect

_TICK = "0 3 * * *"
_RESULT = "r" * (RESULT_BYTES - len('""'))
_DUE = """
    update rowq.schedule s
    set next_run_at = clock_timestamp()
    from rowq.queue q
    where q.part_id = s.part_id and q.queue_name = %s
"""


class RowqCourse(SessionCourse):
    """A queue of rowq, or several that get the same messages, with a feature."""

    leftovers = tuple(f"delete from rowq.{table}" for table in ("archive", "result", "history"))

    def __init__(self, url: str, feature: Feature, batch: int) -> None:
        super().__init__(feature.name, batch, "rowq", url)
        self.unit = batch * feature.queues
        self._feature = feature
        self._queues = [f"{feature.name}, {batch}, {n}" for n in range(1, feature.queues + 1)]
        self._topic = f"orders.{feature.queues}.{batch}"
        self._numbers = count()
        self._last_id = b""
        with connect(url) as rowq:
            for name in self._queues:
                rowq.create_queue(name, **feature.settings)
                if feature.by == "publish":
                    rowq.bind_topic(name, self._topic)
            for number in range(batch if feature.by == "maintain" else 0):
                text = body(number).decode()
                rowq.create_schedule(self._queues[0], f"{number}", cron=_TICK, text=text)
        for name, statement in self._statements().items():
            self.session.prepare(name, statement)

    def steps(self) -> Steps:
        """Return the steps; the messages of a schedule are put in by maintain."""
        put = {"maintain": self._run_ticks}.get(self._feature.by, self._put)
        return [(PUT, put), (TAKE, self._take), (KEEP, lambda _: self._keep())]

    def _statements(self) -> dict[str, str]:
        keys = enumerate(self._feature.message(0), 3)
        more = "".join(f", p_{key} => ${place}" for place, key in keys)
        if self._feature.pairs:
            more = ", p_predecessor_ids => nullif($3::bigint[], '{}')"
        put = {
            "enqueue": (
                f"select message_id from rowq.enqueue($1::text, $2::text{more})",
                "select message_id from rowq.enqueue_batch($1::text, $2::jsonb)",
            ),
            "publish": (
                f"select message_id from rowq.publish($1::text, $2::text{more})",
                "select message_id from rowq.publish_batch($1::jsonb)",
            ),
            "maintain": (),
        }[self._feature.by]
        return dict(zip(("put", "put_batch"), put, strict=False)) | {
            "dequeue": "select claim_id, message_id, body from"
            f" rowq.dequeue_fast($1::text, {self.batch}, 'bench', {LEASE_SECONDS})",
            "complete": "select message_id, outcome from rowq.complete($1::text, $2::bigint)",
            "complete_with": "select message_id, outcome"
            " from rowq.complete($1::text, $2::bigint, $3::bigint[], $4::jsonb)",
            "maintain": "select queue_name from rowq.maintain($1::text)",
        }

    def _put(self, messages: int) -> None:
        calls = messages // self.unit
        with self.meter.running():
            for _ in range(calls):
                if self.batch == 1:
                    self._put_one()
                else:
                    self._put_batch()

    def _put_one(self) -> None:
        number = next(self._numbers)
        place = self._topic if self._feature.by == "publish" else self._queues[0]
        values = [str(value).encode() for value in self._feature.message(number).values()]
        if self._feature.pairs:
            values = [b"{%s}" % self._last_id if number % 2 else b"{}"]
        result = self.session.call("put", [place.encode(), body(number), *values])
        self._last_id = result.get_value(0, 0) or b""

    def _put_batch(self) -> None:
        messages = json.dumps([self._entry(place) for place in range(self.batch)]).encode()
        if self._feature.by == "publish":
            self.session.call("put_batch", [messages])
        else:
            self.session.call("put_batch", [self._queues[0].encode(), messages])

    def _entry(self, place: int) -> dict[str, Any]:
        """Return a message of a batch; place: in it, from 0."""
        number = next(self._numbers)
        entry = {"body": body(number).decode()} | dict(self._feature.message(number))
        if self._feature.by == "publish":
            entry["topic"] = self._topic
        if self._feature.pairs and place % 2:
            entry["predecessor_positions"] = [place]
        return entry

    def _run_ticks(self, messages: int) -> None:
        """Set the schedules' clocks back and have maintain find them due, again and again."""
        for _ in range(messages // self.unit):
            self.control.execute(_DUE, [self._queues[0]])
            self._keep()

    def _take(self, messages: int) -> None:
        """Take and complete; raises RuntimeError if any message is missing."""
        with self.meter.running():
            for queue in self._queues:
                self._take_from(queue.encode(), messages // len(self._queues))

    def _take_from(self, queue: bytes, messages: int) -> None:
        left = messages
        while left > 0:
            taken = self.session.call("dequeue", [queue])
            if not taken.ntuples:
                raise RuntimeError(f"{left} messages of {queue.decode()} are missing")
            claim = taken.get_value(0, 0)
            assert claim is not None
            if self._feature.results:
                ids = [taken.get_value(row, 1) or b"" for row in range(taken.ntuples)]
                results = json.dumps([_RESULT] * len(ids)).encode()
                given = [queue, claim, b"{%s}" % b",".join(ids), results]
                left -= self.session.call("complete_with", given).ntuples
            else:
                left -= self.session.call("complete", [queue, claim]).ntuples

    def _keep(self) -> None:
        with self.meter.running():
            for queue in self._queues:
                self.session.call("maintain", [queue.encode()])

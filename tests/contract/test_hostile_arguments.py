"""Every routine accepts random arguments, or refuses them by a named error and changes nothing.

The values are drawn by each parameter's type in the contract: ordinary, boundary and hostile ones.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from rowq.contract import Parameter, Routine, load_contract
from rowq.engines import engine_for_connection
from tests.dice import IS_GIVEN, SEED, limit, times
from tests.engines.base import Connection
from tests.helpers.calls import call, dequeue, enqueue, make_dead
from tests.helpers.dialects import dialect_of

pytestmark = pytest.mark.slow("hypothesis draws thousands of calls")

ROUTINES = load_contract().routines
SETTINGS = settings(
    max_examples=times(60),
    deadline=None,
    derandomize=not IS_GIVEN,
    database=None,
    suppress_health_check=list(HealthCheck),
)
THE_QUEUE, THE_CLAIM = "the queue", "the claim"
A_MESSAGE, A_SCHEDULE = "a message", "a schedule"
TOPIC = "fuzz.a_b"

# No unpaired surrogates, and no NUL, which PostgreSQL does not store: drivers refuse them.
_characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
_texts = st.one_of(
    st.text(_characters, max_size=30),
    st.sampled_from(["", " ", "a ", "'; drop table rowq.queue; --", "%s", "\\", "\N{SNAKE}" * 200]),
    st.integers(195, 205).map("\N{SNAKE}".__mul__),
    st.just("x" * 70_000),
)
_int32s = st.one_of(
    st.integers(-2, 12),
    st.sampled_from([1000, 1001, 10_000, 10_001, 86_400, 86_401, 2**31 - 1, -(2**31)]),
)
_int64s = st.one_of(st.integers(-2, 3), st.sampled_from([2**31, 2**63 - 1, -(2**63)]))
_timestamps = st.one_of(
    st.sampled_from([1, 1000, 2038, 9999]).map(lambda year: datetime(year, 12, 31, tzinfo=UTC)),
    st.integers(-100, 100).map(lambda seconds: datetime.now(UTC) + timedelta(seconds=seconds)),
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(_characters, max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(_characters), inner),
    max_leaves=6,
)
_BY_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int32": _int32s,
    "int64": _int64s,
    "int64s": st.lists(st.one_of(st.none(), _int64s, st.just(A_MESSAGE)), max_size=4)
    | st.just([1] * 10_001),
    "float": st.one_of(
        st.floats(), st.floats(0, 10), st.sampled_from([315_360_000.0, 315_360_001.0, 1e308])
    ),
    "text": _texts,
    "binary": st.binary(max_size=30) | st.just(b"\0" * 70_000),
    "json": _json,
    "timestamp": _timestamps,
}


def _mostly(usual: str, others: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 9).flatmap(lambda drawn: st.just(usual) if drawn else others)


_BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    "queue_name": _mostly(THE_QUEUE, st.none() | _texts),
    "claim_id": _mostly(THE_CLAIM, st.none() | _int64s),
    "message_id": _mostly(A_MESSAGE, st.none() | _int64s),
    "topic": _mostly(TOPIC, st.none() | _texts | st.text(".#*a-_", max_size=9)),
    "topic_pattern": _mostly("fuzz.*", st.none() | _texts | st.text(".#*a-_", max_size=9)),
    "wait_seconds": st.sampled_from([0.0, 0.01, -1.0, 3601.0, float("nan"), 1e300]),
    "worker_id": _mostly("worker", st.none() | _texts),
    "schedule_name": _mostly(A_SCHEDULE, st.none() | _texts),
    "cron": _mostly("0 3 * * mon-fri", st.none() | _texts | st.text("0123456789*-/, ")),
    "time_zone": _mostly("UTC", st.none() | _texts),
    "missed": _mostly("all", st.none() | _texts),
    "header_name": _mostly("tint", st.none() | _texts),
    "header_value": _mostly("blue", st.none() | _texts),
}


def arguments_of(routine: Routine) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for a call: required parameters always, the others sometimes."""
    required = {
        parameter.name: _values(parameter)
        for parameter in routine.parameters
        if parameter.default is None or parameter.name in {"cron", "wait_seconds"}
    }
    others = {
        parameter.name: _values(parameter)
        for parameter in routine.parameters
        if parameter.name not in required
    }
    others.pop("messages", None)
    if "messages" in required:
        single = "enqueue" if routine.name == "enqueue_batch" else "publish"
        objects = st.lists(_an_object(ROUTINES[single]), max_size=3)
        required["messages"] = st.one_of(_json, objects)
    return st.fixed_dictionaries(required, optional=others)


def _values(parameter: Parameter) -> st.SearchStrategy[Any]:
    return _BY_NAME.get(parameter.name, st.none() | _BY_TYPE[parameter.type])


def _an_object(routine: Routine) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for one message of a batch."""
    keys = {
        parameter.name: _json | _BY_TYPE[parameter.type]
        for parameter in routine.parameters
        if parameter.type not in {"binary", "timestamp"} and parameter.name != "queue_name"
    }
    required = {name: _BY_NAME[name] for name in {"topic"} & keys.keys()}
    keys |= {"body_base64": _json | st.sampled_from(["AAA=", "A", "*"]), "bdoy": _json}
    # JSON has neither NaN nor infinity.
    keys["delay_seconds"] = _json | st.floats(allow_nan=False, allow_infinity=False)
    keys |= {"run_at": _json | _timestamps.map(datetime.isoformat)}
    optional = {name: values for name, values in keys.items() if name not in required}
    return st.fixed_dictionaries(required, optional=optional)


class FilledQueue:
    """A queue with messages in every state, filled again after each accepted call."""

    def __init__(self, connection: Connection, queue: str) -> None:
        self.connection = connection
        self.queue = queue

    def prepare(self) -> dict[str, Any]:
        """Fill the queue; return the values of the placeholders."""
        call(self.connection, "create_queue", queue_name=self.queue)
        self.clear()
        settings = {"max_body_length": 1_048_576, "max_leased": 0, "rate_limit": 0}
        settings |= {"result_seconds": 60, "history_days": 1}
        call(self.connection, "alter_queue", queue_name=self.queue, **settings)
        call(self.connection, "resume_queue", queue_name=self.queue)
        call(
            self.connection,
            "create_schedule",
            queue_name=self.queue,
            schedule_name=A_SCHEDULE,
            cron="0 0 * * *",
        )
        call(self.connection, "bind_topic", queue_name=self.queue, topic_pattern=TOPIC)
        make_dead(self.connection, self.queue, "dead")
        enqueue(self.connection, self.queue, "delayed", delay_seconds=1000)
        [message_id, *_] = enqueue(self.connection, self.queue, "1", "2", "3", priority=0)
        claim_id = dequeue(self.connection, self.queue, 2)[0].claim_id
        return {THE_QUEUE: self.queue, THE_CLAIM: claim_id, A_MESSAGE: message_id}

    def everything(self) -> list[Any]:
        """Return the row counts, and every queue with its counts and settings."""
        queues = [vars(row) for row in call(self.connection, "queue_stats")]
        for row in queues:
            row.pop("oldest_ready_seconds")
        schedules = [vars(row) for row in call(self.connection, "list_schedules")]
        stored = dialect_of(self.connection).stored(self.connection, self.queue)
        return [stored, queues, schedules]

    def clear(self) -> None:
        """Remove everything that a call may have created."""
        for row in call(self.connection, "queue_stats"):
            if row.queue_name != self.queue:
                call(self.connection, "drop_queue", queue_name=row.queue_name, force=True)
        call(self.connection, "purge_queue", queue_name=self.queue, include_dead=True)
        for row in call(self.connection, "list_schedules"):
            call(
                self.connection,
                "drop_schedule",
                queue_name=self.queue,
                schedule_name=row.schedule_name,
            )


def try_call(filled: FilledQueue, routine: Routine, arguments: Mapping[str, Any]) -> str:
    """Call; return the error number or "accepted". The engine's own errors fail the test."""
    dialect = dialect_of(filled.connection)
    for parameter in routine.parameters:
        if not dialect.can_pass(parameter, arguments.get(parameter.name, parameter.default)):
            return "not expressible"
    before = filled.everything()
    try:
        call(filled.connection, routine.name, **arguments)
    except dialect.database_error as error:
        number, text = dialect.error(error)
        assert number in routine.errors, f"{number} {text}"
        name = load_contract().errors[number].name
        assert text.startswith(f"{number} {name}: "), text
        assert filled.everything() == before, text
        return number
    return "accepted"


@pytest.mark.timeout(limit(120))
@pytest.mark.promise("P15")
@pytest.mark.parametrize("routine", ROUTINES.values(), ids=lambda routine: routine.name)
def test_any_argument_is_accepted_or_refused_by_name(owner: Connection, routine: Routine) -> None:
    filled = FilledQueue(owner, "fuzz")
    seen: set[str] = set()
    values: dict[str, Any] = {}

    @SETTINGS
    @given(drawn=arguments_of(routine.on(engine_for_connection(owner).name)))
    def compare(drawn: dict[str, Any]) -> None:
        # A refused call has changed nothing, so the next one uses the same values.
        values.update({} if values else filled.prepare())
        arguments = {name: _filled_in(value, values) for name, value in drawn.items()}
        answer = try_call(filled, routine, arguments)
        seen.add(answer)
        if answer == "accepted":
            values.clear()

    (seed(SEED)(compare) if IS_GIVEN else compare)()
    assert "accepted" in seen
    assert seen >= {"RQ711"} & set(routine.errors)


def _filled_in(value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_filled_in(element, values) for element in value]
    return values.get(value, value) if isinstance(value, str) else value

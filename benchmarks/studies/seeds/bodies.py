"""Makes bodies of many lengths that do not compress, so that tables are as large as they are."""

import base64
import json
import random
from functools import cache

_POOL_BYTES = 1 << 20


class Bodies:
    """Makes bodies of 1 to `greatest` letters and digits, always the same ones in their order."""

    def __init__(self, greatest: int) -> None:
        self._greatest = greatest
        self._random = random.Random(greatest)

    def __call__(self, _number: int = 0) -> bytes:
        """Return the next body."""
        length = self._random.randint(1, self._greatest)
        first = self._random.randrange(_POOL_BYTES - self._greatest)
        return _pool()[first : first + length]

    def messages(self, count: int) -> str:
        """Return so many messages as a JSON array of objects with a body."""
        return json.dumps([{"body": self().decode()} for _ in range(count)])


@cache
def _pool() -> bytes:
    return base64.b64encode(random.Random(0).randbytes(_POOL_BYTES))[:_POOL_BYTES]

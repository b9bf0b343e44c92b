"""Seeded random numbers for the tests that draw by chance, and how long these tests go on."""

import math
import os
import random

SEED_VARIABLE = "ROWQ_TEST_SEED"
"""A number, or `random` for another one with each run."""
LENGTH_VARIABLE = "ROWQ_TEST_LENGTH"
"""Factor by which the tests of faults run longer than in CI, such as 20."""


def _seed() -> int:
    given = os.environ.get(SEED_VARIABLE, "20261121")
    return random.SystemRandom().randrange(10**9) if given == "random" else int(given)


IS_GIVEN = SEED_VARIABLE in os.environ
SEED = _seed()
LENGTH = float(os.environ.get(LENGTH_VARIABLE, "1"))
AGAIN = f"{SEED_VARIABLE}={SEED} {LENGTH_VARIABLE}={LENGTH:g}"
"""The variables that make a run draw the same once more."""


def dice(*words: object) -> random.Random:
    """Return a random generator, which draws the same for the same words and seed."""
    return random.Random(" ".join(map(str, (SEED, *words))))


def times(number: int) -> int:
    """Return how often to do what is done so often in CI."""
    return max(1, math.ceil(number * LENGTH))


def limit(seconds: float) -> float:
    """Return the time limit of a test that has this one in CI."""
    return seconds * max(1.0, LENGTH)

"""What texts tell, remembered: logs say the same things again and again."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")


def remembered(
    most: int = 1_000, longest: int = 4_000
) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """A memory for a function of one text: of the ``most`` asked for last.

    Texts above ``longest`` characters are not kept, so that memory is bounded whatever a log holds.
    """

    def of(function: Callable[[str], T]) -> Callable[[str], T]:
        known = lru_cache(maxsize=most)(function)
        return lambda text: known(text) if len(text) <= longest else function(text)

    return of

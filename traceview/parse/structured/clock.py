"""The log's own stamp, given a year and a zone.

``V1120 20:09:53.524000`` is local time without year or zone, but records carry Unix times too
(chromium events' ``ts``, metrics' ``start_time_us``). One such pair fixes both.
"""

from __future__ import annotations

from datetime import datetime, timezone

from traceview.parse.cutting import Stamp

_QUARTER_US = 15 * 60 * 1_000_000
_DAY_US = 86_400 * 1_000_000


class Clock:
    """Turns stamps of one process into Unix µs once ``observe`` has seen a record with both."""

    def __init__(self) -> None:
        self._year: int | None = None
        self._offset_us = 0.0

    @property
    def fixed(self) -> bool:
        """Whether year and zone are known."""
        return self._year is not None

    def observe(self, stamp: Stamp, unix_us: float) -> None:
        """A record stamped ``stamp`` was written at about ``unix_us``; only the first one counts.

        Zones are whole quarters of an hour, so a few minutes between the two do no harm.
        """
        if self._year is not None or not 0 < unix_us < 4e15:
            return
        year = datetime.fromtimestamp(unix_us / 1e6, tz=timezone.utc).year
        for candidate in (year, year - 1, year + 1):
            naive = _naive_us(candidate, stamp)
            if naive is not None and abs(naive - unix_us) < 1.1 * _DAY_US:
                self._year = candidate
                self._offset_us = round((naive - unix_us) / _QUARTER_US) * float(_QUARTER_US)
                return

    def unix_us(self, stamp: Stamp) -> float | None:
        """``stamp`` as Unix µs; None before a year is known or where it is no date."""
        if self._year is None:
            return None
        naive = _naive_us(self._year, stamp)
        return None if naive is None else naive - self._offset_us


def _naive_us(year: int, stamp: Stamp) -> float | None:
    text = stamp.decode()
    try:
        moment = datetime.fromisoformat(f"{year}-{text[:2]}-{text[2:4]}T{text[5:]}+00:00")
    except ValueError:
        return None
    return moment.timestamp() * 1e6

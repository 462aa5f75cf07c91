"""Seeded damage to a log: bytes flipped; lines dropped, doubled, swapped, cut and joined.

Every line remembers which line of the clean log it is, so that a test can tell which records the
damage did not touch, and that these are still read as they were.
"""

import random
from dataclasses import dataclass

MOST_LINES = 20


@dataclass(frozen=True)
class Line:
    """A line with its end; ``origin`` is its number in the clean log, None if it was changed."""

    data: bytes
    origin: int | None
    moved: bool = False


@dataclass(frozen=True)
class Mutated:
    """A damaged log, line by line, and the names of what was done to it."""

    lines: list
    done: tuple

    @property
    def data(self):
        return b"".join(line.data for line in self.lines)


def mutate(log, seed, most=3):
    """``log`` after one to ``most`` mutations, the same for the same seed."""
    rng = random.Random(seed)
    lines = [Line(data, number) for number, data in enumerate(split(log))]
    done = []
    for _ in range(rng.randint(1, most)):
        if not lines:
            break
        mutation = rng.choice(MUTATIONS)
        lines = mutation(lines, rng)
        done.append(mutation.__name__)
    return Mutated(physical(lines), tuple(done))


def split(log):
    """Lines with their ends; only line feeds end one."""
    lines = [line + b"\n" for line in log.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def physical(lines):
    """The lines as a reader sees them: one that got a line feed inside, or lost its own, is new.

    One of which nothing is left is none.
    """
    made, begun = [], b""
    for line in lines:
        if line.data == b"":
            continue
        if not begun and line.data.find(b"\n") == len(line.data) - 1:
            made.append(line)
            continue
        parts = split(begun + line.data)
        begun = b"" if parts[-1].endswith(b"\n") else parts.pop()
        made += [Line(part, None) for part in parts]
    return [*made, Line(begun, None)] if begun else made


def flipped(lines, rng):
    made = list(lines)
    for _ in range(rng.randint(1, 16)):
        at = rng.randrange(len(made))
        data = bytearray(made[at].data)
        place = rng.randrange(len(data))
        data[place] = rng.choice((data[place] ^ (1 << rng.randrange(8)), rng.randrange(256), 0))
        made[at] = Line(bytes(data), None)
    return made


def dropped(lines, rng):
    start, end = block(lines, rng)
    return lines[:start] + lines[end:]


def doubled(lines, rng):
    start, end = block(lines, rng)
    return lines[:end] + lines[start:end] + lines[end:]


def swapped(lines, rng):
    """Two blocks change places, far apart or side by side."""
    a, b = sorted((block(lines, rng), block(lines, rng)))
    if b[0] < a[1]:
        b = (a[1], min(len(lines), a[1] + 1))
    one, other = ([Line(x.data, x.origin, moved=True) for x in lines[s:e]] for s, e in (a, b))
    return lines[: a[0]] + other + lines[a[1] : b[0]] + one + lines[b[1] :]


def cut(lines, rng):
    """The end, the beginning, or some bytes between are gone."""
    how = rng.randrange(3)
    at = rng.randrange(len(lines))
    place = rng.randrange(len(lines[at].data))
    before, after = lines[at].data[:place], lines[at].data[place:]
    if how == 0 and at > len(lines) // 2:
        return [*lines[:at], Line(before, None)] if before else lines[:at]
    if how == 1 and at < len(lines) // 2:
        return [Line(after, None), *lines[at + 1 :]]
    hole = lines[at : at + rng.randint(1, MOST_LINES)]
    rest = b"".join(line.data for line in hole)
    gone = rng.randrange(place, len(rest)) + 1
    return [*lines[:at], Line(before + rest[gone:], None), *lines[at + len(hole) :]]


def joined(lines, rng):
    made = list(lines)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(made))
        made[at] = Line(made[at].data.rstrip(b"\n") or b" ", None)
    return made


def block(lines, rng):
    start = rng.randrange(len(lines))
    return start, min(len(lines), start + rng.choice((1, 1, 2, rng.randint(1, MOST_LINES))))


MUTATIONS = (flipped, dropped, doubled, swapped, cut, joined)

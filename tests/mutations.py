"""Seeded damage to a log: bytes flipped; lines dropped, doubled, swapped, cut and joined.

Every line remembers which line of the clean log it is, so that a test can tell which records the
damage did not touch, and that these are still read as they were.

``confuse`` leaves the form as it is and changes what stands in it: values of JSON of another type,
out of range, missing, very long or very deep.
"""

import random
import re
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


#: A value of JSON behind its key: a text, a number, a word or a flat list; and the key.
_VALUE = re.compile(
    rb'("(?:[^"\\\n]|\\.){0,80}"\s*:\s*)'
    rb'("(?:[^"\\\n]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|\[[^][{}]{0,200}\])'
)
ODD_VALUES = (
    *(b'""', b'" "', b'"\\u0000"', b'"\\ud800"', b'"x"', b'"\xff"', b'"\\u202e"'),
    *(b'"' + b"x" * 70_000 + b'"', b"null", b"true", b"false"),
    *(b"[]", b"{}", b"[null]", b'[[1], "x"]', b'{"a": {"b": []}}'),
    *(b"0", b"-1", b"1.5", b"1e18", b"-1e300", b"1e400", b"NaN", b"Infinity", b"2147483648"),
    *(b"9223372036854775807", b"-9223372036854775808", b"18446744073709551616", b"9" * 400),
    *(b"[" * depth + b"]" * depth for depth in (100, 1_000, 20_000)),
)  # fmt: skip


def confuse(log, seed, most=3):
    """``log`` with one to ``most`` keys and values changed, and what was done."""
    rng = random.Random(seed)
    found = list(_VALUE.finditer(log))
    done = []
    for match in sorted(rng.sample(found, min(len(found), rng.randint(1, most))), key=_backwards):
        key, value = match[1], match[2]
        how = rng.choice(("value", "value", "value", "other", "key", "unnamed"))
        if how == "value":
            value = rng.choice(ODD_VALUES)
        elif how == "other":
            value = rng.choice(found)[2]
        elif how == "key":
            at = rng.randrange(1, key.rindex(b'"'))
            key = key[:at] + bytes([rng.choice(b"abz_ ")]) + key[at + 1 :]
        else:
            key = b'"":'
        log = log[: match.start()] + key + value + log[match.end() :]
        done.append(f"{how} {match[0][:60]!r} -> {key[-40:] + value[:30]!r}")
    return log, done


def _backwards(match):
    return -match.start()

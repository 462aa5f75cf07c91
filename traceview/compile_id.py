"""Compile ids: how torch names one compilation, and how traceview keeps two of the same name apart.

torch writes ``frame_id/frame_compile_id``, with the attempt as ``_n`` and compiled autograd as a
leading ``!n/`` (``torch/_guards.py``, ``CompileId.__str__``): ``0/0``, ``0/0_1``, ``!0/1/0``.
``torch._dynamo.reset()`` starts the count again, so an id alone is not unique within a process.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import msgspec

#: Of at most 18 digits: more are no id, and too much for a column.
_TEXT = re.compile(
    r"^\[?(?:!(?P<ca>N)(?:/|(?=\]?$)))?(?:(?P<frame>N)/(?P<compile>N)(?:_(?P<attempt>N))?)?\]?$".replace(
        "N", r"\d{1,18}"
    )
)


class CompileId(msgspec.Struct, frozen=True, order=True):
    """One compilation as torch names it; ``frame_id`` is None for a bare compiled-autograd id."""

    frame_id: int | None
    frame_compile_id: int | None
    attempt: int = 0
    compiled_autograd_id: int | None = None

    @classmethod
    def parse(cls, text: str) -> CompileId | None:
        """The id in ``text`` (``0/0``, ``[1/2_1]``, ``!0/1/0``), or None if there is none."""
        match = _TEXT.match(text.strip())
        if match is None or not any(match.group("ca", "frame")):
            return None
        number = {key: int(value) for key, value in match.groupdict().items() if value is not None}
        return cls(
            number.get("frame"), number.get("compile"), number.get("attempt", 0), number.get("ca")
        )

    def __str__(self) -> str:
        """Without the attempt: attempts of one compile are joined (``0/0``, ``!0/1/0``)."""
        autograd = "" if self.compiled_autograd_id is None else f"!{self.compiled_autograd_id}"
        frame = "" if self.frame_id is None else f"{self.frame_id}/{self.frame_compile_id}"
        return "/".join(part for part in (autograd, frame) if part)


def compile_key(pass_name: str, pid: int, epoch: int, compile_id: CompileId) -> str:
    """The name under which a compile is unique in a run: ``cold:4711:0:0/0``.

    ``epoch`` counts the ``torch._dynamo.reset()`` calls seen in that process, from 0.
    """
    return f"{pass_name}:{pid}:{epoch}:{compile_id}"


def process_and_id(compile_keys: Iterable[str | None]) -> dict[str | None, tuple[int, str]]:
    """Key of a compile → its process and the id that torch gives it.

    Only where no other compile of the process has that id: ids repeat after a reset.
    """
    found = {}
    for key in compile_keys:
        _, pid, _, compile_id = (key or ":0::").rsplit(":", 3)
        found[key] = int(pid), compile_id
    times = Counter(found.values())
    return {key: known for key, known in found.items() if times[known] == 1}

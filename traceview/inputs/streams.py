"""What a log is read from: bytes, forward only, a block at a time; looked into, and in parts."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from typing import Any, Protocol

#: What opening a source or reading from it may raise.
READ_ERRORS = (OSError, EOFError)


class DamagedInput(EOFError):
    """The bytes end before their end, or can't be unpacked from here on; ``kind`` counts it."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind = kind


def damage_of(error: BaseException) -> tuple[str, str]:
    """(kind, what) of one of READ_ERRORS, as table ``unreadable`` counts it."""
    kind = error.kind if isinstance(error, DamagedInput) else "unreadable_file"
    return kind, getattr(error, "strerror", None) or str(error)


class Stream(Protocol):
    """An opened source. Errors come only after everything before them was given."""

    def read(self, size: int = -1, /) -> bytes:
        """Up to ``size`` bytes, b"" at the end."""
        ...

    def read1(self, size: int = -1, /) -> bytes:
        """The same."""
        ...

    def seekable(self) -> bool:
        """Whether ``seek`` works; what unpacks or strips can't."""
        ...

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """As of files."""
        ...

    def close(self) -> None:
        """Close the file below."""
        ...

    def __enter__(self) -> Stream: ...

    def __exit__(self, *error: Any) -> None: ...  # noqa: ANN401


class Layer(io.RawIOBase):
    """A stream that makes its bytes of another one's: what unpacks, strips or picks a member."""

    BLOCK = 1 << 18

    def __init__(self, below: Stream) -> None:
        super().__init__()
        self.below = below

    def readable(self) -> bool:
        return True

    def more(self, size: int) -> bytes:
        """At most ``size`` bytes more, b"" at the end."""
        raise NotImplementedError

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            return b"".join(iter(lambda: self.more(self.BLOCK), b""))
        return self.more(size) if size else b""

    def read1(self, size: int = -1, /) -> bytes:
        return self.more(size if size > 0 else self.BLOCK)

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401
        data = self.more(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self.below.close()
        super().close()


class Counted(Layer):
    """The same bytes, counted: ``given``."""

    given = 0

    def more(self, size: int) -> bytes:
        data = self.below.read(size)
        self.given += len(data)
        return data


class Ahead(Layer):
    """A stream whose next bytes can be looked at, and to which bytes can be given back."""

    def __init__(self, below: Stream) -> None:
        super().__init__(below)
        self._held = b""

    def more(self, size: int) -> bytes:
        if not self._held:
            return self.below.read(size)
        data, self._held = self._held[:size], self._held[size:]
        return data

    def peek(self, size: int) -> bytes:
        """Up to ``size`` bytes, which stay unread; fewer at the end, or where reading fails."""
        with suppress(DamagedInput):  # it is raised again when what is held has been read
            while len(self._held) < size and (piece := self.below.read(size - len(self._held))):
                self._held += piece
        return self._held[:size]

    def exactly(self, size: int) -> bytes:
        """``size`` bytes, fewer only at the end."""
        parts = []
        while size and (piece := self.more(size)):
            parts.append(piece)
            size -= len(piece)
        return b"".join(parts)

    def skip(self, size: int) -> None:
        """Step over ``size`` bytes; over the end too, where the stream can seek."""
        self._held, size = self._held[size:], max(0, size - len(self._held))
        if size and self.below.seekable():
            self.below.seek(size, os.SEEK_CUR)
            return
        while size and (piece := self.below.read(min(size, self.BLOCK))):
            size -= len(piece)

    def give_back(self, data: bytes) -> None:
        """``data`` comes next again."""
        self._held = data + self._held


class Part(Layer):
    """The next ``size`` bytes of a stream; DamagedInput where it ends before."""

    def __init__(self, below: Ahead, size: int) -> None:
        super().__init__(below)
        self._ahead = below
        self.left = size

    def more(self, size: int) -> bytes:
        if not self.left:
            return b""
        data = self.below.read(min(size, self.left))
        if not data:
            raise DamagedInput("truncated", "the archive ends inside this file")
        self.left -= len(data)
        return data

    def finish(self) -> None:
        """Step over what is left."""
        self._ahead.skip(self.left)
        self.left = 0

    def close(self) -> None:
        """The stream below goes on."""

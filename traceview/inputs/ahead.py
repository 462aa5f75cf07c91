"""Streams that can be looked into, and parts of them."""

from __future__ import annotations

import os
from contextlib import suppress

from traceview.inputs.streams import DamagedInput, Layer, Stream


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

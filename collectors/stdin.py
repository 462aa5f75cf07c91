"""The script's stdin for every pass: what the first pass read must be there again for the next."""

from __future__ import annotations

import os
import stat
import subprocess


class Stdin:
    """Remembers at the first pass what kind of stdin there is and where it stands."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._passes = 0
        self._start: int | None = None
        self._again = False
        try:
            mode = os.fstat(descriptor).st_mode
        except OSError:  # closed: the child finds it closed as well, each time
            self._again = True
            return
        if stat.S_ISREG(mode):
            self._start = os.lseek(descriptor, 0, os.SEEK_CUR)
            self._again = True
        elif stat.S_ISCHR(mode):  # a terminal, /dev/null
            self._again = True

    def for_next_pass(self) -> tuple[int | None, str | None]:
        """What to hand to the child (None: ours), and a note where that is not what it had."""
        self._passes += 1
        if self._passes == 1 or self._again:
            if self._start is not None:
                # The child shares our descriptor's position: rewound here, rewound there.
                os.lseek(self._descriptor, self._start, os.SEEK_SET)
            return None, None
        note = (
            "stdin was a pipe and had been read by the first run: this one found it empty. Give the"
            " script a file (< FILE) for the same input each time."
        )
        return subprocess.DEVNULL, note

"""A progress bar with an estimate of what is left."""
import sys
import time


class Bar:
    def __init__(self, total, quiet=True):
        self.total, self.quiet = total, quiet

    def __iter__(self):
        begun = time.monotonic()
        for number in range(self.total):
            yield number
            left = (time.monotonic() - begun) / (number + 1) * (self.total - number - 1)
            if not self.quiet:
                sys.stderr.write(f"\r{number + 1}/{self.total}, {left:.1f} s left")

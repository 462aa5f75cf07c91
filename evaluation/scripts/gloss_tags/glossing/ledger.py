"""How much memory the process has needed so far, and where: the cluster kills what needs more."""
import resource


class MemoryLedger:
    def __init__(self, limit_mb=200_000):
        self.limit_kb = limit_mb * 1024
        self.highest = 0

    def note(self):
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if used > self.limit_kb:
            raise MemoryError(f"{used // 1024} MB")


LEDGER = MemoryLedger()

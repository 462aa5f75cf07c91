import torch

from .engine import Matcher


def replay(feed, batches, batch, levels=5, warm=200):
    """Snapshots before each order, and whether the middle price fell, stayed or rose."""
    matcher = Matcher()
    for _ in range(warm):
        matcher.take(next(feed))
    for _ in range(batches):
        rows, moves = [], []
        row, mid = matcher.snapshot(levels)
        for _ in range(batch):
            matcher.take(next(feed))
            rows.append(row)
            row, after = matcher.snapshot(levels)
            moves.append((after > mid) - (after < mid) + 1)
            mid = after
        yield torch.tensor(rows), torch.tensor(moves)

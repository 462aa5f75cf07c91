import heapq
from collections import defaultdict


class Side:
    def __init__(self, sign):
        self.sign, self.heap, self.sizes = sign, [], defaultdict(int)

    def add(self, price, size):
        if self.sizes[price] == 0:
            heapq.heappush(self.heap, self.sign * price)
        self.sizes[price] += size

    def best(self):
        while self.heap and self.sizes[self.sign * self.heap[0]] == 0:
            heapq.heappop(self.heap)
        return self.sign * self.heap[0] if self.heap else None

    def top(self, count):
        levels = heapq.nsmallest(count, {p for p in self.heap if self.sizes[self.sign * p]})
        levels = [(self.sign * p, self.sizes[self.sign * p]) for p in levels]
        return levels + [(0, 0)] * (count - len(levels))

    def forget(self, keep=60):
        if len(self.heap) > 2 * keep:
            self.heap = heapq.nsmallest(keep, set(self.heap))
            self.sizes = defaultdict(int, {self.sign * p: self.sizes[self.sign * p] for p in self.heap})


class Matcher:
    def __init__(self):
        self.bids, self.asks = Side(-1), Side(1)

    def take(self, order):
        own, other = (self.bids, self.asks) if order.buy else (self.asks, self.bids)
        left = order.size
        while left:
            best = other.best()
            if best is None or (best > order.price if order.buy else best < order.price):
                break
            traded = min(left, other.sizes[best])
            other.sizes[best] -= traded
            left -= traded
        if left:
            own.add(order.price, left)
            own.forget()

    def snapshot(self, levels):
        row, mid = [], ((self.bids.best() or 0) + (self.asks.best() or 0)) / 2
        for side in (self.bids, self.asks):
            for price, size in side.top(levels):
                row += [(price - mid) / 10, size / 20]
        return row, mid

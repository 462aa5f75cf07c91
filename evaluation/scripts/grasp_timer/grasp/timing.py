import collections
import time


class Section:
    def __init__(self, book, name):
        self.book, self.name = book, name

    def __enter__(self):
        self.began = time.perf_counter()
        return self

    def __exit__(self, *exc):
        self.book[self.name] += time.perf_counter() - self.began
        return False


class Sections:
    """How long the parts of a pipeline take, by name."""

    def __init__(self):
        self.book = collections.defaultdict(float)

    def __call__(self, name):
        return Section(self.book, name)

    def totals(self):
        return dict(self.book)


sections = Sections()

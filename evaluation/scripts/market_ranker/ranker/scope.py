from contextlib import contextmanager

MARKETS = [
    "at", "be", "bg", "ch", "cz", "de", "dk", "ee", "es", "fi", "fr", "gr",
    "hu", "ie", "it", "lt", "lv", "nl", "no", "pl", "pt", "ro", "se", "sk",
]


class Scope:
    market = None


scope = Scope()


@contextmanager
def visiting(market):
    before, scope.market = scope.market, market
    try:
        yield
    finally:
        scope.market = before

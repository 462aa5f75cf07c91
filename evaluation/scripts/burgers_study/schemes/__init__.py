from .second_order import Upwind2

KNOWN = {"upwind2": Upwind2}


def make(name, **options):
    return KNOWN[name](**options)

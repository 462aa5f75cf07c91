from .errors import Jammed, NoTarget


def adaptive_floor(power, factor):
    around = power.mean(-1, keepdim=True)
    return around * factor


def require_target(power, floor):
    above = power > floor
    if not above.any():
        raise NoTarget
    if above.all():
        raise Jammed
    return above

"""Scaling of hidden features."""


def spread_of(features):
    return float(features.std())


def to_unit(features, floor=1e-6):
    return features / max(spread_of(features), floor)

"""Hand-made tables with the facts that ``derive`` works out from them."""

from traceview.derive.facts import add_facts, add_log_facts
from traceview.tables import Tables


def with_facts(tables):
    """``tables`` with every fact that they have not been given."""
    found = tables.copy()
    add_log_facts(found)
    add_facts(found)
    return Tables({name: (tables if tables.has(name) else found)[name] for name in found})

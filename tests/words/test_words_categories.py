"""Every category of the accounting reads as words in a sentence."""

import re

from traceview.derive import causes
from traceview.derive.time import host as host_time
from traceview.schema import all_tables
from traceview.torchtext import marks
from traceview.words.names import CATEGORIES, category


def test_kernel_categories_have_words():
    columns = {column.name: column for column in all_tables()["kernels"].columns}
    assert set(re.findall(r"\w+", columns["category"].meaning)) <= set(CATEGORIES)


def test_idle_host_and_overhead_have_words():
    names = (*marks.PARTS, marks.REGION + "0/0", marks.GRAPH + "f ##")
    overhead = {host_time.overhead_category(name) for name in names}
    named = {
        value for name, value in vars(causes).items() if name.isupper() and isinstance(value, str)
    }
    assert named - {causes.OWN} == {*causes.IDLE, *causes.HOST, causes.SPEED, causes.UNEXPLAINED}
    assert overhead | named - {causes.OWN} <= set(CATEGORIES)


def test_no_words_hold_an_underscore():
    assert [name for name in CATEGORIES if "_" in category(name)] == []

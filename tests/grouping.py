"""Which tests belong together: those of one recorded run, of one file, of the browser, of torch.

The tests of a group follow each other in one worker: a run is read once, and what a module sets up
is set up once. A group is told from a test's id alone, which is all that the scheduler knows.
"""

import re
from functools import cache

from recordings import NAMES


def _pattern(words):
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")


#: Marks of tests that start torch, scripts, commands, a browser or a build.
SLOW = ("live", "browser", "packaging")
#: More files whose scripts run in forks of one process that has imported torch.
FORKED = ("tests/test_cli_live.py", "tests/collectors/test_trials_apart.py")
#: As ids have them: a run's name or its scenario's (bad/gb_item), or else the rule that it shows.
RUNS = {name: name for name in NAMES} | {name.replace("-", "/", 1): name for name in NAMES}
RULES = {name[4:].replace("_", "-"): name for name in NAMES if name.startswith("bad-")}
WRITTEN = [(_pattern(words), words) for words in (RUNS, RULES)]


@cache
def group(nodeid):
    """The name of the group of a test."""
    file, _, rest = nodeid.partition("::")
    if file.endswith("_browser.py"):
        return "browser"
    child = file.startswith("tests/collectors/test_child_")
    if file in FORKED or (child and not file.endswith("_exec_live.py")):
        return "torch"  # one process forks the scripts of all of them
    words = "" if file.endswith("_live.py") else rest.partition("[")[2]
    for pattern, name_of in WRITTEN:
        if found := pattern.search(words):
            return name_of[found[0]]
    return file


def in_order(items):
    """``items`` by groups: slow ones first, so that none is left at the end; recorded runs last."""
    slow = {group(item.nodeid) for item in items if _is_slow(item)}
    first = {}
    for item in items:
        name = group(item.nodeid)
        first.setdefault(name, (name not in slow, name in NAMES, len(first)))
    return sorted(items, key=lambda item: first[group(item.nodeid)])


def _is_slow(item):
    return any(map(item.get_closest_marker, SLOW))

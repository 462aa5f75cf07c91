"""What a payload alone shows: pure functions of its text, which need neither state nor polars.

So they may run where the payload is cut, in the other process of a large file (``parse.cutting``).

    guard_tree    the leaves of a tree of guards
    module        the kernels and calls of a generated module
"""

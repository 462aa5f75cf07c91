"""Where the milliseconds of a step go, in both stances: accounting that closes.

host           marks of torch.compile and of the collector, and what they add up to
host_line      what the host did at every moment, and what that is called
device         busy time, blocks of work, and the gaps between them along what the host did
profiler_cost  what the profiler adds: around events, at memory pages, in collectives
unprofiled     the window played again without what its events cost
accounting     all of it: the account of a window, and table accounting
lines          the user's lines of Python between operators and of waits inside graphs
details        table account_details
read_replays   table read_replays
"""

"""Where the milliseconds of a step go, in both stances: accounting that closes.

causes        names of what time is spent on, beside the kernel categories
host_line     what the host did at every moment
labels        that by cause
elsewhere     what of it lay in another rank's compile
host          marks of torch.compile, and what they add up to
device        blocks of work, and what each had to wait for
busy          work by category
gaps          the device's gaps, cut along what the host did
unprofiled    the window played again without what its events cost
event_cost    what one costs
faults        what pages cost that only profiled steps touch for the first time
accounting    all of it: the account of a window
rows          as table accounting
details       as table account_details
python_lines  the user's line of Python between operators
spans         unions and coverage of spans in frames
"""

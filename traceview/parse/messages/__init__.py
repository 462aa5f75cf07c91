"""A text log taken apart: messages of torch's loggers, and of other lines those worth a look.

    finding   the stream as blocks of whole lines, and these to messages: one search finds a run;
              for a large log in a process of its own
    shapes    what is passed on

Neither polars nor a table is needed here, so that the other process starts at once.
"""

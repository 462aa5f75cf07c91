"""traceview: did torch.compile help, why, and what should be done next?

Importing this package is light: no polars, jinja2, click or torch is imported here.
"""

__version__ = "0.1.0"

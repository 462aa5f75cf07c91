"""traceview: did torch.compile help, why, and what should be done next?

Importing this package is light: no polars, jinja2, click or torch is imported here.
"""

__version__ = "0.1.0"


def load_ipython_extension(shell: object) -> None:
    """Of IPython: ``%load_ext traceview`` gives it the cell magic ``%%traceview``."""
    from importlib import import_module

    import_module("traceview.cli.ipython").load(shell)

"""``python -m traceview`` and the console script."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; errors of ours end in one sentence of fact and one of remedy."""
    from traceview.cli import traceview
    from traceview.errors import TraceviewError

    try:
        traceview(prog_name="traceview")
    except TraceviewError as error:
        sys.stderr.write(f"traceview: {error.fact}\n  {error.remedy}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()

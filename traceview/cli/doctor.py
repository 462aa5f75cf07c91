"""``traceview doctor``: what works here, and what to install."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

_MARK = {"ok": ("ok", "green"), "limited": ("limited", "yellow"), "missing": ("missing", "red")}


@click.command("doctor")
@click.option("--python", metavar="PATH", help="Python interpreter that would run the script.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def doctor_command(python: str | None, as_json: bool) -> None:
    """Check what torch, Triton, the compiler, the GPU, the profiler and tlparse can do here."""
    from traceview.collectors.doctor import examine

    checks = examine(python)
    if as_json:
        click.echo(json.dumps([asdict(check) for check in checks], indent=2))
        return
    width = max(len(check.name) for check in checks)
    for check in checks:
        word, color = _MARK[check.status]
        click.echo(f"{click.style(f'{word:<7}', fg=color)}  {check.name:<{width}}  {check.found}")
        if check.status != "ok":
            remedy = f" {check.remedy}" if check.remedy else ""
            click.echo(f"{'':9}{'':{width}}  Needed for {check.needed_for}.{remedy}")

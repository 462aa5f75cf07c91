"""Takes docs/report.png: the first screen of a report, in headless Chromium.

    python docs/make_picture.py [RUN]

RUN is a run folder or an archive of one; without it, the recorded launch-bound run of an H200.

Needs selenium, chromium and chromedriver. Paths of the machine that recorded the run are shortened
to the script's own name before the page is rendered.
"""

from __future__ import annotations

import base64
import shutil
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "fixtures"))
import packing

from traceview.derive import derive
from traceview.diagnosis import diagnose, from_json, to_json
from traceview.diagnosis.excerpts import source_reader
from traceview.parse import parse_run
from traceview.reports import html
from traceview.run import Run

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

PICTURE = Path(__file__).with_name("report.png")
RECORDED = PICTURE.parents[1] / "fixtures" / "runs" / "gpu-launch_bound.tar.xz"
WIDTH, SCALE = 1280, 1
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
# The end of the first screen: the waterfall, with a little room below.
END = "document.querySelector('#time figure').getBoundingClientRect().bottom + scrollY + 20"


def page(folder: Path) -> str:
    """The report of a run with no path of its machine in it."""
    run = Run.open(folder)
    parsed = parse_run(run)
    diagnosis = diagnose(run, derive(parsed, {}, source_reader(run, parsed)))
    data = to_json(diagnosis)
    place = str(PurePosixPath(data["target"].split()[0]).parent)
    return html.render(from_json(_without(data, place + "/") if place != "." else data))


def _without(value: Any, folder: str) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {key: _without(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [_without(item, folder) for item in value]
    return value.replace(folder, "") if isinstance(value, str) else value


def browser(profile: str) -> Chrome:
    """Headless Chromium with a profile of its own."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    return webdriver.Chrome(options=options, service=service)


def shoot(source: str) -> bytes:
    """PNG of the top of a page, 1280 pixels wide, light."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        file.write_text(source, encoding="utf-8")
        opened = browser(str(Path(folder) / "profile"))
        try:
            tell = opened.execute_cdp_cmd
            size = {"width": WIDTH, "height": 900, "deviceScaleFactor": SCALE, "mobile": False}
            tell("Emulation.setDeviceMetricsOverride", size)
            light = {"features": [{"name": "prefers-color-scheme", "value": "light"}]}
            tell("Emulation.setEmulatedMedia", light)
            opened.get(file.as_uri())
            height = opened.execute_script(f"return {END}")
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
            shot = tell("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
        finally:
            opened.quit()
    return base64.b64decode(shot["data"])


def main(source: Path) -> None:
    """Render ``source``, a run folder or an archive of one, and take the picture."""
    with tempfile.TemporaryDirectory() as folder:
        if source.is_file():
            packing.unpack(source, Path(folder))
            source = Path(folder) / "run"
        PICTURE.write_bytes(shoot(page(source)))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else RECORDED)

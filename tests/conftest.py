"""What all tests share: recorded runs as tables, an environment of their own, and their order."""

import gc
import os
import shutil
import signal
import sys
from pathlib import Path

os.environ["POLARS_MAX_THREADS"] = "1"  # the workers are as many as processors, and tables small
os.environ["POLARS_NO_PARTITION"] = "1"  # a group_by of a small table in a third of its time

import pytest
import recordings
from grouping import SLOW, group, in_order
from msgspec.structs import replace

from traceview import limits

TESTS = Path(__file__).parent
CHROMIUM = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run", "--disable-default-apps", "--hide-scrollbars",
)  # fmt: skip
LEFT_BY_TORCH = ("TORCH", "TRITON", "INDUCTOR")  # how the names of its variables begin
#: Folders of tests that work on tables, and start no thread that does.
ON_TABLES = frozenset((
    "check", "compare", "derive", "diagnosis", "jobs", "reports", "rules", "ticket", "torchtext",
    "trials", "truth", "words",
))  # fmt: skip


def pytest_configure(config):
    """The variables of whoever runs the tests are none of theirs."""
    for name in [name for name in os.environ if name.startswith(LEFT_BY_TORCH)]:
        del os.environ[name]
    os.environ.update(recordings.QUICK_STARTS)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each process would compile all it imports
    sys.dont_write_bytecode = False
    gc.disable()  # until all is collected: what is imported stays, a quarter of the time goes there


@pytest.fixture
def limit(monkeypatch):
    """Sets limits of what is read."""

    def to(**values):
        monkeypatch.setattr(limits, "now", replace(limits.now, **values))

    return to


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """A live run's clock is disturbed now and then by what else runs: it has a second chance."""
    for item in items:
        if item.get_closest_marker("live"):
            item.add_marker(pytest.mark.flaky(reruns=1))
    items[:] = in_order(items)


def pytest_collection_finish():
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # millions of rows come and go, next to nothing in a circle
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Of pytest-xdist, for -n auto: one more than processors, since some tests mostly wait."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Of pytest-xdist, where -n is given and no --dist: a worker gets whole groups, in order."""
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group(nodeid)

    config.option.loadscopereorder = False
    return Groups(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Tests that work on tables run where each operation costs least."""
    folder = pyfuncitem.path.relative_to(TESTS).parts[0]
    if folder not in ON_TABLES or any(map(pyfuncitem.get_closest_marker, SLOW)):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    recordings.at_once(pyfuncitem.obj)(**{name: pyfuncitem.funcargs[name] for name in names})
    return True


@pytest.fixture(autouse=True)
def own_environment():
    """What a test, or torch in its process (Inductor names its cache folder), sets goes with it."""
    before, interrupted = dict(os.environ), signal.getsignal(signal.SIGINT)
    yield
    if signal.getsignal(signal.SIGINT) != interrupted:  # a command that ends by it ignores more
        signal.signal(signal.SIGINT, interrupted)
    now = dict(os.environ)
    if "PYTEST_CURRENT_TEST" in now:  # pytest's own: another one in each phase
        before["PYTEST_CURRENT_TEST"] = now["PYTEST_CURRENT_TEST"]
    if now != before:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="session", autouse=True)
def shared_folder(tmp_path_factory, request):
    """Where recorded runs lie unpacked, and as tables, for all workers."""
    base = tmp_path_factory.getbasetemp()
    recordings.Shared.folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / (
        "recordings"
    )
    recordings.Shared.folder.mkdir(exist_ok=True)
    if hasattr(request.config, "cache"):
        kept = request.config.cache.mkdir("tables")
        recordings.Shared.made = kept / recordings.code_key()
        for other in kept.iterdir():
            if other != recordings.Shared.made:
                shutil.rmtree(other, ignore_errors=True)  # another worker may do so, too
    else:  # -p no:cacheprovider
        recordings.Shared.made = recordings.Shared.folder / "tables"
    recordings.Shared.made.mkdir(exist_ok=True)
    with recordings.shared_work():
        yield


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Chromium, without a window: the tests that look at pages are one group."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("chromium and chromedriver are not both on PATH")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*CHROMIUM, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    service = webdriver.ChromeService(executable_path=driver)
    opened = webdriver.Chrome(options=options, service=service)
    yield opened
    opened.quit()
    if service.process is not None:
        service.process.wait(10)


@pytest.fixture
def tables_of():
    """A function: name of a recorded run → its tables, derived ones included."""
    return recordings.tables_of

"""Builds outside the tree: ``pip install .`` leaves no ``build/`` and no egg-info behind in it.

Everything else is in pyproject.toml.
"""

import atexit
import shutil
import sys
import tempfile
from pathlib import Path

from setuptools import setup

scratch = tempfile.mkdtemp(prefix="traceview-build-")
atexit.register(shutil.rmtree, scratch, ignore_errors=True)
options = {"build": {"build_base": str(Path(scratch, "build"))}}
if "sdist" not in sys.argv:  # an sdist packs its own egg-info, which has to lie in the tree
    options["egg_info"] = {"egg_base": scratch}
setup(options=options)

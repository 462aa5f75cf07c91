"""The site of these pages, for Sphinx: ``make docs`` builds it.

Sphinx with MyST and furo, since all three are maintained, and since the last release of MkDocs is
of 2024; it also refuses a configuration that lies among the pages.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = html_title = "traceview"
author = "the traceview authors"
extensions = ["myst_parser"]
html_theme = "furo"
html_show_copyright = False
myst_heading_anchors = 4
nitpicky = True
#: ``make docs`` writes the gallery's reports there.
html_extra_path = ["../build/gallery"]
#: The rules' table is generated, and has no list of contents.
RULES = "\n```{toctree}\n:hidden:\n:glob:\n\nrules/*\n```\n"
#: A link to a file of the repository that is no page.
OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([\w/.\-]+)\)")


def _for_the_site(_: Sphinx, page: str, text: list[str]) -> None:
    if page == "rules":
        text[0] += RULES
    if "/" not in page:
        text[0] = OUTSIDE.sub(r"\1 (`\2`)", text[0])


def setup(app: Sphinx) -> None:
    """Sphinx calls this before it reads the pages."""
    app.connect("source-read", _for_the_site)

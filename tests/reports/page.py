"""A walk over an HTML page: elements with their attributes, text outside them, balance of tags."""

from html.parser import HTMLParser

VOID = {"meta", "wbr", "br", "img", "input", "link", "hr"}
DRAWN = {"rect", "line", "circle", "path"}


class Page(HTMLParser):
    """``elements`` are (tag, attributes); ``text`` is everything that a reader sees."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.elements, self.problems, self.pieces = [], [], []
        self._open = []
        self.feed(source)
        self.close()
        self.problems += [f"<{tag}> is never closed" for tag in self._open]

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in DRAWN:
            self.problems.append(f"<{tag}/> closes itself")

    def handle_endtag(self, tag):
        if not self._open or self._open.pop() != tag:
            self.problems.append(f"</{tag}> closes something else, line {self.getpos()[0]}")

    def handle_data(self, data):
        if not self._open or self._open[-1] not in {"script", "style"}:
            self.pieces.append(data)

    @property
    def text(self):
        return " ".join("".join(self.pieces).split())

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

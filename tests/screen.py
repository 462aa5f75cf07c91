"""A page as a reader sees it in headless Chromium: its screen, its theme, and what is on it.

The browser itself is the fixture ``browser``: one for a worker.
"""

# Every element that has text of its own, with its colours as the browser computed them. A label in
# a bar lies on its neighbour's fill; anything else on the nearest ancestor that has a background.
COLOURS = """
const seen = [];
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  if (!own || ["SCRIPT", "title", "desc", "TITLE"].includes(element.tagName)) continue;
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  if (!box.width || style.visibility === "hidden" || element.classList.contains("skip")) continue;
  const svg = element.ownerSVGElement;
  let back = null;
  if (svg && element.classList.contains("inside")) {
    back = getComputedStyle(element.parentElement.querySelector("rect")).fill;
  } else {
    for (let up = svg || element; up; up = up.parentElement) {
      const colour = getComputedStyle(up).backgroundColor;
      if (!/rgba\\(.*, 0\\)/.test(colour)) { back = colour; break; }
    }
  }
  const name = element.tagName + "." + (element.getAttribute("class") || "");
  seen.push([name, svg ? style.fill : style.color, back, element.textContent.trim().slice(0, 40)]);
}
return seen;
"""
# Text of a picture that leaves it, and pairs of texts that lie on each other.
COLLISIONS = """
const found = [];
for (const svg of document.querySelectorAll("svg.picture")) {
  const room = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")]
    .map((text) => [text.textContent.slice(0, 40), text.getBoundingClientRect()])
    .filter(([words, box]) => box.width > 0);
  for (const [words, box] of texts) {
    if (box.left < room.left - 1 || box.right > room.right + 1 || box.top < room.top - 1
        || box.bottom > room.bottom + 1) found.push([svg.id, "leaves", words]);
  }
  texts.forEach(([words, one], index) => texts.slice(index + 1).forEach(([others, other]) => {
    const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    if (across > 2 && down > 4) found.push([words, "lies on", others]);
  }));
}
return found;
"""
# What is wider than the box it scrolls in, by its section.
WIDE = (
    "return [...document.querySelectorAll('.scroll')].filter(b => b.scrollWidth > "
    "b.clientWidth + 1).map(b => b.closest('section').id)"
)


def show(browser, address, width=1280, theme="light", script=True, media=""):
    """Load a page as a reader of that screen, theme and script setting would."""
    look(browser, width, theme, media)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not script})
    browser.get(address)


def look(browser, width=1280, theme="light", media=""):
    """Have the page that is shown laid out and coloured for that screen."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [feature]})


def fits(browser, width):
    """Whether the page needs no scrolling sideways on a screen of that width."""
    across = "return [innerWidth, document.documentElement.scrollWidth]"
    screen, page = browser.execute_script(across)
    assert screen >= width, "the screen is as wide as asked"
    return page <= width


def weak(browser):
    """What is written with too little contrast; what is looked at is not nothing."""
    seen = browser.execute_script(COLOURS)
    assert len(seen) > 20
    return [item for item in seen if contrast(rgb(item[1]), rgb(item[2])) < 4.5]


def open_everything(browser):
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")


def rgb(colour):
    """The three channels of ``rgb(…)`` or ``rgba(…)`` as the browser writes it."""
    numbers = colour[colour.index("(") + 1 : colour.index(")")].split(",")
    return [float(number) for number in numbers[:3]]


def contrast(one, other):
    """WCAG 2's contrast ratio."""
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def luminance(channels):
    scaled = [channel / 255 for channel in channels]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in scaled]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

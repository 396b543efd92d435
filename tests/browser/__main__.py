"""Look at an incident report in a real browser: ``python -m tests.browser`` (``make rehearse``).

Every width and colour scheme is drawn into ``artifacts/browser/``, for people to look at.  What a
program can see is held here: nothing is asked for outside, nothing runs, no page is wider than its
window, and every text stands out from what is behind it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path
from typing import Any

from leasebook.projections.incident.page import page
from tests.projections.test_incident import bad_minute
from tests.support.source import TOP

PICTURES = TOP / "artifacts" / "browser"
WIDTHS = (1200, 768, 390)
SCHEMES = {"light": "1", "dark": "0"}
CONTRAST_MIN = 4.5
#: Runs in the page once its policy, which forbids scripts, is out of the way.
PROBE = """
<script>
addEventListener("load", () => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((each) => each / 255)
    .map((each) => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
    .reduce((sum, each, place) => sum + each * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = parse(getComputedStyle(each).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  let contrast = 21;
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((each) => each.nodeType === 3 && each.data.trim());
    if (!own || element.closest("title, script")) continue;
    const style = getComputedStyle(element);
    const ink = light(parse(element.closest("svg") ? style.fill : style.color));
    const ground = light(behind(element));
    contrast = Math.min(contrast, (Math.max(ink, ground) + .05) / (Math.min(ink, ground) + .05));
  }
  const found = {
    contrast, width: document.documentElement.scrollWidth, window: innerWidth,
    asked: performance.getEntriesByType("resource").length,
    scripts: document.scripts.length, dark: matchMedia("(prefers-color-scheme: dark)").matches,
  };
  parent.postMessage(JSON.stringify(found), "*");
});
</script>
"""
#: A window is never as narrow as a telephone, but a frame in it is.
FRAME = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0"><script>
addEventListener("message", (event) => {
  const told = document.createElement("pre");
  told.id = "found";
  told.textContent = event.data;
  document.body.append(told);
});
</script><iframe src="WHAT" style="border:0;width:WIDTHpx;height:HEIGHTpx"></iframe></body>
"""


def main() -> int:
    """Look at every width and scheme; 1 when something is wrong, 2 without a browser."""
    browser = shutil.which("chromium")
    if browser is None:
        print("no chromium here: .ci/chromium gets it", file=sys.stderr)
        return 2
    PICTURES.mkdir(parents=True, exist_ok=True)
    text = page(bad_minute())
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        plain, probed = Path(folder, "report.html"), Path(folder, "probed.html")
        plain.write_text(text, "utf-8")
        open_page = re.sub(r"<meta http-equiv[^>]*>", "", text)
        probed.write_text(open_page.replace("</body>", PROBE + "</body>"), "utf-8")
        for scheme, number in SCHEMES.items():
            for width in WIDTHS:
                height = 4_000 if width > 500 else 6_500
                options = [
                    f"--blink-settings=preferredColorScheme={number}",
                    f"--window-size={width},{height}",
                ]
                picture = PICTURES / f"incident-{scheme}-{width}.png"
                shown = framed(plain, width, height)
                run(browser, shown, *options, f"--screenshot={picture}")
                dom = run(browser, framed(probed, width, height), *options, "--dump-dom")
                found = read(dom)
                for problem in problems(found, dark=scheme == "dark"):
                    wrong += 1
                    print(f"{scheme}, {width} pixels: {problem}")
                seen, contrast = found["window"], found["contrast"]
                print(f"{scheme}, {seen} pixels: contrast {contrast:.1f}, {picture.name}")
    return 1 if wrong else 0


def framed(what: Path, width: int, height: int) -> Path:
    """A page that shows another in a frame of this width."""
    frame = what.with_name("frame.html")
    text = FRAME.replace("WHAT", what.name).replace("WIDTH", str(width))
    frame.write_text(text.replace("HEIGHT", str(height)), "utf-8")
    return frame


def run(browser: str, what: Path, *options: str) -> str:
    """Let the browser do one thing with a page; what it prints."""
    # As root Chromium has no sandbox; the page is our own.
    command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    done = subprocess.run(
        [*command, *options, what.as_uri()], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def read(dom: str) -> dict[str, Any]:
    """What the probe has found."""
    told = re.search(r'<pre id="found">(.*?)</pre>', dom)
    assert told is not None, "the probe did not run"
    found: dict[str, Any] = json.loads(unescape(told[1]))
    return found


def problems(found: dict[str, Any], *, dark: bool) -> list[str]:
    """What is wrong with a page."""
    told: list[str] = []
    if found["dark"] != dark:
        told.append("the colour scheme is not the one that was asked for")
    if found["width"] > found["window"]:
        told.append(f"the page is {found['width']} pixels wide")
    if found["asked"]:
        told.append(f"{found['asked']} things were asked for outside")
    if found["scripts"] != 1:
        told.append("there is a script in the page")
    if found["contrast"] < CONTRAST_MIN:
        told.append(f"a text has a contrast of {found['contrast']:.1f} only")
    return told


if __name__ == "__main__":
    sys.exit(main())

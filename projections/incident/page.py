"""An incident report as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..replay.clock import length, micros
from . import sections
from .markup import Html, html, stamp, tag
from .style import STYLE
from .values import Incident

Section = Callable[[Incident], Iterable[Html]]
SECTIONS: dict[str, tuple[str, Section]] = {
    "depth": ("Depth over time", sections.depth),
    "waits": ("Waits", sections.waits),
    "failures": ("Failures", sections.failures),
    "leases": ("Lost leases and double runs", sections.lost),
    "workers": ("Workers", sections.workers),
    "changes": ("Control changes", sections.changes),
    "jobs": ("The jobs that suffered most", sections.stories),
}
#: Nothing but the styles in the page itself may be used by it, whatever somebody smuggled in.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(incident: Incident) -> str:
    """The whole page."""
    since, until = incident.since, incident.until
    title = f"Incident report {since:%Y-%m-%d %H:%M:%S} to {until:%Y-%m-%d %H:%M:%S} UTC"
    links = [tag("li", tag("a", name, href=f"#{at}")) for at, (name, _) in SECTIONS.items()]
    told = [
        tag("section", tag("h2", name, id=at), *section(incident), aria_labelledby=at)
        for at, (name, section) in SECTIONS.items()
    ]
    chosen = ", ".join(incident.chosen) or "all jobs"
    window = tag(
        "p", stamp(since), " to ", stamp(until), f" ({length(micros(until) - micros(since))}); ",
        chosen, class_="quiet",
    )  # fmt: skip
    head = tag("header", tag("h1", "Incident report"), window)
    nav = tag("nav", tag("ul", *links), aria_label="Sections")
    main = tag("main", sections.in_short(incident), *told)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n{head}\n{nav}\n{main}\n</body>\n</html>\n"
    )

"""The CPU time that Chromium takes from the opening of a page to its first paint, from its own trace of its work."""

import json

CATEGORIES = ("devtools.timeline", "disabled-by-default-devtools.timeline", "blink.user_timing")
BEGIN, LOADED, PAINT, SHOWN = "navigationStart", "CommitLoad", "Paint", "firstContentfulPaint"


def first_paint_s(browser, path):
    """Seconds of the thread that reads, lays out and paints the page, in the tasks begun before something is seen."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    browser.start_tracing(page=page, categories=list(CATEGORIES))
    page.goto(path.as_uri())
    page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
    page.wait_for_timeout(100)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    page.close()
    shown = max((one for one in events if one["name"] == SHOWN), key=lambda one: one["ts"])
    own = [
        one for one in events if (one["pid"], one["tid"]) == (shown["pid"], shown["tid"]) and one["ts"] < shown["ts"]
    ]
    began, loaded = (max(one["ts"] for one in own if one["name"] == name) for name in (BEGIN, LOADED))
    painted = min(
        one["ts"] for one in own if one["name"] == PAINT and one["ts"] > loaded
    )  # on the screen some time later
    return sum(one["tdur"] for one in own if one["name"] == "RunTask" and began <= one["ts"] <= painted) / 1e6

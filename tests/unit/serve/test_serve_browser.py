"""The site in Chromium: what is recorded follows by itself, filters stay in the address, two ticks are compared."""

import pytest
from layout import faults

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_cache")]  # starts a browser


@pytest.fixture
def visit(served, browser, barriers):
    """`visit(path)` opens a page of the site, which nobody is kept from, and which complains of nothing."""
    ask, complaints, pages = served(), [], []

    def go(path="/", width=1000):
        page = browser.new_page(viewport={"width": width, "height": 900})
        pages.append(page)
        page.complain = lambda message: complaints.append(message.text)
        page.on("console", page.complain)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"http://127.0.0.1:{ask.port}/?token={ask.token}")
        if path != "/":
            page.goto(f"http://127.0.0.1:{ask.port}{path}")
        assert barriers(page) == []
        assert faults(page) == []
        return page

    yield go
    for page in pages:
        page.close()
    assert complaints == []


@pytest.mark.parametrize("width", [400, 1600])
def test_a_run_that_is_recorded_follows_by_itself_and_is_a_report_when_it_has_ended(visit, recorded, recording, width):
    recorded("done", 1)
    page = visit(width=width)
    assert page.locator("[data-live] .card").inner_text().count("1 steps/s") == 1
    page.wait_for_function("() => document.querySelector('[data-live]').innerText.includes('2 steps/s')")
    assert page.locator("[data-live] .sparkline").count() == 1
    page.get_by_role("link", name="now", exact=True).first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/run/now")
    recording.manifest.state = "complete"
    recording.save()
    page.wait_for_selector("h1:has-text('pipeprof report')")


def test_the_figures_of_a_server_that_is_gone_are_called_old(visit, recording):
    page = visit()
    page.remove_listener("console", page.complain)  # the browser itself tells of such an answer
    page.route("**/live", lambda route: route.fulfill(status=503))
    page.wait_for_selector("[data-live].lost")
    page.unroute("**/live")
    page.wait_for_selector("[data-live]:not(.lost)")


def test_the_choices_of_a_list_stay_in_the_address(visit, recorded):
    for minute in range(3):
        recorded(f"run{minute}", minute, state="partial" if minute == 1 else "complete")
    page = visit()
    page.get_by_label("state").select_option("partial")
    assert page.locator("tbody tr:visible").count() == 1
    page.get_by_label("search").fill("run")
    page.get_by_role("button", name="started").click()
    assert all(part in page.url for part in ("state=partial", "search=run", "sort=started"))
    page.reload()
    assert page.locator("tbody tr:visible").count() == 1
    assert page.get_by_label("state").input_value() == "partial"


def test_two_ticks_are_compared_with_the_keyboard_alone(visit, recorded):
    for minute, length in enumerate((10, 20, 30)):
        recorded(f"run{minute}", minute, length)
    page = visit()
    send = page.get_by_role("button", name="Compare the two ticked runs")
    assert send.is_disabled()
    boxes = page.get_by_role("checkbox")
    for at in range(2):
        boxes.nth(at).focus()
        page.keyboard.press("Space")
    assert page.get_by_text("2 of 2 ticked").is_visible()
    send.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/compare?run=run2&run=run1")
    assert "+50.0 %" in page.locator("h1").inner_text()

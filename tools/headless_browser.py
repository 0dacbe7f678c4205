"""A real browser without a screen: Debian's Chromium, driven by selenium."""

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LAPTOP = (1400, 900)
PHONE = (390, 844)


def missing() -> str:
    """What is missing to start the browser, as a sentence; nothing if all is there."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed: pip install 'cagat[dev]'"
    lacking = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(lacking)} not found: make test-browser installs them from Debian" if lacking else ""


@contextlib.contextmanager
def browser(size: tuple[int, int] = LAPTOP) -> Iterator[Any]:
    """A browser with a window of this size; one as narrow as a phone says that it is one."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    width, height = size
    # No sandbox: as root, as in a container, Chromium does not start with one.
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        yield driver
    finally:
        driver.quit()


def open_page(driver: Any, path: Path, seconds: float = 60) -> None:
    """Open a page that `cagat explore` wrote, and wait until it is drawn."""
    driver.get(path.absolute().as_uri())
    end = time.monotonic() + seconds
    while driver.execute_script("return document.body.dataset.ready") != "yes":
        if time.monotonic() > end:
            raise TimeoutError(f"{path} is not drawn after {seconds} s: {driver.get_log('browser')}")
        time.sleep(0.1)


def complaints(driver: Any) -> list[str]:
    """The errors on the console."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]

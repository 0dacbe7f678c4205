"""Take the screenshots in docs/images of a page that `cagat explore` wrote: python tools/take_screenshots.py PAGE."""

import argparse
import time
from pathlib import Path

from PIL import Image

from headless_browser import LAPTOP, PHONE, browser, complaints, open_page

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def main() -> None:
    """Write explore-1400x900.png and explore-390x844.png, with a palette, so that they stay small."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("--out", type=Path, default=IMAGES)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for size in (LAPTOP, PHONE):
        with browser(size) as driver:
            open_page(driver, arguments.page)
            time.sleep(1)  # For what is drawn after the page says it is ready.
            path = arguments.out / f"explore-{size[0]}x{size[1]}.png"
            driver.save_screenshot(str(path))
            if found := complaints(driver):
                raise SystemExit(f"{arguments.page}: {found}")
        Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)
        print(path)


if __name__ == "__main__":
    main()

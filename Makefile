# `make demo` and `make test` need only Python 3.10+, make and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# One more than there are cores, since some tests wait for a page, a process or the code that another one compiles.
WORKERS := $(shell $(PYTHON) -c "import os; print(min(4, (os.cpu_count() or 1) + 1))")
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.PHONY: demo test suite test-browser docs lint bench faults clean

demo: $(INSTALLED)
	$(BIN)/cagat demo

# The types are checked beside the tests: they take one core, and some tests none.
test: $(INSTALLED)
	@$(MAKE) --no-print-directory --jobs 2 lint suite

suite: $(INSTALLED)
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal --durations 20 --cov --cov-report=term --cov-fail-under=95

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict src

# The pages of `cagat explore` and `cagat label` in Debian's Chromium. `make test` runs the same where a browser is there, and skips it elsewhere.
test-browser: $(INSTALLED)
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || { \
	  echo "Installing chromium and chromium-driver from Debian"; \
	  $(SUDO) apt-get update --quiet && \
	  $(SUDO) apt-get install --quiet --yes --no-install-recommends chromium chromium-driver fonts-liberation; }
	CAGAT_BROWSER=required $(BIN)/python -m pytest tests/explore/test_browser.py tests/labelling/test_browser.py

docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

bench: $(INSTALLED)
	$(BIN)/cagat bench

faults: $(INSTALLED)
	$(BIN)/python tools/faults.py --quick

clean:
	rm -rf $(VENV) site

# The stamp is written last, so an interrupted set-up starts again, and a finished one costs nothing.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and f"cagat needs Python 3.10 or newer, but $(PYTHON) is {sys.version.split()[0]}. Try: make PYTHON=python3.12 ...")'
	@echo "Setting up $(VENV) (once; a few minutes, most of it PyTorch)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

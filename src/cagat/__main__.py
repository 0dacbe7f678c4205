"""Run the command line as `python -m cagat`."""

from cagat.cli import main

if __name__ == "__main__":
    main()

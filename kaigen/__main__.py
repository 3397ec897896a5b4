"""`python -m kaigen`."""

from kaigen.cli import main

if __name__ == "__main__":
    main()

"""``python -m memviz``."""

import sys

from memviz.cli import main

if __name__ == "__main__":
    sys.exit(main())

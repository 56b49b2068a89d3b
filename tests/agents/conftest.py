"""Makes tests/python and tests/explain importable."""

import sys
from pathlib import Path

for folder in ("python", "explain"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / folder))

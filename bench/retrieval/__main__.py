"""Run the retrieval bench: `python -m bench.retrieval`, with --fit to fit the calibration anew."""

from __future__ import annotations

import sys

from bench.retrieval.measure import main

sys.exit(main(sys.argv[1:]))

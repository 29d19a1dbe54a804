"""Settings shared by all tests: how long hypothesis searches.

`quick` runs the same examples every time, so a failure seen once is seen again. `full` searches at random and
for longer; `python3 dev.py laws` asks for it with WOODRAT_LAWS=full.
"""

from __future__ import annotations

import os
import tempfile

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.commands"]

settings.register_profile(
    "quick", max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("full", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# At import, because decorators of test modules read the profile before any fixture could set it.
_chosen = os.environ.get("WOODRAT_LAWS", "quick")
if _chosen not in ("quick", "full"):
    raise RuntimeError(f'WOODRAT_LAWS: expected "quick" or "full", got "{_chosen}". Leave it unset for "quick".')
settings.load_profile(_chosen)

# No test sees the keys of whoever runs it; those that need some make them.
os.environ.pop("WOODRAT_SIGNING_KEYS", None)
os.environ["XDG_CONFIG_HOME"] = os.path.join(tempfile.gettempdir(), "woodrat-tests-no-configuration")

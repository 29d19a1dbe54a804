"""The library: the verbs that users call, here, behind a server, and as coroutines."""

import woodrat.explain.index  # noqa: F401 - it declares what writes list of their entries

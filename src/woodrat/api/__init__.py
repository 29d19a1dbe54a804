"""The library: the verbs that users call, here, behind a server, and as coroutines."""

from woodrat.api import log_listings as log_listings

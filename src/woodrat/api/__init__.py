"""The library: the verbs that users call, here, behind a server, and as coroutines."""

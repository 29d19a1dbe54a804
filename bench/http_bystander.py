"""`python -m bench.http_bystander PORT COUNT SECONDS`: show entities for a while; print the median time of an answer.

The key comes on standard input. It is a process of its own: what other clients do with their answers is not measured.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from urllib.parse import quote

from bench import records
from bench.http_load import Client

PAUSE_SECONDS = 0.02
"""How long it waits between two requests."""


def main() -> None:
    """Show one entity after the other; print the median in milliseconds."""
    port, count, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    key = sys.stdin.read().strip()
    client = Client(port)
    times: list[float] = []
    end, number = time.perf_counter() + seconds, 0
    while time.perf_counter() < end or not times:
        number += 1
        path = f"/v1/entities/{quote(records.ref(number * 91 % count))}"
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n"
        times.append(client.ask(request.encode()))
        time.sleep(PAUSE_SECONDS)
    client.socket.close()
    print(1_000 * median(times))


if __name__ == "__main__":
    main()

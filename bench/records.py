"""Records: what two agents say about contacts and shipments.

A contact has a built-in schema, a shipment is of an open type. Everything follows from a seed, so a run can be
repeated, and from every record follow the bytes the log keeps of it, which the raw side stores as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from woodrat.canon import moment
from woodrat.canon.ids import Ref
from woodrat.state import observation

AGENTS = ("crm-sync", "mail-reader")
"""Who says it; they take turns."""
BEGIN_MICROS = moment.to_micros("2024-01-01T00:00:00.000000Z")
"""When the first record was seen; the log takes no moment that lies ahead of it."""
STEP_MICROS = 1_000_000
"""How far apart two moments are."""
ENTITIES_MAX = 2 * 40 * 50 * 26
"""From here on contacts would share names, and each write would hint at that."""

_FIRST = (  # noqa: SIM905
    "Ana Bo Carla Dmitri Elif Farid Greta Hugo Ines Jonas Keiko Lars Maya Nils Olga Pedro Quinn Rosa Sven Tara "
    "Ugo Vera Wim Xenia Yusuf Zoe Amir Bea Chen Dora Emil Fay Gus Hana Ivo June Karl Lena Marc Noor"
).split()
_LAST = (  # noqa: SIM905
    "Rivera Ek Santos Petrov Demir Haddad Lindqvist Moreau Costa Weber Tanaka Holm Okafor Berg Ivanova Alvarez "
    "Walsh Marino Nyberg Kapoor Rossi Novak Jansen Orlova Kaya Frank Nasser Bianchi Wong Kovacs Huber Doyle "
    "Vogel Sato Marek Lowe Braun Fischer Silva Karimi Mensah Ortega Price Quist Reyes Stone Thorne Urban Voss York"
).split()
_CITIES = ("Barcelona", "Lund", "Porto", "Girona", "Hamburg", "Lyon", "Oslo", "Trieste", "Gdansk", "Rotterdam")
_ROLES = ("Head of Procurement", "Operations Manager", "Account Executive", "Logistics Planner", "Finance Lead")
_COMPANIES = ("Acme Iberia", "Nordwind Logistik", "Atelier Moreau", "Kaya & Sons", "Blue Harbour Foods")
_CONTACT_STATES = ("lead", "customer", "partner", "former")
_CARRIERS = ("Nordwind Express", "Iberia Cargo", "Blue Harbour Lines", "TransAlp")
_SHIPMENT_STATES = ("booked", "picked_up", "in_transit", "at_customs", "delivered")
_REMARKS = (
    "Left at the north gate, signed by the warehouse clerk.",
    "Held two hours at the terminal, new arrival confirmed.",
    "Temperature logged every ten minutes, all in range.",
    "Second attempt after the address had been corrected.",
)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one agent says in one call."""

    agent: str
    """Who says it."""
    observed_at: str
    """When it was seen, unless a record has its own moment."""
    records: list[dict[str, Any]]
    """The records, as `store` takes them."""

    def rows(self) -> list[tuple[bytes]]:
        """Return the bodies the log keeps of these records, as rows for the raw side."""
        return [(self._body(record),) for record in self.records]

    def _body(self, record: Mapping[str, Any]) -> bytes:
        about = record.get("$", {})
        fields = {name: value for name, value in record.items() if name not in ("entity_type", "$")}
        ref = Ref(record["entity_type"], fields["email"] if "email" in fields else fields["id"])
        said_at = about.get("observed_at", self.observed_at)
        return observation.say(ref, observation.ASSERT, agent=self.agent, observed_at=said_at, fields=fields).body


class Records:
    """A source of batches about numbered entities, the even ones contacts and the odd ones shipments."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)
        self._calls = 0
        self.micros = BEGIN_MICROS
        """The last moment given to anything."""

    def batch(self, entities: Iterable[int], *, apart: bool = False) -> Batch:
        """Return the next batch, one record for each number; `apart` gives each record a moment of its own."""
        self._calls += 1
        records = [self._record(number) for number in entities]
        if apart:
            for record in records:
                record["$"] = {"observed_at": self._moment()}
        return Batch(AGENTS[self._calls % len(AGENTS)], self._moment(), records)

    def _moment(self) -> str:
        self.micros += STEP_MICROS
        return moment.from_micros(self.micros)

    def _record(self, number: int) -> dict[str, Any]:
        return self._shipment(number) if number % 2 else self._contact(number)

    def _contact(self, number: int) -> dict[str, Any]:
        pick = self._random.choice
        return {
            "entity_type": "contact",
            "name": name(number),
            "email": _email(number),
            "company": _COMPANIES[number % len(_COMPANIES)],
            "role": pick(_ROLES),
            "city": pick(_CITIES),
            "status": pick(_CONTACT_STATES),
            "last_contacted_at": f"2023-{self._random.randint(1, 12):02d}-{self._random.randint(1, 28):02d}T09:30:00Z",
            "open_deals": self._random.randint(0, 40),
        }

    def _shipment(self, number: int) -> dict[str, Any]:
        pick = self._random.choice
        return {
            "entity_type": "shipment",
            "id": _shipment_id(number),
            "carrier": pick(_CARRIERS),
            "origin": _CITIES[number % len(_CITIES)],
            "destination": pick(_CITIES),
            "status": pick(_SHIPMENT_STATES),
            "parcels": self._random.randint(1, 48),
            "weight_grams": self._random.randint(200, 900_000),
            "remark": pick(_REMARKS),
        }


def ref(number: int) -> str:
    """Return the reference of a numbered entity."""
    return f"shipment/{_shipment_id(number)}" if number % 2 else f"contact/{_email(number)}"


def name(number: int) -> str:
    """Return a contact's name; no two share one below `ENTITIES_MAX`."""
    person = number // 2
    first, last = _FIRST[person % 40], _LAST[person // 40 % 50]
    return f"{first} {chr(ord('A') + person // 2_000 % 26)}. {last}"


def _email(number: int) -> str:
    return f"{name(number).lower().replace('. ', '.').replace(' ', '.')}@example.org"


def _shipment_id(number: int) -> str:
    return f"SHP-2024-{number:07d}"

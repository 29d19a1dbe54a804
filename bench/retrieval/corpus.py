"""The corpus: runs, facts and notes from the scenarios, and the questions about them, each with what answers it.

Everything is drawn with a seed, so the same corpus is made every time. A third of the scenarios is set apart for fitting
the calibration; no question about them is reported on.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import cycle
from random import Random
from typing import Any

import woodrat
from bench.retrieval import scenarios
from woodrat.canon import moment

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
"""When the questions are asked: a Tuesday."""
PER_SCENARIO = 17
PER_FACT = 90
PER_NOTE = 6
FACTS_MIN = 520
"""How many facts there are at least; those that the scenarios do not come to are of people nobody asks about."""

FIRST = [
    "Ana",
    "Bruno",
    "Clara",
    "Dmitri",
    "Elena",
    "Farid",
    "Greta",
    "Hugo",
    "Irene",
    "Jonas",
    "Karin",
    "Luis",
    "Marta",
    "Nadia",
    "Oscar",
    "Paula",
    "Quentin",
    "Rosa",
    "Samir",
    "Tessa",
    "Ulrich",
    "Vera",
    "Walter",
    "Yara",
    "Zoe",
    "Amir",
    "Bella",
    "Carlos",
    "Dora",
    "Emil",
    "Fiona",
    "Georg",
    "Hanna",
    "Ivan",
    "Julia",
    "Kofi",
    "Lena",
    "Milan",
    "Nora",
    "Omar",
]
LAST = [
    "Rivera",
    "Stone",
    "Keller",
    "Novak",
    "Silva",
    "Haddad",
    "Larsen",
    "Moreau",
    "Tanaka",
    "Okafor",
    "Petrov",
    "Weber",
    "Costa",
    "Jensen",
    "Farkas",
    "Dubois",
    "Marino",
    "Schulz",
    "Ortega",
    "Lindgren",
    "Pereira",
    "Kowalski",
    "Banerjee",
    "Fischer",
    "Molina",
    "Brennan",
    "Sato",
    "Virtanen",
    "Castro",
    "Engel",
    "Rossi",
    "Yilmaz",
    "Horvat",
    "Mendes",
    "Nguyen",
    "Olsen",
    "Park",
    "Quiroga",
    "Romero",
    "Stein",
]
VOCABULARY: dict[str, list[str]] = {
    "company": [
        "Acme",
        "Brightwater",
        "Cobalt",
        "Dynaflow",
        "Evergreen",
        "Fennec",
        "Granite",
        "Halcyon",
        "Ironwood",
        "Juniper",
        "Kestrel",
        "Lumen",
        "Meridian",
        "Northgate",
        "Obsidian",
        "Pinecrest",
        "Quasar",
        "Redwood",
        "Solstice",
        "Tamarind",
        "Umberlight",
        "Vantage",
        "Westfield",
        "Xylon",
        "Yarrow",
        "Zenith",
        "Ambrose",
        "Bluefin",
        "Cedarline",
        "Driftwood",
        "Emberly",
        "Foxglove",
        "Goldleaf",
        "Harborview",
        "Inkwell",
        "Jasperco",
        "Kiteworks",
        "Larkspur",
        "Mosaic",
        "Nimbus",
        "Oakhurst",
        "Pelican",
        "Quarry",
        "Riverbend",
        "Stonebridge",
        "Thistle",
        "Upland",
        "Valoria",
        "Wildrose",
        "Zephyr",
    ],
    "service": [
        "billing-api",
        "checkout",
        "search-gateway",
        "auth-proxy",
        "ledger-sync",
        "image-resizer",
        "mail-relay",
        "payroll-batch",
        "report-builder",
        "session-store",
        "geo-lookup",
        "push-notifier",
        "invoice-render",
        "metrics-hub",
        "feed-ranker",
        "order-router",
        "price-engine",
        "stock-watcher",
        "token-issuer",
        "upload-worker",
        "video-encoder",
        "web-frontend",
        "chat-bridge",
        "cron-runner",
        "data-exporter",
        "edge-cache",
        "fraud-scorer",
        "graph-loader",
        "hook-sender",
        "id-minter",
    ],
    "project": [
        "Apollo",
        "Borealis",
        "Cygnus",
        "Delphi",
        "Euclid",
        "Fermata",
        "Gemini",
        "Hermes",
        "Icarus",
        "Janus",
        "Kepler",
        "Lynx",
        "Mercury",
        "Nautilus",
        "Orion",
        "Pegasus",
        "Quicksilver",
        "Rosetta",
        "Sphinx",
        "Triton",
        "Ursa",
        "Vega",
        "Wombat",
        "Xanadu",
        "Yellowstone",
        "Zodiac",
        "Andromeda",
        "Beagle",
        "Caravel",
        "Dolphin",
    ],
    "item": """espresso machine|desk lamp|yoga mat|trekking backpack|ceramic teapot|noise cancelling headset|standing desk
        |bicycle helmet|cast iron pan|folding chair|winter jacket|wireless keyboard|electric kettle|camping stove
        |garden hose|baby monitor|air purifier|robot vacuum|hiking boots|smart watch|power drill|picture frame
        |travel pillow|wine cooler|rowing machine|bread maker|projector screen|fish tank|hair dryer
        |record player""".replace("\n", "").split("|"),
    "city": [
        "Girona",
        "Leeds",
        "Porto",
        "Utrecht",
        "Bergen",
        "Graz",
        "Lyon",
        "Bilbao",
        "Aarhus",
        "Turin",
        "Gdansk",
        "Cork",
        "Basel",
        "Malmo",
        "Ghent",
        "Sevilla",
        "Brno",
        "Nantes",
        "Tampere",
        "Split",
        "Leipzig",
        "Coimbra",
        "Kaunas",
        "Verona",
    ],
    "role": """data engineer|product designer|nurse|accountant|site manager|translator|chemist|sales lead|architect
        |electrician|teacher|lawyer|baker|pilot|librarian""".replace("\n", "").split("|"),
    "peril": [
        "water damage",
        "burst pipe",
        "hail",
        "burglary",
        "kitchen fire",
        "fallen tree",
        "storm",
        "broken window",
    ],
    "feature": """dark mode|voice search|offline maps|group chat|price alerts|photo tagging|one tap login|split screen
        |gift wrapping|auto translate|calendar sync|receipt scanner|live captions|family sharing|night radio
        |guest checkout|swipe to archive|bulk export|color themes|emoji reactions""".replace("\n", "").split("|"),
    "event": """harvest festival|developer summit|book fair|alumni dinner|robotics contest|charity gala|film week
        |science night|jazz weekend|security conference|spring marathon|design biennale|chess open|startup day
        |gardeners market|poetry slam|trade fair|kids olympics|data symposium|wine tasting""".replace("\n", "").split(
        "|"
    ),
    "procedure": [
        "knee arthroscopy",
        "colonoscopy",
        "heart ultrasound",
        "cataract surgery",
        "allergy test",
        "shoulder scan",
        "tooth extraction",
    ],
    "street": """Elm Street|Quay Lane|Mill Road|Rose Alley|Station Square|Chapel Hill|Harbour Row|Linden Avenue|Castle Walk
        |Orchard Close|Bridge Street|North Terrace|Market Place|Priory Gardens|Wharf Side|Abbey Court|Forge Lane
        |Spring Grove|King Parade|Vine Yard""".replace("\n", "").split("|"),
    "machine": """press P4|lathe L2|oven O7|conveyor C3|mill M9|packer K1|welder W5|mixer X6|cutter T8|robot arm R2
        |extruder E3|grinder G4|pump U1|boiler B6|loom N2|crane H5|sorter S9|filler F7|dryer D4|chiller A3""".replace(
        "\n", ""
    ).split("|"),
    "vehicle": """delivery van|forklift|electric scooter|pickup truck|cargo bike|minibus|street sweeper|box trailer|snow plough
        |tractor unit|tow truck|golf cart|camper|fuel tanker|crane truck|tipper|flatbed|hearse|ambulance
        |food truck""".replace("\n", "").split("|"),
    "dish": """pumpkin risotto|lamb tagine|beet carpaccio|duck ramen|mushroom pie|saffron paella|lentil dal|plum dumplings
        |sea bass ceviche|truffle gnocchi|goat curry|fig tart|clam chowder|eggplant parmigiana|venison stew|okra gumbo
        |chestnut soup|crab cakes|walnut baklava|herring salad""".replace("\n", "").split("|"),
    "subject_taught": ["algebra", "chemistry", "Latin", "drawing", "piano", "physics", "geography"],
    "industry": [
        "textiles",
        "logistics",
        "dental supplies",
        "wind energy",
        "publishing",
        "dairy",
        "shipbuilding",
        "cosmetics",
        "toys",
        "insurance",
    ],
    "team": [
        "platform team",
        "growth squad",
        "payments crew",
        "data guild",
        "mobile group",
        "trust unit",
        "core infra",
    ],
    "runtime": ["Kubernetes", "Lambda", "Nomad", "Fargate", "bare-metal", "Heroku"],
    "region": ["eu-west", "us-east", "ap-south", "eu-north", "sa-east", "ca-central"],
    "colour": ["crimson", "turquoise", "ochre", "charcoal", "ivory", "violet", "olive"],
    "status": ["blocked", "in progress", "not started", "waiting for review", "done"],
    "instrument": ["cello", "trumpet", "accordion", "drums", "clarinet", "banjo"],
    "kid": ["Mila", "Theo", "Luca", "Ines", "Noor", "Finn", "Alba", "Otto"],
    "kid2": ["Sofia", "Matteo", "Aino", "Pablo", "Ruth", "Edda", "Jana", "Levi"],
    "oldname": ["Bluebird", "Catapult", "Dingo", "Fulcrum", "Gazelle", "Hopper", "Inkling", "Jigsaw"],
    "month_name": ["January", "February", "April", "June", "September", "October"],
    "mail": ["example.com", "example.org", "example.net"],
}
TOPICS = {
    "article": """river pollution|school lunches|bank mergers|night trains|housing permits|bee decline|airport noise
        |hospital parking|rent control|ferry strikes|solar subsidies|library cuts|cycling lanes|water prices
        |museum thefts|flood defences|chip shortages|teacher pay|street lighting|deep sea mining""".replace("\n", "").split("|"),
    "policy": """using personal phones|working from abroad|pets at the desk|expensing client dinners|open source contributions
        |recording meetings|overtime on Sundays|sharing calendars|hiring relatives|second jobs|gifts from suppliers
        |posting about work|swapping shifts|deleting old mail|ordering taxis|external USB sticks|shared passwords
        |side projects|late deliveries|smoking breaks""".replace("\n", "").split("|"),
    "task": """the sitemap|vendor onboarding|payroll audit|fire drill|onboarding guide|tax filing|brand refresh|data cleanup
        |supplier survey|kitchen repair|visa paperwork|intern programme|warehouse count|budget draft|css rewrite
        |postal archive|lift inspection|alarm wiring|pension letters|translation memory|press kit|floor plan
        |backup restore|cookie banner|penetration test|desk booking|energy report|landing page|fleet cleaning
        |speaker list""".replace("\n", "").split("|"),
}  # fmt: skip
TOPICS = {name: [each.strip() for each in topics] for name, topics in TOPICS.items()}
VOCABULARY = {name: [each.strip() for each in values] for name, values in VOCABULARY.items()}

NEGATIONS = {
    "classify-risk": ("rejected", "Why did {person} not get the loan?"),
    "refund": ("denied", "Why was the {item} of {person} not refunded?"),
    "renewal": ("terminate", "Why do we not continue with {company}?"),
    "hiring": ("reject", "Why was {person} not hired?"),
    "release": ("drop", "Which feature about {feature} did not stay in the product?"),
    "tenancy": ("decline", "Why can {person} not move into {street}?"),
    "travel": ("declined", "Why may {person} not fly to {city}?"),
    "funding": ("reject", "Why did {project} not receive the grant?"),
    "payment": ("dispute", "Why have we not paid {company}?"),
    "access": ("deny", "Why does {person} not have access to {service}?"),
}
IDENTIFIERS = ("num", "ord", "clm", "tkt", "inv", "shp", "pat")
ASKED_BY_ID = (
    "why did {id} end like that", "What was decided about {id}?", "{id}", "Tell me what happened with {id} please",
    "Who dealt with {id} and how did it go?",
)  # fmt: skip


@dataclass
class Question:
    """A question and what answers it."""

    kind: str
    text: str
    gold: frozenset[str]
    """References of what answers it; nothing where nothing does."""
    fit: bool = False
    """Whether it is set apart for fitting."""


@dataclass
class Corpus:
    """What is stored, and what is asked."""

    runs: list[dict[str, Any]] = field(default_factory=list)
    facts: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


class Slots(dict[str, str]):
    """Values of slots; each that is missing is drawn."""

    def __init__(self, random: Random, topics: str) -> None:
        super().__init__()
        self._random, self._topics = random, topics

    def __missing__(self, name: str) -> str:
        random = self._random
        if name in VOCABULARY:
            value = random.choice(VOCABULARY[name])
        elif name == "topic":
            value = random.choice(TOPICS[self._topics])
        elif name in ("first", "last"):
            value = self["person"].split()[name == "last"]
        elif name in ("first_low", "last_low"):
            value = self[name[:-4]].lower()
        else:
            draws: dict[str, Callable[[], str]] = {
                "amount": lambda: str(random.randrange(40, 9_900)),
                "score": lambda: str(random.randrange(480, 600)),
                "rate": lambda: str(random.randrange(3, 15)),
                "salary": lambda: f"{random.randrange(38, 120)}000",
                "code": lambda: random.choice(("500", "502", "503", "504")),
                "minutes": lambda: str(random.randrange(4, 90)),
                "days": lambda: str(random.randrange(2, 20)),
                "count": lambda: str(random.randrange(3, 90)),
                "price": lambda: str(random.randrange(9, 40)),
                "terms": lambda: random.choice(("14", "30", "45", "60", "90")),
                "phone": lambda: str(random.randrange(10_000_000, 99_999_999)),
                "month": lambda: f"{random.randrange(1, 13):02}",
                "day": lambda: f"{random.randrange(10, 29)}",
                "pin": lambda: str(random.randrange(1_000, 9_999)),
                "num": lambda: str(random.randrange(100, 9_000)),
                "ord": lambda: f"ORD-{random.randrange(10_200, 99_000)}",
                "clm": lambda: f"CLM-{random.randrange(10_000, 99_000)}",
                "tkt": lambda: f"TKT-{random.randrange(40_000, 99_000)}",
                "inv": lambda: f"INV-{random.randrange(2_024, 2_027)}-{random.randrange(100, 9_999)}",
                "shp": lambda: f"SHP-{random.randrange(10_000, 54_000)}",
                "pat": lambda: f"P{random.randrange(10_000, 99_999)}",
            }
            value = draws[name]()
        self[name] = value
        return value


def make(seed: int = 18) -> Corpus:
    """Return the corpus of a seed."""
    random = Random(seed)
    people = [f"{first} {last}" for first in FIRST for last in LAST]
    random.shuffle(people)
    person = iter(people)
    corpus = Corpus()
    for number, scenario in enumerate(scenarios.RUNS):
        _runs(corpus, random, person, scenario, fit=number % 3 == 0)
    for number, each in enumerate(scenarios.FACTS):
        _facts(corpus, random, person, each, fit=number in (2, 4))
    for number, note in enumerate(scenarios.NOTES):
        _notes(corpus, random, person, note, fit=number % 3 == 0)
    _unasked_facts(corpus, Random(-seed), person)
    corpus.runs.sort(key=lambda run: run["at"])
    _times(corpus, random)
    _follow_ups(corpus, random)
    for text in scenarios.FIT_NOTHING:
        corpus.questions.append(Question("nothing", text, frozenset(), True))
    for text in scenarios.NOTHING:
        corpus.questions.append(Question("nothing", text, frozenset()))
    return corpus


def _formatted(template: str, slots: Slots) -> str:
    return string.Formatter().vformat(template, (), slots)


def _when(random: Random) -> datetime:
    return NOW - timedelta(days=random.randrange(1, 300), minutes=random.randrange(1_000))


def _chosen_slot(template: str) -> str | None:
    """Return the slot of a subject that tells its runs apart."""
    return next((name for _, name, _, _ in string.Formatter().parse(template) if name), None)


def _runs(corpus: Corpus, random: Random, person: Iterator[str], scenario: Any, *, fit: bool) -> None:
    subject, asked, stage, outcomes, questions = scenario
    telling = _chosen_slot(subject)
    topics = stage if stage in TOPICS else "article" if stage == "editorial" else "policy"
    used: set[str] = set()
    made = []
    for place in range(PER_SCENARIO):
        for _ in range(200):
            slots = Slots(random, topics)
            slots["person"] = ""
            if telling is not None and telling != "person" and slots[telling] in used:
                continue
            break
        else:
            break
        slots["person"] = next(person)
        used.add(slots[telling] if telling else "")
        chosen, rationale, answer = outcomes[place % len(outcomes)]
        run: dict[str, Any] = {
            "ref": f"run-{stage}-{place}",
            "subject": _formatted(subject, slots),
            "query": _formatted(asked[place % len(asked)], slots),
            "stage": stage,
            "chosen": chosen,
            "rationale": _formatted(rationale, slots),
            "answer": _formatted(answer, slots),
            "at": _when(random),
            "slots": slots,
            "fit": fit,
        }
        corpus.runs.append(run)
        made.append(run)
    for run in random.sample(made, min(len(made), 12)):
        slots, gold = run["slots"], frozenset({run["ref"]})
        place = made.index(run)
        kinds = ["same", "typo", "paraphrase", "language", "paraphrase", "identifier", "typo", "negation", "language"]
        kind = kinds[place % len(kinds)]
        if kind == "identifier" and _identifier(run) is None:
            kind = "paraphrase"
        for text in _asked(kind, run, questions, slots, random, place):
            corpus.questions.append(Question(kind, text, gold, fit))


def _asked(kind: str, run: Any, questions: Any, slots: Slots, random: Random, place: int) -> Iterator[str]:
    if kind == "same":
        yield _formatted(questions["same"], slots)
    elif kind == "typo":
        yield misspelled(_formatted(questions["same"], slots), random)
    elif kind == "paraphrase":
        yield _formatted(questions["para"][place % 2], slots)
    elif kind == "language":
        yield _formatted(questions[("es", "de", "fr", "pt")[place % 4]], slots)
    elif kind == "identifier":
        yield ASKED_BY_ID[place % len(ASKED_BY_ID)].format(id=_identifier(run))
    elif kind == "negation" and run["stage"] in NEGATIONS:
        chosen, template = NEGATIONS[run["stage"]]
        if run["chosen"] == chosen:
            yield _formatted(template, slots)


def _identifier(run: Any) -> str | None:
    """Return how people name a run by number; none where nothing about it has one."""
    slots = run["slots"]
    name = next((name for name in IDENTIFIERS if name in slots and slots[name] in run["subject"]), None)
    return None if name is None else f"application #{slots[name]}" if name == "num" else slots[name]


def misspelled(text: str, random: Random) -> str:
    """Return a text with two of its longer words misspelled: a letter left out, doubled, changed or swapped."""
    tokens = text.split(" ")
    places = [
        place for place, token in enumerate(tokens) if len(token.strip("?.,'s")) >= 5 and token.strip("?.,").isalpha()
    ]
    for place in random.sample(places, min(2, len(places))):
        word = tokens[place]
        at = random.randrange(1, len(word.rstrip("?.,")) - 1)
        match random.randrange(4):
            case 0:
                word = word[:at] + word[at + 1 :]
            case 1:
                word = word[:at] + word[at] + word[at:]
            case 2:
                word = word[:at] + random.choice("aeiourtnsl") + word[at + 1 :]
            case _:
                word = word[:at] + word[at + 1 : at + 2] + word[at] + word[at + 2 :]
        tokens[place] = word
    return " ".join(tokens)


def _facts(corpus: Corpus, random: Random, person: Iterator[str], scenario: Any, *, fit: bool) -> None:
    type, key, fields, questions = scenario
    used: set[str] = set()
    for place in range(PER_FACT):
        slots = Slots(random, "task")
        slots["person"] = (
            next(person) if "{person}" in key or place < 60 else random.choice(corpus.runs)["slots"]["person"]
        )
        name = _formatted(key, slots)
        if name in used:
            continue
        used.add(name)
        record = {
            "entity_type": type,
            "name": name,
            **{field: _formatted(value, slots) for field, value in fields.items()},
        }
        corpus.facts.append({"ref": f"{type}/{name}", "record": record, "at": _when(random)})
        if place % 4:
            continue
        field = list(questions)[place // 4 % len(questions)]
        same, other, foreign = questions[field]
        gold = frozenset({f"{type}/{name}"})
        match place // 4 % 5:
            case 0 | 3:
                corpus.questions.append(Question("fact", _formatted(other, slots), gold, fit))
            case 1:
                corpus.questions.append(Question("fact", _formatted(same, slots), gold, fit))
            case 2:
                corpus.questions.append(Question("typo", misspelled(_formatted(same, slots), random), gold, fit))
            case _:
                for language in sorted(foreign)[:1]:
                    corpus.questions.append(Question("language", _formatted(foreign[language], slots), gold, fit))
                corpus.questions.append(Question("same", _formatted(same, slots), gold, fit))


def _unasked_facts(corpus: Corpus, random: Random, person: Iterator[str]) -> None:
    """Add facts of further people, by the same scenarios."""
    for type, key, fields, _ in cycle([each for each in scenarios.FACTS if "{person}" in each[1]]):
        if len(corpus.facts) >= FACTS_MIN:
            return
        slots = Slots(random, "task")
        slots["person"] = next(person)
        name = _formatted(key, slots)
        values = {field: _formatted(value, slots) for field, value in fields.items()}
        record = {"entity_type": type, "name": name, **values}
        corpus.facts.append({"ref": f"{type}/{name}", "record": record, "at": _when(random)})


def _notes(corpus: Corpus, random: Random, person: Iterator[str], scenario: Any, *, fit: bool) -> None:
    template, about, question, foreign = scenario
    for place in range(PER_NOTE if question is not None else 1):
        slots = Slots(random, "task")
        slots["person"] = next(person)
        text = _formatted(template, slots)
        if any(note["text"] == text for note in corpus.notes):
            continue
        note: dict[str, Any] = {
            "ref": f"note-{len(corpus.notes)}",
            "text": text,
            "about": _formatted(about, slots),
            "at": _when(random),
        }
        corpus.notes.append(note)
        if question is None or place > 2:
            continue
        gold = frozenset({note["ref"]})
        if place < 2 or not foreign:
            if place < 2:
                corpus.questions.append(Question("note", _formatted(question, slots), gold, fit))
        else:
            for language in foreign:
                corpus.questions.append(Question("language", _formatted(foreign[language], slots), gold, fit))


def _times(corpus: Corpus, random: Random) -> None:
    """Add decisions about the same companies at several times, and questions that only the time tells apart."""
    months = ("March", "April", "May", "June", "July", "August", "September")
    moments = [
        ("last Monday", NOW.replace(day=16)), ("yesterday", NOW.replace(day=16)), ("last week", NOW.replace(day=11)),
        ("two weeks ago", NOW.replace(day=3)), ("last month", NOW.replace(month=10, day=14)),
    ]  # fmt: skip
    chosen = ("raise the credit line", "send a second reminder", "assign a new account manager", "stop deliveries",
              "offer a payment plan", "invite them to the beta", "change the delivery day")  # fmt: skip
    for number, company in enumerate(VOCABULARY["company"][:24]):
        stamps: list[tuple[str, datetime]] = [
            (f"in {month}", NOW.replace(month=3 + place, day=5 + number % 20)) for place, month in enumerate(months)
        ]
        picked = [*random.sample(stamps, 3), moments[number % len(moments)]]
        asked = random.randrange(4)
        for place, (said, at) in enumerate(picked):
            what = chosen[(number + place * 2) % len(chosen)]
            run: dict[str, Any] = {
                "ref": f"run-account-{number}-{place}", "subject": f"company/{company}",
                "query": f"Quarterly look at the account of {company}: what next?", "stage": "next-step", "chosen": what,
                "rationale": "Agreed in the account meeting", "answer": f"For {company} we {what}.", "at": at,
                "slots": {}, "fit": number % 3 == 0,
            }  # fmt: skip
            corpus.runs.append(run)
            if place in (asked, 3):
                text = (f"What did we decide about the account of {company} {said}?",
                        f"{said[0].upper()}{said[1:]}, what was the next step for {company}?")[number % 2]  # fmt: skip
                corpus.questions.append(Question("time", text, frozenset({run["ref"]}), number % 3 == 0))
    corpus.runs.sort(key=lambda run: run["at"])


def _follow_ups(corpus: Corpus, random: Random) -> None:
    """Add runs that only ask about decisions, half of them marked, and ask the same again."""
    decided = [
        run for run in corpus.runs if run["stage"] in ("classify-risk", "renewal", "hiring", "root-cause", "refund")
    ]
    by_stage: dict[str, Any] = {scenario[2]: scenario[4] for scenario in scenarios.RUNS}
    for number, run in enumerate(random.sample(decided, 30)):
        text = _formatted(by_stage[run["stage"]]["same"], run["slots"])
        corpus.runs.append({
            "ref": f"run-follow-{number}", "subject": None, "query": text, "stage": None, "answer": f"See the record. {run['answer']}",
            "at": NOW - timedelta(hours=20 - number % 12), "slots": {}, "recall": number % 2 == 0, "fit": run["fit"],
        })  # fmt: skip
        corpus.questions.append(Question("follow-up", text, frozenset({run["ref"]}), run["fit"]))
    corpus.runs.sort(key=lambda run: run["at"])


class CorpusClock:
    """A clock that stands where the corpus puts it, and a millisecond further after each look."""

    def __init__(self) -> None:
        self.micros = 0
        self._random = Random(0)

    def set(self, at: datetime) -> None:
        """Put the clock forward to a moment."""
        self.micros = max(self.micros + 1, int(at.timestamp() * 1_000_000))

    def now(self) -> str:
        """Return the present."""
        self.micros += 1
        return moment.from_micros(self.micros)

    def random(self, count: int) -> bytes:
        """Return bytes that are the same every time."""
        return self._random.randbytes(count)


def store(corpus: Corpus, where: str = ":memory:") -> tuple[Any, dict[str, str]]:
    """Store a corpus; return the ledger and, by reference of the corpus, what recall calls it."""
    clock = CorpusClock()
    ledger = woodrat.open(where, tenant="retrieval", agent="bench", clock=clock)
    names: dict[str, str] = {}
    steps = sorted(
        [(each["at"], place, kind, each) for kind, all in (("run", corpus.runs), ("fact", corpus.facts), ("note", corpus.notes)) for place, each in enumerate(all)],
        key=lambda step: step[:3],
    )  # fmt: skip
    for at, _, kind, each in steps:
        clock.set(at)
        if kind == "run":
            with ledger.run(each["query"], subject=each["subject"], recall=each.get("recall", False)) as run:
                if each["stage"] is not None:
                    run.decided(each["stage"], each["chosen"], because=each["rationale"])
                run.answer(each["answer"])
            names[each["ref"]] = run.id
        elif kind == "fact":
            ledger.store([{**each["record"], "$": {"key": each["record"]["name"]}}])
            names[each["ref"]] = each["ref"]
        else:
            record = {"entity_type": "note", "text": each["text"], "$": {"key": each["ref"]}}
            ledger.store([record | ({"about": each["about"]} if each["about"] else {})])
            names[each["ref"]] = f"note/{each['ref']}"
    clock.set(NOW)
    return ledger, names

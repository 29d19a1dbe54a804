"""The second corpus: records and questions written by hand, each in its own words. Nothing is ever fitted on it.

A run is (name, when, subject, asked, stage, chosen, rationale, answer); a fact is (when, record); a note is (name, when,
about, text); a question is (kind, text, names of what answers it). The first corpus is drawn from scenarios whose
wording its questions share; this one shows what is lost where nobody made record and question fit each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from bench.retrieval.corpus import Corpus, Question

RUNS: tuple[tuple[str, str, str | None, str, str, str, str, str], ...] = (
    # Loans
    ("loan-ferrari", "2026-01-14", "loan/4107", "Car loan for Dario Ferrari, 18,000 over five years", "credit", "approved", "Eleven years with the same employer and no open debts", "Granted at 5.2 percent, payable from March."),
    ("loan-haug", "2026-02-03", "loan/4112", "Signe Haug wants 240,000 for a flat in the old town", "credit", "rejected", "Instalments would eat 61 percent of her take-home pay", "Declined. She may come back with a co-signer or a smaller sum."),
    ("loan-tilde", "2026-02-20", "loan/4119", "Bakery Tilde: working capital of 35,000 until summer", "credit", "approved", "Seasonal dip is plain from three years of books", "Credit line opened, secured by the ovens."),
    ("loan-osei", "2026-03-09", "loan/4125", "Kwame Osei, student loan for the second year of nursing school", "credit", "approved", "Parents guarantee and the first year was passed", "Paid out in two halves, each at the start of term."),
    ("loan-bianchi", "2026-04-22", "loan/4133", "Request by Lucia Bianchi to borrow 9,500 for a new kitchen", "credit", "manual-review", "She is self-employed and last year's tax return is missing", "Waiting for the return; an underwriter looks at it after that."),
    ("loan-meyer", "2026-05-18", "loan/4140", "Torsten Meyer asks for 60,000 to buy a second tractor", "credit", "rejected", "Two instalments of the first machine are in arrears", "No new money before the arrears are cleared."),
    ("loan-lopes", "2026-06-30", "loan/4151", "Mortgage of the Lopes family, house with garden, 310,000", "credit", "approved", "Down payment of 30 percent and two steady salaries", "Signed with a fixed rate for fifteen years."),
    ("loan-novak", "2026-07-07", "loan/4158", "Debt consolidation for Petra Novak, four cards into one loan", "credit", "rejected", "A bankruptcy was discharged only eight months ago", "Referred to the debt advice office."),
    ("loan-ahmed", "2026-08-19", "loan/4163", "Bridge loan for Yusuf Ahmed until his old house is sold", "credit", "approved", "Sale contract is signed, only the notary date is open", "180,000 for six months, interest only."),
    ("loan-quist", "2026-09-25", "loan/4170", "Holiday loan of 4,000 for Ida Quist", "credit", "rejected", "Applicant is seventeen", "Minors cannot be given credit; told her politely."),
    ("loan-sol", "2026-10-08", "loan/4177", "Solar roof financing for the Grünwald allotment club", "credit", "approved", "The feed-in tariff pays for it in nine years", "Subsidised programme, 2.1 percent."),
    ("loan-park", "2026-11-10", "loan/4181", "Min-jun Park: overdraft raised from 1,000 to 3,000", "credit", "approved", "Salary arrives on the same day each month", "Limit is raised as of today."),
    # Refunds
    ("refund-kettle", "2026-01-27", "order/SO-20911", "SO-20911: glass kettle cracked on first boil, buyer Hanne Vik", "refund", "full-refund", "The batch has a known flaw in the glass", "89 back to her card, and she may throw the kettle away."),
    ("refund-jacket", "2026-02-11", "order/SO-21034", "SO-21034, rain jacket in the wrong size, Oliver Crane wants his money", "refund", "exchange", "He agreed to take a medium instead", "Medium goes out free of charge, the large one comes back with the same courier."),
    ("refund-headphones", "2026-03-17", "order/SO-21377", "Headphones SO-21377 sent back without the charging case, by Nadja Kruse", "refund", "partial-refund", "The case alone is worth 30", "Returned 99 of 129."),
    ("refund-tent", "2026-04-02", "order/SO-21502", "Tent SO-21502 used for a whole summer, Rolf Amundsen claims it leaks", "refund", "denied", "Mould and soot show heavy use over months", "No money back; offered a repair kit at cost."),
    ("refund-cake", "2026-05-05", "order/SO-21690", "Birthday cake SO-21690 came a day after the party, Celia Duarte", "refund", "full-refund", "Our driver skipped the stop", "Repaid 54 and sent flowers."),
    ("refund-game", "2026-06-12", "order/SO-21888", "Download code SO-21888 already redeemed, Felix Brandt asks to cancel", "refund", "denied", "A code that has been used cannot be sold again", "Explained the terms for digital goods."),
    ("refund-sofa", "2026-07-23", "order/SO-22140", "Corner sofa SO-22140 does not fit through the door of Amelie Roux", "refund", "store-credit", "Not our mistake, but she is a customer since 2014", "Voucher over 1,150, pick-up fee waived."),
    ("refund-bike", "2026-08-28", "order/SO-22371", "E-bike SO-22371: battery swelled, owner Jorge Peña", "refund", "full-refund", "Swollen cells are a fire hazard", "All 2,340 repaid and the bike collected by hazmat courier."),
    ("refund-plants", "2026-09-15", "order/SO-22498", "Box of herbs SO-22498 arrived wilted, Maud Jansen", "refund", "replacement", "Truck stood in the heat over the weekend", "New herbs left on Wednesday in a cooled box."),
    ("refund-watch", "2026-10-21", "order/SO-22706", "Watch SO-22706 reported as never delivered by Goran Ilic", "refund", "denied", "Driver's photo shows him holding the parcel", "Refused; the case went to the fraud desk."),
    ("refund-lamp", "2026-11-09", "order/SO-22819", "Desk lamp SO-22819 flickers, Beatriz Lima sends a video", "refund", "full-refund", "Clearly a loose driver board", "Paid back 42, lamp not wanted back."),
    ("refund-boots", "2026-11-16", "order/SO-22866", "Boots SO-22866, sole came off after two hikes, Tom Okoro", "refund", "replacement", "Glue line was dry, a maker's fault", "New pair of the sturdier model is on its way."),
    # Contracts
    ("contract-lift", "2026-01-20", "contract/Elevix", "Maintenance agreement with Elevix for the four lifts", "contract", "renewed", "Call-outs were answered within two hours all year", "Two more years, price tied to the wage index."),
    ("contract-clean", "2026-02-26", "contract/Spotless", "Cleaning firm Spotless asks for 14 percent more", "contract", "terminated", "Complaints every week and a cheaper bid on the table", "Notice given for the end of May."),
    ("contract-cloud", "2026-03-30", "contract/Nubila", "Nubila hosting: three-year commitment or month to month?", "contract", "three-year", "Usage has been flat and the discount is 38 percent", "Signed until March 2029, with an exit if the data centre closes."),
    ("contract-canteen", "2026-05-11", "contract/Mangia", "Caterer Mangia wants to drop the vegetarian menu", "contract", "renegotiated", "A third of the staff eats no meat", "They keep it; in return we guarantee 180 lunches a day."),
    ("contract-print", "2026-06-04", "contract/Inkwell", "Printer lease with Inkwell runs out", "contract", "not-renewed", "We print a tenth of what we did in 2020", "Devices go back in July; one small printer is bought."),
    ("contract-guard", "2026-07-29", "contract/Sentra", "Night guards by Sentra after the break-in", "contract", "extended", "Cameras alone did not stop the thieves", "One guard from ten to six until the fence is built."),
    ("contract-agency", "2026-09-02", "contract/Fable", "Advertising agency Fable missed two launches", "contract", "terminated", "Penalty clause allows leaving without notice", "Fable is out; the in-house team takes over."),
    ("contract-energy", "2026-10-14", "contract/Voltera", "Electricity supply: stay with Voltera or move to the municipal works?", "contract", "switched", "Municipal works are four cents cheaper and fully wind", "Changeover on the first of January."),
    ("contract-nda", "2026-11-03", "contract/Orbis", "Orbis sent an NDA with unlimited liability", "contract", "renegotiated", "Legal does not accept liability without a ceiling", "Countered with a cap of 250,000."),
    # Incidents
    ("inc-checkout", "2026-01-08", "service/checkout", "Checkout returned 500 errors for forty minutes", "incident", "expired-token", "The payment provider's API token had run out", "New token; expiry now pages us two weeks ahead."),
    ("inc-search", "2026-02-17", "service/search", "Search took twelve seconds for every query", "incident", "index-corruption", "A half-finished rebuild was swapped in", "Swapped back, then rebuilt over night."),
    ("inc-mail", "2026-03-24", "service/mailer", "No customer got a confirmation mail since Friday", "incident", "blocklist", "Our sending address landed on a spam blocklist", "Delisted after two days; bounces are watched now."),
    ("inc-db", "2026-04-13", "service/ledger-db", "Primary database stopped taking writes at 02:10", "incident", "disk-full", "Write-ahead logs piled up behind a dead replica", "Dropped the dead slot and doubled the volume."),
    ("inc-login", "2026-05-26", "service/login", "Half of all sign-ins failed after the release", "incident", "clock-skew", "One node was ninety seconds off, so codes did not match", "Time sync repaired, node drained meanwhile."),
    ("inc-export", "2026-06-22", "service/export", "Nightly export delivered an empty file to the bank", "incident", "timezone", "The job ran before midnight after the clocks changed", "Schedule is in UTC now; file was sent again by hand."),
    ("inc-checkout-2", "2026-07-15", "service/checkout", "Checkout hung for customers paying with gift cards", "incident", "deadlock", "Two locks were taken in opposite order", "Hotfix 7.4.2 orders the locks."),
    ("inc-cdn", "2026-08-05", "service/images", "Pictures on the shop were gone in South America", "incident", "dns", "A regional resolver kept a stale record", "Lowered the lifetime of records to one minute."),
    ("inc-leak", "2026-09-18", "service/reports", "Reports service restarted every three hours", "incident", "memory-leak", "A cache without a limit grew until it was killed", "Cache holds 10,000 entries at most."),
    ("inc-phish", "2026-10-02", "service/mail-gateway", "Three colleagues typed their password into a fake page", "incident", "phishing", "The mail looked like the payroll portal", "Passwords reset, hardware keys ordered for everyone."),
    ("inc-power", "2026-10-27", "service/warehouse", "Warehouse scanners dead all morning", "incident", "power-cut", "An excavator hit the cable in the street", "Diesel generator rented until the cable is mended."),
    ("inc-search-2", "2026-11-12", "service/search", "Search found nothing for words with accents", "incident", "bad-config", "The analyser was replaced by the plain one", "Old analyser restored, a test looks for café."),
    # Others
    ("hire-reyes", "2026-03-03", "candidate/Camila Reyes", "Camila Reyes for the data analyst opening", "hiring", "offer", "Best case study we have seen", "Offer of 58,000, starts in May."),
    ("hire-strand", "2026-04-28", "candidate/Eirik Strand", "Eirik Strand, second interview for site reliability", "hiring", "rejected", "No on-call experience and did not ask a single question", "Thank-you letter sent."),
    ("db-choice", "2026-02-09", "project/Heron", "Which store does project Heron use for its events?", "storage", "postgres", "The team knows it and ten writers are enough", "One table, partitioned by month."),
    ("queue-choice", "2026-06-17", "project/Otter", "Message broker for project Otter", "storage", "nats", "Kafka is more than three people can run", "Three NATS nodes, one per zone."),
    ("office-move", "2026-08-11", None, "Do we leave the office on Canal Street?", "office", "stay", "The landlord cut the rent by a fifth", "Lease goes on until 2031."),
    ("travel-lim", "2026-09-29", "trip/Wei Lim", "Wei Lim asks to fly to the Lisbon conference", "travel", "declined", "The yearly travel budget was used up in August", "She gives her talk by video."),
    ("price-rise", "2026-10-30", None, "Raise the subscription price in January?", "pricing", "postponed", "Churn is the highest in two years", "Looked at again after the spring release."),
    ("fr-support", "2026-05-20", None, "Should support answer in French too?", "support", "yes", "Every fifth ticket comes from Québec or France", "Two native speakers start in the autumn."),
)  # fmt: skip

FACTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("2026-01-05", {"entity_type": "contact", "name": "Hanne Vik", "email": "hanne.vik@example.no", "city": "Tromsø", "phone": "+47 555 0143"}),
    ("2026-01-09", {"entity_type": "contact", "name": "Goran Ilic", "email": "goran@example.rs", "employer": "Danube Freight", "role": "dispatcher"}),
    ("2026-02-02", {"entity_type": "contact", "name": "Amelie Roux", "city": "Nantes", "birthday": "1984-04-03", "language": "French"}),
    ("2026-02-15", {"entity_type": "contact", "name": "Lucia Bianchi", "city": "Bologna", "occupation": "illustrator", "phone": "+39 555 0177"}),
    ("2026-03-01", {"entity_type": "contact", "name": "Torsten Meyer", "city": "Celle", "occupation": "farmer", "children": "three"}),
    ("2026-03-12", {"entity_type": "contact", "name": "Wei Lim", "role": "research lead", "manager": "Astrid Falk", "office": "room 4.12"}),
    ("2026-04-01", {"entity_type": "contact", "name": "Camila Reyes", "role": "data analyst", "manager": "Jonas Beck", "start": "4 May 2026"}),
    ("2026-04-07", {"entity_type": "contact", "name": "Astrid Falk", "role": "head of research", "city": "Uppsala", "allergy": "peanuts"}),
    ("2026-05-02", {"entity_type": "company", "name": "Elevix", "industry": "lift maintenance", "headquarters": "Rotterdam", "employees": 140}),
    ("2026-05-03", {"entity_type": "company", "name": "Nubila", "industry": "web hosting", "headquarters": "Tallinn", "payment_terms": "45 days"}),
    ("2026-05-04", {"entity_type": "company", "name": "Mangia", "industry": "catering", "contact_person": "Sergio Conti", "employees": 32}),
    ("2026-05-06", {"entity_type": "company", "name": "Fable", "industry": "advertising", "headquarters": "Dublin", "hourly_rate": 145}),
    ("2026-05-07", {"entity_type": "company", "name": "Danube Freight", "industry": "logistics", "headquarters": "Novi Sad", "trucks": 64}),
    ("2026-06-01", {"entity_type": "service", "name": "checkout", "owner": "payments team", "language": "Go", "runs_on": "Kubernetes"}),
    ("2026-06-02", {"entity_type": "service", "name": "search", "owner": "discovery team", "language": "Java", "on_call": "Priya Nair"}),
    ("2026-06-03", {"entity_type": "service", "name": "reports", "owner": "finance tools", "language": "Python", "repository": "git/reports"}),
    ("2026-06-05", {"entity_type": "product", "name": "Fjord tent", "weight": "2.4 kg", "price": 349, "supplier": "Nordvik Textil"}),
    ("2026-06-06", {"entity_type": "product", "name": "Aria headphones", "battery": "40 hours", "price": 129, "warranty": "two years"}),
    ("2026-06-07", {"entity_type": "product", "name": "Gusto kettle", "capacity": "1.7 litres", "price": 89, "material": "borosilicate glass"}),
    ("2026-06-08", {"entity_type": "project", "name": "Heron", "lead": "Mateus Prado", "deadline": "30 June 2027", "status": "in the pilot phase"}),
    ("2026-06-09", {"entity_type": "project", "name": "Otter", "lead": "Ines Falcone", "deadline": "15 March 2027", "status": "paused"}),
    ("2026-06-10", {"entity_type": "room", "name": "Aurora", "seats": 14, "floor": 3, "equipment": "two screens and a camera"}),
    ("2026-06-11", {"entity_type": "room", "name": "Borealis", "seats": 6, "floor": 3, "equipment": "whiteboard"}),
    ("2026-06-12", {"entity_type": "vehicle", "name": "van 3", "plate": "HH-WR 318", "mileage": "84,200 km", "next_inspection": "February 2027"}),
)  # fmt: skip

NOTES: tuple[tuple[str, str, str | None, str], ...] = (
    ("calls", "2026-01-11", "contact/Hanne Vik", "Never ring Hanne before ten, she works the late shift at the hospital."),
    ("dog", "2026-01-19", "contact/Torsten Meyer", "Torsten's sheepdog bites strangers; wait at the gate."),
    ("wine", "2026-02-06", "contact/Amelie Roux", "She loves dry white wine from the Loire, a good present."),
    ("gluten", "2026-02-14", "contact/Wei Lim", "Wei cannot eat gluten; order from the Thai place."),
    ("badge", "2026-03-05", None, "The spare badge for the car park lies in the drawer under the coffee machine."),
    ("wifi", "2026-03-18", None, "Guests use the network Heronry; the code changes every Monday and hangs at the front desk."),
    ("standup", "2026-04-06", None, "Stand-up moved to a quarter past nine, because the school run makes people late."),
    ("invoice-pdf", "2026-04-15", "company/Nubila", "Nubila only accepts invoices as PDF with the purchase order number in the file name."),
    ("ship-friday", "2026-05-01", None, "We do not deploy on Fridays since the mailer disaster."),
    ("tabs", "2026-05-15", None, "Mateus prefers tabs over spaces and gets grumpy about it."),
    ("key", "2026-05-28", None, "Aurora's key is kept by the facility desk, ask for Benedikt."),
    ("parking", "2026-06-16", "company/Elevix", "Technicians of Elevix may park in the yard, but not in front of the gate."),
    ("postgres-why", "2026-06-25", "project/Heron", "Heron took Postgres over MongoDB mostly because backups were already in place."),
    ("holiday", "2026-07-02", "contact/Astrid Falk", "Astrid is away all of August, sailing; Wei stands in for her."),
    ("lawyer", "2026-07-20", None, "For employment law call Ms Sørensen, for patents the firm in Munich."),
    ("cats", "2026-08-03", "contact/Lucia Bianchi", "Lucia has two cats called Pixel and Vettore and paints them all the time."),
    ("coffee", "2026-08-24", None, "The good coffee comes from a roastery in Ghent, five kilos every other week."),
    ("generator", "2026-10-28", "service/warehouse", "The rented generator needs diesel every eleven hours; Marek has the can."),
    ("marathon", "2026-09-07", "contact/Camila Reyes", "Camila is training for the Valencia marathon in December."),
    ("pension", "2026-09-21", None, "The employer pays four percent into the pension plan after the first year."),
    ("retro", "2026-10-05", None, "At the retrospective everybody agreed that reviews take too long; limit is one working day now."),
    ("translator", "2026-10-12", None, "Contracts in Polish are translated by Zofia, she answers within a day."),
    ("fire", "2026-10-19", None, "In case of fire we meet behind the bicycle shed, not in the yard."),
    ("sales-demo", "2026-11-05", None, "The demo account is reset at six in the morning, so never book demos earlier."),
    ("song", "2026-11-13", None, "Jonas hums the same tune whenever a build fails."),
    ("leaving", "2026-11-14", "contact/Wei Lim", "Wei told us she is moving to Singapore next spring."),
)  # fmt: skip

QUESTIONS: tuple[tuple[str, str, str], ...] = (
    # By identifier
    ("identifier", "What happened with SO-21502?", "refund-tent"),
    ("identifier", "SO-22140", "refund-sofa"),
    ("identifier", "outcome of loan 4158 please", "loan-novak"),
    ("identifier", "Why was loan #4112 turned down?", "loan-haug"),
    ("identifier", "loan/4163", "loan-ahmed"),
    ("identifier", "who is behind order SO-22371 and how did it end", "refund-bike"),
    ("identifier", "whose address is goran@example.rs", "contact/Goran Ilic"),
    ("identifier", "Which vehicle has the plate HH-WR 318?", "vehicle/van 3"),
    ("identifier", "what did we say to the customer of so-21888", "refund-game"),
    ("identifier", "status of 4133", "loan-bianchi"),
    # The same words
    ("same", "Car loan for Dario Ferrari", "loan-ferrari"),
    ("same", "Printer lease with Inkwell", "contract-print"),
    ("same", "Checkout returned 500 errors", "inc-checkout"),
    ("same", "Caterer Mangia vegetarian menu", "contract-canteen"),
    ("same", "Message broker for project Otter", "queue-choice"),
    ("same", "Night guards by Sentra after the break-in", "contract-guard"),
    ("same", "Box of herbs arrived wilted", "refund-plants"),
    ("same", "office on Canal Street", "office-move"),
    ("same", "Reports service restarted every three hours", "inc-leak"),
    ("same", "Raise the subscription price in January?", "price-rise"),
    # Typos
    ("typo", "Mortgage of the Lopse famly", "loan-lopes"),
    ("typo", "Clening firm Spotles asks for more", "contract-clean"),
    ("typo", "Birtday cake came a day after the prty", "refund-cake"),
    ("typo", "Wich database stopped takng writes", "inc-db"),
    ("typo", "Advertsing agency Fabel missed launches", "contract-agency"),
    ("typo", "Bekery Tilde working captial", "loan-tilde"),
    ("typo", "hedphones sent back without the chargign case", "refund-headphones"),
    ("typo", "Camila Reys data anaylst", "hire-reyes contact/Camila Reyes"),
    ("typo", "Warehouse scaners ded all morning", "inc-power"),
    ("typo", "NDA with unlimted liabilty from Orbsi", "contract-nda"),
    ("typo", "gaurds at nigth by Sentra", "contract-guard"),
    # Paraphrase
    ("paraphrase", "Why did the young lady not get cash for her vacation?", "loan-quist"),
    ("paraphrase", "Did the farmer get funding for another machine?", "loan-meyer"),
    ("paraphrase", "Is the aspiring nurse getting money for her or his studies?", "loan-osei"),
    ("paraphrase", "Which customer bought footwear that fell apart?", "refund-boots"),
    ("paraphrase", "What did we do about the couch that was too big for the doorway?", "refund-sofa"),
    ("paraphrase", "the dessert that missed the celebration", "refund-cake"),
    ("paraphrase", "Which bicycle was dangerous because of its accumulator?", "refund-bike"),
    ("paraphrase", "Somebody said a timepiece never came although he had received it", "refund-watch"),
    ("paraphrase", "Who takes care of our elevators?", "contract-lift"),
    ("paraphrase", "Why did we get rid of the marketing firm?", "contract-agency"),
    ("paraphrase", "Where will our power come from next year?", "contract-energy"),
    ("paraphrase", "Why did we stop working with the people who mopped the floors?", "contract-clean"),
    ("paraphrase", "Have we committed to a hosting company for the long run?", "contract-cloud"),
    ("paraphrase", "What made customers unable to pay with vouchers?", "inc-checkout-2"),
    ("paraphrase", "Why did shoppers not receive any e-mail after ordering?", "inc-mail"),
    ("paraphrase", "What killed the machines that read barcodes?", "inc-power"),
    ("paraphrase", "Why did authentication break for many users?", "inc-login"),
    ("paraphrase", "Employees were tricked into giving away their credentials", "inc-phish"),
    ("paraphrase", "Which component ran out of RAM again and again?", "inc-leak"),
    ("paraphrase", "Photos missing in Brazil and Argentina", "inc-cdn"),
    ("paraphrase", "Are we going to charge subscribers more?", "price-rise"),
    ("paraphrase", "Do we help customers who speak the language of Paris?", "fr-support"),
    ("paraphrase", "Are we staying in our building?", "office-move"),
    ("paraphrase", "Why couldn't Wei attend the event in Portugal?", "travel-lim"),
    ("paraphrase", "What became of the person who wanted to merge several credit cards?", "loan-novak"),
    ("paraphrase", "Club of gardeners wanting panels on their roof", "loan-sol"),
    # Other languages
    ("language", "¿Por qué se rechazó el préstamo de Signe Haug?", "loan-haug"),
    ("language", "Warum haben wir den Vertrag mit Spotless gekündigt?", "contract-clean"),
    ("language", "Pourquoi le canapé d'Amelie Roux a-t-il été remboursé en bon d'achat ?", "refund-sofa"),
    ("language", "Por que a base de dados deixou de aceitar escritas?", "inc-db"),
    ("language", "Was war die Ursache der langsamen Suche?", "inc-search"),
    ("language", "¿Qué pasó con la tienda de campaña que goteaba?", "refund-tent"),
    ("language", "Qui a été embauché comme analyste de données ?", "hire-reyes"),
    ("language", "Wer bekam einen Kredit für ein Auto?", "loan-ferrari"),
    ("language", "Onde mora a Astrid Falk?", "contact/Astrid Falk"),
    ("language", "¿Quién dirige el proyecto Otter?", "project/Otter"),
    ("language", "Wo treffen wir uns, wenn es brennt?", "fire"),
    ("language", "Quel fournisseur d'électricité avons-nous choisi ?", "contract-energy"),
    # Negation
    ("negation", "Why did we not extend the lease of the printers?", "contract-print"),
    ("negation", "Who did not get the money back for the tent?", "refund-tent"),
    ("negation", "Why was the loan for the tractor not approved?", "loan-meyer"),
    ("negation", "Which candidate was not hired?", "hire-strand"),
    ("negation", "Why didn't Petra Novak get the consolidation?", "loan-novak"),
    ("negation", "Why may Wei Lim not fly to the conference?", "travel-lim"),
    ("negation", "Which contract did we not renew?", "contract-print contract-clean contract-agency"),
    # Time
    ("time", "What did we refund yesterday?", "refund-boots"),
    ("time", "Which loan was decided last week?", "loan-park"),
    ("time", "What broke in April?", "inc-db"),
    ("time", "Which incident happened in August?", "inc-cdn"),
    ("time", "What did we decide about the advertising agency in September?", "contract-agency"),
    ("time", "loans granted in January", "loan-ferrari"),
    ("time", "Which order was refunded in July?", "refund-sofa"),
    ("time", "What went wrong with search this month?", "inc-search-2"),
    ("time", "Which contract did we sign in March?", "contract-cloud"),
    ("time", "Who was refused credit in September?", "loan-quist"),
    # Facts
    ("fact", "Where does Hanne Vik live?", "contact/Hanne Vik"),
    ("fact", "Who is the boss of Wei Lim?", "contact/Wei Lim"),
    ("fact", "When is Amelie Roux's birthday?", "contact/Amelie Roux"),
    ("fact", "Who is on call for search?", "service/search"),
    ("fact", "How heavy is the Fjord tent?", "product/Fjord tent"),
    ("fact", "How many people fit into Aurora?", "room/Aurora"),
    ("fact", "What does Lucia Bianchi do for a living?", "contact/Lucia Bianchi"),
    ("fact", "In which programming language is reports written?", "service/reports"),
    ("fact", "Where is Danube Freight based?", "company/Danube Freight"),
    ("fact", "When is Heron due?", "project/Heron"),
    ("fact", "How long do the Aria headphones last on one charge?", "product/Aria headphones"),
    ("fact", "Who must not eat peanuts?", "contact/Astrid Falk"),
    ("fact", "How soon does Nubila want to be paid?", "company/Nubila"),
    # Notes
    ("note", "May we release on a Friday?", "ship-friday"),
    ("note", "Where is the extra card for the garage?", "badge"),
    ("note", "What should I bring Amelie as a gift?", "wine"),
    ("note", "What are the names of Lucia's pets?", "cats"),
    ("note", "Which lawyer handles patents?", "lawyer"),
    ("note", "Who can translate a Polish contract?", "translator"),
    ("note", "When can I phone Hanne?", "calls"),
    ("note", "Where do we gather when the alarm rings?", "fire"),
    ("note", "Where is Wei relocating to?", "leaving"),
    ("note", "How do visitors get online?", "wifi"),
    ("note", "Who replaces Astrid in summer?", "holiday"),
    ("note", "How much time may a code review take?", "retro"),
    ("note", "Is it dangerous to visit Torsten?", "dog"),
    # About nothing
    ("nothing", "What is the capital of Mongolia?", ""),
    ("nothing", "Why was loan 4999 rejected?", ""),
    ("nothing", "What happened with SO-99999?", ""),
    ("nothing", "Did Margaret Thornbury get her mortgage?", ""),
    ("nothing", "Which insurance covers the delivery vans?", ""),
    ("nothing", "How do I bake sourdough bread?", ""),
    ("nothing", "When does the swimming pool open?", ""),
    ("nothing", "Contract with Kestrel Aviation", ""),
    ("nothing", "Why did the recommendation engine crash?", ""),
    ("nothing", "What did we decide about remote work from Bali?", ""),
    ("nothing", "Who won the chess tournament?", ""),
    ("nothing", "¿Cuántos habitantes tiene Perú?", ""),
    ("nothing", "What is the salary of Jonas Beck?", ""),
    ("nothing", "Which school do the children of Sergio attend?", ""),
    ("nothing", "Has the piano been tuned?", ""),
    ("nothing", "Why was order SO-21035 denied?", ""),
    ("nothing", "What medicine does the doctor recommend for hay fever?", ""),
    ("nothing", "Who supplies our toilet paper?", ""),
    ("nothing", "Was ist die Hauptstadt von Australien?", ""),
    ("nothing", "Did we sponsor the football club?", ""),
)  # fmt: skip


def make() -> Corpus:
    """Return the corpus."""
    return corpus_of(RUNS, FACTS, NOTES, QUESTIONS)


def corpus_of(
    runs: Sequence[Sequence[str | None]],
    facts: Sequence[tuple[str, dict[str, Any]]],
    notes: Sequence[Sequence[str | None]],
    questions: Sequence[tuple[str, str, str]],
) -> Corpus:
    """Return what was written as a corpus."""
    corpus = Corpus()
    for name, when, subject, query, stage, chosen, rationale, answer in runs:
        run = {"ref": name, "at": _at(when), "subject": subject, "query": query, "stage": stage, "chosen": chosen}
        corpus.runs.append({**run, "rationale": rationale, "answer": answer})
    for when, record in facts:
        name = f"{record['entity_type']}/{record['name']}"
        corpus.facts.append({"ref": name, "at": _at(when), "record": dict(record)})
    for name, when, about, text in notes:
        corpus.notes.append({"ref": name, "at": _at(when), "about": about, "text": text})
    known = [each["ref"] for each in (*corpus.runs, *corpus.facts, *corpus.notes)]
    for kind, text, gold in questions:
        corpus.questions.append(Question(kind, text, frozenset(_named(gold, known))))
    return corpus


def _at(day: str | None) -> datetime:
    assert day is not None
    return datetime.fromisoformat(day).replace(hour=10, tzinfo=UTC)


def _named(gold: str, known: Sequence[str]) -> list[str]:
    """Return the names that a list of them has, between spaces; those of facts have spaces in them."""
    found = [name for name in known if f" {name} " in f" {gold} "]
    assert sum(map(len, found)) == len(gold.replace(" ", "")) + sum(name.count(" ") for name in found), gold
    return found

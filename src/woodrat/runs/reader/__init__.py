"""Reading runs: their records, lists of them, and what was decided about a subject, at one as-of."""

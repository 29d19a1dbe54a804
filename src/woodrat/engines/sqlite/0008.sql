-- Migration 8: what entries ask for stands in the ordered indexes, and so do identifying values. Runs, sources, relations and
-- these values had tables of their own; `migration.py` has put their rows when this begins.

DROP TABLE step;
DROP TABLE about;
DROP TABLE source;
DROP TABLE edge;
DROP TABLE sharing;

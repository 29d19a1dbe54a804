-- Migration 5: merge state kept along the history lies in rows of its own, and is found by an index. As part of a key a
-- state made the tree deep, and one of more than a quarter of a page took a whole one.

CREATE TABLE keeping (
    entity    INTEGER NOT NULL,
    position  INTEGER NOT NULL,  -- position the state is true for
    last      INTEGER NOT NULL,  -- position of the entity's last observation at that time
    until     TEXT NOT NULL,     -- the latest valid_from of an observation at that time, retractions aside
    state     BLOB NOT NULL
) STRICT;
INSERT INTO keeping SELECT entity, position, last, until, state FROM kept ORDER BY position;
DROP TABLE kept;
ALTER TABLE keeping RENAME TO kept;
CREATE UNIQUE INDEX kept_at ON kept (entity, position, last);
CREATE INDEX kept_until ON kept (entity, until, position);

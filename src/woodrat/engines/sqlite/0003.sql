-- Migration 3: entries that come from other ledgers.

-- Where an entry that was merged in was first written. Entries that begin here have no row.
CREATE TABLE origin (
    id        INTEGER PRIMARY KEY,
    log       INTEGER NOT NULL REFERENCES log (id),
    position  INTEGER NOT NULL
) STRICT;
CREATE INDEX origin_place ON origin (log, position);

-- Last entries of what was taken over from another ledger as it was, and the log they were written under.
CREATE TABLE clone (
    id   INTEGER PRIMARY KEY,
    log  INTEGER NOT NULL REFERENCES log (id)
) STRICT;

CREATE TRIGGER origin_no_update BEFORE UPDATE ON origin BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER origin_no_delete BEFORE DELETE ON origin BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER clone_no_update BEFORE UPDATE ON clone BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER clone_no_delete BEFORE DELETE ON clone BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

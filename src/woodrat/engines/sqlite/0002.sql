-- Migration 2: erasure. Bodies and nonces go together, and only while a purge is due.

-- A row says that bytes of what was erased may still stand in free pages or in the write-ahead log. It is added in the
-- transaction that erases, and taken away when the file has been made anew.
CREATE TABLE purge (
    id  INTEGER PRIMARY KEY CHECK (id = 1)
) STRICT;
CREATE TRIGGER purge_no_update BEFORE UPDATE ON purge BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

DROP TRIGGER body_no_update;
CREATE TRIGGER body_no_update BEFORE UPDATE ON body
WHEN NEW.id <> OLD.id OR NEW.nonce IS NOT NULL OR NEW.body IS NOT NULL OR NOT EXISTS (SELECT 1 FROM purge)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

DROP TRIGGER receipt_no_delete;
CREATE TRIGGER receipt_no_delete BEFORE DELETE ON receipt WHEN NOT EXISTS (SELECT 1 FROM purge)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

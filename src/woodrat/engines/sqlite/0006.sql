-- Migration 6: the request nonce. A write commits to its idempotency key and request by a nonce of its own, which is kept
-- with them and goes with them; by the nonce of its first entry what had been erased of the write could be guessed.

CREATE TABLE receipts (
    tenant   INTEGER NOT NULL,
    agent    TEXT NOT NULL,
    key      TEXT NOT NULL,
    request  BLOB NOT NULL,
    report   BLOB NOT NULL,
    nonce    BLOB NOT NULL,  -- the request nonce
    PRIMARY KEY (tenant, agent, key)
) STRICT, WITHOUT ROWID;
-- Writes of before committed by the nonce of their first entry.
INSERT INTO receipts
SELECT tenant, agent, key, request, report, coalesce((
    SELECT nonce FROM body WHERE id = (receipt.tenant << 40) + json_extract(CAST(report AS TEXT), '$.positions[0]')
), x'')
FROM receipt;
DROP TABLE receipt;
ALTER TABLE receipts RENAME TO receipt;
CREATE TRIGGER receipt_no_update BEFORE UPDATE ON receipt BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER receipt_no_delete BEFORE DELETE ON receipt WHEN NOT EXISTS (SELECT 1 FROM purge)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

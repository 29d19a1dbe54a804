-- The tables of a file: the log, and what is derived from it.
--
-- An entry's id is (tenant << 40) + position: one integer, so that a tenant's log is one run of the table, appending
-- writes to its end, and no index stands beside it.

-- The border no read or write crosses.
CREATE TABLE tenant (
    id    INTEGER PRIMARY KEY,
    name  TEXT NOT NULL UNIQUE
) STRICT;

-- Names of logs; an entry refers to the one it was written under.
CREATE TABLE log (
    id    INTEGER PRIMARY KEY,
    name  TEXT NOT NULL UNIQUE
) STRICT;

-- Headers and leaves of entries. Strictly append-only.
CREATE TABLE entry (
    id           INTEGER PRIMARY KEY,
    log          INTEGER NOT NULL REFERENCES log (id),
    recorded_at  INTEGER NOT NULL,  -- microseconds since 1970
    kind         INTEGER NOT NULL,  -- KINDS in codec.py
    write        INTEGER NOT NULL,  -- position of the write's first entry
    length       INTEGER,           -- entries of the write, on its first entry
    request      BLOB,              -- commitment to key and request, on its first entry
    commitment   BLOB NOT NULL,     -- SHA-256(nonce, body)
    leaf         BLOB NOT NULL      -- RFC 6962 leaf hash
) STRICT;

-- Entries that are not observations are few, and are looked for by kind.
CREATE INDEX entry_kind ON entry (kind) WHERE kind <> 1;

-- Bodies and nonces. Only an erasure changes them.
CREATE TABLE body (
    id     INTEGER PRIMARY KEY,
    nonce  BLOB,
    body   BLOB
) STRICT;

-- What idempotency keys were used for; they live with the bodies.
CREATE TABLE receipt (
    tenant   INTEGER NOT NULL,
    agent    TEXT NOT NULL,
    key      TEXT NOT NULL,
    request  BLOB NOT NULL,
    report   BLOB NOT NULL,
    nonce    BLOB NOT NULL,  -- the request nonce
    PRIMARY KEY (tenant, agent, key)
) STRICT, WITHOUT ROWID;

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

-- A row says that bytes of what was erased may still stand in free pages or in the write-ahead log. It is added in the
-- transaction that erases, and taken away when the file has been made anew.
CREATE TABLE purge (
    id  INTEGER PRIMARY KEY CHECK (id = 1)
) STRICT;

-- Append-only, whatever a statement tries. With recursive_triggers INSERT OR REPLACE fires the delete trigger too.
-- Bodies and nonces go together, and receipts with them, while a purge is due and at no other time.
CREATE TRIGGER entry_no_update BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER entry_no_delete BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER body_no_update BEFORE UPDATE ON body
WHEN NEW.id <> OLD.id OR NEW.nonce IS NOT NULL OR NEW.body IS NOT NULL OR NOT EXISTS (SELECT 1 FROM purge)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER body_no_delete BEFORE DELETE ON body BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER tenant_no_update BEFORE UPDATE ON tenant BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER tenant_no_delete BEFORE DELETE ON tenant BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER log_no_update BEFORE UPDATE ON log BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER log_no_delete BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER receipt_no_update BEFORE UPDATE ON receipt BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER receipt_no_delete BEFORE DELETE ON receipt WHEN NOT EXISTS (SELECT 1 FROM purge)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER origin_no_update BEFORE UPDATE ON origin BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER origin_no_delete BEFORE DELETE ON origin BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER clone_no_update BEFORE UPDATE ON clone BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER clone_no_delete BEFORE DELETE ON clone BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER purge_no_update BEFORE UPDATE ON purge BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

-- Everything below is derived: it can be dropped and made again from entry and body.

-- Entities anything was ever said of, with their present merge state. What is looked up by a digest is looked up within
-- its tenant: what another tenant has then costs no step more than what is not there.
CREATE TABLE entity (
    id        INTEGER PRIMARY KEY,
    tenant    INTEGER NOT NULL,
    type      TEXT NOT NULL,
    key       TEXT NOT NULL,
    digest    INTEGER NOT NULL,  -- first 8 bytes, signed
    first     INTEGER NOT NULL,  -- position of the first observation
    last      INTEGER NOT NULL,  -- position of the last observation
    until     TEXT NOT NULL,     -- the latest valid_from of an observation, retractions aside
    state_at  INTEGER,           -- position the state is true for
    state     BLOB               -- merge state of the fold this entity is the smallest of
) STRICT;
CREATE UNIQUE INDEX entity_key ON entity (tenant, type, key);
CREATE INDEX entity_digest ON entity (tenant, digest);

-- Observations: whom they speak of, and the one before. Following `previous` reads a history without an index.
CREATE TABLE said (
    id        INTEGER PRIMARY KEY,
    entity    INTEGER NOT NULL,
    previous  INTEGER NOT NULL,  -- position of the entity's observation before this one, or -1
    digest    INTEGER NOT NULL   -- first 8 bytes, signed
) STRICT;
CREATE INDEX said_digest ON said (digest);

-- Which observations name a digest in `replaces`.
CREATE TABLE naming (
    target  INTEGER NOT NULL,  -- first 8 bytes of the digest named, signed
    id      INTEGER NOT NULL,  -- the observation that names it
    PRIMARY KEY (target, id)
) STRICT, WITHOUT ROWID;

-- Merge state along the history, in rows of its own that an index finds: as part of a key a state would make the tree
-- deep, and one of more than a quarter of a page would take a whole one.
CREATE TABLE kept (
    entity    INTEGER NOT NULL,
    position  INTEGER NOT NULL,  -- position the state is true for
    last      INTEGER NOT NULL,  -- position of the entity's last observation at that time
    until     TEXT NOT NULL,     -- the latest valid_from of an observation at that time, retractions aside
    state     BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX kept_at ON kept (entity, position, last);
CREATE INDEX kept_until ON kept (entity, until, position);

-- Observations that a walk back along an entity may begin at, about one in eight from the first `same_as` of a tenant on:
-- merge state of a group is kept under its smallest member alone.
CREATE TABLE anchor (
    entity    INTEGER NOT NULL,
    position  INTEGER NOT NULL,
    PRIMARY KEY (entity, position)
) STRICT, WITHOUT ROWID;

-- Parts of large collections, each from a position on until another row of its key: of the fold an entity is the smallest
-- of, as it was after the position. Kept merge state, present and past, does not hold them.
CREATE TABLE element (
    entity    INTEGER NOT NULL,
    field     TEXT NOT NULL,
    key       BLOB NOT NULL,     -- sorts as the parts stand in the value
    position  INTEGER NOT NULL,
    part      BLOB,              -- none where it is gone
    PRIMARY KEY (entity, field, key, position)
) STRICT, WITHOUT ROWID;

-- Observations that hold since before something that was said earlier, and retractions, which always count.
CREATE TABLE late (
    entity      INTEGER NOT NULL,
    valid_from  TEXT NOT NULL,     -- empty for a retraction
    id          INTEGER NOT NULL,  -- the observation
    PRIMARY KEY (entity, valid_from, id)
) STRICT, WITHOUT ROWID;

-- Named ordered indexes. What the log makes true is listed under a key, from a position on; what is no longer true is
-- kept apart with the position it ended at, so that the present is one run of rows and the past can be read too.
CREATE TABLE index_row (
    tenant  INTEGER NOT NULL,
    name    TEXT NOT NULL,     -- of the index
    key     BLOB NOT NULL,
    since   INTEGER NOT NULL,  -- the position it is true from
    value   BLOB NOT NULL,
    PRIMARY KEY (tenant, name, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE index_past (
    tenant  INTEGER NOT NULL,
    name    TEXT NOT NULL,
    key     BLOB NOT NULL,
    since   INTEGER NOT NULL,
    until   INTEGER NOT NULL,  -- the position it is no longer true from
    value   BLOB NOT NULL,
    PRIMARY KEY (tenant, name, key, since)
) STRICT, WITHOUT ROWID;

-- What else is to be known about derived data, such as how far an index goes.
CREATE TABLE meta (
    tenant  INTEGER NOT NULL,
    name    TEXT NOT NULL,
    value   BLOB NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- Complete subtrees of the log's tree, by height above the leaves: what a proof needs, and the frontier at any size.
CREATE TABLE node (
    tenant  INTEGER NOT NULL,
    height  INTEGER NOT NULL,
    place   INTEGER NOT NULL,
    hash    BLOB NOT NULL,
    PRIMARY KEY (tenant, height, place)
) STRICT, WITHOUT ROWID;

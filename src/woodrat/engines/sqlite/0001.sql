-- Migration 1: the log, and what is derived from it.
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
    PRIMARY KEY (tenant, agent, key)
) STRICT, WITHOUT ROWID;

-- Append-only, whatever a statement tries. With recursive_triggers INSERT OR REPLACE fires the delete trigger too.
CREATE TRIGGER entry_no_update BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER entry_no_delete BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER body_no_update BEFORE UPDATE ON body BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER body_no_delete BEFORE DELETE ON body BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER tenant_no_update BEFORE UPDATE ON tenant BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER tenant_no_delete BEFORE DELETE ON tenant BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER log_no_update BEFORE UPDATE ON log BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER log_no_delete BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER receipt_no_update BEFORE UPDATE ON receipt BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER receipt_no_delete BEFORE DELETE ON receipt BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

-- Everything below is derived: it can be dropped and made again from entry and body.

-- Entities anything was ever said of, with their present merge state.
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
CREATE INDEX entity_digest ON entity (digest);

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

-- Merge state along the history.
CREATE TABLE kept (
    entity    INTEGER NOT NULL,
    position  INTEGER NOT NULL,  -- position the state is true for
    last      INTEGER NOT NULL,  -- position of the entity's last observation at that time
    until     TEXT NOT NULL,     -- the latest valid_from of an observation at that time, retractions aside
    state     BLOB NOT NULL,
    PRIMARY KEY (entity, position)
) STRICT, WITHOUT ROWID;
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

-- Relations by the entities they name.
CREATE TABLE edge (
    endpoint  INTEGER NOT NULL,  -- first 8 bytes of the endpoint's digest, signed
    relation  INTEGER NOT NULL,  -- the entity that stands for the relation
    PRIMARY KEY (endpoint, relation)
) STRICT, WITHOUT ROWID;

-- Identifying values, to hint at entities that share one.
CREATE TABLE sharing (
    tenant  INTEGER NOT NULL,
    type    TEXT NOT NULL,
    rule    TEXT NOT NULL,
    value   TEXT NOT NULL,
    entity  INTEGER NOT NULL,
    PRIMARY KEY (tenant, type, rule, value, entity)
) STRICT, WITHOUT ROWID;

-- Sources by digest.
CREATE TABLE source (
    digest  INTEGER NOT NULL,  -- first 8 bytes, signed
    id      INTEGER NOT NULL,  -- the entry that holds the content
    PRIMARY KEY (digest, id)
) STRICT, WITHOUT ROWID;

-- Entries of runs, by run.
CREATE TABLE step (
    run  INTEGER NOT NULL,  -- first 8 bytes of the SHA-256 of the run's id, signed
    id   INTEGER NOT NULL,  -- the entry
    PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;

-- Beginnings of runs, by the entity they are about.
CREATE TABLE about (
    subject  INTEGER NOT NULL,  -- first 8 bytes of the entity's digest, signed
    id       INTEGER NOT NULL,  -- the entry
    PRIMARY KEY (subject, id)
) STRICT, WITHOUT ROWID;

-- Shelves of other derived data, such as vectors: values by position, and the position a shelf is true for.
CREATE TABLE shelf (
    tenant    INTEGER NOT NULL,
    name      TEXT NOT NULL,
    position  INTEGER NOT NULL,
    value     BLOB NOT NULL,
    PRIMARY KEY (tenant, name, position)
) STRICT;
CREATE TABLE shelved (
    tenant    INTEGER NOT NULL,
    name      TEXT NOT NULL,
    position  INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- Leaves of the fingerprint: a digest of the values of every fold, and the position they are true for.
CREATE TABLE imprint (
    tenant  INTEGER NOT NULL,
    entity  BLOB NOT NULL,
    value   BLOB NOT NULL,
    PRIMARY KEY (tenant, entity)
) STRICT, WITHOUT ROWID;
CREATE TABLE imprinted (
    tenant    INTEGER PRIMARY KEY,
    position  INTEGER NOT NULL
) STRICT;

-- The search index: tokens of every fold, under its smallest entity, and the position they are true for. Tokens are bytes,
-- since no UTF-8 holds FF: everything that begins with a prefix stands before the prefix and FF.
CREATE TABLE word (
    tenant  INTEGER NOT NULL,
    token   BLOB NOT NULL,
    entity  INTEGER NOT NULL,
    fields  TEXT NOT NULL,     -- JSON array of the fields it stands in
    PRIMARY KEY (tenant, token, entity)
) STRICT, WITHOUT ROWID;
CREATE INDEX word_entity ON word (entity);
CREATE TABLE worded (
    tenant    INTEGER PRIMARY KEY,
    position  INTEGER NOT NULL
) STRICT;

-- Complete subtrees of the log's tree, by height above the leaves: what a proof needs, and the frontier at any size.
CREATE TABLE node (
    tenant  INTEGER NOT NULL,
    height  INTEGER NOT NULL,
    place   INTEGER NOT NULL,
    hash    BLOB NOT NULL,
    PRIMARY KEY (tenant, height, place)
) STRICT, WITHOUT ROWID;

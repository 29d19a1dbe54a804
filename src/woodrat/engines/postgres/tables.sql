-- The tables of a database: the log, what is derived from it, and who may do what.
--
-- Rules that keep the door to distributed PostgreSQL open: the tenant leads every primary key and unique index, nothing
-- refers across tenants, and there are no triggers. The log is append-only by the privileges below. Every text is compared
-- byte by byte, as in every other engine. An `id` is a position of the tenant's log. Tables whose rows change all the time
-- leave half of each page free: the new row stands beside the old one, and no index hears of it.

-- The number of the layout these tables are; one row.
CREATE TABLE layout (
    number   integer PRIMARY KEY,
    made_at  timestamptz NOT NULL DEFAULT now()
);

-- The end of each log. Whoever writes locks its row: positions are taken in the order of commits.
CREATE TABLE head (
    tenant       text COLLATE "C" PRIMARY KEY,
    changes      bigint NOT NULL,  -- how many writes changed anything of the tenant, derived data included
    log          text COLLATE "C",
    size         bigint NOT NULL,
    recorded_at  bigint,           -- microseconds since 1970
    frontier     bytea             -- the tree over all leaves, as far as it takes to add to it
) WITH (fillfactor = 50);

-- Names of logs; an entry refers to the one it was written under.
CREATE TABLE log (
    tenant  text COLLATE "C" NOT NULL,
    id      integer NOT NULL,
    name    text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX log_name ON log (tenant, name);

-- Headers and leaves of entries. Strictly append-only.
CREATE TABLE entry (
    tenant       text COLLATE "C" NOT NULL,
    id           bigint NOT NULL,
    log          integer NOT NULL,
    recorded_at  bigint NOT NULL,    -- microseconds since 1970
    kind         smallint NOT NULL,  -- KINDS in codec.py
    write        bigint NOT NULL,    -- position of the write's first entry
    length       bigint,             -- entries of the write, on its first entry
    request      bytea,              -- commitment to key and request, on its first entry
    commitment   bytea NOT NULL,     -- SHA-256(nonce, body)
    leaf         bytea NOT NULL,     -- RFC 6962 leaf hash
    PRIMARY KEY (tenant, id)
);

-- Entries that are not observations are few, and are looked for by kind.
CREATE INDEX entry_kind ON entry (tenant, kind, id) WHERE kind <> 1;

-- Bodies and nonces. Only an erasure changes them.
CREATE TABLE body (
    tenant  text COLLATE "C" NOT NULL,
    id      bigint NOT NULL,
    nonce   bytea,
    body    bytea,
    PRIMARY KEY (tenant, id)
);

-- Where an entry that was merged in was first written. Entries that begin here have no row.
CREATE TABLE origin (
    tenant    text COLLATE "C" NOT NULL,
    id        bigint NOT NULL,
    log       integer NOT NULL,
    position  bigint NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX origin_place ON origin (tenant, log, position);

-- Last entries of what was taken over from another ledger as it was, and the log they were written under.
CREATE TABLE clone (
    tenant  text COLLATE "C" NOT NULL,
    id      bigint NOT NULL,
    log     integer NOT NULL,
    PRIMARY KEY (tenant, id)
);

-- What idempotency keys were used for; they live with the bodies.
CREATE TABLE receipt (
    tenant   text COLLATE "C" NOT NULL,
    agent    text COLLATE "C" NOT NULL,
    key      text COLLATE "C" NOT NULL,
    request  bytea NOT NULL,
    report   bytea NOT NULL,
    nonce    bytea NOT NULL,  -- the request nonce
    PRIMARY KEY (tenant, agent, key)
);

-- Tenants of which something was erased that may still stand in the files.
CREATE TABLE purge (
    tenant  text COLLATE "C" PRIMARY KEY
);

-- Everything below is derived: it can be dropped and made again from entry and body.

-- Entities anything was ever said of, with their present merge state.
CREATE TABLE entity (
    tenant    text COLLATE "C" NOT NULL,
    id        bigint NOT NULL,
    type      text COLLATE "C" NOT NULL,
    key       text COLLATE "C" NOT NULL,
    digest    bigint NOT NULL,            -- first 8 bytes, signed
    first     bigint NOT NULL,            -- position of the first observation
    last      bigint NOT NULL,            -- position of the last observation
    until     text COLLATE "C" NOT NULL,  -- the latest valid_from of an observation, retractions aside
    state_at  bigint,                     -- position the state is true for
    state     bytea,                      -- merge state of the fold this entity is the smallest of
    fields    jsonb,                      -- what the state comes to; null in JSON where it shows nothing
    more      jsonb,                      -- collections that `fields` leaves out, and how many elements they have
    version   bigint,                     -- the last position that touched it through a `same_as`
    PRIMARY KEY (tenant, id)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX entity_key ON entity (tenant, type, key);
CREATE INDEX entity_digest ON entity (tenant, digest);

-- Observations: whom they speak of, and the one before. Following `previous` reads a history without an index.
CREATE TABLE said (
    tenant    text COLLATE "C" NOT NULL,
    id        bigint NOT NULL,
    entity    bigint NOT NULL,
    previous  bigint NOT NULL,  -- position of the entity's observation before this one, or -1
    digest    bigint NOT NULL,  -- first 8 bytes, signed
    PRIMARY KEY (tenant, id)
);
CREATE INDEX said_digest ON said (tenant, digest);

-- Which observations name a digest in `replaces`.
CREATE TABLE naming (
    tenant  text COLLATE "C" NOT NULL,
    target  bigint NOT NULL,  -- first 8 bytes of the digest named, signed
    id      bigint NOT NULL,  -- the observation that names it
    PRIMARY KEY (tenant, target, id)
);

-- Merge state along the history.
CREATE TABLE kept (
    tenant    text COLLATE "C" NOT NULL,
    entity    bigint NOT NULL,
    position  bigint NOT NULL,            -- position the state is true for
    last      bigint NOT NULL,            -- position of the entity's last observation at that time
    until     text COLLATE "C" NOT NULL,  -- the latest valid_from of an observation at that time, retractions aside
    state     bytea NOT NULL,
    PRIMARY KEY (tenant, entity, position)
);
CREATE INDEX kept_until ON kept (tenant, entity, until, position);

-- Observations that a walk back along an entity may begin at, about one in eight from the first `same_as` of a tenant on:
-- merge state of a group is kept under its smallest member alone.
CREATE TABLE anchor (
    tenant    text COLLATE "C" NOT NULL,
    entity    bigint NOT NULL,
    position  bigint NOT NULL,
    PRIMARY KEY (tenant, entity, position)
);

-- Parts of large collections, each from a position on until another row of its key: of the fold an entity is the smallest
-- of, as it was after the position. Kept merge state, present and past, does not hold them.
CREATE TABLE element (
    tenant    text COLLATE "C" NOT NULL,
    entity    bigint NOT NULL,
    field     text COLLATE "C" NOT NULL,
    key       bytea NOT NULL,  -- sorts as the parts stand in the value
    position  bigint NOT NULL,
    part      bytea,           -- none where it is gone
    PRIMARY KEY (tenant, entity, field, key, position)
);

-- Observations that hold since before something that was said earlier, and retractions, which always count.
CREATE TABLE late (
    tenant      text COLLATE "C" NOT NULL,
    entity      bigint NOT NULL,
    valid_from  text COLLATE "C" NOT NULL,  -- empty for a retraction
    id          bigint NOT NULL,            -- the observation
    PRIMARY KEY (tenant, entity, valid_from, id)
);

-- Named ordered indexes: what is true now, and what is no longer, with the position it ended at.
CREATE TABLE index_row (
    tenant  text COLLATE "C" NOT NULL,
    name    text COLLATE "C" NOT NULL,  -- of the index
    key     bytea NOT NULL,
    since   bigint NOT NULL,            -- the position it is true from
    value   bytea NOT NULL,
    PRIMARY KEY (tenant, name, key)
);
CREATE TABLE index_past (
    tenant  text COLLATE "C" NOT NULL,
    name    text COLLATE "C" NOT NULL,
    key     bytea NOT NULL,
    since   bigint NOT NULL,
    until   bigint NOT NULL,            -- the position it is no longer true from
    value   bytea NOT NULL,
    PRIMARY KEY (tenant, name, key, since)
);

-- What else is to be known about derived data, such as how far an index goes.
CREATE TABLE meta (
    tenant  text COLLATE "C" NOT NULL,
    name    text COLLATE "C" NOT NULL,
    value   bytea NOT NULL,
    PRIMARY KEY (tenant, name)
) WITH (fillfactor = 50);

-- Complete subtrees of the log's tree, by height above the leaves: what a proof needs, and the frontier at any size.
CREATE TABLE node (
    tenant  text COLLATE "C" NOT NULL,
    height  integer NOT NULL,
    place   bigint NOT NULL,
    hash    bytea NOT NULL,
    PRIMARY KEY (tenant, height, place)
);

-- What is believed now, for whoever reads it with SQL. Row-level security is that of whoever asks.
CREATE VIEW state WITH (security_invoker = true) AS
SELECT tenant, type, key, fields, more, greatest(last, version) AS version FROM entity
WHERE jsonb_typeof(fields) = 'object';

-- Row-level security. Whoever reads or writes says in its transaction for which tenant it does so (`woodrat.tenant`), and
-- there is nothing else for it, owner of the tables or not. The owner may read all of them, to list tenants and to look for
-- what was erased.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'head', 'log', 'entry', 'body', 'origin', 'clone', 'receipt', 'purge', 'entity', 'said', 'naming', 'kept', 'anchor',
        'element', 'late', 'index_row', 'index_past', 'meta', 'node'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY own_tenant ON %I USING (tenant = current_setting(''woodrat.tenant'', true))'
            ' WITH CHECK (tenant = current_setting(''woodrat.tenant'', true))', name);
        EXECUTE format('CREATE POLICY owner_reads ON %I FOR SELECT TO woodrat_owner USING (true)', name);
    END LOOP;
END
$$;
CREATE POLICY owner_purges ON purge FOR DELETE TO woodrat_owner USING (true);

-- Privileges. The log can be added to and read; derived data can be changed; what was erased is gone by the eraser's hand.
GRANT SELECT ON ALL TABLES IN SCHEMA woodrat TO woodrat_reader, woodrat_writer;
GRANT INSERT ON log, entry, body, origin, clone, receipt, purge TO woodrat_writer;
GRANT INSERT, UPDATE ON head TO woodrat_writer;
GRANT INSERT, UPDATE, DELETE ON entity, said, naming, kept, anchor, element, late, index_row, index_past, meta, node
    TO woodrat_writer;
GRANT SELECT ON layout, body, receipt TO woodrat_eraser;
GRANT UPDATE (nonce, body) ON body TO woodrat_eraser;
GRANT DELETE ON receipt TO woodrat_eraser;

-- Values are never sampled: ANALYZE would keep some in the catalogue, where no erasure finds them. Statements go by keys,
-- so that plans need none of it.
DO $$
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT attrelid::regclass AS name, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace = 'woodrat'::regnamespace AND relkind = 'r' AND relname <> 'layout' AND attnum > 0
          AND attname <> 'tenant' AND atttypid IN ('text'::regtype, 'bytea'::regtype, 'jsonb'::regtype)
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', one.name, one.attname);
    END LOOP;
END
$$;

-- Every statement the engine runs besides those of engines/sql/queries.sql, by name, with a line of purpose.
-- :low and :high bound a tenant's run of entry ids; :base is its first id, that of position 0.



-- name: tenant
-- The number of a tenant, if it ever wrote.
SELECT id FROM tenant WHERE name = :name;

-- name: add_tenant
-- Give a tenant its number.
INSERT INTO tenant (name) VALUES (:name) RETURNING id;

-- name: tenants
-- The tenants there are.
SELECT name FROM tenant ORDER BY name;

-- name: log
-- The number of a log's name.
SELECT id FROM log WHERE name = :name;

-- name: add_log
-- Give a log's name its number.
INSERT INTO log (name) VALUES (:name) RETURNING id;

-- name: last_entry
-- The end of a tenant's log.
SELECT entry.id, log.name, entry.recorded_at
FROM entry JOIN log ON log.id = entry.log
WHERE entry.id BETWEEN :low AND :high ORDER BY entry.id DESC LIMIT 1;

-- name: entries
-- Entries in order of position.
SELECT entry.id, log.name, entry.recorded_at, entry.kind, entry.write, entry.length, entry.request, entry.commitment,
       body.nonce, body.body, source_log.name, origin.position
FROM entry JOIN log ON log.id = entry.log LEFT JOIN body ON body.id = entry.id
     LEFT JOIN origin ON origin.id = entry.id LEFT JOIN log AS source_log ON source_log.id = origin.log
WHERE entry.id BETWEEN :low AND :high ORDER BY entry.id;

-- name: bodies_at
-- Kinds and bodies of the entries at some positions, with what they are committed to by.
SELECT entry.id, entry.kind, entry.commitment, body.nonce, body.body
FROM json_each(:ids) AS sought CROSS JOIN entry ON entry.id = sought.value JOIN body ON body.id = entry.id
WHERE entry.id BETWEEN :low AND :high AND body.body IS NOT NULL;

-- name: entries_of_kind
-- Entries of one rare kind, in order of position.
SELECT entry.id, log.name, entry.recorded_at, entry.kind, entry.write, entry.length, entry.request, entry.commitment,
       body.nonce, body.body, source_log.name, origin.position
FROM entry INDEXED BY entry_kind JOIN log ON log.id = entry.log LEFT JOIN body ON body.id = entry.id
     LEFT JOIN origin ON origin.id = entry.id LEFT JOIN log AS source_log ON source_log.id = origin.log
WHERE entry.kind = :kind AND entry.kind <> 1 AND entry.id BETWEEN :low AND :high ORDER BY entry.id;

-- name: last_of_kind
-- The last entry of one rare kind.
SELECT max(id) FROM entry INDEXED BY entry_kind WHERE kind = :kind AND kind <> 1 AND id BETWEEN :low AND :high;

-- name: recorded_at
-- The log's time at one entry, to search by halves.
SELECT recorded_at FROM entry WHERE id = :id;

-- name: leaves
-- Leaf hashes in order of position.
SELECT leaf FROM entry WHERE id BETWEEN :low AND :high ORDER BY id;

-- name: merged
-- The entry of another log nearest to a position, not after it, and where it stands here.
SELECT origin.position, origin.id FROM origin
WHERE origin.log = (SELECT id FROM log WHERE name = :log) AND origin.position <= :through
  AND origin.id BETWEEN :low AND :high
ORDER BY origin.position DESC LIMIT 1;

-- name: merged_beyond
-- Whether anything of another log from a position on came in here.
SELECT 1 FROM origin
WHERE origin.log = (SELECT id FROM log WHERE name = :log) AND origin.position >= :through
  AND origin.id BETWEEN :low AND :high LIMIT 1;

-- name: cloned
-- How far a log was taken over from another ledger.
SELECT max(id) FROM clone WHERE id BETWEEN :low AND :high;

-- name: add_clone
-- Note how far a log was taken over from another ledger.
INSERT OR IGNORE INTO clone (id, log) VALUES (:id, :log);

-- name: other_tenant
-- Whether the file holds another tenant.
SELECT 1 FROM tenant WHERE name <> :name LIMIT 1;

-- name: purge_due
-- Whether a purge is due.
SELECT 1 FROM purge;

-- name: due
-- Note that a purge is due.
INSERT OR REPLACE INTO purge (id) VALUES (1);

-- name: erase_body
-- Remove a body and its nonce.
UPDATE body SET nonce = NULL, body = NULL WHERE id = ?;

-- name: said_by_digest
-- Observations of a tenant whose digest begins so.
SELECT said.id, body.body, said.digest FROM said LEFT JOIN body ON body.id = said.id
WHERE said.digest = :digest AND said.id BETWEEN :low AND :high ORDER BY said.id;

-- name: observation_ids
-- Observations of a tenant whose digests begin in a range, by that beginning.
SELECT said.id, body.body, said.digest FROM said JOIN body ON body.id = said.id
WHERE said.digest BETWEEN :first AND :last AND said.id BETWEEN :low AND :high AND body.body IS NOT NULL
ORDER BY said.digest;

-- name: is_said
-- Whether an observation of a tenant has a digest that begins so.
SELECT 1 FROM said WHERE digest = :digest AND id BETWEEN :low AND :high LIMIT 1;

-- name: are_said
-- Which of these beginnings observations of a tenant have.
SELECT DISTINCT said.digest FROM json_each(:digests) AS sought CROSS JOIN said ON said.digest = sought.value
WHERE said.id BETWEEN :low AND :high;

-- name: named
-- What observations of a tenant name, by the beginning of the digest.
SELECT DISTINCT target FROM naming WHERE id BETWEEN :low AND :high LIMIT :limit;

-- name: named_of
-- Which of these beginnings of digests observations of a tenant name.
SELECT DISTINCT naming.target FROM json_each(:targets) AS sought CROSS JOIN naming ON naming.target = sought.value
WHERE naming.id BETWEEN :low AND :high;

-- name: namers
-- Observations of a tenant that name a digest that begins so.
SELECT naming.id, body.body, said.digest
FROM naming JOIN said ON said.id = naming.id LEFT JOIN body ON body.id = naming.id
WHERE naming.target = :target AND naming.id BETWEEN :low AND :high ORDER BY naming.id;

-- name: anchor
-- An observation of an entity at or after a position, as near as is known: where a walk back may begin.
SELECT min(at) FROM (
    SELECT (SELECT last FROM kept WHERE entity = :entity AND position >= :through ORDER BY position LIMIT 1) AS at
    UNION ALL SELECT min(position) FROM anchor WHERE entity = :entity AND position >= :through
);

-- name: chain
-- Observations of one entity that stand after :after and no later than :through, found from :start on backwards.
WITH RECURSIVE chain (id, previous, digest) AS (
    SELECT id, previous, digest FROM said WHERE id = :start
    UNION ALL
    SELECT said.id, said.previous, said.digest
    FROM chain JOIN said ON said.id = :base + chain.previous
    WHERE chain.previous > :after AND said.id < chain.id  -- a damaged chain must end too
)
SELECT chain.id, body.body, chain.digest FROM chain LEFT JOIN body ON body.id = chain.id
WHERE chain.id <= :base + :through;

-- name: entities_by_digest
-- Entities by the beginnings of their digests.
SELECT entity.id, entity.type, entity.key, first, last, until, state_at, state
FROM json_each(:digests) AS sought CROSS JOIN entity ON entity.digest = sought.value AND entity.tenant = :tenant;

-- name: last_entity
-- The highest number an entity has.
SELECT max(id) FROM entity;

-- name: last_said
-- The last observation of an entity at or before a position, found by walking back.
WITH RECURSIVE chain (position, previous) AS (
    SELECT id - :base, previous FROM said WHERE id = :start
    UNION ALL
    SELECT said.id - :base, said.previous FROM chain JOIN said ON said.id = :base + chain.previous
    WHERE chain.position > :through AND chain.previous >= 0 AND chain.previous < chain.position
)
SELECT position FROM chain WHERE position <= :through LIMIT 1;

-- name: touched
-- Entities with an observation in a run of the log.
SELECT type, key FROM entity WHERE id IN (SELECT entity FROM said WHERE id BETWEEN :low AND :high);

-- name: kept
-- The latest merge state kept at or before a position, and the anchor for what was said since.
SELECT position, state,
       (SELECT last FROM kept WHERE entity = :entity AND position >= :through ORDER BY position LIMIT 1)
FROM kept WHERE entity = :entity AND position <= :through ORDER BY position DESC LIMIT 1;

-- name: last_kept
-- The beginning of the last merge state kept along the history of each entity, as far as `amounts` reads it, and its size.
SELECT kept.entity, substr(state, 1, 48), length(state)
FROM json_each(:entities) AS sought CROSS JOIN kept ON kept.rowid = (
    SELECT rowid FROM kept WHERE entity = sought.value ORDER BY position DESC LIMIT 1
);

-- name: kept_by
-- The latest merge state kept at or before a position, all of which was true by a time.
SELECT position, state FROM kept
WHERE entity = :entity AND position = (
    SELECT max(position) FROM (
        SELECT position FROM kept INDEXED BY kept_until
        WHERE entity = :entity AND until <= :effective AND position <= :through
        ORDER BY until DESC, position DESC LIMIT 1
    )
);

-- name: element
-- A part of a collection as it was after a position.
SELECT part FROM element WHERE entity = :entity AND field = :field AND key = :key AND position <= :through
ORDER BY position DESC LIMIT 1;

-- name: elements
-- Parts of a collection as they were after a position, by key; each key is looked at once, so a page costs a page.
SELECT key, part FROM (
    SELECT key, part, max(position) FROM element
    WHERE entity = :entity AND field = :field AND key > :after AND position <= :through GROUP BY key
)
WHERE part IS NOT NULL LIMIT :limit;

-- name: element_fields
-- Collections of an entity of which parts are kept one by one.
SELECT DISTINCT field FROM element WHERE entity = :entity;

-- name: next_kept
-- The merge state kept next after a position: where it is true, and the last observation in it.
SELECT position, last FROM kept WHERE entity = :entity AND position > :after ORDER BY position LIMIT 1;

-- name: late
-- Observations after a position that hold since a time or before, and retractions, among those said late.
SELECT late.id, body.body, said.digest
FROM late JOIN said ON said.id = late.id LEFT JOIN body ON body.id = late.id
WHERE late.entity = :entity AND late.valid_from <= :effective AND late.id BETWEEN :low AND :high ORDER BY late.id;

-- name: add_entity
-- Note an entity anything is said of, or that a group is kept under.
INSERT INTO entity (id, tenant, type, key, digest, first, last, until, state_at, state)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: set_entity
-- Note the observations of an entity and the present merge state of the fold it is the smallest of.
UPDATE entity SET first = ?, last = ?, until = ?, state_at = ?, state = ? WHERE id = ?;

-- name: scan_past
-- Rows of an index that were true at a position, by key.
SELECT key, value FROM index_row
WHERE tenant = :tenant AND name = :name AND key >= :first AND key < :last AND since <= :through
UNION ALL
SELECT key, value FROM index_past
WHERE tenant = :tenant AND name = :name AND key >= :first AND key < :last AND since <= :through AND until > :through
ORDER BY key LIMIT :limit;

-- name: scan_past_reversed
-- The same, the other way round.
SELECT key, value FROM index_row
WHERE tenant = :tenant AND name = :name AND key >= :first AND key < :last AND since <= :through
UNION ALL
SELECT key, value FROM index_past
WHERE tenant = :tenant AND name = :name AND key >= :first AND key < :last AND since <= :through AND until > :through
ORDER BY key DESC LIMIT :limit;

-- name: find
-- Rows of an index that are true now, between pairs of keys, each pair in hexadecimal, in their order.
SELECT index_row.key, index_row.value FROM json_each(:sought) AS sought
CROSS JOIN index_row ON index_row.tenant = :tenant AND index_row.name = :name
    AND index_row.key >= unhex(sought.value ->> 0) AND index_row.key < unhex(sought.value ->> 1);

-- name: find_some
-- The same, at most so many rows of each pair.
SELECT index_row.key, index_row.value FROM json_each(:sought) AS sought
CROSS JOIN index_row ON index_row.tenant = :tenant AND index_row.name = :name
    AND index_row.key >= unhex(sought.value ->> 0) AND index_row.key < ifnull(
        (SELECT later.key FROM index_row AS later WHERE later.tenant = :tenant AND later.name = :name
            AND later.key >= unhex(sought.value ->> 0) AND later.key < unhex(sought.value ->> 1)
         ORDER BY later.key LIMIT 1 OFFSET :limit),
        unhex(sought.value ->> 1));

-- name: end_index_row
-- Keep a row of an index that ends; one that was never true is not kept.
INSERT OR REPLACE INTO index_past (tenant, name, key, since, until, value)
SELECT tenant, name, key, since, ?, value FROM index_row WHERE tenant = ? AND name = ? AND key = ? AND since < ?;

-- name: set_meta
-- Note something under a name.
INSERT OR REPLACE INTO meta (tenant, name, value) VALUES (:tenant, :name, :value);

-- name: drop_derived
-- Forget what is derived from a tenant's log. Rows that belong to no entity or no tenant at all go too: numbers of entities
-- come back, and nobody else would ever clear away what a damaged file holds. A column that is NOT NULL is never asked whether
-- it is NULL, whatever a damaged file holds; so its type is.
DELETE FROM said WHERE id BETWEEN :low AND :high OR typeof(id) <> 'integer' OR id >> 40 NOT IN (SELECT id FROM tenant);
DELETE FROM naming WHERE id BETWEEN :low AND :high OR typeof(id) <> 'integer' OR id >> 40 NOT IN (SELECT id FROM tenant);
DELETE FROM index_row WHERE tenant = :tenant OR typeof(tenant) <> 'integer' OR tenant NOT IN (SELECT id FROM tenant);
DELETE FROM index_past WHERE tenant = :tenant OR typeof(tenant) <> 'integer' OR tenant NOT IN (SELECT id FROM tenant);
DELETE FROM meta WHERE tenant = :tenant OR typeof(tenant) <> 'integer' OR tenant NOT IN (SELECT id FROM tenant);
DELETE FROM late WHERE id BETWEEN :low AND :high OR typeof(id) <> 'integer' OR id >> 40 NOT IN (SELECT id FROM tenant);
DELETE FROM late WHERE typeof(entity) <> 'integer' OR entity NOT IN (SELECT id FROM entity WHERE tenant <> :tenant AND tenant IN (SELECT id FROM tenant));
DELETE FROM kept WHERE typeof(entity) <> 'integer' OR entity NOT IN (SELECT id FROM entity WHERE tenant <> :tenant AND tenant IN (SELECT id FROM tenant));
DELETE FROM element WHERE typeof(entity) <> 'integer' OR entity NOT IN (SELECT id FROM entity WHERE tenant <> :tenant AND tenant IN (SELECT id FROM tenant));
DELETE FROM anchor WHERE typeof(entity) <> 'integer' OR entity NOT IN (SELECT id FROM entity WHERE tenant <> :tenant AND tenant IN (SELECT id FROM tenant));
DELETE FROM said WHERE typeof(entity) <> 'integer' OR entity NOT IN (SELECT id FROM entity WHERE tenant <> :tenant AND tenant IN (SELECT id FROM tenant));
DELETE FROM entity WHERE tenant = :tenant OR typeof(tenant) <> 'integer' OR tenant NOT IN (SELECT id FROM tenant);
DELETE FROM node WHERE tenant = :tenant OR typeof(tenant) <> 'integer' OR tenant NOT IN (SELECT id FROM tenant);

-- name: drop_all_derived
-- Forget what is derived from the only log there is. Without a condition SQLite frees whole pages.
DELETE FROM said;
DELETE FROM naming;
DELETE FROM index_row;
DELETE FROM index_past;
DELETE FROM meta;
DELETE FROM late;
DELETE FROM kept;
DELETE FROM element;
DELETE FROM anchor;
DELETE FROM entity;
DELETE FROM node;

-- name: rows
-- The log as it is stored, in order of position.
SELECT entry.id, entry.log, entry.recorded_at, entry.kind, entry.write, entry.length, entry.request, entry.commitment,
       entry.leaf, body.nonce, body.body
FROM entry LEFT JOIN body ON body.id = entry.id
WHERE entry.id BETWEEN :low AND :high ORDER BY entry.id;

-- name: origins
-- Where entries were first written that were merged in, in order of position.
SELECT id, log, position FROM origin WHERE id BETWEEN :low AND :high ORDER BY id;

-- name: logs
-- The names of logs by number.
SELECT id, name FROM log;

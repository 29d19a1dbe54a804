-- Every statement by which derived data is compared with the log, by name, with a line of purpose. None of them writes.
-- :low and :high bound a tenant's run of entry ids; :base is its first id, that of position 0.



-- name: integrity
-- What SQLite finds wrong with the file.
PRAGMA integrity_check;

-- name: layout
-- Every table, index and trigger, with the page it begins at.
SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(tbl_name AS BLOB), rootpage, CAST(sql AS BLOB) FROM sqlite_schema;

-- name: unowned_entry
-- Numbers of tenants that have entries and no name.
WITH RECURSIVE hop (tenant) AS (
    SELECT min(id) >> 40 FROM entry
    UNION ALL
    SELECT (SELECT min(id) >> 40 FROM entry WHERE id >= (hop.tenant + 1) << 40) FROM hop WHERE hop.tenant IS NOT NULL
)
SELECT tenant FROM hop WHERE tenant IS NOT NULL AND tenant NOT IN (SELECT id FROM tenant);

-- name: unowned_body
-- Bodies that belong to no entry.
SELECT body.id FROM body WHERE NOT EXISTS (SELECT 1 FROM entry WHERE entry.id = body.id) LIMIT 1;

-- name: unowned_origin
-- Origins of no entry.
SELECT origin.id FROM origin WHERE NOT EXISTS (SELECT 1 FROM entry WHERE entry.id = origin.id) LIMIT 1;

-- name: odd_clones
-- Ends of what was taken over that are no end of a write of that log.
SELECT clone.id FROM clone LEFT JOIN entry ON entry.id = clone.id
WHERE entry.id IS NULL OR entry.log <> clone.log OR EXISTS (
    SELECT 1 FROM entry AS next WHERE next.id = clone.id + 1 AND next.write = entry.write
)
LIMIT 1;

-- name: unowned_receipt
-- A receipt of no tenant.
SELECT tenant FROM receipt WHERE tenant NOT IN (SELECT id FROM tenant) LIMIT 1;

-- name: orphans
-- Tables with a derived row that belongs to no tenant, or to no entity.
SELECT 'entity' FROM entity WHERE tenant NOT IN (SELECT id FROM tenant)
UNION SELECT 'said' FROM said WHERE id >> 40 NOT IN (SELECT id FROM tenant) OR entity NOT IN (SELECT id FROM entity)
UNION SELECT 'naming' FROM naming WHERE id >> 40 NOT IN (SELECT id FROM tenant)
UNION SELECT 'late' FROM late WHERE id >> 40 NOT IN (SELECT id FROM tenant) OR entity NOT IN (SELECT id FROM entity)
UNION SELECT 'kept' FROM kept INDEXED BY kept_until WHERE entity NOT IN (SELECT id FROM entity)
UNION SELECT 'anchor' FROM anchor WHERE entity NOT IN (SELECT id FROM entity)
UNION SELECT 'element' FROM element WHERE entity NOT IN (SELECT id FROM entity)
UNION SELECT 'index_row' FROM index_row WHERE tenant NOT IN (SELECT id FROM tenant)
UNION SELECT 'index_past' FROM index_past WHERE tenant NOT IN (SELECT id FROM tenant)
UNION SELECT 'meta' FROM meta WHERE tenant NOT IN (SELECT id FROM tenant)
UNION SELECT 'node' FROM node WHERE tenant NOT IN (SELECT id FROM tenant);

-- name: beyond
-- Derived data of a tenant that speaks of a position after the last: the table, and the position.
SELECT 'said', id - :base FROM said WHERE id BETWEEN :base + :size AND :high
UNION ALL SELECT 'naming', id - :base FROM naming WHERE id BETWEEN :base + :size AND :high
UNION ALL SELECT 'late', id - :base FROM late WHERE id BETWEEN :base + :size AND :high
UNION ALL SELECT 'entity', max(last, coalesce(state_at, -1)) FROM entity
    WHERE tenant = :tenant AND max(last, coalesce(state_at, -1)) >= :size
UNION ALL SELECT 'anchor', position FROM anchor
    WHERE position >= :size AND entity IN (SELECT id FROM entity WHERE tenant = :tenant)
UNION ALL SELECT 'element', position FROM element
    WHERE position >= :size AND entity IN (SELECT id FROM entity WHERE tenant = :tenant)
UNION ALL SELECT 'index_row', since FROM index_row WHERE tenant = :tenant AND since >= :size
UNION ALL SELECT 'index_past', until FROM index_past WHERE tenant = :tenant AND until >= :size
UNION ALL SELECT 'node', ((place + 1) << height) - 1 FROM node
    WHERE tenant = :tenant AND (place + 1) << height > :size
LIMIT 1;

-- name: repeated
-- Observations of a tenant that another of it has the same beginning of a digest with.
SELECT id FROM said INDEXED BY said_digest
WHERE id BETWEEN :low AND :high AND digest IN (
    SELECT digest FROM said INDEXED BY said_digest WHERE id BETWEEN :low AND :high GROUP BY digest HAVING count(*) > 1
)
ORDER BY id;

-- name: entity_numbers
-- The lowest and the highest number an entity has.
SELECT min(id), max(id) FROM entity;

-- name: entities_within
-- Entities of a tenant by number.
SELECT id, type, key, digest, first, last, until, state_at, state FROM entity
WHERE id BETWEEN :low AND :high AND tenant = :tenant ORDER BY id;

-- name: links
-- The observations of an entity from :start back: each with the entity it speaks of, the one before, and its digest.
WITH RECURSIVE chain (id, entity, previous, digest) AS (
    SELECT id, entity, previous, digest FROM said WHERE id = :start
    UNION ALL
    SELECT said.id, said.entity, said.previous, said.digest
    FROM chain JOIN said ON said.id = :base + chain.previous
    WHERE chain.previous >= 0 AND said.id < chain.id
)
SELECT id, entity, previous, digest FROM chain;

-- name: bodies
-- Bodies by id, in the order asked for.
SELECT body.id, body.body FROM json_each(:ids) AS sought CROSS JOIN body ON body.id = sought.value;

-- name: spread
-- Entities within a slice that have parts of collections kept one by one.
SELECT DISTINCT entity FROM element WHERE entity BETWEEN :low AND :high;

-- name: elements_of
-- All parts of collections kept one by one of an entity.
SELECT position, field, key, part FROM element WHERE entity = :entity ORDER BY position;

-- name: has_naming
-- Whether an observation is noted to name a digest that begins so.
SELECT 1 FROM naming WHERE target = ? AND id = ?;

-- name: has_late
-- Whether an observation is noted as late.
SELECT 1 FROM late WHERE entity = ? AND valid_from = ? AND id = ?;

-- name: has_anchor
-- Whether a walk back may begin at an observation.
SELECT 1 FROM anchor WHERE entity = ? AND position = ?;

-- name: has_index_row
-- Whether an index has a row that is true from a position on.
SELECT 1 FROM index_row WHERE tenant = ? AND name = ? AND key = ? AND since = ? AND value = ?;

-- name: has_index_past
-- Whether an index has a row that was true from one position to another.
SELECT 1 FROM index_past WHERE tenant = ? AND name = ? AND key = ? AND since = ? AND value = ? AND until = ?;

-- name: counts
-- How many rows of a tenant each part has.
SELECT 'said', count(*) FROM said WHERE id BETWEEN :low AND :high
UNION ALL SELECT 'naming', count(*) FROM naming WHERE id BETWEEN :low AND :high
UNION ALL SELECT 'late', count(*) FROM late WHERE id BETWEEN :low AND :high
UNION ALL SELECT 'anchor', count(*) FROM anchor
    WHERE entity IN (SELECT id FROM entity WHERE tenant = :tenant) AND position <= :high - :low
UNION ALL SELECT 'index_row', count(*) FROM index_row WHERE tenant = :tenant
UNION ALL SELECT 'index_past', count(*) FROM index_past WHERE tenant = :tenant
UNION ALL SELECT 'node', count(*) FROM node WHERE tenant = :tenant;

-- name: last_id
-- The last entry of a tenant, whatever it holds.
SELECT max(id) FROM entry WHERE id BETWEEN :low AND :high;

-- name: said_ids
-- Observations of a tenant in order of position.
SELECT id FROM said WHERE id BETWEEN :low AND :high ORDER BY id;

-- Every statement by which a file is checked, and its derived rows are compared with those derived anew, by name, with a
-- line of purpose. None of them writes. :low and :high bound a tenant's run of entry ids; :base is that of position 0.

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

-- name: last_id
-- The last entry of a tenant, whatever it holds.
SELECT max(id) FROM entry WHERE id BETWEEN :low AND :high;

-- name: log_bytes
-- How many bytes the bodies of a tenant have.
SELECT total(length(body)) FROM body WHERE id BETWEEN :low AND :high;

-- name: repeated
-- Observations of a tenant that another of it has the same beginning of a digest with, by position.
SELECT id - :base FROM said INDEXED BY said_digest
WHERE id BETWEEN :low AND :high AND digest IN (
    SELECT digest FROM said INDEXED BY said_digest WHERE id BETWEEN :low AND :high GROUP BY digest HAVING count(*) > 1
)
ORDER BY id;

-- name: derived_kept
-- Merge states along histories, by type, key and position.
SELECT type, key, position, kept.last, kept.until, kept.state
FROM entity CROSS JOIN kept ON kept.entity = entity.id WHERE tenant = :tenant ORDER BY type, key, position;

-- name: derived_element
-- Parts of large collections, by type, key, field, key and position.
SELECT type, entity.key, field, element.key, position, part
FROM entity CROSS JOIN element ON element.entity = entity.id WHERE tenant = :tenant
ORDER BY type, entity.key, field, element.key, position;

-- name: derived_said
-- Observations by position: whom each speaks of, the one before, and its digest.
SELECT said.id - :base, type, key, previous, said.digest
FROM said CROSS JOIN entity ON entity.id = said.entity AND tenant = :tenant
WHERE said.id BETWEEN :low AND :high ORDER BY said.id;

-- name: derived_naming
-- What observations name, by the beginning of the digest and by position.
SELECT target, id - :base FROM naming WHERE id BETWEEN :low AND :high ORDER BY target, id;

-- name: derived_late
-- Late observations and retractions, by type, key and the time from which they hold.
SELECT type, key, valid_from, late.id - :base
FROM entity CROSS JOIN late ON late.entity = entity.id WHERE tenant = :tenant ORDER BY type, key, valid_from, late.id;

-- name: derived_anchor
-- Where a walk back may begin, by type, key and position.
SELECT type, key, position
FROM entity CROSS JOIN anchor ON anchor.entity = entity.id WHERE tenant = :tenant ORDER BY type, key, position;

-- name: kept_of
-- Merge states along the history of an entity.
SELECT position, state, last, until FROM kept WHERE entity = :entity ORDER BY position;

-- name: elements_of
-- Parts of large collections of an entity, by position.
SELECT position, field, key, part FROM element WHERE entity = :entity ORDER BY position;

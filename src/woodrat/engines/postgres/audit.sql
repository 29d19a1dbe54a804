-- Every statement by which derived data is compared with the log, besides those of engines/sql/audit.sql, by name, with a
-- line of purpose. None of them writes.

-- name: head
-- What is noted of the end of a tenant's log.
SELECT size, log, recorded_at, frontier FROM head WHERE tenant = :tenant;

-- name: layout
-- Tables of the schema by name.
SELECT tablename FROM pg_tables WHERE schemaname = 'woodrat' ORDER BY tablename;

-- name: unowned_body
-- Bodies that belong to no entry.
SELECT body.id FROM body WHERE tenant = :tenant AND NOT EXISTS (
    SELECT 1 FROM entry WHERE entry.tenant = :tenant AND entry.id = body.id
) LIMIT 1;

-- name: unowned_origin
-- Origins of no entry.
SELECT origin.id FROM origin WHERE tenant = :tenant AND NOT EXISTS (
    SELECT 1 FROM entry WHERE entry.tenant = :tenant AND entry.id = origin.id
) LIMIT 1;

-- name: odd_clones
-- Ends of what was taken over that are no end of a write of that log.
SELECT clone.id FROM clone LEFT JOIN entry ON entry.tenant = :tenant AND entry.id = clone.id
WHERE clone.tenant = :tenant AND (entry.id IS NULL OR entry.log <> clone.log OR EXISTS (
    SELECT 1 FROM entry AS next WHERE next.tenant = :tenant AND next.id = clone.id + 1 AND next.write = entry.write
))
LIMIT 1;

-- name: orphans
-- Tables with a derived row that belongs to no entity.
SELECT 'said' FROM said WHERE tenant = :tenant AND NOT EXISTS (SELECT 1 FROM entity WHERE tenant = :tenant AND id = said.entity)
UNION SELECT 'late' FROM late WHERE tenant = :tenant AND NOT EXISTS (SELECT 1 FROM entity WHERE tenant = :tenant AND id = late.entity)
UNION SELECT 'kept' FROM kept WHERE tenant = :tenant AND NOT EXISTS (SELECT 1 FROM entity WHERE tenant = :tenant AND id = kept.entity)
UNION SELECT 'anchor' FROM anchor WHERE tenant = :tenant AND NOT EXISTS (SELECT 1 FROM entity WHERE tenant = :tenant AND id = anchor.entity)
UNION SELECT 'element' FROM element WHERE tenant = :tenant AND NOT EXISTS (SELECT 1 FROM entity WHERE tenant = :tenant AND id = element.entity);

-- name: beyond
-- Derived data of a tenant that speaks of a position after the last: the table, and the position.
SELECT 'said', id FROM said WHERE tenant = :tenant AND id >= :size
UNION ALL SELECT 'naming', id FROM naming WHERE tenant = :tenant AND id >= :size
UNION ALL SELECT 'late', id FROM late WHERE tenant = :tenant AND id >= :size
UNION ALL SELECT 'entity', greatest(last, coalesce(state_at, -1)) FROM entity
    WHERE tenant = :tenant AND greatest(last, coalesce(state_at, -1)) >= :size
UNION ALL SELECT 'anchor', position FROM anchor WHERE tenant = :tenant AND position >= :size
UNION ALL SELECT 'element', position FROM element WHERE tenant = :tenant AND position >= :size
UNION ALL SELECT 'index_row', since FROM index_row WHERE tenant = :tenant AND since >= :size
UNION ALL SELECT 'index_past', until FROM index_past WHERE tenant = :tenant AND until >= :size
UNION ALL SELECT 'node', ((place + 1) << height) - 1 FROM node WHERE tenant = :tenant AND (place + 1) << height > :size
LIMIT 1;

-- name: repeated
-- Observations of a tenant that another of it has the same beginning of a digest with.
SELECT id FROM said WHERE tenant = :tenant AND id BETWEEN :low AND :high AND digest IN (
    SELECT digest FROM said WHERE tenant = :tenant AND id BETWEEN :low AND :high GROUP BY digest HAVING count(*) > 1
)
ORDER BY id;

-- name: entity_numbers
-- The lowest and the highest number an entity has.
SELECT min(id), max(id) FROM entity WHERE tenant = :tenant;

-- name: entities_within
-- Entities of a tenant by number.
SELECT id, type, key, digest, first, last, until, state_at, state FROM entity
WHERE tenant = :tenant AND id BETWEEN :low AND :high ORDER BY id;

-- name: links
-- The observations of an entity from :start back: each with the entity it speaks of, the one before, and its digest.
WITH RECURSIVE chain (id, entity, previous, digest) AS (
    SELECT id, entity, previous, digest FROM said WHERE tenant = :tenant AND id = :start
    UNION ALL
    SELECT said.id, said.entity, said.previous, said.digest
    FROM chain JOIN said ON said.tenant = :tenant AND said.id = chain.previous
    WHERE chain.previous >= 0 AND said.id < chain.id
)
SELECT id, entity, previous, digest FROM chain ORDER BY id DESC;

-- name: bodies
-- Bodies by id.
SELECT body.id, body.body FROM unnest(:ids::bigint[]) AS sought (id) JOIN body ON body.tenant = :tenant AND body.id = sought.id;

-- name: spread
-- Entities within a slice that have parts of collections kept one by one.
SELECT DISTINCT entity FROM element WHERE tenant = :tenant AND entity BETWEEN :low AND :high;

-- name: elements_of
-- All parts of collections kept one by one of an entity.
SELECT position, field, key, part FROM element WHERE tenant = :tenant AND entity = :entity ORDER BY position;

-- name: has_naming
-- Whether an observation is noted to name a digest that begins so.
SELECT 1 FROM naming WHERE tenant = :tenant AND target = :a AND id = :b;

-- name: has_late
-- Whether an observation is noted as late.
SELECT 1 FROM late WHERE tenant = :tenant AND entity = :a AND valid_from = :b AND id = :c;

-- name: has_anchor
-- Whether a walk back may begin at an observation.
SELECT 1 FROM anchor WHERE tenant = :tenant AND entity = :a AND position = :b;

-- name: lacking_index_row
-- Which of these rows, by number, an index does not have as true from a position on.
SELECT n FROM unnest(:name::text[], :key::bytea[], :since::bigint[], :value::bytea[])
     WITH ORDINALITY AS sought (name, key, since, value, n)
WHERE NOT EXISTS (
    SELECT 1 FROM index_row WHERE tenant = :tenant AND name = sought.name AND key = sought.key
    AND since = sought.since AND value = sought.value
)
ORDER BY n;

-- name: lacking_index_past
-- Which of these rows, by number, an index does not have as true from one position to another.
SELECT n FROM unnest(:name::text[], :key::bytea[], :since::bigint[], :value::bytea[], :until::bigint[])
     WITH ORDINALITY AS sought (name, key, since, value, until, n)
WHERE NOT EXISTS (
    SELECT 1 FROM index_past WHERE tenant = :tenant AND name = sought.name AND key = sought.key
    AND since = sought.since AND value = sought.value AND until = sought.until
)
ORDER BY n;

-- name: counts
-- How many rows of a tenant each part has.
SELECT 'said', count(*) FROM said WHERE tenant = :tenant AND id BETWEEN :low AND :high
UNION ALL SELECT 'naming', count(*) FROM naming WHERE tenant = :tenant AND id BETWEEN :low AND :high
UNION ALL SELECT 'late', count(*) FROM late WHERE tenant = :tenant AND id BETWEEN :low AND :high
UNION ALL SELECT 'anchor', count(*) FROM anchor WHERE tenant = :tenant AND position BETWEEN :low AND :high
UNION ALL SELECT 'index_row', count(*) FROM index_row WHERE tenant = :tenant
UNION ALL SELECT 'index_past', count(*) FROM index_past WHERE tenant = :tenant
UNION ALL SELECT 'node', count(*) FROM node WHERE tenant = :tenant;

-- name: last_id
-- The last entry of a tenant, whatever it holds.
SELECT max(id) FROM entry WHERE tenant = :tenant AND id BETWEEN :low AND :high;

-- name: said_ids
-- Observations of a tenant in order of position.
SELECT id FROM said WHERE tenant = :tenant AND id BETWEEN :low AND :high ORDER BY id;

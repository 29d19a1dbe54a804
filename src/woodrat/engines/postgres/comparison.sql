-- Every statement by which the tables are checked, and derived rows are compared with those derived anew, by name, with a
-- line of purpose. None of them writes.

-- name: head
-- What is noted of the end of a tenant's log.
SELECT size, log, recorded_at, frontier FROM head WHERE tenant = :tenant;

-- name: unowned_body
-- Bodies that belong to no entry.
SELECT id FROM body WHERE tenant = :tenant EXCEPT SELECT id FROM entry WHERE tenant = :tenant LIMIT 1;

-- name: unowned_origin
-- Origins of no entry.
SELECT id FROM origin WHERE tenant = :tenant EXCEPT SELECT id FROM entry WHERE tenant = :tenant LIMIT 1;

-- name: odd_clones
-- Ends of what was taken over that are no end of a write of that log.
SELECT clone.id FROM clone LEFT JOIN entry ON entry.tenant = :tenant AND entry.id = clone.id
WHERE clone.tenant = :tenant AND (entry.id IS NULL OR entry.log <> clone.log OR EXISTS (
    SELECT 1 FROM entry AS next WHERE next.tenant = :tenant AND next.id = clone.id + 1 AND next.write = entry.write
))
LIMIT 1;

-- name: orphans
-- Tables with a derived row that belongs to no entity.
SELECT found FROM (VALUES
    ('said', EXISTS (SELECT entity FROM said WHERE tenant = :tenant EXCEPT SELECT id FROM entity WHERE tenant = :tenant)),
    ('late', EXISTS (SELECT entity FROM late WHERE tenant = :tenant EXCEPT SELECT id FROM entity WHERE tenant = :tenant)),
    ('kept', EXISTS (SELECT entity FROM kept WHERE tenant = :tenant EXCEPT SELECT id FROM entity WHERE tenant = :tenant)),
    ('anchor', EXISTS (SELECT entity FROM anchor WHERE tenant = :tenant EXCEPT SELECT id FROM entity WHERE tenant = :tenant)),
    ('element', EXISTS (SELECT entity FROM element WHERE tenant = :tenant EXCEPT SELECT id FROM entity WHERE tenant = :tenant))
) AS parts (found, has_orphans) WHERE has_orphans;

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

-- name: odd_vectors
-- Indexes with a vector that is not what its bytes say, where the server multiplies.
SELECT DISTINCT name FROM index_row WHERE tenant = :tenant AND name >= 'recall/' AND name < 'recall0'
AND vector::text IS DISTINCT FROM vector_of(value)::text;

-- name: last_id
-- The last entry of a tenant, whatever it holds.
SELECT max(id) FROM entry WHERE tenant = :tenant AND id BETWEEN :low AND :high;

-- name: log_bytes
-- How many bytes the bodies of a tenant have.
SELECT coalesce(sum(length(body)), 0)::bigint FROM body WHERE tenant = :tenant AND id BETWEEN :low AND :high;

-- name: repeated
-- Observations of a tenant that another of it has the same beginning of a digest with, by position.
SELECT id FROM (
    SELECT id, digest = lag(digest) OVER nearby OR digest = lead(digest) OVER nearby AS is_repeated FROM said
    WHERE tenant = :tenant AND id BETWEEN :low AND :high WINDOW nearby AS (ORDER BY digest)
) AS compared
WHERE is_repeated ORDER BY id;

-- name: derived_kept
-- Merge states along histories, by type, key and position.
SELECT type, key, position, kept.last, kept.until, kept.state
FROM entity JOIN kept ON kept.tenant = :tenant AND kept.entity = entity.id
WHERE entity.tenant = :tenant ORDER BY type, key, position;

-- name: derived_element
-- Parts of large collections, by type, key, field, key and position.
SELECT type, entity.key, field, element.key, position, part
FROM entity JOIN element ON element.tenant = :tenant AND element.entity = entity.id
WHERE entity.tenant = :tenant ORDER BY type, entity.key, field, element.key, position;

-- name: derived_said
-- Observations by position: whom each speaks of, the one before, and its digest.
SELECT said.id, type, key, previous, said.digest
FROM said JOIN entity ON entity.tenant = :tenant AND entity.id = said.entity
WHERE said.tenant = :tenant AND said.id BETWEEN :low AND :high ORDER BY said.id;

-- name: derived_naming
-- What observations name, by the beginning of the digest and by position.
SELECT target, id FROM naming WHERE tenant = :tenant ORDER BY target, id;

-- name: derived_late
-- Late observations and retractions, by type, key and the time from which they hold.
SELECT type, key, valid_from, late.id
FROM entity JOIN late ON late.tenant = :tenant AND late.entity = entity.id
WHERE entity.tenant = :tenant ORDER BY type, key, valid_from, late.id;

-- name: derived_anchor
-- Where a walk back may begin, by type, key and position.
SELECT type, key, position
FROM entity JOIN anchor ON anchor.tenant = :tenant AND anchor.entity = entity.id
WHERE entity.tenant = :tenant ORDER BY type, key, position;

-- name: kept_of
-- Merge states along the history of an entity.
SELECT position, state, last, until FROM kept WHERE tenant = :tenant AND entity = :entity ORDER BY position;

-- name: elements_of
-- Parts of large collections of an entity, by position.
SELECT position, field, key, part FROM element WHERE tenant = :tenant AND entity = :entity ORDER BY position;

-- name: lacking_shown
-- Of which of these entities, by number, plain SQL shows other fields, or another version where one is given.
SELECT n FROM unnest(:entity::bigint[], :fields::text[], :more::text[], :version::bigint[])
     WITH ORDINALITY AS sought (entity, fields, more, version, n)
LEFT JOIN LATERAL (
    SELECT true AS there FROM entity WHERE tenant = :tenant AND id BETWEEN sought.entity AND sought.entity
    AND coalesce(fields, 'null') = sought.fields::jsonb AND more IS NOT DISTINCT FROM sought.more::jsonb
    AND coalesce(greatest(last, version) = sought.version, true) ORDER BY id LIMIT 1
) AS found ON true
WHERE found.there IS NULL
ORDER BY n;

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

-- name: repeated
-- Observations of a tenant that another of it has the same beginning of a digest with.
SELECT id FROM (
    SELECT id, digest = lag(digest) OVER nearby OR digest = lead(digest) OVER nearby AS is_repeated FROM said
    WHERE tenant = :tenant AND id BETWEEN :low AND :high WINDOW nearby AS (ORDER BY digest)
) AS compared
WHERE is_repeated ORDER BY id;

-- name: entity_numbers
-- The lowest and the highest number an entity has.
SELECT min(id), max(id) FROM entity WHERE tenant = :tenant;

-- name: entities_within
-- Entities of a tenant by number.
SELECT id, type, key, digest, first, last, until, state_at, state FROM entity
WHERE tenant = :tenant AND id BETWEEN :low AND :high ORDER BY id;

-- name: links_of
-- The last observations of some entities, so many of each, from :starts back: the start, the observation, the entity it
-- speaks of, the one before, and its digest.
WITH RECURSIVE chain (start, place, id, entity, previous, digest) AS (
    SELECT sought.id, 1, sought.id, said.entity, said.previous, said.digest FROM unnest(:starts::bigint[]) AS sought (id)
    CROSS JOIN LATERAL (SELECT entity, previous, digest FROM said WHERE tenant = :tenant AND id = sought.id LIMIT 1) AS said
    UNION ALL
    SELECT chain.start, chain.place + 1, said.id, said.entity, said.previous, said.digest FROM chain
    CROSS JOIN LATERAL (
        SELECT id, entity, previous, digest FROM said WHERE tenant = :tenant AND id = chain.previous LIMIT 1
    ) AS said
    WHERE chain.previous >= 0 AND said.id < chain.id AND chain.place < :count
)
SELECT start, id, entity, previous, digest FROM chain ORDER BY start, id DESC;

-- name: bodies_within
-- Bodies by id, in order, without those from where on they come to more than so many bytes.
SELECT id, CASE WHEN sum(length(body)) OVER (ORDER BY id) <= :bytes THEN body END FROM (
    SELECT sought.id, body.body FROM unnest(:ids::bigint[]) AS sought (id)
    CROSS JOIN LATERAL (SELECT body FROM body WHERE tenant = :tenant AND id = sought.id LIMIT 1) AS body
) AS found;

-- name: kept_within
-- Merge states along the histories of the entities of a slice, by entity and position: where each is true, the last
-- observation in it, until when, and the state, unless all up to there come to more than so many bytes.
SELECT entity, position, last, until,
       CASE WHEN sum(length(state)) OVER (ORDER BY entity, position) <= :bytes THEN state END
FROM kept WHERE tenant = :tenant AND entity BETWEEN :low AND :high ORDER BY entity, position;

-- name: bodies
-- Bodies by id.
SELECT sought.id, body.body FROM unnest(:ids::bigint[]) AS sought (id)
CROSS JOIN LATERAL (SELECT body FROM body WHERE tenant = :tenant AND id = sought.id LIMIT 1) AS body;

-- name: spread
-- Entities within a slice that have parts of collections kept one by one.
SELECT DISTINCT entity FROM element WHERE tenant = :tenant AND entity BETWEEN :low AND :high;

-- name: elements_of
-- All parts of collections kept one by one of an entity.
SELECT position, field, key, part FROM element WHERE tenant = :tenant AND entity = :entity ORDER BY position;

-- name: lacking_naming
-- Which of these, by number, are not noted: that an observation names a digest that begins so.
SELECT n FROM unnest(:target::bigint[], :id::bigint[]) WITH ORDINALITY AS sought (target, id, n)
LEFT JOIN LATERAL (
    SELECT true AS there FROM naming WHERE tenant = :tenant AND target = sought.target AND id = sought.id LIMIT 1
) AS found ON true
WHERE found.there IS NULL
ORDER BY n;

-- name: lacking_late
-- Which of these, by number, are not noted: that an observation is late.
SELECT n FROM unnest(:entity::bigint[], :valid_from::text[], :id::bigint[])
     WITH ORDINALITY AS sought (entity, valid_from, id, n)
LEFT JOIN LATERAL (
    SELECT true AS there FROM late WHERE tenant = :tenant AND entity = sought.entity AND valid_from = sought.valid_from
    AND id = sought.id LIMIT 1
) AS found ON true
WHERE found.there IS NULL
ORDER BY n;

-- name: lacking_anchor
-- Which of these, by number, are not noted: that a walk back may begin at an observation.
SELECT n FROM unnest(:entity::bigint[], :position::bigint[]) WITH ORDINALITY AS sought (entity, position, n)
LEFT JOIN LATERAL (
    SELECT true AS there FROM anchor WHERE tenant = :tenant AND entity = sought.entity AND position = sought.position LIMIT 1
) AS found ON true
WHERE found.there IS NULL
ORDER BY n;

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

-- name: lacking_index_row
-- Which of these rows, by number, an index does not have as true from a position on.
SELECT n FROM unnest(:name::text[], :key::bytea[], :since::bigint[], :value::bytea[])
     WITH ORDINALITY AS sought (name, key, since, value, n)
LEFT JOIN LATERAL (
    SELECT true AS there FROM index_row WHERE tenant = :tenant AND name = sought.name AND key = sought.key
    AND since = sought.since AND value = sought.value LIMIT 1
) AS found ON true
WHERE found.there IS NULL
ORDER BY n;

-- name: lacking_vector
-- The same of an index of vectors, where the server multiplies: the vector beside the bytes has to be theirs too.
SELECT n FROM unnest(:name::text[], :key::bytea[], :since::bigint[], :value::bytea[])
     WITH ORDINALITY AS sought (name, key, since, value, n)
LEFT JOIN LATERAL (
    SELECT true AS there FROM index_row WHERE tenant = :tenant AND name = sought.name AND key = sought.key
    AND since = sought.since AND value = sought.value AND vector::text = vector_of(sought.value)::text LIMIT 1
) AS found ON true
WHERE found.there IS NULL
ORDER BY n;

-- name: lacking_index_past
-- Which of these rows, by number, an index does not have as true from one position to another.
SELECT n FROM unnest(:name::text[], :key::bytea[], :since::bigint[], :value::bytea[], :until::bigint[])
     WITH ORDINALITY AS sought (name, key, since, value, until, n)
LEFT JOIN LATERAL (
    SELECT true AS there FROM index_past WHERE tenant = :tenant AND name = sought.name AND key = sought.key
    AND since = sought.since AND value = sought.value AND until = sought.until LIMIT 1
) AS found ON true
WHERE found.there IS NULL
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

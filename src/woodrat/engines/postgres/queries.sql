-- Every statement the engine runs besides those of engines/sql/queries.sql, by name, with a line of purpose.
-- :tenant is the tenant's name, and row-level security asks for it besides; ids are positions. Statements for many rows take
-- their columns as arrays.
--
-- Rows that are sought are looked for one by one, by their key: LATERAL, and an OFFSET 0 that keeps the planner from turning
-- the join round. It makes one plan for all values, takes any range of positions for one row, and would read a whole log
-- for it. Such a range therefore stands outside of what is looked for by a key.
--
-- Rows that are changed or taken away by keys of one column are named by `= ANY`, which an index takes. Those of more
-- columns, and those that each get values of their own, are looked for by their key first and then fetched by their place
-- (`ctid`). The range of `n` says nothing, and lets the planner expect one row: fetching it costs less than any other way.
--
-- An entity is looked for by its number in a range of one, in order: two more indexes begin with the tenant, and without an
-- order each seems as good as the right one as long as there are few entities.

-- name: open
-- The end of a tenant's log as a view finds it.
SELECT changes, log, size, recorded_at, frontier FROM head WHERE tenant = :tenant;

-- name: lock
-- The same for a write, which nobody else of the tenant makes until it is over.
SELECT changes, log, size, recorded_at, frontier FROM head WHERE tenant = :tenant FOR UPDATE;

-- name: add_head
-- Give a tenant an end of its log.
INSERT INTO head (tenant, changes, size) VALUES (:tenant, 0, 0) ON CONFLICT (tenant) DO NOTHING;

-- name: set_head
-- Note where a log ends after a write.
UPDATE head SET changes = changes + 1, log = :log, size = :size, recorded_at = :recorded_at, frontier = :frontier
WHERE tenant = :tenant;

-- name: tenants
-- The tenants that have a log.
SELECT tenant FROM head WHERE size > 0 ORDER BY tenant;

-- name: log
-- The number of a log's name.
SELECT id FROM log WHERE tenant = :tenant AND name = :name;

-- name: add_log
-- Give a log's name its number.
INSERT INTO log (tenant, id, name)
SELECT :tenant, coalesce(max(id), 0) + 1, :name FROM log WHERE tenant = :tenant RETURNING id;

-- name: logs
-- The names of logs by number.
SELECT id, name FROM log WHERE tenant = :tenant;

-- name: last_entry
-- The end of a tenant's log.
SELECT entry.id, log.name, entry.recorded_at
FROM entry JOIN log ON log.tenant = :tenant AND log.id = entry.log
WHERE entry.tenant = :tenant AND entry.id BETWEEN :low AND :high ORDER BY entry.id DESC LIMIT 1;

-- name: entries
-- Entries in order of position.
SELECT entry.id, log.name, entry.recorded_at, entry.kind, entry.write, entry.length, entry.request, entry.commitment,
       body.nonce, body.body, source_log.name, origin.position
FROM entry JOIN log ON log.tenant = :tenant AND log.id = entry.log
     LEFT JOIN body ON body.tenant = :tenant AND body.id = entry.id
     LEFT JOIN origin ON origin.tenant = :tenant AND origin.id = entry.id
     LEFT JOIN log AS source_log ON source_log.tenant = :tenant AND source_log.id = origin.log
WHERE entry.tenant = :tenant AND entry.id BETWEEN :low AND :high ORDER BY entry.id LIMIT :limit;

-- name: bodies_at
-- Kinds and bodies of the entries at some positions, with what they are committed to by.
SELECT sought.id, found.* FROM unnest(:ids::bigint[]) AS sought (id) CROSS JOIN LATERAL (
    SELECT entry.kind, entry.commitment, body.nonce, body.body
    FROM entry JOIN body ON body.tenant = :tenant AND body.id = sought.id
    WHERE entry.tenant = :tenant AND entry.id = sought.id AND body.body IS NOT NULL OFFSET 0
) AS found
WHERE sought.id BETWEEN :low AND :high;

-- name: entries_of_kind
-- Entries of one rare kind, in order of position.
SELECT entry.id, log.name, entry.recorded_at, entry.kind, entry.write, entry.length, entry.request, entry.commitment,
       body.nonce, body.body, source_log.name, origin.position
FROM entry JOIN log ON log.tenant = :tenant AND log.id = entry.log
     LEFT JOIN body ON body.tenant = :tenant AND body.id = entry.id
     LEFT JOIN origin ON origin.tenant = :tenant AND origin.id = entry.id
     LEFT JOIN log AS source_log ON source_log.tenant = :tenant AND source_log.id = origin.log
WHERE entry.tenant = :tenant AND entry.kind = :kind AND entry.kind <> 1 AND entry.id BETWEEN :low AND :high
ORDER BY entry.id LIMIT :limit;

-- name: last_of_kind
-- The last entry of one rare kind.
SELECT max(id) FROM entry WHERE tenant = :tenant AND kind = :kind AND kind <> 1 AND id BETWEEN :low AND :high;

-- name: rows
-- The log as it is stored, in order of position.
SELECT entry.id, entry.log, entry.recorded_at, entry.kind, entry.write, entry.length, entry.request, entry.commitment,
       entry.leaf, body.nonce, body.body
FROM entry LEFT JOIN body ON body.tenant = :tenant AND body.id = entry.id
WHERE entry.tenant = :tenant AND entry.id BETWEEN :low AND :high ORDER BY entry.id LIMIT :limit;

-- name: origins
-- Where entries were first written that were merged in, in order of position.
SELECT id, log, position FROM origin WHERE tenant = :tenant AND id BETWEEN :low AND :high ORDER BY id;

-- name: recorded_at
-- The log's time at one entry, to search by halves.
SELECT recorded_at FROM entry WHERE tenant = :tenant AND id = :id;

-- name: leaves
-- Leaf hashes in order of position.
SELECT leaf FROM entry WHERE tenant = :tenant AND id BETWEEN :low AND :high ORDER BY id;

-- name: merged
-- The entry of another log nearest to a position, not after it, and where it stands here.
SELECT position, id FROM (
    SELECT position, id FROM origin
    WHERE tenant = :tenant AND log = (SELECT id FROM log WHERE tenant = :tenant AND name = :log) AND position <= :through
    ORDER BY position DESC OFFSET 0
) AS nearest
WHERE id BETWEEN :low AND :high LIMIT 1;

-- name: merged_beyond
-- Whether anything of another log from a position on came in here.
SELECT 1 FROM (
    SELECT id FROM origin
    WHERE tenant = :tenant AND log = (SELECT id FROM log WHERE tenant = :tenant AND name = :log) AND position >= :through
    OFFSET 0
) AS beyond
WHERE id BETWEEN :low AND :high LIMIT 1;

-- name: cloned
-- How far a log was taken over from another ledger.
SELECT max(id) FROM clone WHERE tenant = :tenant AND id BETWEEN :low AND :high;

-- name: add_clone
-- Note how far a log was taken over from another ledger.
INSERT INTO clone (tenant, id, log) VALUES (:tenant, :id, :log) ON CONFLICT (tenant, id) DO NOTHING;

-- name: due
-- Note that a purge is due.
INSERT INTO purge (tenant) VALUES (:tenant) ON CONFLICT (tenant) DO NOTHING;

-- name: purge_due
-- Tenants of which something waits for a purge.
SELECT tenant FROM purge ORDER BY tenant;

-- name: purge_done
-- Note that nothing of some tenants waits for a purge.
DELETE FROM purge WHERE tenant = ANY(:tenants::text[]);

-- name: other_tenant
-- Whether the tables hold another tenant.
SELECT 1 FROM head WHERE tenant <> :tenant AND size > 0 LIMIT 1;

-- name: erase_body
-- Remove bodies and their nonces.
UPDATE body SET nonce = NULL, body = NULL WHERE tenant = :tenant AND id = ANY(:id::bigint[]);

-- name: said_by_digest
-- Observations of a tenant whose digest begins so.
SELECT found.id, body.body, found.digest
FROM (SELECT id, digest FROM said WHERE tenant = :tenant AND digest = :digest OFFSET 0) AS found
     LEFT JOIN body ON body.tenant = :tenant AND body.id = found.id
WHERE found.id BETWEEN :low AND :high ORDER BY found.id;

-- name: observation_ids
-- Observations of a tenant whose digests begin in a range, by that beginning.
SELECT found.id, body.body, found.digest
FROM (SELECT id, digest FROM said WHERE tenant = :tenant AND digest BETWEEN :first AND :last OFFSET 0) AS found
     JOIN body ON body.tenant = :tenant AND body.id = found.id
WHERE found.id BETWEEN :low AND :high AND body.body IS NOT NULL
ORDER BY found.digest;

-- name: is_said
-- Whether an observation of a tenant has a digest that begins so.
SELECT 1 FROM (SELECT id FROM said WHERE tenant = :tenant AND digest = :digest OFFSET 0) AS found
WHERE id BETWEEN :low AND :high LIMIT 1;

-- name: are_said
-- Which of these beginnings observations of a tenant have.
SELECT DISTINCT sought.digest FROM unnest(:digests::bigint[]) AS sought (digest) CROSS JOIN LATERAL (
    SELECT id FROM said WHERE tenant = :tenant AND said.digest = sought.digest OFFSET 0
) AS found
WHERE found.id BETWEEN :low AND :high;

-- name: named
-- What observations of a tenant name, by the beginning of the digest.
SELECT DISTINCT target FROM naming WHERE tenant = :tenant AND id BETWEEN :low AND :high LIMIT :limit;

-- name: named_of
-- Which of these beginnings of digests observations of a tenant name.
SELECT DISTINCT sought.target FROM unnest(:targets::bigint[]) AS sought (target) CROSS JOIN LATERAL (
    SELECT id FROM naming WHERE tenant = :tenant AND naming.target = sought.target OFFSET 0
) AS found
WHERE found.id BETWEEN :low AND :high;

-- name: namers
-- Observations of a tenant that name a digest that begins so.
SELECT found.id, body.body, said.digest
FROM (SELECT id FROM naming WHERE tenant = :tenant AND target = :target OFFSET 0) AS found
     JOIN said ON said.tenant = :tenant AND said.id = found.id
     LEFT JOIN body ON body.tenant = :tenant AND body.id = found.id
WHERE found.id BETWEEN :low AND :high ORDER BY found.id;

-- name: anchor
-- An observation of an entity at or after a position, as near as is known: where a walk back may begin.
SELECT min(at) FROM (
    SELECT (SELECT last FROM kept WHERE tenant = :tenant AND entity = :entity AND position >= :through
            ORDER BY position LIMIT 1) AS at
    UNION ALL SELECT min(position) FROM anchor WHERE tenant = :tenant AND entity = :entity AND position >= :through
) AS found;

-- name: chain
-- Observations of one entity that stand after :after and no later than :through, found from :start on backwards.
WITH RECURSIVE chain (id, previous, digest) AS (
    SELECT id, previous, digest FROM said WHERE tenant = :tenant AND id = :start
    UNION ALL
    SELECT said.id, said.previous, said.digest FROM chain
    CROSS JOIN LATERAL (SELECT id, previous, digest FROM said WHERE tenant = :tenant AND id = chain.previous LIMIT 1) AS said
    WHERE chain.previous > :after AND said.id < chain.id  -- a damaged chain must end too
)
SELECT chain.id, body.body, chain.digest FROM chain
LEFT JOIN LATERAL (SELECT body FROM body WHERE tenant = :tenant AND id = chain.id LIMIT 1) AS body ON true
WHERE chain.id <= :through ORDER BY chain.id DESC;

-- name: last_said
-- The last observation of an entity at or before a position, found by walking back.
WITH RECURSIVE chain (position, previous) AS (
    SELECT id, previous FROM said WHERE tenant = :tenant AND id = :start
    UNION ALL
    SELECT said.id, said.previous FROM chain
    CROSS JOIN LATERAL (SELECT id, previous FROM said WHERE tenant = :tenant AND id = chain.previous LIMIT 1) AS said
    WHERE chain.position > :through AND chain.previous >= 0 AND chain.previous < chain.position
)
SELECT position FROM chain WHERE position <= :through LIMIT 1;

-- name: entities_by_digest
-- Entities by the beginnings of their digests.
SELECT found.* FROM unnest(:digests::bigint[]) AS sought (digest) CROSS JOIN LATERAL (
    SELECT id, type, key, first, last, until, state_at, state
    FROM entity WHERE tenant = :tenant AND entity.digest = sought.digest OFFSET 0
) AS found;

-- name: last_entity
-- The highest number an entity has.
SELECT max(id) FROM entity WHERE tenant = :tenant;

-- name: touched
-- Entities with an observation in a run of the log.
SELECT found.type, found.key
FROM (SELECT DISTINCT entity FROM said WHERE tenant = :tenant AND id BETWEEN :low AND :high) AS sought CROSS JOIN LATERAL (
    SELECT type, key FROM entity WHERE tenant = :tenant AND id BETWEEN sought.entity AND sought.entity ORDER BY id LIMIT 1
) AS found;

-- name: touched_entities
-- The same of a few, with their present merge states.
SELECT found.*
FROM (SELECT DISTINCT entity FROM said WHERE tenant = :tenant AND id BETWEEN :low AND :high) AS sought CROSS JOIN LATERAL (
    SELECT id, type, key, first, last, until, state_at, state
    FROM entity WHERE tenant = :tenant AND id BETWEEN sought.entity AND sought.entity ORDER BY id LIMIT 1
) AS found;

-- name: kept
-- The latest merge state kept at or before a position, and the anchor for what was said since.
SELECT position, state,
       (SELECT last FROM kept WHERE tenant = :tenant AND entity = :entity AND position >= :through
        ORDER BY position LIMIT 1)
FROM kept WHERE tenant = :tenant AND entity = :entity AND position <= :through ORDER BY position DESC LIMIT 1;

-- name: last_kept
-- The beginning of the last merge state kept along the history of each entity, as far as `amounts` reads it, and its size.
SELECT sought.entity, substr(last.state, 1, 48), length(last.state)
FROM unnest(:entities::bigint[]) AS sought (entity) CROSS JOIN LATERAL (
    SELECT state FROM kept WHERE tenant = :tenant AND kept.entity = sought.entity ORDER BY position DESC LIMIT 1
) AS last;

-- name: kept_by
-- The latest merge state kept at or before a position, all of which was true by a time.
SELECT position, state FROM kept
WHERE tenant = :tenant AND entity = :entity AND until <= :effective AND position <= :through
ORDER BY until DESC, position DESC LIMIT 1;

-- name: next_kept
-- The merge state kept next after a position: where it is true, and the last observation in it.
SELECT position, last FROM kept WHERE tenant = :tenant AND entity = :entity AND position > :after
ORDER BY position LIMIT 1;

-- name: element
-- A part of a collection as it was after a position.
SELECT part FROM element
WHERE tenant = :tenant AND entity = :entity AND field = :field AND key = :key AND position <= :through
ORDER BY position DESC LIMIT 1;

-- name: elements
-- Parts of a collection as they were after a position, by key.
SELECT key, part FROM (
    SELECT DISTINCT ON (key) key, part FROM element
    WHERE tenant = :tenant AND entity = :entity AND field = :field AND key > :after AND position <= :through
    ORDER BY key, position DESC
) AS latest
WHERE part IS NOT NULL ORDER BY key LIMIT :limit;

-- name: element_fields
-- Collections of an entity of which parts are kept one by one.
SELECT DISTINCT field FROM element WHERE tenant = :tenant AND entity = :entity;

-- name: late
-- Observations after a position that hold since a time or before, and retractions, among those said late.
SELECT late.id, body.body, said.digest
FROM late JOIN said ON said.tenant = :tenant AND said.id = late.id
     LEFT JOIN body ON body.tenant = :tenant AND body.id = late.id
WHERE late.tenant = :tenant AND late.entity = :entity AND late.valid_from <= :effective
  AND late.id BETWEEN :low AND :high
ORDER BY late.id;

-- name: add_entity
-- Note entities anything is said of, or that a group is kept under.
INSERT INTO entity (tenant, id, type, key, digest, first, last, until, state_at, state, fields, more, version)
SELECT :tenant, id, type, key, digest, first, last, until, state_at, state, nullif(fields, '')::jsonb, more::jsonb, version
FROM unnest(:id::bigint[], :type::text[], :key::text[], :digest::bigint[], :first::bigint[], :last::bigint[], :until::text[],
            :state_at::bigint[], :state::bytea[], :fields::text[], :more::text[], :version::bigint[])
     AS new (id, type, key, digest, first, last, until, state_at, state, fields, more, version);

-- name: set_entity
-- Note the observations of entities and the present merge states of the folds they are the smallest of. Empty fields, and
-- no version, leave what is there.
UPDATE entity SET first = new.first, last = new.last, until = new.until, state_at = new.state_at, state = new.state,
                  fields = CASE WHEN new.fields = '' THEN entity.fields ELSE new.fields::jsonb END,
                  more = CASE WHEN new.fields = '' THEN entity.more ELSE new.more::jsonb END,
                  version = coalesce(new.version, entity.version)
FROM (
    SELECT sought.*, found.place
    FROM unnest(:first::bigint[], :last::bigint[], :until::text[], :state_at::bigint[], :state::bytea[], :id::bigint[],
                :fields::text[], :more::text[], :version::bigint[])
         WITH ORDINALITY AS sought (first, last, until, state_at, state, id, fields, more, version, n)
    CROSS JOIN LATERAL (
        SELECT ctid AS place FROM entity WHERE tenant = :tenant AND id BETWEEN sought.id AND sought.id ORDER BY id LIMIT 1
    ) AS found
    WHERE n BETWEEN 1 AND 1000000000
) AS new
WHERE entity.tenant = :tenant AND entity.ctid = new.place;

-- name: scan_past
-- Rows of an index that were true at a position, by key. Each half is read in order and ends by itself.
SELECT key, value FROM (
    (SELECT key, value FROM index_row
     WHERE tenant = :tenant AND name = :name AND key >= :first AND key < :last AND since <= :through
     ORDER BY key LIMIT :limit)
    UNION ALL
    (SELECT key, value FROM index_past
     WHERE tenant = :tenant AND name = :name AND key >= :first AND key < :last AND since <= :through AND until > :through
     ORDER BY key LIMIT :limit)
) AS either ORDER BY key LIMIT :limit;

-- name: scan_past_reversed
-- The same, the other way round.
SELECT key, value FROM (
    (SELECT key, value FROM index_row
     WHERE tenant = :tenant AND name = :name AND key >= :first AND key < :last AND since <= :through
     ORDER BY key DESC LIMIT :limit)
    UNION ALL
    (SELECT key, value FROM index_past
     WHERE tenant = :tenant AND name = :name AND key >= :first AND key < :last AND since <= :through AND until > :through
     ORDER BY key DESC LIMIT :limit)
) AS either ORDER BY key DESC LIMIT :limit;

-- name: find
-- Rows of an index that are true now, between pairs of keys.
SELECT found.key, found.value FROM unnest(:firsts::bytea[], :lasts::bytea[]) AS sought (first, last) CROSS JOIN LATERAL (
    SELECT key, value FROM index_row
    WHERE tenant = :tenant AND name = :name AND key >= sought.first AND key < sought.last OFFSET 0
) AS found
ORDER BY found.key;

-- name: find_some
-- The same, at most so many rows of each pair.
SELECT found.key, found.value FROM unnest(:firsts::bytea[], :lasts::bytea[]) AS sought (first, last) CROSS JOIN LATERAL (
    SELECT key, value FROM index_row
    WHERE tenant = :tenant AND name = :name AND key >= sought.first AND key < sought.last ORDER BY key LIMIT :limit
) AS found
ORDER BY found.key;

-- name: products
-- The keys of an index of vectors, one after the other, and for each the dot product with a vector, in four bytes.
SELECT string_agg(key, ''::bytea), string_agg(int4send(product(vector, (SELECT vector_of(:vector)))), ''::bytea)
FROM index_row WHERE tenant = :tenant AND name = :name AND length(value) = length(:vector);

-- name: squares
-- The keys of an index of vectors after one of them, and for each the dot product with itself.
SELECT string_agg(key, ''::bytea), string_agg(int4send(product(vector, vector)), ''::bytea)
FROM index_row WHERE tenant = :tenant AND name = :name AND key > :after AND vector IS NOT NULL;

-- name: end_index_row
-- Keep rows of indexes that end; one that was never true is not kept.
INSERT INTO index_past (tenant, name, key, since, until, value)
SELECT :tenant, ended.name, ended.key, found.since, ended.until, found.value
FROM unnest(:until::bigint[], :name::text[], :key::bytea[], :before::bigint[]) AS ended (until, name, key, before)
CROSS JOIN LATERAL (
    SELECT since, value FROM index_row WHERE tenant = :tenant AND name = ended.name AND key = ended.key OFFSET 0
) AS found
WHERE found.since < ended.before
ON CONFLICT (tenant, name, key, since) DO UPDATE SET until = excluded.until, value = excluded.value;

-- name: set_meta
-- Note something under a name.
INSERT INTO meta (tenant, name, value) VALUES (:tenant, :name, :value)
ON CONFLICT (tenant, name) DO UPDATE SET value = excluded.value;

-- name: drop_derived
-- Forget what is derived from a tenant's log.
DELETE FROM said WHERE tenant = :tenant;
DELETE FROM naming WHERE tenant = :tenant;
DELETE FROM index_row WHERE tenant = :tenant;
DELETE FROM index_past WHERE tenant = :tenant;
DELETE FROM meta WHERE tenant = :tenant;
DELETE FROM late WHERE tenant = :tenant;
DELETE FROM kept WHERE tenant = :tenant;
DELETE FROM element WHERE tenant = :tenant;
DELETE FROM anchor WHERE tenant = :tenant;
DELETE FROM entity WHERE tenant = :tenant;
DELETE FROM node WHERE tenant = :tenant;

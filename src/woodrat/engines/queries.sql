-- Statements that SQLite and PostgreSQL run alike, by name, with a line of purpose. :tenant is what the tables call a tenant.

-- name: node
-- The root of one complete subtree.
SELECT hash FROM node WHERE tenant = :tenant AND height = :height AND place = :place;

-- name: receipt
-- What an idempotency key was used for.
SELECT request, report, nonce FROM receipt WHERE tenant = :tenant AND agent = :agent AND key = :key;

-- name: receipts
-- Every idempotency key of a tenant, and what it was used for.
SELECT agent, key, request, report, nonce FROM receipt WHERE tenant = :tenant ORDER BY agent, key;

-- name: add_receipt
-- Note what an idempotency key was used for.
INSERT INTO receipt (tenant, agent, key, request, report, nonce)
VALUES (:tenant, :agent, :key, :request, :report, :nonce);

-- name: entity_ids
-- Entities of a tenant whose digests begin in a range, by that beginning.
SELECT type, key FROM entity WHERE tenant = :tenant AND digest BETWEEN :first AND :last AND first >= 0 ORDER BY digest;

-- name: entity
-- An entity by the beginning of its digest.
SELECT id, type, key, first, last, until, state_at, state FROM entity WHERE digest = :digest AND tenant = :tenant;

-- name: joins
-- Whether any entity of a type was ever spoken of.
SELECT 1 FROM entity WHERE tenant = :tenant AND type = :type LIMIT 1;

-- name: entities
-- Entities of a tenant by type and key.
SELECT type, key FROM entity
WHERE tenant = :tenant AND (type, key) > (:first_type, :first) AND (type, key) < (:last_type, :last)
    AND first BETWEEN 0 AND :through
ORDER BY type, key LIMIT :limit;

-- name: entities_reversed
-- Entities of a tenant by type and key, the last ones first.
SELECT type, key FROM entity
WHERE tenant = :tenant AND (type, key) > (:first_type, :first) AND (type, key) < (:last_type, :last)
    AND first BETWEEN 0 AND :through
ORDER BY type DESC, key DESC LIMIT :limit;

-- name: entities_of_type
-- Entities of one type by key.
SELECT type, key FROM entity
WHERE tenant = :tenant AND type = :type AND key > :first AND key < :last AND first BETWEEN 0 AND :through
ORDER BY key LIMIT :limit;

-- name: entities_of_type_reversed
-- Entities of one type by key, the last ones first.
SELECT type, key FROM entity
WHERE tenant = :tenant AND type = :type AND key > :first AND key < :last AND first BETWEEN 0 AND :through
ORDER BY key DESC LIMIT :limit;

-- name: scan
-- Rows of an index that are true now, by key.
SELECT key, value FROM index_row
WHERE tenant = :tenant AND name = :name AND key >= :first AND key < :last ORDER BY key LIMIT :limit;

-- name: scan_reversed
-- The same, the other way round.
SELECT key, value FROM index_row
WHERE tenant = :tenant AND name = :name AND key >= :first AND key < :last ORDER BY key DESC LIMIT :limit;

-- name: count
-- How many rows of an index are true now.
SELECT count(*) FROM index_row
WHERE tenant = :tenant AND name = :name AND key >= :first AND key < :last;

-- name: count_past
-- How many rows of an index were true at a position.
SELECT (SELECT count(*) FROM index_row
        WHERE tenant = :tenant AND name = :name AND key >= :first AND key < :last AND since <= :through)
     + (SELECT count(*) FROM index_past
        WHERE tenant = :tenant AND name = :name AND key >= :first AND key < :last AND since <= :through AND until > :through);

-- name: lives
-- Every row of an index, those that ended too.
SELECT key, since, value, NULL AS until FROM index_row
WHERE tenant = :tenant AND name = :name AND key >= :first AND key < :last
UNION ALL
SELECT key, since, value, until FROM index_past
WHERE tenant = :tenant AND name = :name AND key >= :first AND key < :last
ORDER BY 1, 2;

-- name: drop_index_rows
-- Forget rows of an index, those that ended too.
DELETE FROM index_row WHERE tenant = :tenant AND name = :name AND key >= :first AND key < :last;
DELETE FROM index_past WHERE tenant = :tenant AND name = :name AND key >= :first AND key < :last;

-- name: meta
-- What is noted under a name.
SELECT value FROM meta WHERE tenant = :tenant AND name = :name;

-- name: drop_meta
-- Note nothing under a name.
DELETE FROM meta WHERE tenant = :tenant AND name = :name;


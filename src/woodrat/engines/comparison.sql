-- Statements by which SQLite and PostgreSQL compare derived rows with those derived anew, by name, with a line of purpose.

-- name: notes
-- What is noted about the derived data of a tenant.
SELECT name, value FROM meta WHERE tenant = :tenant;

-- name: index_names
-- The indexes of a tenant that have rows.
SELECT DISTINCT name FROM index_row WHERE tenant = :tenant
UNION SELECT DISTINCT name FROM index_past WHERE tenant = :tenant ORDER BY 1;

-- name: derived_entity
-- Entities by type and key, with what is noted of their observations.
SELECT type, key, digest, first, last, until FROM entity WHERE tenant = :tenant ORDER BY type, key;

-- name: derived_state
-- Present merge states by type and key.
SELECT type, key, state_at, state FROM entity WHERE tenant = :tenant ORDER BY type, key;

-- name: state_of
-- The number of an entity, and its present merge state.
SELECT id, state_at, state FROM entity WHERE tenant = :tenant AND type = :type AND key = :key;

-- name: derived_node
-- Roots of complete subtrees, by height and place.
SELECT height, place, hash FROM node WHERE tenant = :tenant ORDER BY height, place;

-- name: derived_index_row
-- Rows of an index that are true now, by key.
SELECT key, since, value FROM index_row WHERE tenant = :tenant AND name = :name ORDER BY key;

-- name: derived_index_past
-- Rows of an index that ended, by key and the position they were true from.
SELECT key, since, until, value FROM index_past WHERE tenant = :tenant AND name = :name ORDER BY key, since;


-- Statements by which SQLite and PostgreSQL compare derived data with the log, by name, with a line of purpose.

-- name: nodes
-- Roots of complete subtrees of one height, in order.
SELECT place, hash FROM node WHERE tenant = :tenant AND height = :height AND place BETWEEN :low AND :high ORDER BY place;

-- name: joins_since
-- Where the first `same_as` of a tenant stands.
SELECT min(first) FROM entity WHERE tenant = :tenant AND type = :type AND first >= 0;

-- name: notes
-- What is noted about the derived data of a tenant.
SELECT name, value FROM meta WHERE tenant = :tenant;

-- name: rows_of_index
-- How many rows an index has.
SELECT 'index_row', count(*) FROM index_row WHERE tenant = :tenant AND name = :name
UNION ALL SELECT 'index_past', count(*) FROM index_past WHERE tenant = :tenant AND name = :name;

-- name: index_names
-- The indexes of a tenant that have rows.
SELECT DISTINCT name FROM index_row WHERE tenant = :tenant
UNION SELECT DISTINCT name FROM index_past WHERE tenant = :tenant ORDER BY 1;


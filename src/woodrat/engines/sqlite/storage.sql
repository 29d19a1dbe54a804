-- Every statement by which rows are searched for bytes that were erased, one for each table that could hold some.
-- They count rows of one tenant, or, with :others, of all others but the server's own: what is said there of a tenant
-- is that tenant's concern. :number is :data as a number, where it is as long as the beginning of a digest.

-- name: body
-- Rows of body.
SELECT count(*) FROM body
WHERE id >> 40 IN (SELECT id FROM tenant WHERE (name <> :name) = :others AND (NOT :others OR name NOT LIKE 'woodrat.%'))
  AND (instr(CAST(nonce AS BLOB), :data) OR
       instr(CAST(body AS BLOB), :data));

-- name: entry
-- Rows of entry.
SELECT count(*) FROM entry
WHERE id >> 40 IN (SELECT id FROM tenant WHERE (name <> :name) = :others AND (NOT :others OR name NOT LIKE 'woodrat.%'))
  AND (instr(CAST(request AS BLOB), :data) OR
       instr(CAST(commitment AS BLOB), :data) OR
       instr(CAST(leaf AS BLOB), :data));

-- name: receipt
-- Rows of receipt.
SELECT count(*) FROM receipt
WHERE tenant IN (SELECT id FROM tenant WHERE (name <> :name) = :others AND (NOT :others OR name NOT LIKE 'woodrat.%'))
  AND (instr(CAST(agent AS BLOB), :data) OR
       instr(CAST(key AS BLOB), :data) OR
       instr(CAST(request AS BLOB), :data) OR
       instr(CAST(report AS BLOB), :data) OR
       instr(CAST(nonce AS BLOB), :data));

-- name: entity
-- Rows of entity.
SELECT count(*) FROM entity
WHERE tenant IN (SELECT id FROM tenant WHERE (name <> :name) = :others AND (NOT :others OR name NOT LIKE 'woodrat.%'))
  AND (instr(CAST(type AS BLOB), :data) OR
       instr(CAST(key AS BLOB), :data) OR
       instr(CAST(until AS BLOB), :data) OR
       instr(CAST(state AS BLOB), :data) OR
       digest = :number);

-- name: kept
-- Rows of kept.
SELECT count(*) FROM kept
WHERE (SELECT tenant FROM entity WHERE entity.id = kept.entity) IN (SELECT id FROM tenant WHERE (name <> :name) = :others AND (NOT :others OR name NOT LIKE 'woodrat.%'))
  AND (instr(CAST(until AS BLOB), :data) OR
       instr(CAST(state AS BLOB), :data));

-- name: element
-- Rows of element.
SELECT count(*) FROM element
WHERE (SELECT tenant FROM entity WHERE entity.id = element.entity) IN (SELECT id FROM tenant WHERE (name <> :name) = :others AND (NOT :others OR name NOT LIKE 'woodrat.%'))
  AND (instr(CAST(field AS BLOB), :data) OR
       instr(CAST(key AS BLOB), :data) OR
       instr(CAST(part AS BLOB), :data));

-- name: index_row
-- Rows of index_row.
SELECT count(*) FROM index_row
WHERE tenant IN (SELECT id FROM tenant WHERE (name <> :name) = :others AND (NOT :others OR name NOT LIKE 'woodrat.%'))
  AND (instr(CAST(name AS BLOB), :data) OR
       instr(CAST(key AS BLOB), :data) OR
       instr(CAST(value AS BLOB), :data));

-- name: index_past
-- Rows of index_past.
SELECT count(*) FROM index_past
WHERE tenant IN (SELECT id FROM tenant WHERE (name <> :name) = :others AND (NOT :others OR name NOT LIKE 'woodrat.%'))
  AND (instr(CAST(name AS BLOB), :data) OR
       instr(CAST(key AS BLOB), :data) OR
       instr(CAST(value AS BLOB), :data));

-- name: meta
-- Rows of meta.
SELECT count(*) FROM meta
WHERE tenant IN (SELECT id FROM tenant WHERE (name <> :name) = :others AND (NOT :others OR name NOT LIKE 'woodrat.%'))
  AND (instr(CAST(name AS BLOB), :data) OR
       instr(CAST(value AS BLOB), :data));

-- name: node
-- Rows of node.
SELECT count(*) FROM node
WHERE tenant IN (SELECT id FROM tenant WHERE (name <> :name) = :others AND (NOT :others OR name NOT LIKE 'woodrat.%'))
  AND (instr(CAST(hash AS BLOB), :data));

-- name: tenant
-- Rows of tenant.
SELECT count(*) FROM tenant
WHERE id IN (SELECT id FROM tenant WHERE (name <> :name) = :others AND (NOT :others OR name NOT LIKE 'woodrat.%'))
  AND (instr(CAST(name AS BLOB), :data));

-- name: late
-- Rows of late.
SELECT count(*) FROM late
WHERE id >> 40 IN (SELECT id FROM tenant WHERE (name <> :name) = :others AND (NOT :others OR name NOT LIKE 'woodrat.%'))
  AND (instr(CAST(valid_from AS BLOB), :data));

-- name: said
-- Rows of said.
SELECT count(*) FROM said
WHERE id >> 40 IN (SELECT id FROM tenant WHERE (name <> :name) = :others AND (NOT :others OR name NOT LIKE 'woodrat.%'))
  AND (digest = :number);

-- name: naming
-- Rows of naming.
SELECT count(*) FROM naming
WHERE id >> 40 IN (SELECT id FROM tenant WHERE (name <> :name) = :others AND (NOT :others OR name NOT LIKE 'woodrat.%'))
  AND (target = :number);

-- Migration 4: what is looked up by a digest is looked up within its tenant. What another tenant has then costs no step
-- more than what is not there.

DROP INDEX entity_digest;
CREATE INDEX entity_digest ON entity (tenant, digest);

-- Relations by the entities they name.
CREATE TABLE edges (
    tenant    INTEGER NOT NULL,
    endpoint  INTEGER NOT NULL,  -- first 8 bytes of the endpoint's digest, signed
    relation  INTEGER NOT NULL,  -- the entity that stands for the relation
    PRIMARY KEY (tenant, endpoint, relation)
) STRICT, WITHOUT ROWID;
INSERT INTO edges SELECT entity.tenant, edge.endpoint, edge.relation FROM edge JOIN entity ON entity.id = edge.relation;
DROP TABLE edge;
ALTER TABLE edges RENAME TO edge;

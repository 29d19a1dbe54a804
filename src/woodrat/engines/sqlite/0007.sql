-- Migration 7: named ordered indexes. What the log makes true is listed under a key, from a position on; what is no longer
-- true is kept apart with the position it ended at, so that the present is one run of rows and the past can be read too.

CREATE TABLE index_row (
    tenant  INTEGER NOT NULL,
    name    TEXT NOT NULL,     -- of the index
    key     BLOB NOT NULL,
    since   INTEGER NOT NULL,  -- the position it is true from
    value   BLOB NOT NULL,
    PRIMARY KEY (tenant, name, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE index_past (
    tenant  INTEGER NOT NULL,
    name    TEXT NOT NULL,
    key     BLOB NOT NULL,
    since   INTEGER NOT NULL,
    until   INTEGER NOT NULL,  -- the position it is no longer true from
    value   BLOB NOT NULL,
    PRIMARY KEY (tenant, name, key, since)
) STRICT, WITHOUT ROWID;

-- Tables of their own held some of it before.
DROP TABLE shelf;
DROP TABLE shelved;
DROP TABLE imprint;
DROP TABLE imprinted;
DROP TABLE word;
DROP TABLE worded;

-- What else is to be known about derived data, such as how far an index goes.
CREATE TABLE meta (
    tenant  INTEGER NOT NULL,
    name    TEXT NOT NULL,
    value   BLOB NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

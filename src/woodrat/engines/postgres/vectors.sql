-- Vectors, where pgvector is there: rows of indexes of vectors have theirs as pgvector takes them, beside the bytes it is made
-- from, so that the server multiplies. The server makes the column, and nobody can write it. Every component and every
-- product is a whole number that its numbers hold exactly: the products are those of the bytes. No index of pgvector is over
-- it, since what such an index finds is not exact.

-- A vector from its components, a signed byte each; none from bytes that are no vector.
CREATE FUNCTION vector_of(value bytea) RETURNS halfvec IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql
BEGIN ATOMIC
    SELECT CASE WHEN length(value) BETWEEN 1 AND 8192 THEN
        ARRAY(SELECT (get_byte(value, i) # 128) - 128 FROM generate_series(0, length(value) - 1) AS i)::halfvec
    END;
END;

-- The dot product of two vectors.
CREATE FUNCTION product(one halfvec, other halfvec) RETURNS integer IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql
RETURN inner_product(one, other)::integer;

-- Names that begin with `recall/` are those of indexes of vectors (VECTORS in port.py).
ALTER TABLE index_row ADD COLUMN vector halfvec GENERATED ALWAYS AS (
    CASE WHEN name >= 'recall/' AND name < 'recall0' THEN vector_of(value) END
) STORED;
ALTER TABLE index_row ALTER COLUMN vector SET STATISTICS 0;

-- Migration 2: row-level security. Whoever reads or writes says in its transaction for which tenant it does so
-- (`woodrat.tenant`), and there is nothing else for it, owner of the tables or not. The owner may read all of them, to list
-- tenants and to look for what was erased.

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'head', 'log', 'entry', 'body', 'origin', 'clone', 'receipt', 'purge', 'entity', 'said', 'naming', 'kept', 'anchor',
        'element', 'late', 'index_row', 'index_past', 'meta', 'node'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY own_tenant ON %I USING (tenant = current_setting(''woodrat.tenant'', true))'
            ' WITH CHECK (tenant = current_setting(''woodrat.tenant'', true))', name);
        EXECUTE format('CREATE POLICY owner_reads ON %I FOR SELECT TO woodrat_owner USING (true)', name);
    END LOOP;
END
$$;
CREATE POLICY owner_purges ON purge FOR DELETE TO woodrat_owner USING (true);

-- Privileges. The log can be added to and read; derived data can be changed; what was erased is gone by the eraser's hand.
GRANT SELECT ON ALL TABLES IN SCHEMA woodrat TO woodrat_reader, woodrat_writer;
GRANT INSERT ON log, entry, body, origin, clone, receipt, purge TO woodrat_writer;
GRANT INSERT, UPDATE ON head TO woodrat_writer;
GRANT INSERT, UPDATE, DELETE ON entity, said, naming, kept, anchor, element, late, index_row, index_past, meta, node
    TO woodrat_writer;
GRANT SELECT ON body, receipt TO woodrat_eraser;
GRANT UPDATE (nonce, body) ON body TO woodrat_eraser;
GRANT DELETE ON receipt TO woodrat_eraser;

-- Values are never sampled: ANALYZE would keep some in the catalogue, where no erasure finds them. Statements go by keys,
-- so that plans need none of it.
DO $$
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT attrelid::regclass AS name, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace = 'woodrat'::regnamespace AND relkind = 'r' AND relname <> 'migration' AND attnum > 0
          AND attname <> 'tenant' AND atttypid IN ('text'::regtype, 'bytea'::regtype, 'jsonb'::regtype)
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', one.name, one.attname);
    END LOOP;
END
$$;


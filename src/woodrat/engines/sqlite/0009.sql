-- Migration 9: how far the sweep that ends an erasure has come, so that it goes on after a kill.
-- cursor: the next page to be looked at; 0 once all were.
-- salt: the generation of the write-ahead log whose frames tell all that changed since; none before the first step.

DROP TRIGGER purge_no_update;
ALTER TABLE purge ADD COLUMN cursor INTEGER NOT NULL DEFAULT 1;
ALTER TABLE purge ADD COLUMN salt INTEGER;

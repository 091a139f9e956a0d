-- Files are found by their names, and counted against what a tenant may keep.

ALTER TABLE files ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE files ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
CREATE INDEX files_of_session ON files (session_key) WHERE session_key IS NOT NULL;
CREATE INDEX files_unused ON files (expires_at) WHERE blob <> '' AND (deleted_at IS NOT NULL OR expires_at IS NOT NULL);

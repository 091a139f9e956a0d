-- Skills are found by the names of their folders, which are unique; versions are listed, and removed after their archives.

ALTER TABLE skill_versions ADD COLUMN tenant_id BLOB NOT NULL DEFAULT x'';
ALTER TABLE skill_versions ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
ALTER TABLE skill_versions ADD COLUMN deleted_at INTEGER;
ALTER TABLE skills ADD COLUMN display_name TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX skills_by_name ON skills (tenant_id, name) WHERE deleted_at IS NULL;
CREATE INDEX skills_listed ON skills (tenant_id, created_at DESC, id DESC);
CREATE UNIQUE INDEX skill_versions_by_time ON skill_versions (skill_id, created_at);
CREATE INDEX skill_versions_unused ON skill_versions (deleted_at) WHERE deleted_at IS NOT NULL AND blob <> '';

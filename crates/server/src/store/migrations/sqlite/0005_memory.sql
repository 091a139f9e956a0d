-- Memory stores are found by their names; versions are listed, filtered by who made them, and counted against what a tenant may keep.

ALTER TABLE memories ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
ALTER TABLE memory_versions ADD COLUMN tenant_id BLOB NOT NULL DEFAULT x'';
ALTER TABLE memory_versions ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
CREATE INDEX memory_stores_listed ON memory_stores (tenant_id, created_at DESC, id DESC);
CREATE INDEX memory_versions_of_memory ON memory_versions (memory_id);
CREATE INDEX memory_versions_kept ON memory_versions (tenant_id, size);

-- Which sessions have which stores.
CREATE TABLE session_memory_stores (
    session_key INTEGER NOT NULL,
    store_id    BLOB NOT NULL,
    PRIMARY KEY (session_key, store_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_memory_stores_of ON session_memory_stores (store_id);

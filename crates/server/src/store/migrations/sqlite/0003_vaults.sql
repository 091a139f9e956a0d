-- Vaults and credentials are found by their names; a vault has one credential for each server and each variable.

ALTER TABLE vaults ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE credentials ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE credentials ADD COLUMN subject TEXT NOT NULL DEFAULT '';
CREATE INDEX vaults_listed ON vaults (tenant_id, created_at DESC, id DESC);
CREATE UNIQUE INDEX credentials_by_subject ON credentials (vault_id, subject)
    WHERE archived_at IS NULL AND deleted_at IS NULL;

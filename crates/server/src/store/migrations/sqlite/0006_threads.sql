-- Agents of a session have logs of their own, which clients see as threads. Events of a thread that the session shows, too, are
-- posted.

ALTER TABLE logs ADD COLUMN agent_name TEXT;
ALTER TABLE logs ADD COLUMN sidecar TEXT;
ALTER TABLE logs ADD COLUMN status TEXT;
ALTER TABLE logs ADD COLUMN usage TEXT NOT NULL DEFAULT '{}';
ALTER TABLE logs ADD COLUMN active_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE logs ADD COLUMN running_since INTEGER;
ALTER TABLE logs ADD COLUMN updated_at INTEGER;
ALTER TABLE logs ADD COLUMN archived_at INTEGER;
ALTER TABLE logs ADD COLUMN is_over INTEGER NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN posted INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX logs_by_thread ON logs (session_key, thread_id) WHERE thread_id IS NOT NULL;

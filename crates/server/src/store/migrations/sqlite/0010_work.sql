-- Sessions of self-hosted environments that wait for a worker, or have one. A session has one item that serves it at most.
-- `handed_at` is set from a poll to the acknowledgement, `expires_at` while a worker has the lease.

ALTER TABLE sessions ADD COLUMN self_hosted INTEGER NOT NULL DEFAULT 0;

DROP TABLE work;
CREATE TABLE work (
    id                BLOB PRIMARY KEY,
    tenant_id         BLOB NOT NULL REFERENCES tenants (id),
    environment_id    BLOB NOT NULL,
    session_key       INTEGER NOT NULL,
    session_id        BLOB NOT NULL,
    state             TEXT NOT NULL,
    metadata          TEXT NOT NULL,
    created_at        INTEGER NOT NULL,
    due_at            INTEGER NOT NULL,
    handed_at         INTEGER,
    acknowledged_at   INTEGER,
    started_at        INTEGER,
    beat_at           INTEGER,
    ttl               INTEGER NOT NULL,
    expires_at        INTEGER,
    stop_requested_at INTEGER,
    stopped_at        INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX work_of_session ON work (session_key) WHERE state IN ('queued', 'starting', 'active');
CREATE INDEX work_stopping ON work (session_key) WHERE state = 'stopping';
CREATE INDEX work_queued ON work (environment_id, created_at) WHERE state = 'queued';
CREATE INDEX work_leased ON work (environment_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX work_listed ON work (environment_id, created_at DESC, id DESC);
CREATE INDEX work_over ON work (stopped_at) WHERE stopped_at IS NOT NULL;

-- Who polls, to about ten seconds.
CREATE TABLE work_pollers (
    environment_id BLOB NOT NULL,
    worker         TEXT NOT NULL,
    seen_at        INTEGER NOT NULL,
    PRIMARY KEY (environment_id, worker)
) STRICT, WITHOUT ROWID;

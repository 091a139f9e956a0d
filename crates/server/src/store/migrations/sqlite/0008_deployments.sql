-- Deployments with schedules, and their runs. A run that a schedule began is there before its session, once for each time; it is
-- finished by a node that finds it unfinished.

DROP TABLE deployment_runs;
DROP TABLE deployments;
CREATE TABLE deployments (
    id          BLOB PRIMARY KEY,
    tenant_id   BLOB NOT NULL REFERENCES tenants (id),
    agent_id    BLOB NOT NULL,
    body        TEXT NOT NULL,
    sealed      BLOB NOT NULL,
    paused      TEXT,
    next_at     INTEGER,
    last_run_at INTEGER,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    archived_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX deployments_listed ON deployments (tenant_id, created_at DESC, id DESC);
CREATE INDEX deployments_due ON deployments (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE deployment_runs (
    id            BLOB PRIMARY KEY,
    tenant_id     BLOB NOT NULL,
    deployment_id BLOB NOT NULL REFERENCES deployments (id),
    agent_id      BLOB NOT NULL,
    agent_version INTEGER NOT NULL,
    scheduled_at  INTEGER,
    session_id    BLOB,
    error         TEXT,
    claimed_by    BLOB,
    created_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX deployment_runs_once ON deployment_runs (deployment_id, scheduled_at) WHERE scheduled_at IS NOT NULL;
CREATE INDEX deployment_runs_listed ON deployment_runs (tenant_id, created_at DESC, id DESC);
CREATE INDEX deployment_runs_unfinished ON deployment_runs (created_at) WHERE session_id IS NULL AND error IS NULL;
CREATE INDEX sessions_of_deployment ON sessions (deployment_id) WHERE deployment_id IS NOT NULL;

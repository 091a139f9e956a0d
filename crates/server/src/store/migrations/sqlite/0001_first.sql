-- Times are microseconds since 1970; ids are 16 bytes; bodies are JSON.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tenants (
    id         BLOB PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    limits     TEXT NOT NULL DEFAULT '{}',
    data_key   BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    id         TEXT PRIMARY KEY,
    tenant_id  BLOB NOT NULL REFERENCES tenants (id),
    user       TEXT NOT NULL,
    hint       TEXT NOT NULL,
    hash       BLOB NOT NULL,
    scopes     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    used_at    INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE agents (
    id           BLOB PRIMARY KEY,
    tenant_id    BLOB NOT NULL REFERENCES tenants (id),
    name         TEXT NOT NULL,
    head_version INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    archived_at  INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX agents_listed ON agents (tenant_id, created_at DESC, id DESC);

CREATE TABLE agent_versions (
    agent_id   BLOB NOT NULL REFERENCES agents (id),
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    body       TEXT NOT NULL,
    PRIMARY KEY (agent_id, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE environments (
    id          BLOB PRIMARY KEY,
    tenant_id   BLOB NOT NULL REFERENCES tenants (id),
    name        TEXT NOT NULL,
    body        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    archived_at INTEGER,
    deleted_at  INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX environments_listed ON environments (tenant_id, created_at DESC, id DESC);

-- One row a log. The main log of a session has the session's key; the others are of its agents.
CREATE TABLE logs (
    log_key     INTEGER PRIMARY KEY AUTOINCREMENT,
    session_key INTEGER NOT NULL,
    thread_id   BLOB,
    parent_log  INTEGER,
    call_id     TEXT,
    name        TEXT,
    record_seq  INTEGER NOT NULL DEFAULT 0,
    created_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX logs_of_session ON logs (session_key);
CREATE UNIQUE INDEX logs_by_name ON logs (parent_log, name) WHERE name IS NOT NULL;

CREATE TABLE sessions (
    key            INTEGER PRIMARY KEY,
    id             BLOB NOT NULL UNIQUE,
    tenant_id      BLOB NOT NULL REFERENCES tenants (id),
    agent_id       BLOB NOT NULL,
    agent_version  INTEGER NOT NULL,
    environment_id BLOB NOT NULL,
    deployment_id  BLOB,
    title          TEXT,
    metadata       TEXT NOT NULL,
    body           TEXT NOT NULL,
    sealed         BLOB,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    archived_at    INTEGER,
    deleted_at     INTEGER
) STRICT;
CREATE INDEX sessions_listed ON sessions (tenant_id, created_at DESC, key DESC);
CREATE INDEX sessions_of_agent ON sessions (tenant_id, agent_id, created_at DESC, key DESC);
CREATE INDEX sessions_in_environment ON sessions (environment_id);
CREATE INDEX sessions_deleted ON sessions (deleted_at) WHERE deleted_at IS NOT NULL;

-- What changes while a session runs. Appends touch no column that an index has.
CREATE TABLE heads (
    session_key    INTEGER PRIMARY KEY,
    status         TEXT NOT NULL,
    stop_reason    TEXT,
    record_seq     INTEGER NOT NULL DEFAULT 0,
    event_seq      INTEGER NOT NULL DEFAULT 0,
    inbox_seq      INTEGER NOT NULL DEFAULT 0,
    inbox_done     INTEGER NOT NULL DEFAULT 0,
    fence          INTEGER NOT NULL DEFAULT 0,
    lease_node     BLOB,
    home_node      BLOB,
    wake_at        INTEGER,
    attempts       INTEGER NOT NULL DEFAULT 0,
    quarantined_at INTEGER,
    last_at        INTEGER NOT NULL,
    usage          TEXT NOT NULL DEFAULT '{}',
    active_ms      INTEGER NOT NULL DEFAULT 0,
    running_since  INTEGER,
    workspace      TEXT
) STRICT;
CREATE INDEX heads_due ON heads (wake_at)
    WHERE wake_at IS NOT NULL AND lease_node IS NULL AND quarantined_at IS NULL;
CREATE INDEX heads_leased ON heads (lease_node) WHERE lease_node IS NOT NULL;
CREATE INDEX heads_quarantined ON heads (quarantined_at) WHERE quarantined_at IS NOT NULL;

CREATE TABLE records (
    log_key INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    body    BLOB NOT NULL,
    refs    BLOB,
    blob    TEXT,
    PRIMARY KEY (log_key, seq)
) STRICT, WITHOUT ROWID;

-- Lines without a number, such as titles.
CREATE TABLE notes (
    log_key INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    line    BLOB NOT NULL,
    PRIMARY KEY (log_key, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    session_key  INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    id           BLOB NOT NULL,
    type         TEXT NOT NULL,
    at           INTEGER NOT NULL,
    processed_at INTEGER,
    thread_id    BLOB,
    previewed    INTEGER NOT NULL DEFAULT 0,
    body         BLOB NOT NULL,
    blob         TEXT,
    PRIMARY KEY (session_key, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX events_by_id ON events (session_key, id);

CREATE TABLE pending (
    session_key INTEGER NOT NULL,
    event_id    BLOB NOT NULL,
    tenant_id   BLOB NOT NULL,
    log_key     INTEGER NOT NULL,
    call_id     TEXT NOT NULL,
    kind        TEXT NOT NULL,
    asked_at    INTEGER NOT NULL,
    asked_seq   INTEGER NOT NULL,
    closed_at   INTEGER,
    answer      BLOB,
    answered_by TEXT,
    digest      BLOB,
    PRIMARY KEY (session_key, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX pending_open ON pending (tenant_id, asked_at) WHERE closed_at IS NULL;

CREATE TABLE inbox (
    session_key INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    id          TEXT NOT NULL,
    kind        TEXT NOT NULL,
    body        BLOB NOT NULL,
    PRIMARY KEY (session_key, seq)
) STRICT, WITHOUT ROWID;

-- What became of inbox entries that were left by a store's own interface, until it is fetched.
CREATE TABLE inbox_replies (
    session_key INTEGER NOT NULL,
    id          TEXT NOT NULL,
    reply       BLOB NOT NULL,
    PRIMARY KEY (session_key, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE parts (
    tenant_id BLOB NOT NULL,
    sha256    BLOB NOT NULL,
    body      BLOB NOT NULL,
    PRIMARY KEY (tenant_id, sha256)
) STRICT, WITHOUT ROWID;

CREATE TABLE nodes (
    id         BLOB PRIMARY KEY,
    address    TEXT NOT NULL,
    version    TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    draining   INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
    token_id   TEXT NOT NULL,
    key        TEXT NOT NULL,
    digest     BLOB NOT NULL,
    status     INTEGER NOT NULL,
    response   BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (token_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_old ON idempotency (created_at);

CREATE TABLE files (
    id          BLOB PRIMARY KEY,
    tenant_id   BLOB NOT NULL REFERENCES tenants (id),
    session_key INTEGER,
    body        TEXT NOT NULL,
    blob        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER,
    deleted_at  INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX files_listed ON files (tenant_id, created_at DESC, id DESC);

CREATE TABLE skills (
    id           BLOB PRIMARY KEY,
    tenant_id    BLOB NOT NULL REFERENCES tenants (id),
    name         TEXT NOT NULL,
    body         TEXT NOT NULL,
    head_version BLOB,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    deleted_at   INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE skill_versions (
    skill_id   BLOB NOT NULL REFERENCES skills (id),
    id         BLOB NOT NULL,
    body       TEXT NOT NULL,
    blob       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (skill_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE vaults (
    id          BLOB PRIMARY KEY,
    tenant_id   BLOB NOT NULL REFERENCES tenants (id),
    body        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    archived_at INTEGER,
    deleted_at  INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE credentials (
    id          BLOB PRIMARY KEY,
    vault_id    BLOB NOT NULL REFERENCES vaults (id),
    tenant_id   BLOB NOT NULL,
    body        TEXT NOT NULL,
    sealed      BLOB NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    archived_at INTEGER,
    deleted_at  INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX credentials_of_vault ON credentials (vault_id);

CREATE TABLE memory_stores (
    id          BLOB PRIMARY KEY,
    tenant_id   BLOB NOT NULL REFERENCES tenants (id),
    name        TEXT NOT NULL,
    body        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    archived_at INTEGER,
    deleted_at  INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE memories (
    id         BLOB PRIMARY KEY,
    store_id   BLOB NOT NULL REFERENCES memory_stores (id),
    path       TEXT NOT NULL,
    version_id BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX memories_by_path ON memories (store_id, path) WHERE deleted_at IS NULL;

CREATE TABLE memory_versions (
    id          BLOB PRIMARY KEY,
    memory_id   BLOB NOT NULL,
    store_id    BLOB NOT NULL,
    operation   TEXT NOT NULL,
    path        TEXT,
    content     BLOB,
    sha256      BLOB,
    created_by  TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    redacted_at INTEGER,
    redacted_by TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_versions_listed ON memory_versions (store_id, created_at DESC, id DESC);

CREATE TABLE deployments (
    id          BLOB PRIMARY KEY,
    tenant_id   BLOB NOT NULL REFERENCES tenants (id),
    status      TEXT NOT NULL,
    body        TEXT NOT NULL,
    next_at     INTEGER,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    archived_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX deployments_due ON deployments (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE deployment_runs (
    id            BLOB PRIMARY KEY,
    deployment_id BLOB NOT NULL REFERENCES deployments (id),
    session_key   INTEGER,
    body          TEXT NOT NULL,
    created_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX deployment_runs_listed ON deployment_runs (deployment_id, created_at DESC, id DESC);

CREATE TABLE webhook_endpoints (
    id         BLOB PRIMARY KEY,
    tenant_id  BLOB NOT NULL REFERENCES tenants (id),
    body       TEXT NOT NULL,
    sealed     BLOB NOT NULL,
    active     INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE work (
    id             BLOB PRIMARY KEY,
    tenant_id      BLOB NOT NULL,
    environment_id BLOB NOT NULL,
    session_key    INTEGER NOT NULL,
    state          TEXT NOT NULL,
    body           TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    beat_at        INTEGER,
    handed_at      INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX work_of_environment ON work (environment_id, state, created_at);

CREATE TABLE deliveries (
    id          BLOB PRIMARY KEY,
    endpoint_id BLOB NOT NULL,
    body        TEXT NOT NULL,
    next_at     INTEGER,
    attempts    INTEGER NOT NULL DEFAULT 0,
    created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE audit (
    id         INTEGER PRIMARY KEY,
    at         INTEGER NOT NULL,
    tenant_id  BLOB,
    actor      TEXT NOT NULL,
    what       TEXT NOT NULL,
    subject    TEXT NOT NULL,
    request_id TEXT
) STRICT;
CREATE INDEX audit_of_tenant ON audit (tenant_id, at DESC);

-- Times are microseconds since 1970, by the clock of the database where leases depend on them. Bodies are `json` and not `jsonb`:
-- they keep the order of their fields and may contain U+0000 as an escape.

CREATE TABLE tenants (
    id         uuid PRIMARY KEY,
    name       text NOT NULL UNIQUE,
    limits     json NOT NULL DEFAULT '{}',
    data_key   bytea NOT NULL,
    created_at bigint NOT NULL
);

CREATE TABLE tokens (
    id         text PRIMARY KEY,
    tenant_id  uuid NOT NULL REFERENCES tenants (id),
    user_name  text NOT NULL,
    hint       text NOT NULL,
    hash       bytea NOT NULL,
    scopes     text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    used_at    bigint,
    revoked_at bigint
);

CREATE TABLE agents (
    id           uuid PRIMARY KEY,
    tenant_id    uuid NOT NULL REFERENCES tenants (id),
    name         text NOT NULL,
    head_version bigint NOT NULL,
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL,
    archived_at  bigint
);
CREATE INDEX agents_listed ON agents (tenant_id, created_at DESC, id DESC);

CREATE TABLE agent_versions (
    agent_id   uuid NOT NULL REFERENCES agents (id),
    version    bigint NOT NULL,
    created_at bigint NOT NULL,
    body       json NOT NULL,
    PRIMARY KEY (agent_id, version)
);

CREATE TABLE environments (
    id          uuid PRIMARY KEY,
    tenant_id   uuid NOT NULL REFERENCES tenants (id),
    name        text NOT NULL,
    body        json NOT NULL,
    created_at  bigint NOT NULL,
    updated_at  bigint NOT NULL,
    archived_at bigint,
    deleted_at  bigint
);
CREATE INDEX environments_listed ON environments (tenant_id, created_at DESC, id DESC);

-- One row a log. The main log of a session has the session's key; the others are of its agents.
CREATE TABLE logs (
    log_key     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_key bigint NOT NULL,
    thread_id   uuid,
    parent_log  bigint,
    call_id     text,
    name        text,
    record_seq  bigint NOT NULL DEFAULT 0,
    created_at  bigint NOT NULL,
    -- Of agents of a session, which clients see as threads.
    agent_name    text,
    sidecar       json,
    status        text,
    usage         json NOT NULL DEFAULT '{}',
    active_ms     bigint NOT NULL DEFAULT 0,
    running_since bigint,
    updated_at    bigint,
    archived_at   bigint,
    is_over       boolean NOT NULL DEFAULT false
);
CREATE UNIQUE INDEX logs_by_thread ON logs (session_key, thread_id) WHERE thread_id IS NOT NULL;
CREATE INDEX logs_of_session ON logs (session_key);
CREATE UNIQUE INDEX logs_by_name ON logs (parent_log, name) WHERE name IS NOT NULL;

CREATE TABLE sessions (
    key            bigint PRIMARY KEY,
    id             uuid NOT NULL UNIQUE,
    tenant_id      uuid NOT NULL REFERENCES tenants (id),
    agent_id       uuid NOT NULL,
    agent_version  bigint NOT NULL,
    environment_id uuid NOT NULL,
    deployment_id  uuid,
    title          text,
    metadata       json NOT NULL,
    body           json NOT NULL,
    sealed         bytea,
    created_at     bigint NOT NULL,
    updated_at     bigint NOT NULL,
    archived_at    bigint,
    deleted_at     bigint
);
CREATE INDEX sessions_listed ON sessions (tenant_id, created_at DESC, key DESC);
CREATE INDEX sessions_of_agent ON sessions (tenant_id, agent_id, created_at DESC, key DESC);
CREATE INDEX sessions_in_environment ON sessions (environment_id);
CREATE INDEX sessions_deleted ON sessions (deleted_at) WHERE deleted_at IS NOT NULL;

-- What changes while a session runs. Appends touch no column that an index has, so that updates stay on their page.
CREATE TABLE heads (
    session_key    bigint PRIMARY KEY,
    status         text NOT NULL,
    stop_reason    json,
    record_seq     bigint NOT NULL DEFAULT 0,
    event_seq      bigint NOT NULL DEFAULT 0,
    inbox_seq      bigint NOT NULL DEFAULT 0,
    fence          bigint NOT NULL DEFAULT 0,
    lease_node     uuid,
    home_node      uuid,
    wake_at        bigint,
    attempts       bigint NOT NULL DEFAULT 0,
    quarantined_at bigint,
    last_at        bigint NOT NULL,
    usage          json NOT NULL DEFAULT '{}',
    active_ms      bigint NOT NULL DEFAULT 0,
    running_since  bigint,
    workspace      text
) WITH (fillfactor = 60);
CREATE INDEX heads_due ON heads (wake_at)
    WHERE wake_at IS NOT NULL AND lease_node IS NULL AND quarantined_at IS NULL;
CREATE INDEX heads_leased ON heads (lease_node) WHERE lease_node IS NOT NULL;
CREATE INDEX heads_quarantined ON heads (quarantined_at) WHERE quarantined_at IS NOT NULL;

CREATE TABLE records (
    log_key bigint NOT NULL,
    seq     bigint NOT NULL,
    at      bigint NOT NULL,
    kind    text NOT NULL,
    body    bytea NOT NULL,
    refs    bytea,
    blob    text,
    PRIMARY KEY (log_key, seq)
);

CREATE TABLE events (
    session_key  bigint NOT NULL,
    seq          bigint NOT NULL,
    id           uuid NOT NULL,
    type         text NOT NULL,
    at           bigint NOT NULL,
    processed_at bigint,
    thread_id    uuid,
    -- True for an event of a thread that the session shows, too.
    posted       boolean NOT NULL DEFAULT false,
    previewed    boolean NOT NULL DEFAULT false,
    body         bytea NOT NULL,
    blob         text,
    PRIMARY KEY (session_key, seq)
);
CREATE UNIQUE INDEX events_by_id ON events (session_key, id);

CREATE TABLE pending (
    session_key bigint NOT NULL,
    event_id    uuid NOT NULL,
    tenant_id   uuid NOT NULL,
    log_key     bigint NOT NULL,
    call_id     text NOT NULL,
    kind        text NOT NULL,
    asked_at    bigint NOT NULL,
    asked_seq   bigint NOT NULL,
    closed_at   bigint,
    answer      uuid,
    answered_by text,
    digest      bytea,
    PRIMARY KEY (session_key, event_id)
);
CREATE INDEX pending_open ON pending (tenant_id, asked_at) WHERE closed_at IS NULL;

CREATE TABLE inbox (
    session_key bigint NOT NULL,
    seq         bigint NOT NULL,
    id          text NOT NULL,
    kind        text NOT NULL,
    body        bytea NOT NULL,
    PRIMARY KEY (session_key, seq)
);

CREATE TABLE parts (
    tenant_id uuid NOT NULL,
    sha256    bytea NOT NULL,
    body      bytea NOT NULL,
    PRIMARY KEY (tenant_id, sha256)
);

-- Content that is too long for a row, in pieces, so that every node reaches it.
CREATE TABLE blobs (
    tenant_id uuid NOT NULL,
    name      text NOT NULL,
    piece     integer NOT NULL,
    body      bytea NOT NULL,
    PRIMARY KEY (tenant_id, name, piece)
);
ALTER TABLE blobs ALTER COLUMN body SET STORAGE EXTERNAL;

-- Content that is being written; until it is finished no one reads it.
CREATE TABLE blob_uploads (
    tenant_id uuid NOT NULL,
    name      text NOT NULL,
    begun_at  bigint NOT NULL,
    PRIMARY KEY (tenant_id, name)
);

CREATE TABLE files (
    id          uuid PRIMARY KEY,
    tenant_id   uuid NOT NULL REFERENCES tenants (id),
    session_key bigint,
    body        json NOT NULL,
    blob        text NOT NULL,
    name        text NOT NULL,
    size        bigint NOT NULL,
    created_at  bigint NOT NULL,
    expires_at  bigint,
    deleted_at  bigint
);
CREATE INDEX files_listed ON files (tenant_id, created_at DESC, id DESC);
CREATE INDEX files_of_session ON files (session_key) WHERE session_key IS NOT NULL;
CREATE INDEX files_unused ON files (expires_at) WHERE blob <> '' AND (deleted_at IS NOT NULL OR expires_at IS NOT NULL);

CREATE TABLE skills (
    id           uuid PRIMARY KEY,
    tenant_id    uuid NOT NULL REFERENCES tenants (id),
    name         text NOT NULL,
    display_name text NOT NULL,
    body         json NOT NULL,
    head_version uuid,
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL,
    deleted_at   bigint
);
CREATE UNIQUE INDEX skills_by_name ON skills (tenant_id, name) WHERE deleted_at IS NULL;
CREATE INDEX skills_listed ON skills (tenant_id, created_at DESC, id DESC);

CREATE TABLE skill_versions (
    skill_id   uuid NOT NULL REFERENCES skills (id),
    id         uuid NOT NULL UNIQUE,
    tenant_id  uuid NOT NULL,
    body       json NOT NULL,
    blob       text NOT NULL,
    size       bigint NOT NULL,
    created_at bigint NOT NULL,
    deleted_at bigint,
    PRIMARY KEY (skill_id, id)
);
CREATE UNIQUE INDEX skill_versions_by_time ON skill_versions (skill_id, created_at);
CREATE INDEX skill_versions_of_tenant ON skill_versions (tenant_id) WHERE deleted_at IS NULL;
CREATE INDEX skill_versions_unused ON skill_versions (deleted_at) WHERE deleted_at IS NOT NULL AND blob <> '';

CREATE TABLE vaults (
    id          uuid PRIMARY KEY,
    tenant_id   uuid NOT NULL REFERENCES tenants (id),
    name        text NOT NULL,
    body        json NOT NULL,
    created_at  bigint NOT NULL,
    updated_at  bigint NOT NULL,
    archived_at bigint,
    deleted_at  bigint
);
CREATE INDEX vaults_listed ON vaults (tenant_id, created_at DESC, id DESC);

-- A vault has one credential for each server and each variable.
CREATE TABLE credentials (
    id          uuid PRIMARY KEY,
    vault_id    uuid NOT NULL REFERENCES vaults (id),
    tenant_id   uuid NOT NULL,
    name        text NOT NULL,
    subject     text NOT NULL,
    body        json NOT NULL,
    sealed      bytea NOT NULL,
    created_at  bigint NOT NULL,
    updated_at  bigint NOT NULL,
    archived_at bigint,
    deleted_at  bigint
);
CREATE INDEX credentials_of_vault ON credentials (vault_id);
CREATE UNIQUE INDEX credentials_by_subject ON credentials (vault_id, subject)
    WHERE archived_at IS NULL AND deleted_at IS NULL;

CREATE TABLE memory_stores (
    id          uuid PRIMARY KEY,
    tenant_id   uuid NOT NULL REFERENCES tenants (id),
    name        text NOT NULL,
    body        json NOT NULL,
    created_at  bigint NOT NULL,
    updated_at  bigint NOT NULL,
    archived_at bigint,
    deleted_at  bigint
);
CREATE INDEX memory_stores_listed ON memory_stores (tenant_id, created_at DESC, id DESC);

CREATE TABLE memories (
    id         uuid PRIMARY KEY,
    store_id   uuid NOT NULL REFERENCES memory_stores (id),
    path       text NOT NULL,
    version_id uuid NOT NULL,
    metadata   json NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    deleted_at bigint
);
CREATE UNIQUE INDEX memories_by_path ON memories (store_id, path) WHERE deleted_at IS NULL;
CREATE INDEX memories_by_version ON memories (version_id);

CREATE TABLE memory_versions (
    id          uuid PRIMARY KEY,
    memory_id   uuid NOT NULL,
    store_id    uuid NOT NULL,
    tenant_id   uuid NOT NULL,
    operation   text NOT NULL,
    path        text,
    content     bytea,
    sha256      bytea,
    size        bigint NOT NULL,
    created_by  text NOT NULL,
    created_at  bigint NOT NULL,
    redacted_at bigint,
    redacted_by text
);
CREATE INDEX memory_versions_listed ON memory_versions (store_id, created_at DESC, id DESC);
CREATE INDEX memory_versions_of_memory ON memory_versions (memory_id);
CREATE INDEX memory_versions_kept ON memory_versions (tenant_id, size);

-- Which sessions have which stores.
CREATE TABLE session_memory_stores (
    session_key bigint NOT NULL,
    store_id    uuid NOT NULL,
    PRIMARY KEY (session_key, store_id)
);
CREATE INDEX session_memory_stores_of ON session_memory_stores (store_id);

-- Endpoints that get notices of what happens, and the outbox of notices. A notice that is being sent belongs to a node; it is due again
-- when that node has not reported by then.
CREATE TABLE webhook_endpoints (
    id              uuid PRIMARY KEY,
    tenant_id       uuid NOT NULL REFERENCES tenants (id),
    body            json NOT NULL,
    sealed          bytea NOT NULL,
    active          boolean NOT NULL,
    disabled_reason text,
    failures        bigint NOT NULL DEFAULT 0,
    last_success_at bigint,
    last_failure_at bigint,
    created_at      bigint NOT NULL,
    updated_at      bigint NOT NULL
);
CREATE INDEX webhook_endpoints_listed ON webhook_endpoints (tenant_id, created_at DESC, id DESC);

CREATE TABLE deliveries (
    id              uuid PRIMARY KEY,
    tenant_id       uuid NOT NULL,
    endpoint_id     uuid NOT NULL,
    event_id        uuid NOT NULL,
    type            text NOT NULL,
    body            text NOT NULL,
    state           text NOT NULL,
    attempts        bigint NOT NULL DEFAULT 0,
    next_at         bigint,
    claimed_by      uuid,
    attempted_at    bigint,
    response_status integer,
    error           text,
    created_at      bigint NOT NULL
);
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX deliveries_of_endpoint ON deliveries (endpoint_id, created_at DESC, id DESC);
CREATE INDEX deliveries_by_age ON deliveries (created_at);

-- Deployments with schedules, and their runs. A run that a schedule began is there before its session, once for each time; it is
-- finished by a node that finds it unfinished.
CREATE TABLE deployments (
    id          uuid PRIMARY KEY,
    tenant_id   uuid NOT NULL REFERENCES tenants (id),
    agent_id    uuid NOT NULL,
    body        json NOT NULL,
    sealed      bytea NOT NULL,
    paused      json,
    next_at     bigint,
    last_run_at bigint,
    created_at  bigint NOT NULL,
    updated_at  bigint NOT NULL,
    archived_at bigint
);
CREATE INDEX deployments_listed ON deployments (tenant_id, created_at DESC, id DESC);
CREATE INDEX deployments_due ON deployments (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE deployment_runs (
    id            uuid PRIMARY KEY,
    tenant_id     uuid NOT NULL,
    deployment_id uuid NOT NULL REFERENCES deployments (id),
    agent_id      uuid NOT NULL,
    agent_version bigint NOT NULL,
    scheduled_at  bigint,
    session_id    uuid,
    error         json,
    claimed_by    uuid,
    created_at    bigint NOT NULL
);
CREATE UNIQUE INDEX deployment_runs_once ON deployment_runs (deployment_id, scheduled_at) WHERE scheduled_at IS NOT NULL;
CREATE INDEX deployment_runs_listed ON deployment_runs (tenant_id, created_at DESC, id DESC);
CREATE INDEX deployment_runs_unfinished ON deployment_runs (created_at) WHERE session_id IS NULL AND error IS NULL;
CREATE INDEX sessions_of_deployment ON sessions (deployment_id) WHERE deployment_id IS NOT NULL;

-- `home` is the data directory of the process: one that starts there again replaces its predecessor at once.
CREATE TABLE nodes (
    id         uuid PRIMARY KEY,
    home       uuid NOT NULL,
    address    text NOT NULL,
    version    text NOT NULL,
    started_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    draining   boolean NOT NULL DEFAULT false
);

CREATE TABLE idempotency (
    token_id   text NOT NULL,
    key        text NOT NULL,
    digest     bytea NOT NULL,
    status     integer NOT NULL,
    response   bytea NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (token_id, key)
);
CREATE INDEX idempotency_old ON idempotency (created_at);

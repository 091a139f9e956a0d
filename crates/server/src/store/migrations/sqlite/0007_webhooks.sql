-- Endpoints that get notices of what happens, and the outbox of notices. A notice that is being sent belongs to a node; it is due again
-- when that node has not reported by then.

DROP TABLE webhook_endpoints;
DROP TABLE deliveries;
CREATE TABLE webhook_endpoints (
    id              BLOB PRIMARY KEY,
    tenant_id       BLOB NOT NULL REFERENCES tenants (id),
    body            TEXT NOT NULL,
    sealed          BLOB NOT NULL,
    active          INTEGER NOT NULL,
    disabled_reason TEXT,
    failures        INTEGER NOT NULL DEFAULT 0,
    last_success_at INTEGER,
    last_failure_at INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_endpoints_listed ON webhook_endpoints (tenant_id, created_at DESC, id DESC);

CREATE TABLE deliveries (
    id              BLOB PRIMARY KEY,
    tenant_id       BLOB NOT NULL,
    endpoint_id     BLOB NOT NULL,
    event_id        BLOB NOT NULL,
    type            TEXT NOT NULL,
    body            TEXT NOT NULL,
    state           TEXT NOT NULL,
    attempts        INTEGER NOT NULL DEFAULT 0,
    next_at         INTEGER,
    claimed_by      BLOB,
    attempted_at    INTEGER,
    response_status INTEGER,
    error           TEXT,
    created_at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX deliveries_of_endpoint ON deliveries (endpoint_id, created_at DESC, id DESC);
CREATE INDEX deliveries_by_age ON deliveries (created_at);

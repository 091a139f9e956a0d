-- Sessions of self-hosted environments that wait for a worker, or have one. A session has one item that serves it at most.
-- `handed_at` is set from a poll to the acknowledgement, `expires_at` while a worker has the lease.

ALTER TABLE sessions ADD COLUMN self_hosted boolean NOT NULL DEFAULT false;

CREATE TABLE work (
    id                uuid PRIMARY KEY,
    tenant_id         uuid NOT NULL REFERENCES tenants (id),
    environment_id    uuid NOT NULL,
    session_key       bigint NOT NULL,
    session_id        uuid NOT NULL,
    state             text NOT NULL,
    metadata          json NOT NULL,
    created_at        bigint NOT NULL,
    due_at            bigint NOT NULL,
    handed_at         bigint,
    acknowledged_at   bigint,
    started_at        bigint,
    beat_at           bigint,
    ttl               bigint NOT NULL,
    expires_at        bigint,
    stop_requested_at bigint,
    stopped_at        bigint
);
CREATE UNIQUE INDEX work_of_session ON work (session_key) WHERE state IN ('queued', 'starting', 'active');
CREATE INDEX work_stopping ON work (session_key) WHERE state = 'stopping';
CREATE INDEX work_queued ON work (environment_id, created_at) WHERE state = 'queued';
CREATE INDEX work_leased ON work (environment_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX work_listed ON work (environment_id, created_at DESC, id DESC);
CREATE INDEX work_over ON work (stopped_at) WHERE stopped_at IS NOT NULL;

-- Who polls, to about ten seconds.
CREATE TABLE work_pollers (
    environment_id uuid NOT NULL,
    worker         text NOT NULL,
    seen_at        bigint NOT NULL,
    PRIMARY KEY (environment_id, worker)
);

//! What has to hold whatever happens. The database notes at each commit what is needed to know it.

use std::sync::Mutex;

use rusqlite::Connection;

use super::client::Known;
use super::world::World;

/// Notes under which lease a record was appended, and how many calls of a session had begun when something was delivered.
const NOTES: &str = "
    CREATE TABLE noted_records (log_key INTEGER, seq INTEGER, fence INTEGER, lease_node BLOB);
    CREATE TRIGGER note_record AFTER INSERT ON records BEGIN
        INSERT INTO noted_records SELECT NEW.log_key, NEW.seq, fence, lease_node FROM heads
        WHERE session_key = (SELECT session_key FROM logs WHERE log_key = NEW.log_key);
    END;
    CREATE TABLE noted_effects (session_key INTEGER, begun INTEGER, effects INTEGER);
    CREATE TRIGGER note_effect AFTER INSERT ON files WHEN NEW.session_key IS NOT NULL BEGIN
        INSERT INTO noted_effects SELECT NEW.session_key,
            (SELECT count(*) FROM records r JOIN logs l ON l.log_key = r.log_key
             WHERE l.session_key = NEW.session_key AND r.kind = 'tool-start'),
            (SELECT count(*) FROM files WHERE session_key = NEW.session_key);
    END;";

/// Looks at the database beside everyone.
pub struct Oracle {
    connection: Mutex<Connection>,
    seed: u64,
}

impl Oracle {
    pub fn watch(world: &World) -> Self {
        let connection = Connection::open(world.database()).unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
        connection.execute_batch(NOTES).unwrap();
        Self { connection: Mutex::new(connection), seed: world.seed }
    }

    fn count(&self, sql: &str) -> i64 {
        self.connection.lock().unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    fn none(&self, sql: &str, what: &str) {
        assert_eq!(
            self.count(&format!("SELECT count(*) FROM {sql}")),
            0,
            "seed {}: {what}\n{}",
            self.seed,
            self.state()
        );
    }

    /// What sessions are doing, for a failure.
    pub fn state(&self) -> String {
        let connection = self.connection.lock().unwrap();
        let mut select = connection
            .prepare(
                "SELECT session_key || ' ' || status || ' ' || coalesce(stop_reason, '-') || ' fence ' || fence ||
                 ' lease ' || coalesce(hex(lease_node), '-') || ' wake ' || coalesce(wake_at, '-') || ' attempts ' || attempts ||
                 ' inbox ' || inbox_seq || '/' || inbox_done || ' open ' ||
                 (SELECT count(*) FROM pending p WHERE p.session_key = h.session_key AND closed_at IS NULL) || ' last ' ||
                 (SELECT group_concat(type, ' ') FROM (SELECT type FROM events e WHERE e.session_key = h.session_key ORDER BY seq DESC LIMIT 6))
                 FROM heads h",
            )
            .unwrap();
        let rows: Vec<String> = select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        rows.join("\n")
    }

    /// What holds at every moment.
    pub fn check_now(&self) {
        self.none(
            "heads h WHERE lease_node IS NULL AND wake_at IS NULL AND quarantined_at IS NULL AND
             (status IN ('running', 'rescheduling') OR
              EXISTS (SELECT 1 FROM inbox i WHERE i.session_key = h.session_key) AND
              NOT EXISTS (SELECT 1 FROM pending p WHERE p.session_key = h.session_key AND closed_at IS NULL))",
            "a session with work has neither a time to wake nor a lease",
        );
        self.none("noted_records WHERE lease_node IS NULL", "a record was appended without a lease");
        self.none(
            "noted_records a JOIN noted_records b ON a.log_key = b.log_key AND a.seq < b.seq AND a.fence > b.fence",
            "a record was appended under an older lease than one before it",
        );
        self.none(
            "noted_effects WHERE effects > begun",
            "an effect without a committed beginning of its call",
        );
        self.none(
            "(SELECT session_key, coalesce(json_extract(body, '$.tool_use_id'), json_extract(body, '$.custom_tool_use_id')) AS call
              FROM events WHERE type IN ('user.tool_confirmation', 'user.custom_tool_result')
              GROUP BY session_key, call HAVING count(*) > 1)",
            "an action has two answers",
        );
        self.none(
            "(SELECT session_key, json_extract(body, '$.tool_use_id') AS call FROM events WHERE type = 'agent.tool_result'
              GROUP BY session_key, call HAVING count(*) > 1)",
            "a call has two results",
        );
        self.none(
            "(SELECT session_key FROM events GROUP BY session_key HAVING max(seq) <> count(*))",
            "the events of a session have a gap",
        );
    }

    /// What a client knows is true.
    pub fn check_session(&self, known: &Known) {
        let (seed, session) = (self.seed, known.session);
        let connection = self.connection.lock().unwrap();
        let mut select = connection
            .prepare("SELECT id, type FROM events WHERE session_key = ?1 ORDER BY seq LIMIT ?2")
            .unwrap();
        let stored: Vec<(Vec<u8>, String)> = select
            .query_map([known.key, i64::try_from(known.seen.len()).unwrap()], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let seen: Vec<(Vec<u8>, String)> =
            known.seen.iter().map(|event| (event.id.0.to_vec(), event.kind.clone())).collect();
        assert_eq!(seen, stored, "seed {seed}, {session}: what was seen is not a prefix of the log");
        let messages = stored.iter().filter(|(_, kind)| kind == "user.message").count();
        assert_eq!(messages, known.accepted, "seed {seed}, {session}: messages that were accepted");
        assert_eq!(
            known.ended, known.accepted,
            "seed {seed}, {session}: every message became a turn or an error"
        );
        let calls = "SELECT count(*) FROM events WHERE session_key = ?1 AND type = 'agent.tool_use'
                     AND json_extract(body, '$.name') = 'DeliverArtifacts'";
        let calls: i64 = connection.query_row(calls, [known.key], |row| row.get(0)).unwrap();
        let effects = "SELECT count(*) FROM files WHERE session_key = ?1";
        let effects: i64 = connection.query_row(effects, [known.key], |row| row.get(0)).unwrap();
        assert!(effects <= calls, "seed {seed}, {session}: {effects} effects of {calls} calls");
    }

    /// What holds when everything works again and all turns are over.
    pub fn check_end(&self) {
        self.check_now();
        self.none("inbox", "an input was not taken");
        self.none("pending WHERE closed_at IS NULL", "an action is open although its turn is over");
        self.none("heads WHERE status NOT IN ('idle', 'terminated')", "a session still works");
        println!(
            "  {} records, {} effects, fences up to {}",
            self.count("SELECT count(*) FROM noted_records"),
            self.count("SELECT count(*) FROM noted_effects"),
            self.count("SELECT max(fence) FROM heads")
        );
    }
}

//! Migrations: numbered SQL files, embedded, applied in order. A checksum of each is kept, so that a database that was made by
//! another file of the same number is noticed.

use sha2::{Digest, Sha256};

/// How far a database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MigrationState {
    /// The schema that it has; 0 when it is not there.
    pub found: u32,
    /// The schema that this program knows.
    pub known: u32,
}

/// One step of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// Its number, from 1, without gaps.
    pub number: u32,
    /// Its name, for people.
    pub name: &'static str,
    /// What it does.
    pub sql: &'static str,
}

impl Migration {
    /// Identifies what it does.
    #[must_use]
    pub fn checksum(&self) -> Vec<u8> {
        Sha256::digest(self.sql).to_vec()
    }
}

/// The schema of SQLite.
pub const SQLITE: &[Migration] = &[
    Migration { number: 1, name: "first", sql: include_str!("sqlite/0001_first.sql") },
    Migration { number: 2, name: "files", sql: include_str!("sqlite/0002_files.sql") },
    Migration { number: 3, name: "vaults", sql: include_str!("sqlite/0003_vaults.sql") },
    Migration { number: 4, name: "skills", sql: include_str!("sqlite/0004_skills.sql") },
    Migration { number: 5, name: "memory", sql: include_str!("sqlite/0005_memory.sql") },
    Migration { number: 6, name: "threads", sql: include_str!("sqlite/0006_threads.sql") },
    Migration { number: 7, name: "webhooks", sql: include_str!("sqlite/0007_webhooks.sql") },
    Migration { number: 8, name: "deployments", sql: include_str!("sqlite/0008_deployments.sql") },
    Migration { number: 9, name: "outcomes", sql: include_str!("sqlite/0009_outcomes.sql") },
    Migration { number: 10, name: "work", sql: include_str!("sqlite/0010_work.sql") },
];

/// The schema of PostgreSQL. `meta` and `migrations` are made before the first one.
pub const POSTGRES: &[Migration] = &[
    Migration { number: 1, name: "first", sql: include_str!("postgres/0001_first.sql") },
    Migration { number: 2, name: "work", sql: include_str!("postgres/0002_work.sql") },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_gaps() {
        for migrations in [SQLITE, POSTGRES] {
            for (index, migration) in migrations.iter().enumerate() {
                assert_eq!(migration.number as usize, index + 1, "{}", migration.name);
            }
        }
    }
}

//! The outbox's tables.

use database::Migration;

/// Every migration of the outbox; `source` names this outbox in the `outbox-source` header, and is stored in the
/// database. It must match `[a-z][a-z0-9-]{0,62}`, which the database checks.
#[must_use]
pub fn migrations(source: &str) -> Vec<Migration> {
    let create = include_str!("../migrations/0001_create_outbox.up.sql");
    let name = source.replace('\'', "''");
    vec![
        Migration {
            name: "outbox_0001_create_outbox",
            up: format!("{create}\nselect outbox_set_source('{name}');"),
            down: include_str!("../migrations/0001_create_outbox.down.sql").to_owned(),
        },
        Migration::new(
            "outbox_0002_block_aggregates",
            include_str!("../migrations/0002_block_aggregates.up.sql"),
            include_str!("../migrations/0002_block_aggregates.down.sql"),
        ),
        Migration::new(
            "outbox_0003_count_pruned",
            include_str!("../migrations/0003_count_pruned.up.sql"),
            include_str!("../migrations/0003_count_pruned.down.sql"),
        ),
        Migration::new(
            "outbox_0004_allow_larger_payloads",
            include_str!("../migrations/0004_allow_larger_payloads.up.sql"),
            include_str!("../migrations/0004_allow_larger_payloads.down.sql"),
        ),
        Migration::new(
            "outbox_0005_first_partitions",
            include_str!("../migrations/0005_first_partitions.up.sql"),
            include_str!("../migrations/0005_first_partitions.down.sql"),
        ),
        Migration::new(
            "outbox_0006_room_for_the_mark",
            include_str!("../migrations/0006_room_for_the_mark.up.sql"),
            include_str!("../migrations/0006_room_for_the_mark.down.sql"),
        ),
        Migration::new(
            "outbox_0007_lanes",
            include_str!("../migrations/0007_lanes.up.sql"),
            include_str!("../migrations/0007_lanes.down.sql"),
        ),
    ]
}

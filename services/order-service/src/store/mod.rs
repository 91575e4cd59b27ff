//! The service's tables: entities, and the queries over them.

pub(crate) mod menu;
pub(crate) mod order_lines;
pub(crate) mod orders;
pub(crate) mod sagas;

use database::Migration;

/// Every migration of this service's database.
#[must_use]
pub fn migrations() -> Vec<Migration> {
    let mut all = outbox::migrations("order-service");
    all.extend(inbox::migrations());
    all.push(Migration::new(
        "order_service_0001_create_orders",
        include_str!("../../migrations/0001_create_orders.up.sql"),
        include_str!("../../migrations/0001_create_orders.down.sql"),
    ));
    all.push(Migration::new(
        "order_service_0002_join_answers",
        include_str!("../../migrations/0002_join_answers.up.sql"),
        include_str!("../../migrations/0002_join_answers.down.sql"),
    ));
    all.push(Migration::new(
        "order_service_0003_oldest_confirmed",
        include_str!("../../migrations/0003_oldest_confirmed.up.sql"),
        include_str!("../../migrations/0003_oldest_confirmed.down.sql"),
    ));
    all
}

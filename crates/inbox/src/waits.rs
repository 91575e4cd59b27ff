//! Aggregates that wait behind a dead letter: what of a batch may be applied now.
//!
//! The order within an aggregate is that of the places where its records first stood, which a redriven record brings
//! along. So one rule does for new records, for letters that are put back, and for copies of either: a record waits
//! while an earlier one of its aggregate is a dead letter.

use std::collections::BTreeMap;

use events::Place;
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, Statement, Value};

use crate::{Arrival, Error};

/// What a record waits behind: a dead letter of its aggregate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Where the dead letter's record first stood.
    pub place: Place,
    /// Its outbox id, if it had one.
    pub outbox_id: Option<i64>,
}

/// Topic and aggregate.
type Whose = (String, String);
/// Partition and offset.
type Spot = (i32, i64);

/// Says of each of `batch` what it waits behind, if anything. Notes those that wait, and forgets those that do not
/// and were noted before: they are applied in this transaction.
pub(crate) async fn hold_back(
    tx: &DatabaseTransaction,
    consumer: &str,
    batch: &[Arrival<'_>],
) -> Result<Vec<Option<Head>>, DbErr> {
    let mut noted = noted(tx, consumer, batch).await?;
    if noted.is_empty() {
        return Ok(vec![None; batch.len()]);
    }
    let (mut begun, mut ended) = (Rows::default(), Rows::default());
    let mut heads = Vec::with_capacity(batch.len());
    for one in batch {
        heads.push(None);
        let Some(place) = one.first_place else { continue };
        let aggregate = &one.envelope.aggregate_id;
        let Some(letters) = noted.get_mut(&(place.topic.clone(), aggregate.clone())) else { continue };
        let spot = (place.partition, place.offset);
        let earlier = letters.range((place.partition, i64::MIN)..spot).next();
        let head = earlier.map(|((partition, offset), outbox_id)| Head {
            place: Place { topic: place.topic.clone(), partition: *partition, offset: *offset },
            outbox_id: *outbox_id,
        });
        if head.is_none() {
            if letters.remove(&spot).is_some() {
                ended.push(place, aggregate, None);
            }
        } else {
            let outbox_id = Some(one.envelope.outbox_id.0);
            letters.insert(spot, outbox_id);
            begun.push(place, aggregate, outbox_id);
        }
        if let Some(last) = heads.last_mut() {
            *last = head;
        }
    }
    begun.insert(tx, consumer).await?;
    ended.delete(tx, consumer).await?;
    Ok(heads)
}

/// Notes that a record of `aggregate_id`, which first stood at `first_place`, is a dead letter of `consumer`: what
/// comes after it waits, until it is applied or [given up](crate::decide). Noting it again changes nothing. Behind a
/// record of no aggregate nothing waits.
///
/// # Errors
/// The database's.
pub async fn note_dead_letter(
    db: &impl ConnectionTrait,
    consumer: &str,
    aggregate_id: Option<&str>,
    first_place: &Place,
    outbox_id: Option<i64>,
) -> Result<(), Error> {
    let Some(aggregate_id) = aggregate_id else { return Ok(()) };
    let mut rows = Rows::default();
    rows.push(first_place, aggregate_id, outbox_id);
    rows.insert(db, consumer).await.map_err(Error::Waits)
}

/// The dead letters that the aggregates of `batch` have.
async fn noted(
    tx: &DatabaseTransaction,
    consumer: &str,
    batch: &[Arrival<'_>],
) -> Result<BTreeMap<Whose, BTreeMap<Spot, Option<i64>>>, DbErr> {
    let mut noted: BTreeMap<Whose, BTreeMap<Spot, Option<i64>>> = BTreeMap::new();
    let asked = batch.iter().filter_map(|one| Some((one.first_place?, &one.envelope.aggregate_id)));
    let (topics, aggregates): (Vec<String>, Vec<String>) =
        asked.map(|(place, aggregate)| (place.topic.clone(), aggregate.clone())).unzip();
    if topics.is_empty() {
        return Ok(noted);
    }
    let values: [Value; 3] = [consumer.into(), topics.into(), aggregates.into()];
    let sql = include_str!("../sql/waits.sql");
    for row in tx.query_all_raw(Statement::from_sql_and_values(DbBackend::Postgres, sql, values)).await? {
        noted
            .entry((row.try_get_by_index(0)?, row.try_get_by_index(1)?))
            .or_default()
            .insert((row.try_get_by_index(2)?, row.try_get_by_index(3)?), row.try_get_by_index(4)?);
    }
    Ok(noted)
}

/// Rows of `dead_letter_waits`, column by column.
#[derive(Default)]
struct Rows {
    topics: Vec<String>,
    aggregates: Vec<String>,
    partitions: Vec<i32>,
    offsets: Vec<i64>,
    /// 0: it has none; ids begin with 1.
    outbox_ids: Vec<i64>,
}

impl Rows {
    fn push(&mut self, place: &Place, aggregate: &str, outbox_id: Option<i64>) {
        self.topics.push(place.topic.clone());
        self.aggregates.push(aggregate.to_owned());
        self.partitions.push(place.partition);
        self.offsets.push(place.offset);
        self.outbox_ids.push(outbox_id.unwrap_or_default());
    }

    async fn insert(self, db: &impl ConnectionTrait, consumer: &str) -> Result<(), DbErr> {
        let outbox_ids = self.outbox_ids.clone();
        self.run(db, consumer, include_str!("../sql/wait.sql"), Some(outbox_ids.into())).await
    }

    async fn delete(self, db: &impl ConnectionTrait, consumer: &str) -> Result<(), DbErr> {
        self.run(db, consumer, include_str!("../sql/end_waits.sql"), None).await
    }

    async fn run(
        self,
        db: &impl ConnectionTrait,
        consumer: &str,
        sql: &'static str,
        more: Option<Value>,
    ) -> Result<(), DbErr> {
        if self.topics.is_empty() {
            return Ok(());
        }
        let values: [Value; 5] = [
            consumer.into(),
            self.topics.into(),
            self.aggregates.into(),
            self.partitions.into(),
            self.offsets.into(),
        ];
        let values = values.into_iter().chain(more);
        db.execute_raw(Statement::from_sql_and_values(DbBackend::Postgres, sql, values)).await.map(drop)
    }
}

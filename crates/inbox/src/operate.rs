//! What a person decides about dead letters: each decision is written down with who and why.

use std::collections::BTreeSet;

use database::Decider;
use events::Place;
use tokio_postgres::Client;

use crate::Error;

/// What was done about a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Its record was put back to the topic that it came from; the consumer decides again.
    Redrive,
    /// It was given up for good; its aggregate waits for it no longer.
    Discard,
}

impl Action {
    /// As it is written down.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Redrive => "redrive",
            Self::Discard => "discard",
        }
    }
}

/// A dead letter, by its places.
#[derive(Debug, Clone, Copy)]
pub struct LetterAt<'a> {
    /// Where the letter stands.
    pub place: &'a Place,
    /// Where the record stood that was given up.
    pub origin: &'a Place,
    /// Where that record first stood.
    pub first_place: &'a Place,
}

/// Those dead letters in `topic`, a dead letter topic, about which was decided: where each stands, and where its record
/// stood.
///
/// # Errors
/// The database's.
pub async fn decided(client: &Client, topic: &str) -> Result<BTreeSet<(Place, Place)>, Error> {
    let sql = "select partition, record_offset, origin from dead_letter_decisions where topic = $1";
    let mut found = BTreeSet::new();
    for row in client.query(sql, &[&topic]).await? {
        let origin: &str = row.try_get(2)?;
        // Only places are written here; what is none is no letter's.
        let Ok(origin) = origin.parse() else { continue };
        let place = Place { topic: topic.to_owned(), partition: row.try_get(0)?, offset: row.try_get(1)? };
        found.insert((place, origin));
    }
    Ok(found)
}

/// Writes down that `action` was done to a dead letter of `consumer`. Write a redrive down after the broker has the
/// record: lost in between, it is done again, and the inbox knows the copy. A discarded letter's aggregate no longer
/// waits for it.
///
/// # Errors
/// The database's; nothing has changed then.
pub async fn decide(
    client: &mut Client,
    consumer: &str,
    action: Action,
    letter: LetterAt<'_>,
    decider: Decider<'_>,
) -> Result<(), Error> {
    let tx = client.transaction().await?;
    if action == Action::Discard {
        let first = letter.first_place;
        let sql = "delete from dead_letter_waits
                    where consumer = $1 and topic = $2 and partition = $3 and record_offset = $4";
        tx.execute(sql, &[&consumer, &first.topic, &first.partition, &first.offset]).await?;
    }
    let sql = "insert into dead_letter_decisions
                   (action, topic, partition, record_offset, origin, by_whom, why)
               values ($1, $2, $3, $4, $5, $6, $7)";
    let place = letter.place;
    let origin = letter.origin.to_string();
    tx.execute(
        sql,
        &[
            &action.as_str(),
            &place.topic,
            &place.partition,
            &place.offset,
            &origin,
            &decider.who,
            &decider.why,
        ],
    )
    .await?;
    Ok(tx.commit().await?)
}

/// How many dead letters each aggregate of `topic`, an event topic, waits behind at `consumer`, those that wait
/// themselves among them.
///
/// # Errors
/// The database's.
pub async fn waiting(client: &Client, consumer: &str, topic: &str) -> Result<Vec<(String, i64)>, Error> {
    let sql = "select aggregate_id, count(*) from dead_letter_waits
                where consumer = $1 and topic = $2
                group by aggregate_id order by aggregate_id";
    let rows = client.query(sql, &[&consumer, &topic]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

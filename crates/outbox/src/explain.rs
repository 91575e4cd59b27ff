//! Why a row is where it is, and what to do about it.

use tokio_postgres::Client;

use crate::Error;

/// What there is to say about a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The row.
    pub outbox_id: i64,
    /// Whose event.
    pub aggregate_id: String,
    /// Where it goes.
    pub topic: String,
    /// Its shard; a publisher locks shards, never rows.
    pub shard: i16,
    /// `pending`, `retrying`, `published`, `parked` or `discarded`.
    pub state: &'static str,
    /// For how long it has been there.
    pub age_ms: i64,
    /// A publisher holds its shard right now.
    pub claimed: bool,
    /// The outbox is paused: by whom, and why.
    pub paused: Option<String>,
    /// The earlier row that it waits for, if there is one.
    pub waits_for: Option<i64>,
    /// Rows of its shard that go first.
    pub before: i64,
    /// Why it could not be sent.
    pub last_error: Option<String>,
    /// When it, or the row it waits for, is tried again.
    pub next_try_in_ms: Option<i64>,
}

const READ: &str = "
select o.aggregate_id, o.topic, o.shard, o.published_at is not null, o.parked_at is not null,
       o.discarded_at is not null, o.attempts > 0 or o.held,
       (extract(epoch from clock_timestamp() - coalesce(o.published_at, o.discarded_at, o.parked_at, o.created_at))
           * 1000)::bigint,
       o.last_error, c.paused_by || ': ' || coalesce(c.paused_why, ''), b.outbox_id, b.reason,
       (extract(epoch from b.retry_at - clock_timestamp()) * 1000)::bigint,
       (select count(*) from (
               select from outbox w
                where w.shard between o.shard and o.shard and w.id < o.id
                  and w.published_at is null and w.parked_at is null and w.discarded_at is null and not w.held
                limit 100000) first)
  from outbox o
 cross join outbox_control c
  left join outbox_blocked b on b.aggregate_id = o.aggregate_id
 where o.id = $1";

/// Explains row `outbox_id`; none if there is no such row (any more).
///
/// # Errors
/// The database's.
pub async fn explain(client: &mut Client, outbox_id: i64) -> Result<Option<Explanation>, Error> {
    let Some(row) = client.query_opt(READ, &[&outbox_id]).await? else { return Ok(None) };
    let shard: i16 = row.try_get(2)?;
    let [published, parked, discarded, tried] = [3, 4, 5, 6].map(|column| row.try_get::<_, bool>(column));
    let state = match (published?, parked?, discarded?, tried?) {
        (true, _, _, _) => "published",
        (_, true, _, _) => "parked",
        (_, _, true, _) => "discarded",
        (false, false, false, true) => "retrying",
        (false, false, false, false) => "pending",
    };
    let open = matches!(state, "pending" | "retrying");
    let head: Option<i64> = row.try_get(10)?;
    let (own_error, block_error): (Option<String>, Option<String>) = (row.try_get(8)?, row.try_get(11)?);
    // Skipping what is locked, and letting go at once: nobody waits for this look.
    let tx = client.transaction().await?;
    let free = "select from outbox_shard where shard = $1 for update skip locked";
    let claimed = tx.query_opt(free, &[&shard]).await?.is_none();
    tx.rollback().await?;
    Ok(Some(Explanation {
        outbox_id,
        aggregate_id: row.try_get(0)?,
        topic: row.try_get(1)?,
        shard,
        state,
        age_ms: row.try_get(7)?,
        claimed,
        paused: row.try_get(9)?,
        waits_for: head.filter(|head| open && *head != outbox_id),
        before: if open { row.try_get(13)? } else { 0 },
        last_error: own_error.or(block_error),
        next_try_in_ms: row.try_get(12)?,
    }))
}

impl Explanation {
    /// One thing to do.
    #[must_use]
    pub fn advice(&self) -> String {
        let id = self.outbox_id;
        match (self.state, self.waits_for, &self.paused) {
            ("published", _, _) => "nothing: the broker has it".to_owned(),
            ("discarded", _, _) => {
                "nothing: somebody gave it up; outbox_decisions says who and why".to_owned()
            }
            ("parked", _, _) => {
                format!("mend what ails it, then `brew outbox redrive {id}`; or `brew outbox discard {id}`")
            }
            (_, _, Some(_)) => "`brew outbox resume`".to_owned(),
            (_, Some(head), _) => format!("see `brew outbox explain {head}`, which it waits for"),
            ("retrying", _, _) => "make the topic, or wait for the next try".to_owned(),
            _ if self.claimed => "wait: a publisher is at its shard".to_owned(),
            _ => "see whether a publisher runs and is ready (/readyz)".to_owned(),
        }
    }
}

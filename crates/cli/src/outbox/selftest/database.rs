//! The outbox itself, as the role that writes to it sees it. Everything is rolled back.

use anyhow::Context;
use tokio_postgres::{Client, Error, error::SqlState};

use crate::lab;

use super::Check;

/// No relay sends it: it is never committed.
const INSERT: &str =
    "insert into outbox (aggregate_id, topic, payload) values ('selftest', 'selftest', '{}')";

/// What the table must refuse, by the column that is wrong.
const REFUSED: [(&str, &str); 4] = [
    ("aggregate_id", "insert into outbox (aggregate_id, topic, payload) values ('', 'selftest', '{}')"),
    ("topic", "insert into outbox (aggregate_id, topic, payload) values ('selftest', 'not a topic', '{}')"),
    (
        "payload",
        "insert into outbox (aggregate_id, topic, payload)
         values ('selftest', 'selftest', to_jsonb(repeat('x', 1000000)))",
    ),
    (
        "headers",
        "insert into outbox (aggregate_id, topic, payload, headers)
         values ('selftest', 'selftest', '{}', '[1]')",
    ),
];

pub(super) async fn check(url: &str) -> anyhow::Result<Vec<Check>> {
    let (one, two) = (open(url).await?, open(url).await?);
    Ok(vec![
        Check::new("three columns are enough", three_columns(&one).await),
        Check::new("the outbox has a name", name(&one).await),
        Check::new("ids are drawn one by one", sequence(&one).await),
        Check::new("what could not be sent is refused", refusals(&one).await),
        Check::new("outbox_append() keeps an aggregate's order", append_waits(&one, &two).await),
    ])
}

pub(super) async fn open(url: &str) -> anyhow::Result<Client> {
    lab::connect(url).await.context("connect to the outbox (--url)")
}

/// What a statement came to, undone.
async fn rolled_back(client: &Client, sql: &str) -> Result<(), Error> {
    client.batch_execute("begin").await?;
    let end = client.batch_execute(sql).await;
    client.batch_execute("rollback").await?;
    end
}

fn say(error: &Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |database| database.message().to_owned())
}

async fn three_columns(client: &Client) -> Result<String, String> {
    match rolled_back(client, INSERT).await {
        Ok(()) => Ok("an INSERT with aggregate_id, topic and payload works for this role".to_owned()),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
            Err("there is no table outbox here: `outbox-publisher migrate` makes it".to_owned())
        }
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            let grant = "grant insert on outbox, and usage on sequence outbox_id_seq, to the writer's role";
            Err(format!("{}; {grant}", say(&error)))
        }
        Err(error) => Err(say(&error)),
    }
}

async fn name(client: &Client) -> Result<String, String> {
    let default = "select coalesce(pg_get_expr(adbin, adrelid), '')
                     from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
                    where attrelid = to_regclass('outbox') and attname = 'source'";
    let row = client.query_opt(default, &[]).await.map_err(|error| say(&error))?;
    let text: String = row.map(|row| row.get(0)).unwrap_or_default();
    match text.split('\'').nth(1) {
        None | Some("" | "unnamed") => {
            Err("its rows cannot be told from another outbox's: select outbox_set_source('my-service')"
                .to_owned())
        }
        Some(name) => Ok(format!("`{name}`")),
    }
}

async fn sequence(client: &Client) -> Result<String, String> {
    let cache = "select seqcache from pg_sequence where seqrelid = to_regclass('outbox_id_seq')";
    let row = client.query_opt(cache, &[]).await.map_err(|error| say(&error))?;
    match row.map(|row| row.get::<_, i64>(0)) {
        Some(1) => Ok("the sequence caches nothing".to_owned()),
        Some(cached) => Err(format!(
            "each session draws {cached} ids ahead, so they are in no order: alter sequence outbox_id_seq cache 1"
        )),
        None => Err("there is no sequence outbox_id_seq".to_owned()),
    }
}

async fn refusals(client: &Client) -> Result<String, String> {
    let mut columns = Vec::new();
    for (column, sql) in REFUSED {
        match rolled_back(client, sql).await {
            Err(error) if error.code() == Some(&SqlState::CHECK_VIOLATION) => columns.push(column),
            Err(error) => return Err(format!("{column}: {}", say(&error))),
            Ok(()) => {
                return Err(format!("a bad {column} is taken: the table lacks a CHECK of the migrations"));
            }
        }
    }
    Ok(columns.join(", "))
}

/// While one transaction has appended to an aggregate, another waits for it, and does not wait with another aggregate.
async fn append_waits(one: &Client, two: &Client) -> Result<String, String> {
    let append = |aggregate: &str| {
        format!("set local lock_timeout = '300ms'; select outbox_append('{aggregate}', 'selftest', '{{}}')")
    };
    let watched = async {
        one.batch_execute("begin").await?;
        one.batch_execute(&append("selftest-a")).await?;
        let same = rolled_back(two, &append("selftest-a")).await;
        let other = rolled_back(two, &append("selftest-b")).await;
        one.batch_execute("rollback").await?;
        Ok::<_, Error>((same, other))
    };
    match watched.await.map_err(|error| say(&error))? {
        (Err(error), Ok(())) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            Ok("a later writer waits for an earlier one, others do not".to_owned())
        }
        (Ok(()), _) => {
            Err("a later writer does not wait: outbox_append is not that of the migrations".to_owned())
        }
        (Err(error), Ok(())) | (_, Err(error)) => Err(say(&error)),
    }
}

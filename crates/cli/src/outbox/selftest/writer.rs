//! A writer in whatever language, run for real.
//!
//! That ids commit in their order per aggregate cannot be seen in the rows afterwards. So two writers of one aggregate
//! are made to meet: a deferred trigger holds the first in its commit, after its id is drawn, and then the second may
//! not get as far.

use std::{process::Output, time::Duration};

use anyhow::Context;
use events::header;
use tokio::{process::Command, task::JoinHandle, time::Instant};
use tokio_postgres::Client;
use uuid::Uuid;

use super::{Check, database::open};

/// For a writer to come as far as it comes.
const PATIENCE: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(20);

/// What the trigger waits for; any number that nobody else takes.
const GATE: i64 = 4_711_002;

const CLOSE: &str = "
    create or replace function outbox_selftest_gate() returns trigger language plpgsql as
        $$ begin
            if new.aggregate_id like 'selftest-%' then perform pg_advisory_xact_lock_shared(4711002); end if;
            return null;
        end $$;
    drop trigger if exists outbox_selftest_gate on outbox;
    create constraint trigger outbox_selftest_gate after insert on outbox
        deferrable initially deferred for each row execute function outbox_selftest_gate()";
const OPEN: &str = "
    drop trigger if exists outbox_selftest_gate on outbox;
    drop function if exists outbox_selftest_gate()";

pub(super) async fn check(url: &str, program: &str, arguments: &[String]) -> anyhow::Result<Vec<Check>> {
    let client = open(url).await?;
    let aggregate = format!("selftest-{}", Uuid::new_v4().simple());
    let run = || {
        let mut command = Command::new(program);
        command.args(arguments).arg(&aggregate).env("DATABASE_URL", url).kill_on_drop(true);
        command.stdin(std::process::Stdio::null());
        tokio::spawn(async move { command.output().await })
    };
    client
        .batch_execute(CLOSE)
        .await
        .context("make a trigger on outbox; the selftest wants a role that may do that")?;
    let checked = async {
        Ok::<_, anyhow::Error>(vec![
            Check::new(
                "the writer appends one event and commits",
                one_event(&client, &aggregate, run()).await?,
            ),
            Check::new("its event can be read", readable(&client, &aggregate).await?),
            Check::new("its ids commit in their order", in_order(&client, &aggregate, run).await?),
        ])
    }
    .await;
    client.batch_execute(OPEN).await?;
    client.execute("delete from outbox where aggregate_id = $1", &[&aggregate]).await?;
    checked
}

type Running = JoinHandle<std::io::Result<Output>>;

/// Why a writer did not end well, if it did not.
async fn ended(writer: Running) -> anyhow::Result<Result<(), String>> {
    let Ok(end) = tokio::time::timeout(PATIENCE, writer).await else {
        return Ok(Err(format!("it did not end within {PATIENCE:?}")));
    };
    let output = end?.context("run the writer")?;
    let said = String::from_utf8_lossy(&output.stderr);
    Ok(if output.status.success() {
        Ok(())
    } else {
        Err(format!("it ended with {}: {}", output.status, said.trim()))
    })
}

async fn count(client: &Client, aggregate: &str) -> anyhow::Result<i64> {
    let count = "select count(*) from outbox where aggregate_id = $1";
    Ok(client.query_one(count, &[&aggregate]).await?.get(0))
}

async fn one_event(
    client: &Client,
    aggregate: &str,
    writer: Running,
) -> anyhow::Result<Result<String, String>> {
    if let Err(why) = ended(writer).await? {
        return Ok(Err(why));
    }
    Ok(match count(client, aggregate).await? {
        1 => Ok("one row, committed".to_owned()),
        0 => Err("there is no row: does it commit, with the aggregate id of its last argument?".to_owned()),
        rows => Err(format!("there are {rows} rows")),
    })
}

/// Payload and headers as consumers want them.
async fn readable(client: &Client, aggregate: &str) -> anyhow::Result<Result<String, String>> {
    let row = "select jsonb_typeof(payload), coalesce(event_type, payload ->> 'type'),
                      headers ->> 'traceparent', topic
                 from outbox where aggregate_id = $1 limit 1";
    let Some(row) = client.query_opt(row, &[&aggregate]).await? else {
        return Ok(Err("there is no row".to_owned()));
    };
    let (kind, event_type): (&str, Option<&str>) = (row.get(0), row.get(1));
    let (traceparent, topic): (Option<&str>, &str) = (row.get(2), row.get(3));
    if kind != "object" {
        return Ok(Err(format!("the payload is a JSON {kind}; make it an object, so that it can grow")));
    }
    let Some(event_type) = event_type else {
        return Ok(Err("no type: set event_type, or a field `type` in the payload".to_owned()));
    };
    let trace = match traceparent {
        Some(text) if text.len() == 55 && text.starts_with("00-") => "its trace goes on",
        Some(text) => return Ok(Err(format!("headers.{} is no W3C trace: {text}", header::TRACEPARENT))),
        None => "no traceparent: its trace begins at the relay",
    };
    Ok(Ok(format!("`{event_type}` for {topic}; {trace}")))
}

/// How many of this database's sessions wait: for the gate, and for any lock.
async fn waiting(client: &Client) -> anyhow::Result<(i64, i64)> {
    let waiting = "select count(*) filter (where locktype = 'advisory' and objid::bigint = $1
                                             and mode = 'ShareLock'), count(*)
                     from pg_locks
                    where not granted
                      and pid in (select pid from pg_stat_activity where datname = current_database())";
    let row = client.query_one(waiting, &[&GATE]).await?;
    Ok((row.get(0), row.get(1)))
}

/// Waits until `there` holds of [`waiting`], or the writer has ended; whether it held.
async fn until(
    client: &Client,
    writer: &Running,
    there: impl Fn((i64, i64)) -> bool,
) -> anyhow::Result<bool> {
    let deadline = Instant::now() + PATIENCE;
    while !writer.is_finished() && Instant::now() < deadline {
        if there(waiting(client).await?) {
            return Ok(true);
        }
        tokio::time::sleep(STEP).await;
    }
    Ok(false)
}

async fn in_order(
    client: &Client,
    aggregate: &str,
    run: impl Fn() -> Running,
) -> anyhow::Result<Result<String, String>> {
    client.execute("select pg_advisory_lock($1)", &[&GATE]).await?;
    let first = run();
    if !until(client, &first, |(gate, _)| gate == 1).await? {
        client.execute("select pg_advisory_unlock($1)", &[&GATE]).await?;
        return Ok(Err("it did not come to its commit a second time".to_owned()));
    }
    let second = run();
    // The second waits too: for the first, or, if it got as far as that, at the gate.
    let met = until(client, &second, |(_, all)| all == 2).await?;
    let (gate, _) = waiting(client).await?;
    client.execute("select pg_advisory_unlock($1)", &[&GATE]).await?;
    for writer in [first, second] {
        if let Err(why) = ended(writer).await? {
            return Ok(Err(why));
        }
    }
    Ok(match (met, gate) {
        _ if count(client, aggregate).await? != 3 => Err("after three runs there are not three rows".to_owned()),
        (true, 1) => Ok("a second writer of the aggregate waits for the first".to_owned()),
        (true, _) => Err("a second writer of the aggregate draws its id while the first is not committed, so they \
                          may be sent in the wrong order: append with outbox_append(), or lock the aggregate's row \
                          before the INSERT"
            .to_owned()),
        (false, _) => Err("a second writer of the aggregate did not come to the outbox".to_owned()),
    })
}

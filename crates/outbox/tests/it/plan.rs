//! The claim's and the mark's plans, held by the pages that they touch, in the states in which the planner is
//! tempted: everything pending, and much published; with stale statistics and with fresh ones.

use outbox::{Session, migrations};
use tokio_postgres::Client;

use crate::schema::options;

const FETCH: &str = include_str!("../../sql/fetch_pending.sql");
const PENDING: &str = include_str!("../../sql/pending_shards.sql");
const MARK: &str = include_str!("../../sql/mark_published.sql");
const SETTINGS: &str = include_str!("../../sql/plan_settings.sql");

/// A claim of 16 shards and 2,000 rows: the rows' own pages, and an index descent for each shard. A walk of the
/// primary key past the published rows or other shards' rows would be above 10,000.
const FETCH_PAGES: i64 = 4_000;
/// 64 descents, none deeper than three pages, into each of a new table's four partitions.
const PENDING_PAGES: i64 = 64 * 3 * 4;
const MARK_PAGES: i64 = 2_000;

async fn pages(client: &Client, sql: &str) -> i64 {
    let explain = format!("explain (analyze, buffers, format json) {sql}");
    let plan: serde_json::Value = client.query_one(&explain, &[]).await.unwrap().get(0);
    let top = &plan[0]["Plan"];
    top["Shared Hit Blocks"].as_i64().unwrap() + top["Shared Read Blocks"].as_i64().unwrap()
}

async fn check(client: &Client, state: &str) {
    let prepare = format!("begin; {SETTINGS} prepare look (bigint[], bigint[]) as {PENDING}");
    client.batch_execute(&prepare).await.unwrap();
    let epochs = "select array_agg(epoch order by shard)::text from outbox_shard";
    let epochs: String = client.query_one(epochs, &[]).await.unwrap().get(0);
    let pending = pages(client, &format!("execute look ('{}', '{epochs}')", low(client).await)).await;
    client.batch_execute("deallocate look; rollback").await.unwrap();
    assert!(pending <= PENDING_PAGES, "the look for pending shards touches {pending} pages when {state}");
    let fetch = fetch_pages(client).await;
    assert!(fetch <= FETCH_PAGES, "fetch touches {fetch} pages when {state}");
}

/// The bounds of all shards, as text: what is pending begins behind them.
async fn low(client: &Client) -> String {
    let low = "select array_agg(coalesce(low, 0) order by shard)::text
                 from outbox_shard
                 left join (select shard, min(id) - 1 as low from outbox
                             where published_at is null and not held group by shard) pending using (shard)";
    client.query_one(low, &[]).await.unwrap().get(0)
}

async fn fetch_pages(client: &Client) -> i64 {
    let low = low(client).await;
    fetch_pages_above(client, &low).await
}

async fn fetch_pages_above(client: &Client, low: &str) -> i64 {
    client.batch_execute(&format!("begin; {SETTINGS}")).await.unwrap();
    let shards = "'{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}'";
    let prepare = format!("prepare fetch_rows (smallint[], bigint, bigint, bigint[]) as {FETCH}");
    client.batch_execute(&prepare).await.unwrap();
    let fetch =
        pages(client, &format!("execute fetch_rows ({shards}, 125, 2000, ('{low}'::bigint[])[1:16])")).await;
    client.batch_execute("deallocate fetch_rows; rollback").await.unwrap();
    fetch
}

async fn fill(client: &Client, rows: u32) {
    let insert = format!(
        "insert into outbox (aggregate_id, topic, payload)
         select 'a-' || n % 10000, 't', jsonb_build_object('text', repeat('x', 250))
           from generate_series(1, {rows}) n"
    );
    client.batch_execute(&insert).await.unwrap();
}

#[tokio::test]
async fn plans_hold_with_all_pending_and_after_200_000_published_rows() {
    let database = testkit::database(migrations("shop")).await;
    let client = database.client().await;
    let off = "do $$ declare leaf regclass; begin
                   for leaf in select relid from pg_partition_tree('outbox') where isleaf loop
                       execute format('alter table %s set (autovacuum_enabled = off)', leaf);
                   end loop; end $$";
    client.batch_execute(off).await.unwrap();

    fill(&client, 200_000).await;
    check(&client, "200,000 are pending, never analyzed").await;
    client.batch_execute("analyze outbox").await.unwrap();
    check(&client, "200,000 are pending, just analyzed").await;

    client.batch_execute("update outbox set published_at = clock_timestamp()").await.unwrap();
    client.batch_execute("vacuum outbox").await.unwrap();
    fill(&client, 20_000).await;
    check(&client, "200,000 are published, statistics of before").await;
    client.batch_execute("analyze outbox").await.unwrap();
    check(&client, "200,000 are published, just analyzed").await;

    mark_stays_in_its_rows(&client).await;

    let wait = "insert into outbox (aggregate_id, topic, payload, held)
                select 'blocked', 't', '{}', true from generate_series(1, 20000)";
    let before = fetch_pages(&client).await;
    client.batch_execute(wait).await.unwrap();
    let behind = fetch_pages(&client).await;
    // The one partition's size is a page or two of the plan's own.
    assert!(behind <= before + 20, "20,000 rows that wait cost a claim {before} to {behind} pages");
    check(&client, "20,000 wait").await;
}

/// Marking 100 rows touches some pages a row (heap, two indexes, the new version), whatever the table's size.
async fn mark_stays_in_its_rows(client: &Client) {
    client.batch_execute(&format!("begin; {SETTINGS}")).await.unwrap();
    let prepare = format!("prepare mark (bigint[], timestamptz, timestamptz) as {MARK}");
    client.batch_execute(&prepare).await.unwrap();
    let picked = "select array_agg(id)::text, min(created_at)::text, max(created_at)::text
                    from (select id, created_at from outbox where published_at is null order by id limit 100) o";
    let row = client.query_one(picked, &[]).await.unwrap();
    let (ids, first, last): (&str, &str, &str) = (row.get(0), row.get(1), row.get(2));
    let mark = format!("execute mark ('{ids}', '{first}', '{last}')");
    let pages = pages(client, &mark).await;
    client.batch_execute("rollback").await.unwrap();
    assert!(pages <= MARK_PAGES, "marking 100 rows touches {pages} pages");
}

/// Somebody holds a snapshot, so that nothing which was published since can be cleaned up. A claim that knows how far
/// it is does not read it again; one that does not, reads all of it.
#[tokio::test]
async fn what_is_published_under_a_held_snapshot_costs_a_claim_nothing() {
    let database = testkit::database(migrations("shop")).await;
    let client = database.client().await;
    fill(&client, 20_000).await;
    let holder = database.client().await;
    holder.batch_execute("begin isolation level repeatable read; select count(*) from outbox").await.unwrap();
    let at_start = fetch_pages(&client).await;
    client.batch_execute("update outbox set published_at = clock_timestamp()").await.unwrap();
    fill(&client, 20_000).await;
    client.batch_execute("vacuum outbox").await.unwrap();
    let bounded = fetch_pages(&client).await;
    let zeros = format!("{{{}}}", vec!["0"; 64].join(","));
    let unbounded = fetch_pages_above(&client, &zeros).await;
    assert!(unbounded > bounded * 2, "the snapshot changes nothing: {unbounded} and {bounded} pages");
    assert!(bounded <= at_start + at_start / 10, "{at_start} pages before, {bounded} after");
}

/// A publisher that started on an outbox which is known to be empty looks at what came since as cheaply as one that
/// starts now: a plan that was chosen for the empty table would read all of it for each shard.
#[tokio::test]
async fn a_session_that_began_with_an_empty_outbox_does_not_walk_a_full_one() {
    const LOOKS: i64 = 10;
    let database = testkit::database(migrations("shop")).await;
    database.client().await.batch_execute("analyze outbox").await.unwrap();
    let mut session = Session::connect(&options(&database.url)).await.unwrap();
    for _ in 0..LOOKS {
        assert!(session.pending_shards().await.unwrap().is_empty());
    }
    fill(&database.client().await, 20_000).await;
    for _ in 0..LOOKS {
        assert_eq!(session.pending_shards().await.unwrap().len(), 64);
    }
    drop(session);
    // What a session has read is counted at the latest when it is gone.
    let sessions = "select count(*) from pg_stat_activity
                     where datname = current_database() and application_name = 'brew-relay'";
    testkit::until("the session's end", async || (database.number(sessions).await == 0).then_some(())).await;
    let read = "select sum(read)::bigint
                  from (select seq_tup_read as read, relid from pg_stat_user_tables
                         union all
                        select idx_tup_read, relid from pg_stat_user_indexes) counted
                 where relid in (select relid from pg_partition_tree('outbox'))";
    let read = database.number(read).await;
    assert!(read <= LOOKS * 64 * 2, "{LOOKS} looks read {read} rows");
}

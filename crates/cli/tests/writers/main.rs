//! The writers of `docs/writers.md`, and some that are wrong, judged by `brew outbox selftest`: `make writers`. Needs
//! psql, a Python with psycopg (`PYTHON`), and Go.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::PathBuf;

use testkit::TestDatabase;
use tokio::process::Command;

async fn outbox() -> TestDatabase {
    testkit::database(outbox::migrations("ratings")).await
}

/// How the selftest ends, and what it prints.
async fn selftest(database: &TestDatabase, writer: &[&str]) -> (Option<i32>, String) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_brew"));
    command.args(["outbox", "selftest", "--json", "--url", &database.url]).current_dir(root);
    if !writer.is_empty() {
        command.arg("--").args(writer);
    }
    let output = command.output().await.unwrap();
    let noted = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap() + &noted)
}

async fn passes(writer: &[&str]) {
    let database = outbox().await;
    let (code, said) = selftest(&database, writer).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("a second writer of the aggregate waits for the first"), "{said}");
    let left =
        "select (select count(*) from outbox) + (select count(*) from pg_trigger where tgname ~ 'selftest')";
    assert_eq!(database.number(left).await, 0, "the selftest leaves something behind");
}

#[tokio::test]
async fn psql_keeps_the_contract() {
    passes(&["sh", "docs/writers/append.sh"]).await;
}

#[tokio::test]
async fn python_keeps_the_contract() {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    passes(&[&python, "docs/writers/append.py"]).await;
}

#[tokio::test]
async fn go_keeps_the_contract() {
    passes(&["go", "run", "-C", "docs/writers/go", "."]).await;
}

#[tokio::test]
async fn writers_that_break_the_contract_are_told_what_is_wrong() {
    let database = outbox().await;
    let insert = |values: &str| {
        format!("insert into outbox (aggregate_id, topic, payload, headers) values (:'a', 't', {values})")
    };
    let typed = r#"'{"type": "x"}', '{}'"#;
    let cases = [
        (insert(typed), "draws its id while the first is not committed"),
        (format!("begin; {}", insert(typed)), "does it commit"),
        (format!("{}; {}", insert(typed), insert(typed)), "there are 2 rows"),
        (insert("'{}', '{}'"), "no type"),
        (insert("'3', '{}'"), "make it an object"),
        (insert(r#"'{"type": "x"}', '{"traceparent": "mine"}'"#), "is no W3C trace"),
        ("select 1/0".to_owned(), "division by zero"),
    ];
    for (sql, expected) in cases {
        let script = format!(
            "printf '%s' \"$0\" | psql \"$DATABASE_URL\" -X -q -o /dev/null -v ON_ERROR_STOP=1 -v a=\"$1\""
        );
        let (code, said) = selftest(&database, &["sh", "-c", &script, &sql]).await;
        assert_eq!(code, Some(1), "{sql}: {said}");
        assert!(said.contains(expected), "{sql}: {said}");
    }
}

#[tokio::test]
async fn an_outbox_that_is_not_as_it_should_be_is_said() {
    let empty = testkit::database(Vec::new()).await;
    let (code, said) = selftest(&empty, &[]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("outbox-publisher migrate"), "{said}");

    let cases = [
        ("alter sequence outbox_id_seq cache 50", "draws 50 ids ahead"),
        ("alter table outbox alter column source set default 'unnamed'", "outbox_set_source"),
        ("alter table outbox drop constraint outbox_headers_object", "a bad headers is taken"),
        (
            "create or replace function outbox_append(aggregate_id text, topic text, payload jsonb,
                 event_type text default null, headers jsonb default '{}') returns bigint language sql as
                 $$ insert into outbox (aggregate_id, topic, payload) values ($1, $2, $3) returning id $$",
            "a later writer does not wait",
        ),
    ];
    for (change, expected) in cases {
        let database = outbox().await;
        database.client().await.batch_execute(change).await.unwrap();
        let (code, said) = selftest(&database, &["true"]).await;
        assert_eq!(code, Some(1), "{change}: {said}");
        assert!(said.contains(expected) && said.contains("the writer was not run"), "{change}: {said}");
    }
}

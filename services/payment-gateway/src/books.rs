//! The provider's books: what is held, what was done, and what was answered to which key, in one transaction a
//! call.

use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, Statement, TransactionTrait,
    Value,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::mischief;

/// What is asked of the provider.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    pub(crate) reference: String,
    pub(crate) amount_minor: i64,
    pub(crate) currency: String,
    #[serde(default)]
    pub(crate) token: String,
    /// Of an earlier authorization; for all but a new one.
    #[serde(default)]
    pub(crate) authorization_id: Option<Uuid>,
}

/// An answer: HTTP status and body.
pub(crate) type Answer = (u16, Json);

/// Why a call was not answered from the books.
pub(crate) enum Refusal {
    /// The key belongs to another body.
    OtherBody,
    /// The same key is being answered right now.
    InFlight,
    /// The database.
    Database(DbErr),
}

impl From<DbErr> for Refusal {
    fn from(error: DbErr) -> Self {
        match database::failure(&error) {
            database::Failure::Conflict => Self::InFlight,
            database::Failure::Unavailable | database::Failure::Data => Self::Database(error),
        }
    }
}

/// Counts one more attempt under `key`, whatever becomes of it.
pub(crate) async fn attempt(db: &DatabaseConnection, key: &str) -> Result<i64, DbErr> {
    let sql = "insert into attempts (idempotency_key, count) values ($1, 1)
               on conflict (idempotency_key) do update set count = attempts.count + 1 returning count";
    let row = db.query_one_raw(statement(sql, [key.into()])).await?;
    row.map_or(Ok(1), |row| row.try_get_by_index::<i32>(0).map(i64::from))
}

/// The token that an authorization was made with.
pub(crate) async fn token(db: &DatabaseConnection, id: Uuid) -> Result<Option<String>, DbErr> {
    let sql = "select token from authorizations where id = $1";
    let row = db.query_one_raw(statement(sql, [id.into()])).await?;
    row.map(|row| row.try_get_by_index(0)).transpose()
}

/// Does `operation` once per `key` and remembers the answer; the same key and body gets it again.
pub(crate) async fn perform(
    db: &DatabaseConnection,
    operation: &str,
    key: &str,
    ask: &Ask,
) -> Result<Answer, Refusal> {
    let bytes = serde_json::to_vec(&(operation, ask)).map_err(|error| DbErr::Json(error.to_string()))?;
    let fingerprint = Sha256::digest(bytes).to_vec();
    let tx = db.begin().await?;
    tx.execute_unprepared("set local lock_timeout = '2s'").await?;
    let claim = "insert into answers (idempotency_key, fingerprint, status, body) values ($1, $2, 0, 'null')
                 on conflict do nothing";
    let claimed = tx.execute_raw(statement(claim, [key.into(), fingerprint.clone().into()])).await?;
    if claimed.rows_affected() == 0 {
        return remembered(&tx, key, &fingerprint).await;
    }
    let (status, body) = act(&tx, operation, key, ask).await?;
    let store = "update answers set status = $2, body = $3 where idempotency_key = $1";
    let values: [Value; 3] = [key.into(), i32::from(status).into(), body.clone().into()];
    tx.execute_raw(statement(store, values)).await?;
    tx.commit().await?;
    Ok((status, body))
}

async fn remembered(tx: &DatabaseTransaction, key: &str, fingerprint: &[u8]) -> Result<Answer, Refusal> {
    let sql = "select fingerprint, status, body from answers where idempotency_key = $1";
    let row = tx.query_one_raw(statement(sql, [key.into()])).await?.ok_or(Refusal::InFlight)?;
    if row.try_get_by_index::<Vec<u8>>(0)? != fingerprint {
        return Err(Refusal::OtherBody);
    }
    let status: i32 = row.try_get_by_index(1)?;
    Ok((u16::try_from(status).unwrap_or(500), row.try_get_by_index(2)?))
}

async fn act(tx: &DatabaseTransaction, operation: &str, key: &str, ask: &Ask) -> Result<Answer, DbErr> {
    let known_currency =
        ask.currency.len() == 3 && ask.currency.bytes().all(|byte| byte.is_ascii_uppercase());
    if ask.amount_minor <= 0 || !known_currency || ask.reference.is_empty() {
        return Ok((400, json!({"error": "amount_minor, currency or reference makes no sense"})));
    }
    if operation == "authorize" {
        if let Some(reason) = mischief::declined(operation, &ask.token, ask.amount_minor) {
            return Ok((402, json!({"error": reason})));
        }
        let id = Uuid::new_v4();
        let sql = "insert into authorizations (id, reference, amount_minor, currency, token, status)
                   values ($1, $2, $3, $4, $5, 'authorized')";
        let values: [Value; 5] = [
            id.into(),
            ask.reference.clone().into(),
            ask.amount_minor.into(),
            ask.currency.clone().into(),
            ask.token.clone().into(),
        ];
        tx.execute_raw(statement(sql, values)).await?;
        book(tx, operation, key, id, ask).await?;
        return Ok((201, json!({"authorization_id": id, "status": "authorized"})));
    }
    let Some(id) = ask.authorization_id else {
        return Ok((400, json!({"error": "authorization_id is missing"})));
    };
    move_on(tx, operation, key, id, ask).await
}

/// From which status an operation leads, and to which.
fn edge(operation: &str) -> (&'static str, &'static str) {
    match operation {
        "capture" => ("authorized", "captured"),
        "void" => ("authorized", "voided"),
        _ => ("captured", "refunded"),
    }
}

async fn move_on(
    tx: &DatabaseTransaction,
    operation: &str,
    key: &str,
    id: Uuid,
    ask: &Ask,
) -> Result<Answer, DbErr> {
    let find = "select status, amount_minor, currency, token from authorizations where id = $1 for update";
    let Some(row) = tx.query_one_raw(statement(find, [id.into()])).await? else {
        return Ok((404, json!({"error": "no such authorization"})));
    };
    let (status, token): (String, String) = (row.try_get_by_index(0)?, row.try_get_by_index(3)?);
    let (amount, currency): (i64, String) = (row.try_get_by_index(1)?, row.try_get_by_index(2)?);
    if (amount, &currency) != (ask.amount_minor, &ask.currency) {
        return Ok((400, json!({"error": "another amount than was authorized"})));
    }
    let (from, to) = edge(operation);
    if status != from {
        return Ok((409, json!({"error": "wrong_state", "status": status})));
    }
    if let Some(reason) = mischief::declined(operation, &token, amount) {
        return Ok((402, json!({"error": reason})));
    }
    let go = "update authorizations set status = $2 where id = $1";
    tx.execute_raw(statement(go, [id.into(), to.into()])).await?;
    book(tx, operation, key, id, ask).await?;
    Ok((200, json!({"authorization_id": id, "status": to})))
}

async fn book(
    tx: &DatabaseTransaction,
    operation: &str,
    key: &str,
    id: Uuid,
    ask: &Ask,
) -> Result<(), DbErr> {
    let sql =
        "insert into ledger (operation, authorization_id, reference, amount_minor, currency, idempotency_key)
               values ($1, $2, $3, $4, $5, $6)";
    let values: [Value; 6] = [
        operation.into(),
        id.into(),
        ask.reference.clone().into(),
        ask.amount_minor.into(),
        ask.currency.clone().into(),
        key.into(),
    ];
    tx.execute_raw(statement(sql, values)).await.map(drop)
}

/// Every authorization under `reference`, oldest first.
pub(crate) async fn look_up(db: &DatabaseConnection, reference: &str) -> Result<Json, DbErr> {
    let sql = "select coalesce(json_agg(json_build_object('authorization_id', id, 'status', status,
                      'amount_minor', amount_minor, 'currency', currency) order by created_at), '[]')
                 from authorizations where reference = $1";
    let row = db.query_one_raw(statement(sql, [reference.into()])).await?;
    row.map_or(Ok(json!([])), |row| row.try_get_by_index(0))
}

fn statement(sql: &str, values: impl IntoIterator<Item = Value>) -> Statement {
    Statement::from_sql_and_values(DbBackend::Postgres, sql, values)
}

//! The session's statements.

use tokio_postgres::{
    Client, Error, Row, Statement,
    types::{ToSql, Type},
};

/// A statement and the types of its parameters.
pub(crate) struct Query {
    sql: &'static str,
    types: &'static [Type],
    /// None: it is sent as text each time, and planned anew.
    named: Option<Statement>,
}

/// Ids, and the span of their `created_at`.
const IDS: &[Type] = &[Type::INT8_ARRAY, Type::TIMESTAMPTZ, Type::TIMESTAMPTZ];

type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Query {
    async fn new(
        client: &Client,
        prepared: bool,
        sql: &'static str,
        types: &'static [Type],
    ) -> Result<Self, Error> {
        let named = if prepared { Some(client.prepare_typed(sql, types).await?) } else { None };
        Ok(Self { sql, types, named })
    }

    pub(crate) async fn rows(&self, client: &Client, parameters: Parameters<'_>) -> Result<Vec<Row>, Error> {
        match &self.named {
            Some(named) => client.query(named, parameters).await,
            None => client.query_typed(self.sql, &self.typed(parameters)).await,
        }
    }

    pub(crate) async fn row(&self, client: &Client, parameters: Parameters<'_>) -> Result<Row, Error> {
        match &self.named {
            Some(named) => client.query_one(named, parameters).await,
            None => client.query_typed_one(self.sql, &self.typed(parameters)).await,
        }
    }

    /// Returns how many rows it has changed.
    pub(crate) async fn execute(&self, client: &Client, parameters: Parameters<'_>) -> Result<u64, Error> {
        match &self.named {
            Some(named) => client.execute(named, parameters).await,
            None => client.execute_typed(self.sql, &self.typed(parameters)).await,
        }
    }

    fn typed<'a>(&self, parameters: Parameters<'a>) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
        parameters.iter().copied().zip(self.types.iter().cloned()).collect()
    }
}

pub(crate) struct Statements {
    pub(crate) pending_shards: Query,
    pub(crate) claim_shards: Query,
    pub(crate) fetch_pending: Query,
    pub(crate) mark_published: Query,
    pub(crate) blocked: Query,
    pub(crate) fetch_heads: Query,
    pub(crate) hold: Query,
    pub(crate) wait: Query,
    pub(crate) park: Query,
    pub(crate) unblock: Query,
    pub(crate) waits: Query,
    pub(crate) horizon: Query,
    pub(crate) advance_lane: Query,
}

impl Statements {
    /// All of them; known to the server by name if `prepared`.
    pub(crate) async fn new(client: &Client, prepared: bool) -> Result<Self, Error> {
        let query = async |sql, types| Query::new(client, prepared, sql, types).await;
        Ok(Self {
            pending_shards: query(
                include_str!("../sql/pending_shards.sql"),
                &[Type::INT8_ARRAY, Type::INT8_ARRAY],
            )
            .await?,
            claim_shards: query(
                include_str!("../sql/claim_shards.sql"),
                &[Type::INT2_ARRAY, Type::INT2, Type::INT8],
            )
            .await?,
            fetch_pending: query(
                include_str!("../sql/fetch_pending.sql"),
                &[Type::INT2_ARRAY, Type::INT8, Type::INT8, Type::INT8_ARRAY],
            )
            .await?,
            mark_published: query(include_str!("../sql/mark_published.sql"), IDS).await?,
            blocked: query(include_str!("../sql/blocked.sql"), &[Type::INT2_ARRAY]).await?,
            fetch_heads: query(include_str!("../sql/fetch_heads.sql"), &[Type::TEXT_ARRAY]).await?,
            hold: query(include_str!("../sql/hold.sql"), IDS).await?,
            wait: query(
                include_str!("../sql/wait.sql"),
                &[Type::INT8, Type::TIMESTAMPTZ, Type::TEXT, Type::INT8],
            )
            .await?,
            park: query(
                include_str!("../sql/park.sql"),
                &[Type::INT8, Type::TIMESTAMPTZ, Type::TEXT, Type::BOOL],
            )
            .await?,
            unblock: query(include_str!("../sql/unblock.sql"), &[Type::TEXT_ARRAY]).await?,
            waits: query(include_str!("../sql/waits.sql"), &[]).await?,
            horizon: query(include_str!("../sql/horizon.sql"), &[]).await?,
            advance_lane: query(include_str!("../sql/advance_lane.sql"), &[Type::INT2, Type::INT8]).await?,
        })
    }
}

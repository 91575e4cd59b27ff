//! Whose fault a database error is: the one place where "again" and "never" are told apart.

use sea_orm::{DbErr, RuntimeErr, sqlx};

/// What to do about a database error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Lost against another transaction: do the same again.
    Conflict,
    /// The database is away, full, misconfigured or not migrated: wait, then do the same again. Whatever is not
    /// known to be the data's fault counts as this, since giving up on data by mistake loses it.
    Unavailable,
    /// The data cannot be stored, now or later.
    Data,
}

/// Tells what to do about `error`, by its SQLSTATE where it has one.
#[must_use]
pub fn failure(error: &DbErr) -> Failure {
    let runtime = match error {
        DbErr::Exec(runtime) | DbErr::Query(runtime) | DbErr::Conn(runtime) => runtime,
        _ => return Failure::Unavailable,
    };
    let RuntimeErr::SqlxError(driver) = runtime else {
        return Failure::Unavailable;
    };
    match driver.as_ref() {
        sqlx::Error::Database(server) => by_sqlstate(server.code().as_deref().unwrap_or_default()),
        _ => Failure::Unavailable,
    }
}

/// Classes: <https://www.postgresql.org/docs/current/errcodes-appendix.html>
fn by_sqlstate(code: &str) -> Failure {
    match code {
        // serialization_failure, deadlock_detected, lock_not_available
        "40001" | "40P01" | "55P03" => Failure::Conflict,
        // data exceptions and broken constraints
        _ if code.starts_with("22") || code.starts_with("23") => Failure::Data,
        _ => Failure::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_data_is_ever_given_up() {
        assert_eq!(by_sqlstate("40P01"), Failure::Conflict);
        assert_eq!(by_sqlstate("23514"), Failure::Data);
        assert_eq!(by_sqlstate("22P05"), Failure::Data);
        // undefined table, admin shutdown, disk full, wrong password, read-only, something new
        for code in ["42P01", "57P01", "53100", "28P01", "25006", "ZZ999", ""] {
            assert_eq!(by_sqlstate(code), Failure::Unavailable, "{code}");
        }
        assert_eq!(failure(&DbErr::Custom("?".to_owned())), Failure::Unavailable);
    }
}

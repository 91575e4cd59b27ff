//! What a span of time cost: CPU of everybody, log of Postgres, memory.

use std::time::{Duration, Instant};

use anyhow::Context;
use procfs::{CurrentSI, KernelStats, process};
use serde::Serialize;
use tokio_postgres::Client;

use super::ground::Ground;

/// A span in which the rest of the machine used more cores than this was disturbed.
const QUIET_CORES: f64 = 0.3;

/// One measured span.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Span {
    pub(crate) events: u64,
    pub(crate) seconds: f64,
    /// Of the service that is measured; where there is none, of this process.
    pub(crate) client_cpu_s: f64,
    /// None: not ours, so not looked at.
    pub(crate) postgres_cpu_s: Option<f64>,
    pub(crate) kafka_cpu_s: Option<f64>,
    /// Cores that neither of them used, nor this process; not known where one of them is not ours.
    pub(crate) other_cores: Option<f64>,
    pub(crate) wal_bytes: i64,
    /// Of these, images of whole pages, which the first change of a page after a checkpoint writes. None where
    /// Postgres has no pg_walinspect.
    pub(crate) wal_image_bytes: Option<i64>,
}

impl Span {
    pub(crate) fn rate(&self) -> f64 {
        self.events as f64 / self.seconds
    }

    pub(crate) fn per_million(&self, cpu_s: f64) -> f64 {
        cpu_s / self.events as f64 * 1e6
    }

    pub(crate) fn quiet(&self) -> bool {
        self.other_cores.is_none_or(|cores| cores <= QUIET_CORES)
    }
}

/// CPU seconds since each began.
#[derive(Clone, Copy)]
struct Reading {
    service: f64,
    postgres: Option<f64>,
    kafka: Option<f64>,
    this: f64,
    machine: f64,
}

impl Reading {
    fn now(ground: &Ground, service: Option<i32>) -> anyhow::Result<Self> {
        let ticks = procfs::ticks_per_second() as f64;
        let total = KernelStats::current()?.total;
        let busy = total.user
            + total.nice
            + total.system
            + total.irq.unwrap_or_default()
            + total.softirq.unwrap_or_default()
            + total.steal.unwrap_or_default();
        let pid = |pid: Option<i32>| pid.map(cpu_s).transpose();
        Ok(Self {
            service: pid(service)?.unwrap_or_default(),
            postgres: ground.postgres_pid().ok().map(family_cpu_s).transpose()?,
            kafka: pid(ground.kafka_pid().ok())?,
            this: cpu_s(i32::try_from(std::process::id())?)?,
            machine: busy as f64 / ticks,
        })
    }
}

/// User and system time of one process, in seconds.
fn cpu_s(pid: i32) -> anyhow::Result<f64> {
    let stat = process::Process::new(pid)
        .and_then(|process| process.stat())
        .with_context(|| format!("look at process {pid}"))?;
    Ok((stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64)
}

/// The same of a process, of its children, and of those that it has buried.
fn family_cpu_s(pid: i32) -> anyhow::Result<f64> {
    let mut ticks = 0;
    for found in process::all_processes()? {
        // One that has just ended is counted by its parent.
        let Ok(stat) = found.and_then(|process| process.stat()) else { continue };
        if stat.pid == pid {
            ticks += stat.utime + stat.stime + u64::try_from(stat.cutime + stat.cstime).unwrap_or_default();
        } else if stat.ppid == pid {
            ticks += stat.utime + stat.stime;
        }
    }
    Ok(ticks as f64 / procfs::ticks_per_second() as f64)
}

/// The most memory that a process has had resident so far, in megabytes.
pub(crate) fn peak_resident_mb(pid: i32) -> anyhow::Result<f64> {
    let status = process::Process::new(pid)
        .and_then(|process| process.status())
        .with_context(|| format!("look at process {pid}"))?;
    Ok(status.vmhwm.context("a process without memory")? as f64 / 1024.0)
}

/// A span that has begun.
pub(crate) struct Meter<'g> {
    ground: &'g Ground,
    service: Option<i32>,
    began: Instant,
    before: Reading,
    wal: i64,
}

impl<'g> Meter<'g> {
    /// Begins a span, in which `service` is measured. `db` is any connection to Postgres.
    pub(crate) async fn start(ground: &'g Ground, service: Option<i32>, db: &Client) -> anyhow::Result<Self> {
        let wal = wal_position(db).await?;
        let before = Reading::now(ground, service)?;
        Ok(Self { ground, service, began: Instant::now(), before, wal })
    }

    /// Ends the span. `seconds` is how long it took until the work was done, which may be a little less than until now.
    pub(crate) async fn stop(self, events: u64, seconds: f64, db: &Client) -> anyhow::Result<Span> {
        let now = Reading::now(self.ground, self.service)?;
        let elapsed = self.began.elapsed().as_secs_f64();
        let wal = wal_position(db).await?;
        let before = self.before;
        let postgres = now.postgres.zip(before.postgres).map(|(now, before)| now - before);
        let kafka = now.kafka.zip(before.kafka).map(|(now, before)| now - before);
        let (service, this) = (now.service - before.service, now.this - before.this);
        let other = postgres.zip(kafka).map(|(postgres, kafka)| {
            let ours = service + this + postgres + kafka;
            ((now.machine - before.machine - ours) / elapsed).max(0.0)
        });
        Ok(Span {
            events,
            seconds,
            client_cpu_s: if self.service.is_some() { service } else { this },
            postgres_cpu_s: postgres,
            kafka_cpu_s: kafka,
            other_cores: other,
            wal_bytes: wal - self.wal,
            wal_image_bytes: wal_images(self.wal, wal, db).await,
        })
    }
}

/// How many bytes of log Postgres has written since it was made.
pub(crate) async fn wal_position(db: &Client) -> anyhow::Result<i64> {
    let sql = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
    Ok(db.query_one(sql, &[]).await?.try_get(0)?)
}

/// Bytes of page images in the log between two positions; none if Postgres cannot say.
async fn wal_images(from: i64, to: i64, db: &Client) -> Option<i64> {
    // What is looked at must be on the disk. A commit that has written something sees to that.
    let flush = "
        begin;
        set local synchronous_commit = on;
        select pg_logical_emit_message(true, 'brew bench', '');
        commit";
    db.batch_execute(flush).await.ok()?;
    let sql = "
        select coalesce(sum(fpi_size), 0)::bigint
          from pg_get_wal_stats('0/0'::pg_lsn + $1::bigint::numeric, '0/0'::pg_lsn + $2::bigint::numeric)";
    db.query_one(sql, &[&from, &to]).await.ok()?.try_get(0).ok()
}

/// Waits for a second in which the rest of the machine is quiet, at most `limit`.
pub(crate) async fn wait_for_quiet(ground: &Ground, limit: Duration) -> anyhow::Result<()> {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        let (before, began) = (Reading::now(ground, None)?, Instant::now());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = Reading::now(ground, None)?;
        let ours = |reading: &Reading| {
            reading.this + reading.postgres.unwrap_or_default() + reading.kafka.unwrap_or_default()
        };
        let other = (now.machine - before.machine) - (ours(&now) - ours(&before));
        if other / began.elapsed().as_secs_f64() < QUIET_CORES {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_the_cpu_and_has_memory() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let before = family_cpu_s(pid).unwrap();
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(60) {
            std::hint::black_box(fastrand::u64(..));
        }
        assert!(family_cpu_s(pid).unwrap() > before);
        assert!(peak_resident_mb(pid).unwrap() > 1.0);
    }
}

//! How long topics keep their records.

use std::{collections::BTreeMap, future::Future, pin::Pin, time::Duration};

use rdkafka::admin::{AdminOptions, ConfigResource, OwnedResourceSpecifier, ResourceSpecifier};

use crate::{Error, KafkaOptions, admin::admin_client};

const TIMEOUT: Duration = Duration::from_secs(3);

/// How many milliseconds the broker keeps the records of each of `topics`; none: for ever.
///
/// # Errors
/// The broker does not answer within `timeout`, refuses, or knows no such topic.
pub async fn retentions(
    options: &KafkaOptions,
    topics: &[String],
    timeout: Duration,
) -> Result<BTreeMap<String, Option<u64>>, Error> {
    let asked: Vec<ResourceSpecifier<'_>> =
        topics.iter().map(|topic| ResourceSpecifier::Topic(topic)).collect();
    let how = AdminOptions::new().request_timeout(Some(timeout));
    let admin = admin_client(options)?;
    let found = admin.describe_configs(&asked, &how).await;
    // Ending a client blocks for a while.
    tokio::task::spawn_blocking(move || drop(admin)).await?;
    let found = found.map_err(Error::kafka("ask for topic configurations"))?;
    let mut kept = BTreeMap::new();
    for (topic, resource) in topics.iter().zip(found) {
        let problem = |problem: String| Error::Configuration { topic: topic.clone(), problem };
        let resource = resource.map_err(|code| problem(code.to_string()))?;
        if !matches!(&resource.specifier, OwnedResourceSpecifier::Topic(name) if name == topic) {
            return Err(problem("the broker answered about something else".to_owned()));
        }
        kept.insert(topic.clone(), kept_ms(&resource).map_err(problem)?);
    }
    Ok(kept)
}

fn kept_ms(topic: &ConfigResource) -> Result<Option<u64>, String> {
    let value = |name: &str| {
        let entry = topic.get(name).and_then(|entry| entry.value.as_deref());
        entry.ok_or_else(|| format!("the broker does not tell its `{name}`"))
    };
    // Without it records are only ever replaced by later ones of their key.
    if !value("cleanup.policy")?.split(',').any(|policy| policy.trim() == "delete") {
        return Ok(None);
    }
    let retention = value("retention.ms")?;
    let ms: i64 = retention.parse().map_err(|_| format!("`retention.ms` is `{retention}`"))?;
    Ok(u64::try_from(ms).ok())
}

/// What asks for the [`retentions`] of `topics`, each time it is called, for at most three seconds.
pub fn retention_asker(options: &KafkaOptions, topics: &[String]) -> impl Fn() -> RetentionFuture + use<> {
    let (options, topics) = (options.clone(), topics.to_owned());
    move || {
        let (options, topics) = (options.clone(), topics.clone());
        Box::pin(async move { retentions(&options, &topics, TIMEOUT).await })
    }
}

/// A question that is under way.
pub type RetentionFuture = Pin<Box<dyn Future<Output = Result<BTreeMap<String, Option<u64>>, Error>> + Send>>;

//! Apache Kafka's jars, brought by Maven from wherever it is set up to look.

use std::path::PathBuf;

use anyhow::{Context, bail};

use crate::output::note;

use super::{process::runs, state};

pub(crate) const VERSION: &str = "4.1.0";
/// The distribution adds log4j's binding for slf4j, which no pom of Kafka names. The version is that of the log4j
/// which Kafka's pom brings.
const LOG4J_VERSION: &str = "2.24.3";

/// The folder with the jars; downloads them the first time.
pub(crate) async fn get() -> anyhow::Result<PathBuf> {
    let java = tokio::process::Command::new("java").arg("-version").output().await;
    let java = java.map_err(|_| anyhow::anyhow!("there is no Java"))?;
    let major =
        java_major(&String::from_utf8_lossy(&java.stderr)).context("Java does not tell its version")?;
    if major < 17 {
        bail!("Java is {major}, and Kafka 4 needs 17");
    }
    let root = state::root();
    std::fs::create_dir_all(&root)?;
    let folder = root.canonicalize()?.join(format!("kafka-{VERSION}"));
    if folder.join("complete").exists() {
        return Ok(folder);
    }
    if !runs("mvn", &["--version"]).await {
        bail!("there is no Maven to bring Kafka's jars");
    }
    download(&folder).await?;
    Ok(folder)
}

async fn download(folder: &PathBuf) -> anyhow::Result<()> {
    note(format_args!("kafka: bringing Apache Kafka {VERSION} by Maven, once ..."));
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    let pom = folder.join("pom.xml");
    std::fs::write(&pom, pom_xml())?;
    let mut target = std::ffi::OsString::from("-DoutputDirectory=");
    target.push(folder);
    let output = tokio::process::Command::new("mvn")
        .args(["--quiet", "--batch-mode", "--file"])
        .arg(&pom)
        .args(["dependency:copy-dependencies", "-DincludeScope=runtime"])
        .arg(target)
        .output()
        .await
        .context("run Maven")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        bail!("Maven could not bring Kafka: {}", said.lines().next().unwrap_or_default());
    }
    std::fs::write(folder.join("complete"), "")?;
    Ok(())
}

/// `openjdk version "17.0.15" 2025-04-15` is 17.
fn java_major(text: &str) -> Option<u32> {
    text.split('"').nth(1)?.split(['.', '-', '+']).next()?.parse().ok()
}

fn pom_xml() -> String {
    let dependency = |group: &str, artifact: &str, version: &str| {
        format!(
            "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>\
             <version>{version}</version></dependency>"
        )
    };
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\
         <groupId>brew</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>\
         <dependencies>{}{}</dependencies></project>",
        dependency("org.apache.kafka", "kafka_2.13", VERSION),
        dependency("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J_VERSION)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_tells_its_version_in_several_ways() {
        assert_eq!(java_major("openjdk version \"17.0.15\" 2025-04-15"), Some(17));
        assert_eq!(java_major("java version \"21\" 2023-09-19 LTS"), Some(21));
        assert_eq!(java_major("openjdk version \"25-ea\""), Some(25));
        assert_eq!(java_major("java version \"1.8.0_452\""), Some(1));
        assert_eq!(java_major("no"), None);
    }
}

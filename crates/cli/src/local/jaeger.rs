//! Jaeger, where traces go: given, or in Docker.

use anyhow::{Context, bail};

use crate::output::note;

use super::{
    compose,
    state::{Jaeger, JaegerKind, OTLP, Profile},
};

/// Takes the Jaeger that JAEGER_URL and OTEL_EXPORTER_OTLP_ENDPOINT name, else starts one in Docker.
pub(crate) async fn start(profile: &Profile, docker: &Result<(), String>) -> anyhow::Result<Jaeger> {
    match (std::env::var("JAEGER_URL"), std::env::var(OTLP)) {
        (Ok(url), Ok(otlp)) => {
            reqwest::get(&url).await.context("JAEGER_URL is set, but nobody answers there")?;
            let what = format!("given by JAEGER_URL and {OTLP}");
            return Ok(Jaeger { url, otlp, what, how: JaegerKind::Given });
        }
        (Ok(_), Err(_)) => bail!("JAEGER_URL is set, but not {OTLP}: where it takes spans"),
        (Err(_), Ok(_)) => bail!("{OTLP} is set, but not JAEGER_URL: where its web page is"),
        (Err(_), Err(_)) => {}
    }
    if let Err(why) = docker {
        bail!("no Jaeger: {why}, and JAEGER_URL and {OTLP} name none");
    }
    note("jaeger: docker compose up ...");
    let ports = [("16686", "BREW_JAEGER_PORT"), ("4317", "BREW_OTLP_PORT")];
    let [ui, otlp] = compose::up(profile, "jaeger", ports).await?;
    Ok(Jaeger {
        url: format!("http://127.0.0.1:{ui}"),
        otlp: format!("http://127.0.0.1:{otlp}"),
        what: "Jaeger in Docker".to_owned(),
        how: JaegerKind::Compose,
    })
}

pub(crate) async fn stop(profile: &Profile, jaeger: &Jaeger) -> anyhow::Result<()> {
    match jaeger.how {
        JaegerKind::Given => Ok(()),
        JaegerKind::Compose => compose::stop(profile, "jaeger").await,
    }
}

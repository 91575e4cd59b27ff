//! Generates messages and stubs from `proto/`, without a `protoc` on the machine: protox compiles
//! the files in this process.

use std::{env, error::Error, fs, path::PathBuf};

const FILES: &[&str] = &["inventory/v1/inventory.proto", "order/v1/order.proto", "payment/v1/payment.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo:rerun-if-changed={}", root.display());

    let descriptors = protox::compile(FILES, [&root])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), protox::prost::Message::encode_to_vec(&descriptors))?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}

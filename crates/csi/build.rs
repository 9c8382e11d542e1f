//! Compiles the definition of the Container Storage Interface: its messages and services, and, from the same descriptor,
//! what keeps its secrets out of logs.

#[path = "build/confidential.rs"]
mod confidential;

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=proto/csi.proto");
    let output = PathBuf::from(std::env::var("OUT_DIR")?);

    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_source_info(true).include_imports(true).open_file("csi.proto")?;
    // In this form the options that the definition itself declares are kept.
    std::fs::write(output.join("csi.bin"), compiler.encode_file_descriptor_set())?;
    let messages = confidential::messages(&compiler.descriptor_pool())?;
    std::fs::write(output.join("confidential.rs"), confidential::code(&messages))?;

    let withheld = messages.iter().filter(|message| message.is_confidential());
    tonic_prost_build::configure()
        .out_dir(output)
        .generate_default_stubs(true)
        .codec_path("crate::codec::RecordingCodec")
        .skip_debug(withheld.map(|message| message.full_name.clone()))
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}

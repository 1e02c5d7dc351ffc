//! Compiles every control of `cc/` for the simulator and lists them for `registry.rs`.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Set to build the controls with the address and undefined-behaviour sanitizers (see `cc/check-sanitizers.sh`).
const SANITIZE: &str = "TCPLAB_CC_SANITIZE";

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../cc");
    let controls = named(&root, "c")?;

    let mut build = cc::Build::new();
    build
        .include(root.join("include"))
        .file("src/layout.c")
        .files(controls.iter().map(|name| root.join(format!("{name}.c"))))
        .std("gnu11")
        // The controls need no C library, so they are the same code for WebAssembly; and their cost counts in
        // tests too.
        .flag("-ffreestanding")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true);
    println!("cargo:rerun-if-env-changed={SANITIZE}");
    if env::var_os(SANITIZE).is_some() {
        build.flag("-fsanitize=address,undefined").flag("-fno-sanitize-recover=all");
        println!("cargo:rustc-link-lib=dylib=asan");
        println!("cargo:rustc-link-lib=dylib=ubsan");
    }
    build.compile("tcplab_cc");

    println!("cargo:rerun-if-changed={}", root.display());
    println!("cargo:rerun-if-changed=src/layout.c");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("controls.rs"), registry(&controls)?)?;
    let headers = named(&root.join("include"), "h")?;
    let texts = [("SOURCES", &root, &controls, ""), ("HEADERS", &root.join("include"), &headers, ".h")]
        .map(|(name, folder, files, suffix)| embedded(name, folder, files, suffix));
    fs::write(out.join("files.rs"), texts.concat())?;
    Ok(())
}

/// Rust source with the texts of files, by their name and `suffix`.
fn embedded(constant: &str, folder: &Path, names: &[String], suffix: &str) -> String {
    let extension = if suffix.is_empty() { ".c" } else { suffix };
    let rows = names.iter().map(|name| {
        let path = folder.join(format!("{name}{extension}"));
        let path = path.canonicalize().unwrap_or(path);
        format!("    ({:?}, include_str!({:?})),\n", format!("{name}{suffix}"), path.display().to_string())
    });
    let rows: String = rows.collect();
    format!("static {constant}: [(&str, &str); {}] = [\n{rows}];\n", names.len())
}

/// Names, without their extension, of the files in `folder` that have it, sorted.
fn named(folder: &Path, wanted: &str) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == wanted)
            && let Some(name) = path.file_stem().and_then(|stem| stem.to_str())
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Rust source that declares each control's table and gathers them.
fn registry(names: &[String]) -> Result<String, std::fmt::Error> {
    let mut source = String::from("unsafe extern \"C\" {\n");
    for name in names {
        writeln!(source, "    static tl_control_{name}: Definition;")?;
    }
    source.push_str("}\n/// Every control of `cc/`, by name.\n");
    writeln!(source, "static CONTROLS: [&Definition; {}] = [", names.len())?;
    for name in names {
        writeln!(
            source,
            "    // SAFETY: `CONGESTION_CONTROL` of tcplab_cc_native.h defines it, constant, in {name}.c.\n    \
             unsafe {{ &tl_control_{name} }},"
        )?;
    }
    source.push_str("];\n");
    Ok(source)
}

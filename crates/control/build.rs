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
    let controls = c_files(&root)?;

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
    fs::write(Path::new(&env::var("OUT_DIR")?).join("controls.rs"), registry(&controls)?)?;
    Ok(())
}

/// Names, without `.c`, of the C files in `folder`, sorted.
fn c_files(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "c")
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

//! Compiles every control of `cc/` for eBPF and embeds the objects.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../cc");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    println!("cargo:rerun-if-changed={}", root.display());
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CLANG");

    let mut objects = Vec::new();
    let missing = why_not(&clang);
    match &missing {
        None => {
            for name in c_files(&root)? {
                let object = out.join(format!("{name}.o"));
                compile(&clang, &root, &name, &object)?;
                objects.push((name, object));
            }
        }
        Some(why) => {
            println!("cargo:warning={why}: controls cannot be loaded into the running kernel");
            // A file that never is makes the next build look again.
            println!("cargo:rerun-if-changed={}", out.join("clang-is-missing").display());
        }
    }
    fs::write(out.join("objects.rs"), listing(&objects, missing.as_deref())?)?;
    Ok(())
}

/// Why this compiler makes no eBPF; none if it does.
fn why_not(clang: &OsString) -> Option<String> {
    let mut trial = Command::new(clang);
    trial.args(["-target", "bpf", "-x", "c", "-c", "-o", "/dev/null", "/dev/null"]);
    let name = clang.to_string_lossy();
    match trial.stdin(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => None,
        Ok(_) => Some(format!("{name} does not compile for eBPF")),
        Err(error) => Some(format!("{name} cannot be run: {error}")),
    }
}

/// With types (`-g` is what makes BTF), which the loader and the verifier need.
fn compile(clang: &OsString, root: &Path, name: &str, object: &Path) -> Result<(), Box<dyn Error>> {
    let source = root.join(format!("{name}.c"));
    let output = Command::new(clang)
        .args(["-target", "bpf", "-O2", "-g", "-std=gnu11", "-Wall", "-Werror", "-c", "-I"])
        .arg(root.join("include"))
        .arg(&source)
        .arg("-o")
        .arg(object)
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{} does not compile for eBPF:\n{said}", source.display()).into())
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

/// Rust source with the objects, by name, and why there are none.
fn listing(objects: &[(String, PathBuf)], missing: Option<&str>) -> Result<String, std::fmt::Error> {
    let mut source = String::new();
    writeln!(source, "static OBJECTS: [(&str, &[u8]); {}] = [", objects.len())?;
    for (name, object) in objects {
        writeln!(source, "    ({name:?}, include_bytes!({:?})),", object.display().to_string())?;
    }
    source.push_str("];\n");
    writeln!(source, "static MISSING: Option<&str> = {missing:?};")?;
    Ok(source)
}

//! Every shipped scenario is read, and what is wrong with a text as YAML is told as the language's golden files say.

use std::fs;
use std::path::{Path, PathBuf};

use tcplab_scenario::Document;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder of the repository")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    files
}

fn read(file: &Path) -> Result<Document, String> {
    let name = file.file_name().expect("a name").to_string_lossy();
    Document::parse(&fs::read(file).expect("readable"), &name).map_err(|mistakes| format!("{mistakes}\n"))
}

#[test]
fn shipped_scenarios_are_read() {
    let files = yaml_files(&root().join("scenarios"));
    assert!(files.len() > 10);
    for file in files {
        let document = read(&file).unwrap_or_else(|said| panic!("{said}"));
        let version = document.root.get("tcplab").expect("the version");
        assert_eq!(version.written, "1", "{}", file.display());
    }
}

#[test]
fn mistakes_of_the_text_itself_are_those_of_the_golden_files() {
    let bad = root().join("python/tcplab/scenario/tests/bad");
    for name in ["duplicate-keys", "empty", "tabs", "tags-and-anchors", "two-documents"] {
        let file = bad.join(name).with_extension("yaml");
        let expected = fs::read_to_string(file.with_extension("expected")).expect("a golden text");
        assert_eq!(read(&file).expect_err(name), expected);
    }
}

#[test]
fn broken_syntax_is_found_where_it_stands() {
    let file = root().join("python/tcplab/scenario/tests/bad/not-yaml.yaml");
    let said = read(&file).expect_err("a mistake");
    assert!(said.starts_with("not-yaml.yaml:8:") && said.contains("not YAML: "), "{said}");
}

//! Every shipped scenario becomes a plan, and every bad file is refused with exactly the text beside it.

use std::fs;
use std::path::{Path, PathBuf};

use tcplab_plan::Plan;
use tcplab_scenario::{Document, plan};

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

fn read(file: &Path) -> Result<Plan, String> {
    let name = file.file_name().expect("a name").to_string_lossy();
    let around = crate::common::Folder(file.parent().expect("a folder").to_owned());
    Document::parse(&fs::read(file).expect("readable"), &name)
        .and_then(|document| plan(document, &[], &around))
        .map_err(|mistakes| format!("{mistakes}\n"))
}

#[test]
fn shipped_scenarios_become_plans_that_engines_read() {
    let files = yaml_files(&root().join("scenarios"));
    assert!(files.len() > 10);
    for file in files {
        let made = read(&file).unwrap_or_else(|said| panic!("{said}"));
        let text = serde_json::to_string(&made).expect("JSON");
        assert_eq!(serde_json::from_str::<Plan>(&text).expect("a plan"), made, "{}", file.display());
    }
}

#[test]
fn a_bad_file_is_refused_with_all_its_mistakes() {
    let files = yaml_files(&root().join("python/tcplab/scenario/tests/bad"));
    assert!(files.len() > 40);
    for file in files {
        let said = read(&file).err().unwrap_or_else(|| panic!("{} is taken", file.display()));
        let expected = fs::read_to_string(file.with_extension("expected")).expect("a golden text");
        assert_eq!(said, expected, "{}", file.display());
    }
}

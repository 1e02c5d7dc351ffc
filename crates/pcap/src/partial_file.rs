//! A capture's file while it is written: it gets its name when it is whole.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file called `NAME.part` until [`PartFile::finish`].
///
/// A file left by a full disk or a killed process is under that name, and can be read: it is a capture cut short.
#[derive(Debug)]
pub struct PartFile {
    file: File,
    part: PathBuf,
    path: PathBuf,
}

impl PartFile {
    /// Creates the file that shall be at `path`.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(path: &Path) -> io::Result<PartFile> {
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        let part = PathBuf::from(name);
        Ok(PartFile { file: File::create(&part)?, part, path: path.to_owned() })
    }

    /// The file's name when it is whole.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub fn finish(self) -> io::Result<()> {
        std::fs::rename(&self.part, &self.path)
    }
}

impl Write for PartFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Write for &PartFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&self.file).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&self.file).flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_name_when_it_is_whole() {
        let directory = std::env::temp_dir().join(format!("tcplab-part-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let (path, part) = (directory.join("a.pcapng"), directory.join("a.pcapng.part"));
        let mut file = PartFile::create(&path).expect("a file");
        file.write_all(b"half").expect("room for four bytes");
        assert!(part.exists() && !path.exists());
        file.finish().expect("a name");
        assert!(path.exists() && !part.exists());
        std::fs::remove_dir_all(&directory).expect("it is ours");
    }
}

//! Who a service is to its clients, and what they must know: its certificate and its token, kept in one directory.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};

const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
const TOKEN: &str = "token";
/// Bytes of a token that was made here.
const TOKEN_BYTES: usize = 24;
/// A token that can be guessed protects nothing.
const SHORTEST_TOKEN: usize = 16;

/// Why a service cannot say who it is.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the fields are the values in the message
pub enum IdentityError {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{}: {reason}", path.display())]
    Content { path: PathBuf, reason: String },
}

/// A service's certificate, key and token.
pub struct Identity {
    /// Certificate chain and key for TLS.
    pub tls: Arc<ServerConfig>,
    /// SHA-256 of the certificate.
    pub certificate: String,
    /// The token that a client must present.
    pub token: String,
}

/// Reads the files in `directory`, and creates missing ones.
pub fn kept_in(directory: &Path) -> Result<Identity, IdentityError> {
    fs::create_dir_all(directory).map_err(|source| file(directory, source))?;
    let paths = [CERTIFICATE, KEY].map(|name| directory.join(name));
    if !paths.iter().any(|path| path.exists()) {
        let made = rcgen::generate_simple_self_signed([String::from("tcplab")]);
        let made = made.map_err(|error| content(&paths[0], error))?;
        write(&paths[1], made.signing_key.serialize_pem().as_bytes())?;
        write(&paths[0], made.cert.pem().as_bytes())?;
    }
    let chain: Vec<_> = CertificateDer::pem_file_iter(&paths[0])
        .and_then(Iterator::collect)
        .map_err(|error| content(&paths[0], error))?;
    let key = PrivateKeyDer::from_pem_file(&paths[1]).map_err(|error| content(&paths[1], error))?;
    let first = chain.first().ok_or_else(|| content(&paths[0], "there is no certificate in it"))?;
    let certificate = hexadecimal(Sha256::digest(first));
    let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| content(&paths[0], error))?;
    Ok(Identity { tls: Arc::new(tls), certificate, token: token_at(&directory.join(TOKEN))? })
}

fn token_at(path: &Path) -> Result<String, IdentityError> {
    if !path.exists() {
        let mut random = [0; TOKEN_BYTES];
        let source = PathBuf::from("/dev/urandom");
        fs::File::open(&source)
            .and_then(|mut random_bytes| random_bytes.read_exact(&mut random))
            .map_err(|error| file(&source, error))?;
        write(path, format!("{}\n", hexadecimal(random)).as_bytes())?;
    }
    let token = fs::read_to_string(path).map_err(|source| file(path, source))?.trim().to_owned();
    if token.len() < SHORTEST_TOKEN {
        return Err(content(path, format!("a token has {SHORTEST_TOKEN} characters or more")));
    }
    Ok(token)
}

/// Creates a file that its owner alone can read.
fn write(path: &Path, bytes: &[u8]) -> Result<(), IdentityError> {
    let open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    open.and_then(|mut created| created.write_all(bytes)).map_err(|source| file(path, source))
}

fn hexadecimal(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn file(path: &Path, source: io::Error) -> IdentityError {
    IdentityError::File { path: path.to_owned(), source }
}

fn content(path: &Path, reason: impl ToString) -> IdentityError {
    IdentityError::Content { path: path.to_owned(), reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_once_stays() {
        let directory = std::env::temp_dir().join(format!("tcplab-identity-{}", std::process::id()));
        let first = kept_in(&directory).expect("a directory that can be written");
        let second = kept_in(&directory).expect("the same");
        assert_eq!((&first.certificate, &first.token), (&second.certificate, &second.token));
        assert_eq!((first.certificate.len(), first.token.len()), (64, 2 * TOKEN_BYTES));
        fs::write(directory.join(TOKEN), "short").expect("a file of ours");
        assert!(kept_in(&directory).is_err());
        fs::remove_dir_all(&directory).expect("it is ours");
    }
}

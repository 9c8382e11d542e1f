//! A certificate in files that another program renews: cert-manager through a mounted Secret, whose files are swapped
//! by a symbolic link, or a program that writes them one after the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::serve_error::ServeError;

/// How often the files are read. They are small, links may be swapped anywhere on their path, and a new certificate is
/// there long before the old one expires.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

/// The paths of the files, and the last matching pair read from them.
#[derive(Debug)]
pub(crate) struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
    loaded: Mutex<LoadedCertificate>,
}

#[derive(Debug)]
struct LoadedCertificate {
    /// The last contents read, matching or not, so that each change is reported once.
    contents: Contents,
    current: Arc<CertifiedKey>,
}

/// The contents of the certificate's file and of the key's.
type Contents = [Vec<u8>; 2];

impl CertificateFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read or parsed, or the key does not belong to the certificate.
    pub(crate) fn read(certificate: PathBuf, key: PathBuf) -> Result<Self, ServeError> {
        let contents = read(&certificate, &key)?;
        let current = Arc::new(parse(&certificate, &key, &contents)?);
        Ok(Self { certificate, key, loaded: Mutex::new(LoadedCertificate { contents, current }) })
    }

    /// Polls the files for ever.
    pub(crate) async fn watch(&self) {
        let mut interval = tokio::time::interval(RELOAD_INTERVAL);
        loop {
            interval.tick().await;
            match self.reload() {
                Ok(false) => {}
                Ok(true) => tracing::info!(path = %self.certificate.display(), "Read the new certificate"),
                Err(error) => {
                    tracing::warn!(%error, "The certificate has changed and cannot be used; the previous one stays in use");
                }
            }
        }
    }

    /// Reads the files again. Returns whether there is a new certificate.
    fn reload(&self) -> Result<bool, ServeError> {
        let contents = read(&self.certificate, &self.key)?;
        let mut loaded = self.loaded.lock();
        if loaded.contents == contents {
            return Ok(false);
        }
        loaded.contents = contents;
        loaded.current = Arc::new(parse(&self.certificate, &self.key, &loaded.contents)?);
        Ok(true)
    }
}

impl ResolvesServerCert for CertificateFiles {
    fn resolve(&self, _client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.loaded.lock().current))
    }
}

fn unusable(path: &Path, reason: impl ToString) -> ServeError {
    ServeError::Certificate { path: path.to_owned(), reason: reason.to_string() }
}

fn read(certificate: &Path, key: &Path) -> Result<Contents, ServeError> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| unusable(path, error));
    Ok([read(certificate)?, read(key)?])
}

fn parse(certificate: &Path, key: &Path, contents: &Contents) -> Result<CertifiedKey, ServeError> {
    let [chain, private] = contents;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(certificate, error))?;
    if chain.is_empty() {
        return Err(unusable(certificate, "it holds no certificate"));
    }
    let private = PrivateKeyDer::from_pem_slice(private).map_err(|error| unusable(key, error))?;
    // Also checks that the key belongs to the certificate.
    CertifiedKey::from_der(chain, private, &ring::default_provider()).map_err(|error| unusable(key, error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use certificate_authority::CertificateAuthority;

    use super::*;

    /// A folder like a mounted Secret: `tls.crt` links to `..data/tls.crt`, and `..data` links to a folder that is
    /// swapped.
    fn fill(mount: &Path, version: &str, certificate: &str, key: &str) {
        let folder = mount.join(version);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("tls.crt"), certificate).unwrap();
        std::fs::write(folder.join("tls.key"), key).unwrap();
        let next = mount.join("..data_tmp");
        symlink(version, &next).unwrap();
        std::fs::rename(next, mount.join("..data")).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_certificate_counts_from_when_it_fits_together() {
        let mount = tempfile::tempdir().unwrap();
        let authority = CertificateAuthority::generate().unwrap();
        let issue = || authority.issue(&["a.b.svc"]).unwrap();
        let (first, second) = (issue(), issue());
        let path = |name: &str| mount.path().join(name);
        for name in ["tls.crt", "tls.key"] {
            symlink(format!("..data/{name}"), path(name)).unwrap();
        }
        let open = || CertificateFiles::read(path("tls.crt"), path("tls.key"));
        let error = open().unwrap_err().to_string();
        assert!(error.contains("tls.crt"), "{error}");
        fill(mount.path(), "..1", &first.certificate_pem, &first.key_pem);
        let files = Arc::new(open().unwrap());
        let shown = || files.loaded.lock().current.cert.clone();
        let before = shown();
        let watched = files.clone();
        tokio::spawn(async move { watched.watch().await });
        // The key still belongs to the old certificate: the pair is unusable.
        fill(mount.path(), "..2", &second.certificate_pem, &first.key_pem);
        tokio::time::sleep(2 * RELOAD_INTERVAL).await;
        assert_eq!(shown(), before);
        assert!(files.reload().is_ok_and(|new| !new), "it is reported once");
        fill(mount.path(), "..3", &second.certificate_pem, &second.key_pem);
        tokio::time::sleep(2 * RELOAD_INTERVAL).await;
        assert_ne!(shown(), before);
        let after = shown();
        std::fs::remove_file(path("..data")).unwrap();
        tokio::time::sleep(2 * RELOAD_INTERVAL).await;
        assert_eq!(shown(), after);
    }
}

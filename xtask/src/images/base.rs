//! The layer below each program: certificate authorities, and the names of two users. It does not change with a release, so
//! that registries and nodes keep one copy.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::layer::{File, Files};

/// The user that programs run as, in numbers, because a kubelet compares these with `runAsNonRoot`.
pub const USER: &str = "65532:65532";
/// The user of programs that mount.
pub const ROOT: &str = "0:0";

/// Where programs look for certificate authorities.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";

const USERS: &str = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n";
const GROUPS: &str = "root:x:0:\nnonroot:x:65532:\n";

/// The files.
pub fn files() -> Files {
    let files =
        [(AUTHORITIES, authorities()), ("etc/group", GROUPS.to_owned()), ("etc/passwd", USERS.to_owned())];
    files.into_iter().map(|(path, text)| (path.to_owned(), File::plain(text))).collect()
}

/// Mozilla's certificate authorities as PEM.
fn authorities() -> String {
    let mut text = String::new();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        let encoded = STANDARD.encode(certificate);
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let mut rest = encoded.as_str();
        while !rest.is_empty() {
            let (line, others) = rest.split_at_checked(64).unwrap_or((rest, ""));
            text.push_str(line);
            text.push('\n');
            rest = others;
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;

    use super::*;

    #[test]
    fn a_client_can_read_all_authorities() {
        let bundle = authorities();
        let mut store = rustls::RootCertStore::empty();
        let certificates = CertificateDer::pem_slice_iter(bundle.as_bytes()).map(Result::unwrap);
        let (added, refused) = store.add_parsable_certificates(certificates);
        assert_eq!((added, refused), (webpki_root_certs::TLS_SERVER_ROOT_CERTS.len(), 0));
        assert!(added > 100, "{added}");
        assert!(bundle.lines().all(|line| line.len() <= 64));
    }
}

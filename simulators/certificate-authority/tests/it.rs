//! Authorities that others have made: as kubeadm, OpenSSL and companies do.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use certificate_authority::{CertificateAuthority, ClientCertificate};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, UnixTime};

macro_rules! authority {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("authorities/", $name, ".crt")),
            include_str!(concat!("authorities/", $name, ".key")),
        )
    };
}

/// Name, certificates and key. `kubeadm` is RSA in PKCS#1, `sec1` has its curve beside it, `intermediate` is P-384 with
/// a root above it, `rsa` is PKCS#8 of 4096 bits.
const AUTHORITIES: [(&str, &str, &str); 4] =
    [authority!("kubeadm"), authority!("sec1"), authority!("intermediate"), authority!("rsa")];

/// In 2027, when all of them are valid.
fn now() -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000))
}

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().unwrap()
}

#[test]
fn any_authority_signs_for_those_who_trust_it() {
    for (name, certificate, key) in AUTHORITIES {
        let authority = CertificateAuthority::from_kept(certificate, key).unwrap();
        let leaf = certificates(&authority.issue(&["api.example.com"]).unwrap().certificate_pem);
        let chain = certificates(authority.certificate_pem());
        // Clients trust the last certificate: their own root, where there is one.
        let mut roots = RootCertStore::empty();
        roots.add(chain.last().unwrap().clone()).unwrap();
        let verifier = WebPkiServerVerifier::builder_with_provider(
            Arc::new(roots),
            Arc::new(rustls::crypto::ring::default_provider()),
        );
        let host = "api.example.com".try_into().unwrap();
        let verified = verifier.build().unwrap().verify_server_cert(&leaf[0], &chain, &host, &[], now());
        assert!(verified.is_ok(), "{name}: {verified:?}");
        authority.server_config_with_clients(&["api.example.com"], "kube-apiserver").unwrap();
        // Stored and loaded again, it is the same authority.
        CertificateAuthority::from_kept(authority.certificate_pem(), &authority.key_pem()).unwrap();
    }
}

#[test]
fn clients_are_who_their_certificates_say_and_none_of_another_authority() {
    let wanted =
        ClientCertificate { user: "kubernetes-admin".to_owned(), groups: vec!["system:masters".to_owned()] };
    for (name, certificate, key) in AUTHORITIES {
        let authority = CertificateAuthority::from_kept(certificate, key).unwrap();
        let issued = certificates(&authority.issue_client(&wanted).unwrap().certificate_pem);
        assert_eq!(authority.client(&issued, now()).unwrap(), wanted, "{name}");
        let stranger = CertificateAuthority::generate().unwrap();
        stranger.client(&issued, now()).unwrap_err();
        let server = certificates(&authority.issue(&["api.example.com"]).unwrap().certificate_pem);
        authority.client(&server, now()).unwrap_err();
        authority.client(&[], now()).unwrap_err();
    }
}

#[test]
fn what_cannot_be_used_is_refused_with_the_reason() {
    let why = |certificate: &str, key: &str| {
        CertificateAuthority::from_kept(certificate, key).unwrap_err().to_string()
    };
    let [(_, kubeadm, kubeadm_key), (_, sec1, _), ..] = AUTHORITIES;
    assert!(why(sec1, kubeadm_key).contains("do not belong together"));
    assert!(why("nonsense", kubeadm_key).contains("its certificate cannot be parsed"));
    assert!(why(kubeadm, "nonsense").contains("its private key cannot be read"));
    let (_, certificate, key) = authority!("p521");
    assert!(why(certificate, key).contains("P-256 or P-384"));
}

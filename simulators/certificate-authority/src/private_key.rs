//! Private keys in the forms in which tools write them, read into the one form that the certificate library takes.

use pkcs8::der::Encode as _;
use pkcs8::der::asn1::{AnyRef, OctetStringRef};
use pkcs8::{AlgorithmIdentifierRef, ObjectIdentifier, PrivateKeyInfoRef};
use rcgen::KeyPair;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const ELLIPTIC_CURVE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
/// P-256 and P-384: the curves that the cryptographic library signs with.
const CURVES: [ObjectIdentifier; 2] =
    [ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7"), ObjectIdentifier::new_unwrap("1.3.132.0.34")];

/// Reads the first private key of a PEM text: PKCS#8 (`PRIVATE KEY`), PKCS#1 (`RSA PRIVATE KEY`, as kubeadm writes it)
/// or SEC1 (`EC PRIVATE KEY`). `None` if there is no key, or one of an algorithm or size that cannot sign.
pub(crate) fn read(pem: &str) -> Option<KeyPair> {
    match PrivateKeyDer::from_pem_slice(pem.as_bytes()).ok()? {
        PrivateKeyDer::Pkcs8(key) => KeyPair::try_from(&key).ok(),
        PrivateKeyDer::Pkcs1(key) => wrapped(RSA, AnyRef::NULL, key.secret_pkcs1_der()),
        // The curve may be left out in this form: whether the key lies on it is checked.
        PrivateKeyDer::Sec1(key) => {
            CURVES.iter().find_map(|curve| wrapped(ELLIPTIC_CURVE, curve.into(), key.secret_sec1_der()))
        }
        _ => None,
    }
}

/// The key pair of a private key in the form of its algorithm.
fn wrapped(oid: ObjectIdentifier, parameters: AnyRef<'_>, key: &[u8]) -> Option<KeyPair> {
    let algorithm = AlgorithmIdentifierRef { oid, parameters: Some(parameters) };
    let info = PrivateKeyInfoRef::new(algorithm, OctetStringRef::new(key).ok()?);
    KeyPair::try_from(&PrivatePkcs8KeyDer::from(info.to_der().ok()?)).ok()
}

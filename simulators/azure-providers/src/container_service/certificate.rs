//! The certificates of a cluster: an authority of its own and the client certificate of its administrators, drawn from
//! the seed.

use std::fmt;

use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Result};
use azure_types::ResourceId;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SerialNumber, date_time_ymd,
};

/// A private key of Ed25519 in PKCS#8 is this and the 32 bytes of the key (RFC 8410).
const KEY_HEAD: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// PEM texts.
pub(super) struct Certificates {
    /// The authority that signs the API server's certificate.
    pub(super) authority: String,
    /// The client certificate of an administrator.
    pub(super) client: String,
    /// Its private key.
    pub(super) client_key: String,
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

/// The certificates of a cluster: always the same until a rotation.
///
/// # Errors
/// The library cannot make them.
pub(super) fn of(azure: &AzureState, cluster: &ResourceId) -> Result<Certificates> {
    let record = azure.store.get(cluster);
    let rotation = record.and_then(|record| record.hidden.get("rotations")).and_then(|count| count.as_u64());
    let incarnation = record.map_or(0, |record| record.incarnation);
    let subject = format!("{cluster}#{incarnation}#{}", rotation.unwrap_or_default());
    make(azure, &subject).map_err(|error| {
        Code::ours(500, "InternalServerError").says(format_args!("The certificates of {cluster}: {error}."))
    })
}

fn make(azure: &AzureState, subject: &str) -> Result<Certificates, rcgen::Error> {
    let authority_key = key(azure, subject, "authority")?;
    let mut authority = parameters(azure, subject, "ca", "authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
    let certificate = authority.self_signed(&authority_key)?;
    let issuer = Issuer::new(authority, authority_key);
    let client_key = key(azure, subject, "client")?;
    let mut client = parameters(azure, subject, "masterclient", "client");
    client.distinguished_name.push(DnType::OrganizationName, "system:masters");
    client.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let signed = client.signed_by(&client_key, &issuer)?;
    Ok(Certificates {
        authority: certificate.pem(),
        client: signed.pem(),
        client_key: client_key.serialize_pem(),
    })
}

fn key(azure: &AzureState, subject: &str, purpose: &str) -> Result<KeyPair, rcgen::Error> {
    let mut whole = KEY_HEAD.to_vec();
    for part in 0..4 {
        whole.extend(azure.seed.number(&format!("{purpose} key"), subject, part).to_be_bytes());
    }
    KeyPair::try_from(whole)
}

fn parameters(azure: &AzureState, subject: &str, name: &str, purpose: &str) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.serial_number = Some(SerialNumber::from(azure.seed.number(purpose, subject, 0) >> 1));
    parameters.not_before = date_time_ymd(2020, 1, 1);
    parameters.not_after = date_time_ymd(2050, 1, 1);
    parameters
}

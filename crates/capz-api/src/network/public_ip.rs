//! Public addresses.

use crate::object::object;

object! {
    /// A public IP address.
    PublicIp {
        /// The domain name of the address. Its first label becomes the DNS label in Azure.
        dns_name: String,
        /// IP tags of the address.
        ip_tags: Vec<IpTag>,
        /// The name of the address in Azure.
        #[schemars(required)]
        name: String,
    }

    /// An IP tag of a public address.
    IpTag {
        /// The value, such as SQL.
        #[schemars(required)]
        tag: String,
        /// The type, such as FirstPartyUsage.
        #[serde(rename = "type")]
        #[schemars(required)]
        kind: String,
    }
}

//! The context of a volume on a share: what its PersistentVolume keeps for the nodes.

use crate::parameters::given::{Entries, merge};
use crate::parameters::share::{Protocol, ShareParameters};
use crate::parameters::share_keys as own;
use crate::parameters::share_table::SHARE_PARAMETERS;

/// Sets a key in the spelling in which it is there, or in this one.
fn set(context: &mut Entries, key: &str, value: &str) {
    let known = context.keys().find(|known| known.eq_ignore_ascii_case(key)).cloned();
    context.insert(known.unwrap_or_else(|| key.to_owned()), value.to_owned());
}

/// The context of a new volume: all parameters as they were given, the mutable ones over them, names with their variables replaced,
/// and the namespace of the Secret. None of these is secret.
pub fn of_new_volume(class: &Entries, mutable: &Entries, parameters: &ShareParameters) -> Entries {
    let mut context = merge(SHARE_PARAMETERS, class, mutable);
    let names = [(own::SHARE_NAME, &parameters.share_name), (own::FOLDER_NAME, &parameters.folder)];
    for (key, name) in names {
        if let Some(name) = name {
            set(&mut context, key, name);
        }
    }
    if parameters.protocol == Protocol::Nfs {
        set(&mut context, own::PROTOCOL, "nfs");
    }
    set(&mut context, own::SECRET_NAMESPACE, &parameters.secret_namespace);
    context
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cluster_place::ClusterPlace;

    /// FILE-046. Sections 4.2 and 4.3.
    #[test]
    fn a_context_has_all_parameters_and_the_secrets_namespace() {
        let place = ClusterPlace {
            subscription: "s".into(),
            group: "g".into(),
            location: "r".into(),
            is_stack: false,
        };
        let entries = |pairs: &[(&str, &str)]| -> Entries {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let class = entries(&[
            ("SkuName", "Premium_LRS"),
            ("folderName", "${pvc.metadata.name}"),
            ("csi.storage.k8s.io/pvc/name", "c"),
            ("csi.storage.k8s.io/pvc/namespace", "shop"),
        ]);
        let mutable = entries(&[("provisionedIOPS", "4000")]);
        let parameters = ShareParameters::parse(&class, &mutable, &place).unwrap();
        let context = of_new_volume(&class, &mutable, &parameters);
        let mut expected = class;
        expected.insert("folderName".into(), "c".into());
        expected.insert("provisionedIOPS".into(), "4000".into());
        expected.insert("secretNamespace".into(), "shop".into());
        assert_eq!(context, expected);
    }
}

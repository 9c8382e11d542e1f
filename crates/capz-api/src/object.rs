//! The declaration of objects: every member is optional (an object in a template or before defaulting may lack any of
//! them; the schema says which are required in the end), absent members are not written, and members that a type does
//! not name are kept.

/// Declares objects of the API. Doc comments become the descriptions that `kubectl explain` shows.
macro_rules! object {
    ($($(#[$doc:meta])* $name:ident { $($(#[$member:meta])* $field:ident: $kind:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Default, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema,
        )]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $(
                $(#[$member])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $field: Option<$kind>,
            )*
            /// Members that this type does not name, kept as they came.
            #[serde(flatten)]
            #[schemars(skip)]
            pub rest: ::azure_types::Rest,
        }
    )*};
}
pub(crate) use object;

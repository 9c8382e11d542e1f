pub(crate) mod custom_resource_definition;

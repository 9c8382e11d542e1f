//! System disks of machines and of models.

use serde_json::Value;

use crate::compute::machine::image;
use crate::compute::machine::image::Image;
use azure_engine::document::{Object, fill};

/// Fills in what the image says of the system disk; says which image that is.
pub(crate) fn fill_by_image(storage: &mut Object) -> Image {
    let image = image::of(&Value::Object(storage.clone()));
    if let Some(Value::Object(disk)) = storage.get_mut("osDisk") {
        fill(disk, "osType", if image.windows { "Windows" } else { "Linux" });
        fill(disk, "diskSizeGB", if image.windows { 127 } else { 30 });
    }
    image
}

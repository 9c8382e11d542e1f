//! Settings of a block device: files below its folder in sysfs.

use std::path::{Component, Path};

use super::device::Device;
use super::error::DeviceError;
use super::finder::Devices;

/// Whether a path stays below the folder to which it is added.
fn stays_below(path: &str) -> bool {
    !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

impl Devices {
    /// Writes settings, each a path below the device's folder with its value. None is written if one of the paths is invalid.
    ///
    /// # Errors
    /// A path leads out of the folder, or the kernel refuses a value.
    pub async fn set(&self, device: &Device, settings: &[(String, String)]) -> Result<(), DeviceError> {
        if let Some((path, _)) = settings.iter().find(|(path, _)| !stays_below(path)) {
            return Err(DeviceError::InvalidSetting(path.clone()));
        }
        let folder = self.tree.block(&self.disk_name(device).await);
        for (setting, value) in settings {
            let refused = |source| {
                let (setting, value) = (setting.clone(), value.clone());
                DeviceError::Setting { device: device.to_string(), setting, value, source }
            };
            let file = self.tree.system.canonical(&folder.join(setting)).await.map_err(refused)?;
            if !self.belongs_to(&file, &folder).await {
                return Err(DeviceError::InvalidSetting(setting.clone()));
            }
            self.tree.system.write(&file, value).await.map_err(refused)?;
        }
        Ok(())
    }

    /// Whether a file is the device's own. Its folder has links to other devices and to drivers.
    async fn belongs_to(&self, file: &Path, folder: &Path) -> bool {
        for own in [folder.to_owned(), folder.join("device")] {
            if self.tree.system.canonical(&own).await.is_ok_and(|own| file.starts_with(own)) {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sections 3.4 and 3.15: a setting stays below the device's folder.
    #[test]
    fn no_setting_leads_out_of_the_folder() {
        for (path, expected) in [
            ("queue/scheduler", true),
            ("device/queue_depth", true),
            ("queue/./scheduler", true),
            ("../sda/queue/scheduler", false),
            ("queue/../../x", false),
            ("/etc/passwd", false),
            ("", false),
            ("..", false),
        ] {
            assert_eq!(stays_below(path), expected, "{path}");
        }
    }
}

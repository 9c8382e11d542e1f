//! Options of a mount (section 4.7). Credentials are none of them.

/// Which defaults the flags add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// `--append-nosharesock-option`
    pub nosharesock: bool,
    /// `--append-closetimeo-option`
    pub closetimeo: bool,
    /// `--append-noresvport-option`
    pub noresvport: bool,
    /// `--append-actimeo-option`
    pub actimeo: bool,
}

/// Options of the share in which a disk is.
const OF_DISK: [&str; 5] = ["dir_mode=0777", "file_mode=0777", "cache=strict", "actimeo=30", "nostrictsync"];

/// Adds what no option begins with.
fn append(options: &mut Vec<String>, defaults: impl IntoIterator<Item = (&'static str, &'static str)>) {
    for (key, whole) in defaults {
        if !options.iter().any(|option| option.starts_with(key)) {
            options.push(whole.to_owned());
        }
    }
}

fn split<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut options = Vec::new();
    for option in texts.into_iter().flat_map(|text| text.split(',')).map(str::trim) {
        if !option.is_empty() && !options.iter().any(|own| own == option) {
            options.push(option.to_owned());
        }
    }
    options
}

/// Options of SMB: those of the volume, the group of the pod, then the defaults that are absent.
pub fn smb<'a>(
    flags: impl IntoIterator<Item = &'a str>,
    group: &str,
    is_disk: bool,
    appended: Appended,
) -> Vec<String> {
    let mut options = match is_disk {
        true => OF_DISK.map(str::to_owned).to_vec(),
        false => split(flags),
    };
    if !is_disk && !group.is_empty() && !options.iter().any(|option| option.starts_with("gid")) {
        options.push(format!("gid={group}"));
    }
    let sets_times = |option: &String| option.contains("acregmax") || option.contains("acdirmax");
    let sets_times = options.iter().any(sets_times);
    append(&mut options, [("file_mode", "file_mode=0777"), ("dir_mode", "dir_mode=0777")]);
    if !sets_times {
        append(&mut options, [("actimeo", "actimeo=30")]);
    }
    // A disk in a share is one file: links of its own file system are in it.
    if !is_disk {
        append(&mut options, [("mfsymlinks", "mfsymlinks")]);
    }
    if appended.closetimeo {
        append(&mut options, [("sloppy,closetimeo=0", "sloppy,closetimeo=0")]);
    }
    if appended.nosharesock {
        append(&mut options, [("nosharesock", "nosharesock")]);
    }
    options
}

/// The option with which a mount is encrypted, which is not one of the kernel's.
const ENCRYPTS: &str = "encryptInTransit";

/// Options of NFS, and whether they ask for encryption.
pub fn nfs<'a>(flags: impl IntoIterator<Item = &'a str>, appended: Appended) -> (Vec<String>, bool) {
    let mut options = split(flags);
    let encrypts = options.iter().any(|option| option.eq_ignore_ascii_case(ENCRYPTS));
    options.retain(|option| !option.eq_ignore_ascii_case(ENCRYPTS));
    for needed in ["vers=4", "minorversion=1", "sec=sys"] {
        if !options.iter().any(|option| option == needed) {
            options.push(needed.to_owned());
        }
    }
    if appended.noresvport {
        append(&mut options, [("noresvport", "noresvport")]);
    }
    if appended.actimeo {
        append(&mut options, [("actimeo", "actimeo=30")]);
    }
    (options, encrypts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Appended =
        Appended { nosharesock: true, closetimeo: false, noresvport: true, actimeo: true };
    const NONE: Appended =
        Appended { nosharesock: false, closetimeo: false, noresvport: false, actimeo: false };

    /// FILE-112. Section 4.7, SMB options.
    #[test]
    fn defaults_of_smb_are_added_where_absent() {
        let closes = Appended { closetimeo: true, ..USUAL };
        for (flags, group, is_disk, appended, expected) in [
            (&[][..], "", false, USUAL, "file_mode=0777,dir_mode=0777,actimeo=30,mfsymlinks,nosharesock"),
            (&[], "", false, NONE, "file_mode=0777,dir_mode=0777,actimeo=30,mfsymlinks"),
            (
                &["dir_mode=0755", "file_mode=0644", "acregmax=5", "ro"],
                "1000",
                false,
                USUAL,
                "dir_mode=0755,file_mode=0644,acregmax=5,ro,gid=1000,mfsymlinks,nosharesock",
            ),
            (
                &["gid=7,uid=8"],
                "1000",
                false,
                NONE,
                "gid=7,uid=8,file_mode=0777,dir_mode=0777,actimeo=30,mfsymlinks",
            ),
            (
                &["actimeo=5", "actimeo=5"],
                "",
                false,
                NONE,
                "actimeo=5,file_mode=0777,dir_mode=0777,mfsymlinks",
            ),
            (
                &[],
                "",
                false,
                closes,
                "file_mode=0777,dir_mode=0777,actimeo=30,mfsymlinks,sloppy,closetimeo=0,nosharesock",
            ),
            (
                &["noatime"],
                "1000",
                true,
                USUAL,
                "dir_mode=0777,file_mode=0777,cache=strict,actimeo=30,nostrictsync,nosharesock",
            ),
        ] {
            assert_eq!(smb(flags.iter().copied(), group, is_disk, appended).join(","), expected, "{flags:?}");
        }
    }

    /// FILE-112. Section 4.7, NFS options.
    #[test]
    fn defaults_of_nfs_are_added_where_absent() {
        for (flags, appended, expected, encrypts) in [
            (&[][..], USUAL, "vers=4,minorversion=1,sec=sys,noresvport,actimeo=30", false),
            (&[], NONE, "vers=4,minorversion=1,sec=sys", false),
            (
                &["nconnect=4", "actimeo=1"],
                USUAL,
                "nconnect=4,actimeo=1,vers=4,minorversion=1,sec=sys,noresvport",
                false,
            ),
            (&["encryptInTransit"], NONE, "vers=4,minorversion=1,sec=sys", true),
        ] {
            let (options, asks) = nfs(flags.iter().copied(), appended);
            assert_eq!((options.join(",").as_str(), asks), (expected, encrypts), "{flags:?}");
        }
    }
}

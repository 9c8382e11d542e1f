//! What `mount.cifs` and `mount.nfs` do with a share of the simulated Azure: a bind mount of its folder, or the words and the code of the
//! real helper (cifs-utils, nfs-utils).

use std::path::{Path, PathBuf};

use azure_simulator::FileAccount;
use rustix::mount::{MountFlags, mount_bind, mount_remount};

/// The file with the accounts.
pub(crate) const ACCOUNTS: &str = "accounts.json";
/// The file with the ports that take no connections, one a line.
pub(crate) const CLOSED_PORTS: &str = "closed-ports";

/// The domain of accounts.
const DOMAIN: &str = "file.core.windows.net";

const MANUAL: &str =
    "Refer to the mount.cifs(8) manual page (e.g. man mount.cifs) and kernel log messages (dmesg)";

/// Which helper is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Helper {
    /// `mount.cifs`
    Cifs,
    /// `mount.nfs`
    Nfs,
}

/// How the helper ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code.
    pub code: i32,
    /// What it complains about, for standard error.
    pub words: String,
}

/// What is asked of a helper: `SOURCE TARGET -o OPTIONS`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Request {
    host: String,
    /// The parts of the path behind the host.
    path: Vec<String>,
    target: PathBuf,
    options: Vec<String>,
}

/// What the helper does after all checks.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Act {
    /// Shows this folder at the target.
    Bind(PathBuf),
    /// The mount that is there has its new options.
    Nothing,
}

/// Options of mount.cifs(8) by name, as far as volumes use them. Another one is an invalid argument for the kernel.
const CIFS_OPTIONS: [&str; 34] = [
    "username",
    "file_mode",
    "dir_mode",
    "actimeo",
    "acregmax",
    "acdirmax",
    "mfsymlinks",
    "nosharesock",
    "sloppy",
    "closetimeo",
    "vers",
    "sec",
    "cruid",
    "upcall_target",
    "uid",
    "gid",
    "ro",
    "rw",
    "cache",
    "nostrictsync",
    "serverino",
    "noserverino",
    "nobrl",
    "noperm",
    "forceuid",
    "forcegid",
    "rsize",
    "wsize",
    "seal",
    "max_channels",
    "multichannel",
    "soft",
    "hard",
    "remount",
];
/// Flags that every file system takes.
const FLAGS: [&str; 8] =
    ["nosuid", "nodev", "noexec", "noatime", "nodiratime", "relatime", "sync", "_netdev"];

impl Request {
    fn read(helper: Helper, arguments: &[String]) -> Option<Self> {
        let (source, target) = (arguments.first()?, arguments.get(1)?);
        let at = arguments.iter().position(|argument| argument == "-o");
        let options = at.and_then(|at| arguments.get(at + 1)).map(String::as_str).unwrap_or_default();
        let options = options.split(',').filter(|option| !option.is_empty()).map(str::to_owned).collect();
        let (host, path) = match helper {
            Helper::Cifs => source.strip_prefix("//")?.split_once('/')?,
            Helper::Nfs => source.split_once(":/")?,
        };
        let path = path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        Some(Self { host: host.to_owned(), path, target: target.into(), options })
    }

    fn option(&self, key: &str) -> Option<&str> {
        self.options.iter().find_map(|option| option.strip_prefix(key)?.strip_prefix('='))
    }

    fn has(&self, option: &str) -> bool {
        self.options.iter().any(|own| own == option)
    }

    /// The account of a host, with the public name or that of a private endpoint.
    fn account<'a>(&self, accounts: &'a [FileAccount]) -> Option<&'a FileAccount> {
        let (name, domain) = self.host.split_once('.')?;
        let domain = domain.strip_prefix("privatelink.").unwrap_or(domain);
        accounts.iter().find(|account| account.name.eq_ignore_ascii_case(name) && domain == DOMAIN)
    }
}

fn cifs(number: i32, words: &str) -> Ended {
    Ended { code: 32, words: format!("mount error({number}): {words}\n{MANUAL}") }
}

fn nfs(words: impl std::fmt::Display) -> Ended {
    Ended { code: 32, words: format!("mount.nfs: {words}") }
}

fn usage(name: &str) -> Ended {
    Ended { code: 1, words: format!("Usage: {name} <remotetarget> <dir> -o <options>") }
}

/// Mounts a share of the accounts below `folder`, as the helper would. `password` is what the variable `PASSWD` has.
pub fn mount(helper: Helper, arguments: &[String], password: Option<&str>, folder: &Path) -> Ended {
    let name = if helper == Helper::Cifs { "mount.cifs" } else { "mount.nfs" };
    let Some(request) = Request::read(helper, arguments) else { return usage(name) };
    let text = std::fs::read(folder.join(ACCOUNTS)).unwrap_or_default();
    let accounts: Vec<FileAccount> = serde_json::from_slice(&text).unwrap_or_default();
    let closed = std::fs::read_to_string(folder.join(CLOSED_PORTS)).unwrap_or_default();
    let is_closed = |port: &str| closed.lines().any(|line| line == port);
    let decided = match helper {
        Helper::Cifs => decide_cifs(&request, &accounts, is_closed("445"), password, folder),
        Helper::Nfs => decide_nfs(&request, &accounts, is_closed("2049"), folder),
    };
    match decided {
        Err(ended) => ended,
        Ok(Act::Nothing) => Ended { code: 0, words: String::new() },
        Ok(Act::Bind(source)) => bind(helper, &request, &source),
    }
}

fn bind(helper: Helper, request: &Request, source: &Path) -> Ended {
    let shown = || -> rustix::io::Result<()> {
        mount_bind(source, &request.target)?;
        if request.has("ro") {
            mount_remount(&request.target, MountFlags::BIND | MountFlags::RDONLY, "")?;
        }
        Ok(())
    };
    match (shown(), helper) {
        (Ok(()), _) => Ended { code: 0, words: String::new() },
        (Err(error), Helper::Cifs) => cifs(error.raw_os_error(), &std::io::Error::from(error).to_string()),
        (Err(error), Helper::Nfs) => nfs(std::io::Error::from(error)),
    }
}

fn decide_cifs(
    request: &Request,
    accounts: &[FileAccount],
    is_closed: bool,
    password: Option<&str>,
    folder: &Path,
) -> Result<Act, Ended> {
    let Some(account) = request.account(accounts) else {
        let words = format!("mount error: could not resolve address for {}: Unknown error", request.host);
        return Err(Ended { code: 1, words });
    };
    if is_closed {
        return Err(cifs(115, "Operation now in progress"));
    }
    let is_known = |option: &String| {
        let name = option.split('=').next().unwrap_or_default();
        CIFS_OPTIONS.contains(&name) || FLAGS.contains(&name)
    };
    if !request.has("sloppy") && !request.options.iter().all(is_known) {
        return Err(cifs(22, "Invalid argument"));
    }
    if request.option("vers").is_some_and(|version| version.starts_with(['1', '2'])) {
        return Err(cifs(95, "Operation not supported"));
    }
    if request.option("sec") == Some("krb5") {
        // There is no service that makes tickets.
        return Err(cifs(126, "Required key not available"));
    }
    let is_right = |key: &str| account.keys.iter().any(|own| own == key);
    let logs_in = account.takes_keys
        && account.is_reachable
        && request.option("username").is_some_and(|user| user.eq_ignore_ascii_case(&account.name))
        && password.is_some_and(is_right);
    if !logs_in {
        return Err(cifs(13, "Permission denied"));
    }
    let folder = share(request.path.first(), account, "SMB", folder)?;
    let folder = request.path.iter().skip(1).fold(folder, |folder, part| folder.join(part));
    if !folder.is_dir() {
        return Err(absent());
    }
    Ok(if request.has("remount") { Act::Nothing } else { Act::Bind(folder) })
}

fn absent() -> Ended {
    cifs(2, "No such file or directory")
}

/// The folder of a share with this protocol.
fn share(
    name: Option<&String>,
    account: &FileAccount,
    protocol: &str,
    folder: &Path,
) -> Result<PathBuf, Ended> {
    let name =
        name.filter(|name| account.shares.get(*name).is_some_and(|own| own.eq_ignore_ascii_case(protocol)));
    name.map(|name| folder.join(account.name.to_ascii_lowercase()).join(name)).ok_or_else(absent)
}

fn decide_nfs(
    request: &Request,
    accounts: &[FileAccount],
    is_closed: bool,
    folder: &Path,
) -> Result<Act, Ended> {
    let source = format!("{}:/{}", request.host, request.path.join("/"));
    let Some(account) = request.account(accounts) else {
        return Err(nfs(format!("Failed to resolve server {}: Name or service not known", request.host)));
    };
    if is_closed {
        return Err(nfs("Connection timed out"));
    }
    let version = request.option("vers").or(request.option("nfsvers")).unwrap_or("4");
    if !version.starts_with('4') {
        return Err(nfs("Protocol not supported"));
    }
    if !account.is_reachable || account.requires_encryption {
        return Err(nfs(format!("access denied by server while mounting {source}")));
    }
    let words = format!("mounting {source} failed, reason given by server: No such file or directory");
    let is_own = request.path.first().is_some_and(|own| own.eq_ignore_ascii_case(&account.name));
    let share =
        share(request.path.get(1).filter(|_| is_own), account, "NFS", folder).map_err(|_| nfs(&words))?;
    let share = request.path.iter().skip(2).fold(share, |share, part| share.join(part));
    if share.is_dir() { Ok(Act::Bind(share)) } else { Err(nfs(words)) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn account() -> FileAccount {
        let shares = [("files", "SMB"), ("data", "NFS")];
        FileAccount {
            name: "acc".to_owned(),
            keys: vec!["one".to_owned(), "two".to_owned()],
            takes_keys: true,
            is_reachable: true,
            requires_encryption: false,
            shares: shares.map(|(name, protocol)| (name.to_owned(), protocol.to_owned())).into(),
        }
    }

    fn decided(
        helper: Helper,
        source: &str,
        options: &str,
        password: &str,
        account: &FileAccount,
    ) -> Result<Act, Ended> {
        let folder = tempfile::tempdir().unwrap();
        for share in account.shares.keys() {
            std::fs::create_dir_all(folder.path().join("acc").join(share)).unwrap();
        }
        let arguments = [source, "/target", "-o", options].map(str::to_owned);
        let request = Request::read(helper, &arguments).unwrap();
        let accounts = std::slice::from_ref(account);
        let decided = match helper {
            Helper::Cifs => decide_cifs(&request, accounts, false, Some(password), folder.path()),
            Helper::Nfs => decide_nfs(&request, accounts, false, folder.path()),
        };
        decided.map(|act| match act {
            Act::Bind(path) => Act::Bind(path.strip_prefix(folder.path()).unwrap().to_owned()),
            other => other,
        })
    }

    /// The codes and words of cifs-utils, for the ways in which the service refuses.
    #[test]
    fn shares_are_refused_in_the_words_of_mount_cifs() {
        const HOST: &str = "//acc.file.core.windows.net";
        let usual = account();
        let without_keys = FileAccount { takes_keys: false, ..account() };
        let closed = FileAccount { is_reachable: false, ..account() };
        for (source, options, key, account, result) in [
            ("/files", "username=acc,vers=3.1.1", "one", &usual, Ok("acc/files")),
            ("/files", "username=ACC", "two", &usual, Ok("acc/files")),
            ("/files", "username=acc", "three", &usual, Err("mount error(13): Permission denied")),
            ("/files", "username=other", "one", &usual, Err("mount error(13)")),
            ("/files", "username=acc", "one", &without_keys, Err("mount error(13)")),
            ("/files", "username=acc", "one", &closed, Err("mount error(13)")),
            ("/absent", "username=acc", "one", &usual, Err("mount error(2): No such file or directory")),
            ("/data", "username=acc", "one", &usual, Err("mount error(2)")),
            ("/files/folder", "username=acc", "one", &usual, Err("mount error(2)")),
            ("/files", "username=acc,vers=1.0", "one", &usual, Err("mount error(95)")),
            ("/files", "username=acc,nonsense", "one", &usual, Err("mount error(22): Invalid argument")),
            ("/files", "sec=krb5,username=acc", "", &usual, Err("mount error(126)")),
        ] {
            match (decided(Helper::Cifs, &format!("{HOST}{source}"), options, key, account), result) {
                (Ok(act), Ok(path)) => assert_eq!(act, Act::Bind(path.into()), "{source} {options}"),
                (Err(ended), Err(words)) => {
                    assert!(
                        ended.code == 32 && ended.words.starts_with(words),
                        "{source} {options}: {ended:?}"
                    );
                }
                (decided, _) => panic!("{source} {options}: {decided:?}"),
            }
        }
        let nowhere =
            decided(Helper::Cifs, "//nowhere.example/files", "username=acc", "one", &usual).unwrap_err();
        assert_eq!((nowhere.code, nowhere.words.contains("could not resolve address")), (1, true));
        let remount = decided(Helper::Cifs, &format!("{HOST}/files"), "remount,username=acc", "two", &usual);
        assert_eq!(remount, Ok(Act::Nothing));
    }

    /// The words of nfs-utils.
    #[test]
    fn shares_are_refused_in_the_words_of_mount_nfs() {
        const HOST: &str = "acc.file.core.windows.net:";
        let usual = account();
        let encrypted = FileAccount { requires_encryption: true, ..account() };
        for (source, options, account, result) in [
            ("/acc/data", "vers=4,minorversion=1,sec=sys", &usual, Ok("acc/data")),
            ("/acc/data", "vers=3", &usual, Err("mount.nfs: Protocol not supported")),
            (
                "/acc/files",
                "vers=4",
                &usual,
                Err("mount.nfs: mounting acc.file.core.windows.net:/acc/files failed"),
            ),
            ("/other/data", "vers=4", &usual, Err("mount.nfs: mounting")),
            ("/acc/data", "vers=4", &encrypted, Err("mount.nfs: access denied by server")),
        ] {
            match (decided(Helper::Nfs, &format!("{HOST}{source}"), options, "", account), result) {
                (Ok(act), Ok(path)) => assert_eq!(act, Act::Bind(path.into()), "{source}"),
                (Err(ended), Err(words)) => assert!(ended.words.starts_with(words), "{source}: {ended:?}"),
                (decided, _) => panic!("{source} {options}: {decided:?}"),
            }
        }
        let none = FileAccount { shares: BTreeMap::new(), ..usual };
        assert!(
            decided(Helper::Nfs, "nowhere:/acc/data", "vers=4", "", &none)
                .unwrap_err()
                .words
                .contains("Failed to resolve")
        );
    }
}

//! The command line, parsed by the rules of the program that this one replaces (pflag's): `--name value`,
//! `--name=value`, `-n value`, `-nvalue`, `-n=value`, in any order with the argument.

use std::path::PathBuf;

use crate::identity_binding::BindingFlags;

/// A parsed command line.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The path of azure.json.
    pub config_file: String,
    /// `--registry-mirror`, as given.
    pub registry_mirror: String,
    /// `--ib-…`
    pub binding: BindingFlags,
    /// `-v`: from 2 on decisions are logged on standard error, from 4 on each step.
    pub verbosity: i64,
}

/// `--install-to`: what is copied to a node.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Installation {
    /// The folder on the node.
    pub folder: PathBuf,
    /// The files beside the program.
    pub files: Vec<PathBuf>,
}

/// The request of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Answer a request on standard input.
    Answer(CommandLine),
    /// Copy this program to a node and exit.
    Install(Installation),
    /// Print this and exit.
    Print(String),
}

/// An invalid command line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// The flag does not exist.
    #[error("unknown flag: {0}: see --help for the flags")]
    Unknown(String),
    /// A flag at the end, without its value.
    #[error("flag needs an argument: {0}: give it as {0}=VALUE")]
    WithoutValue(String),
    /// `-v` is not a number.
    #[error("--v={0}: is not a whole number: give a level from 0 to 10")]
    Verbosity(String),
    /// No azure.json.
    #[error("config file is not specified: give the path of azure.json as the one argument")]
    NoConfigFile,
    /// Several arguments.
    #[error("expected exactly one argument (config file); got: {}", .0.join(" "))]
    Arguments(Vec<String>),
}

struct Flag {
    name: &'static str,
    short: Option<char>,
    /// The name of its value in the help; empty for a flag without one.
    value: &'static str,
    help: &'static str,
}

const fn flag(name: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { name, short: None, value, help }
}

const fn short(short: char, name: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { name, short: Some(short), value, help }
}

const FLAGS: [Flag; 11] = [
    short('h', "help", "", "print this"),
    flag(
        "ib-apiserver-ip",
        "string",
        "address or name of the API server that exchanges tokens of identity bindings",
    ),
    flag(
        "ib-default-client-id",
        "string",
        "client id for service accounts without an annotation that names one",
    ),
    flag(
        "ib-default-tenant-id",
        "string",
        "tenant id for service accounts without an annotation that names one",
    ),
    flag("ib-sni-name", "string", "TLS server name of the endpoint of identity bindings"),
    flag(
        "install-to",
        "folder",
        "copy this program, and the files that the arguments name, into this folder, and exit",
    ),
    flag("log-flush-frequency", "duration", "accepted, without effect: nothing is buffered"),
    short(
        'r',
        "registry-mirror",
        "string",
        "source:target[,source:target]: images of the source registry get credentials of the target registry",
    ),
    short('v', "v", "level", "from 2 on decisions are logged on standard error, from 4 on each step"),
    flag("version", "", "print the version"),
    flag("vmodule", "pattern=N", "accepted, without effect: the level of -v holds everywhere"),
];

fn help() -> String {
    let mut text = String::from(
        "Gives the kubelet credentials for images in Azure container registries: it reads a CredentialProviderRequest\n\
         on standard input and writes a CredentialProviderResponse on standard output.\n\n\
         Usage:\n  acr-credential-provider configFile [flags]\n\nFlags:\n",
    );
    for flag in FLAGS {
        let short = flag.short.map_or("    ".to_owned(), |short| format!("-{short}, "));
        let name = format!("{short}--{} {}", flag.name, flag.value);
        text.push_str(&format!("  {name:<36} {}\n", flag.help));
    }
    text
}

/// Parses the arguments after the program's name.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Request, UsageError> {
    let mut line = CommandLine::default();
    let mut files = Vec::new();
    let mut text = None;
    let mut folder = None;
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            files.extend(arguments.by_ref());
            break;
        }
        let Some(FlagArgument { flag, spelled, value }) = FlagArgument::parse(&argument)? else {
            files.push(argument);
            continue;
        };
        let value = match value {
            Some(value) => value,
            None if flag.value.is_empty() => "true".to_owned(),
            None => arguments.next().ok_or(UsageError::WithoutValue(spelled))?,
        };
        match flag.name {
            // The first one decides.
            "help" if value != "false" => {
                text.get_or_insert_with(help);
            }
            "version" if value != "false" => {
                text.get_or_insert_with(|| {
                    format!("acr-credential-provider version v{}\n", version::Version)
                });
            }
            "install-to" => folder = Some(PathBuf::from(value)),
            "registry-mirror" => line.registry_mirror = value,
            "ib-sni-name" => line.binding.sni_name = value,
            "ib-default-client-id" => line.binding.default_client_id = value,
            "ib-default-tenant-id" => line.binding.default_tenant_id = value,
            "ib-apiserver-ip" => line.binding.api_server = value,
            "v" => line.verbosity = value.parse().map_err(|_| UsageError::Verbosity(value))?,
            _ => {}
        }
    }
    if let Some(text) = text {
        return Ok(Request::Print(text));
    }
    if let Some(folder) = folder {
        let files = files.into_iter().map(PathBuf::from).collect();
        return Ok(Request::Install(Installation { folder, files }));
    }
    match <[String; 1]>::try_from(files) {
        Ok([file]) => Ok(Request::Answer(CommandLine { config_file: file, ..line })),
        Err(files) if files.is_empty() => Err(UsageError::NoConfigFile),
        Err(files) => Err(UsageError::Arguments(files)),
    }
}

/// An argument that is a flag.
struct FlagArgument {
    flag: &'static Flag,
    /// The flag as it was spelled, with its dashes.
    spelled: String,
    /// The value in the same argument.
    value: Option<String>,
}

impl FlagArgument {
    /// Parses an argument; `None` if it is not a flag.
    fn parse(argument: &str) -> Result<Option<Self>, UsageError> {
        let (spelled, flag, value) = if let Some(long) = argument.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            (format!("--{name}"), FLAGS.iter().find(|flag| flag.name == name), value)
        } else {
            let mut rest = argument.strip_prefix('-').unwrap_or_default().chars();
            // A single dash is an argument.
            let Some(letter) = rest.next() else { return Ok(None) };
            let rest = rest.as_str();
            let value = (!rest.is_empty()).then(|| rest.strip_prefix('=').unwrap_or(rest));
            (format!("-{letter}"), FLAGS.iter().find(|flag| flag.short == Some(letter)), value)
        };
        let flag = flag.ok_or_else(|| UsageError::Unknown(spelled.clone()))?;
        Ok(Some(Self { flag, spelled, value: value.map(str::to_owned) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Request, UsageError> {
        parse(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn flags_are_read_in_every_spelling_and_place() {
        let expected = CommandLine {
            config_file: "azure.json".into(),
            registry_mirror: "a:b".into(),
            binding: BindingFlags {
                sni_name: "name".into(),
                default_client_id: "client".into(),
                default_tenant_id: "tenant".into(),
                api_server: "10.0.0.1".into(),
            },
            verbosity: 4,
        };
        for words in [
            "azure.json --registry-mirror a:b --ib-sni-name name --ib-default-client-id client \
             --ib-default-tenant-id tenant --ib-apiserver-ip 10.0.0.1 -v 4",
            "--registry-mirror=a:b --ib-sni-name=name --ib-default-client-id=client --ib-default-tenant-id=tenant \
             --ib-apiserver-ip=10.0.0.1 --v=4 azure.json",
            "-ra:b --ib-sni-name=name azure.json --ib-default-client-id=client --ib-default-tenant-id=tenant -v=4 \
             --ib-apiserver-ip=10.0.0.1 --vmodule=a=5 --log-flush-frequency=5s",
            "-r=a:b --ib-sni-name=name --ib-default-client-id=client --ib-default-tenant-id=tenant -v4 \
             --ib-apiserver-ip=10.0.0.1 -- azure.json",
        ] {
            assert_eq!(read(words), Ok(Request::Answer(expected.clone())), "{words}");
        }
        assert!(matches!(read("-"), Ok(Request::Answer(line)) if line.config_file == "-"));
    }

    #[test]
    fn an_installation_takes_any_number_of_files() {
        let folder = PathBuf::from("/host");
        let installation = |files: &[&str]| {
            Ok(Request::Install(Installation {
                folder: folder.clone(),
                files: files.iter().map(PathBuf::from).collect(),
            }))
        };
        assert_eq!(read("--install-to=/host"), installation(&[]));
        assert_eq!(read("--install-to /host a.yaml b.yaml"), installation(&["a.yaml", "b.yaml"]));
    }

    #[test]
    fn what_cannot_be_followed_is_refused_and_help_goes_before() {
        assert_eq!(read(""), Err(UsageError::NoConfigFile));
        assert_eq!(read("a b"), Err(UsageError::Arguments(vec!["a".into(), "b".into()])));
        assert_eq!(read("a --nonsense=1"), Err(UsageError::Unknown("--nonsense".into())));
        assert_eq!(read("a -x"), Err(UsageError::Unknown("-x".into())));
        assert_eq!(read("a --registry-mirror"), Err(UsageError::WithoutValue("--registry-mirror".into())));
        assert_eq!(read("a -v=much"), Err(UsageError::Verbosity("much".into())));
        let Ok(Request::Print(help)) = read("-h") else { panic!() };
        for flag in FLAGS {
            assert!(help.contains(&format!("--{}", flag.name)), "{}", flag.name);
        }
        let Ok(Request::Print(version)) = read("--version") else { panic!() };
        assert!(version.starts_with("acr-credential-provider version v"), "{version}");
        assert_eq!(read("--version=false"), Err(UsageError::NoConfigFile));
    }
}

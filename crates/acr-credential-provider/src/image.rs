//! The registry of an image, and whether it is one of Azure's.

/// Domains of the registries of all Azure clouds; names of registries are one label.
const DOMAINS: [&str; 4] = ["azurecr.io", "azurecr.cn", "azurecr.de", "azurecr.us"];

/// `--registry-mirror`: source registries, each with the one that replaces it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mirrors(Vec<(String, String)>);

impl Mirrors {
    /// Parses `source:target[,source:target]`. Spaces are ignored; the last target of a source counts. Returns the
    /// mirrors and the invalid entries.
    pub fn parse(text: &str) -> (Self, Vec<String>) {
        let text: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
        let (mut mirrors, mut ignored) = (Vec::new(), Vec::new());
        for entry in text.split(',').filter(|entry| !entry.is_empty()) {
            match entry.split(':').collect::<Vec<_>>()[..] {
                [source, target] if !source.is_empty() && !target.is_empty() => {
                    mirrors.retain(|(other, _): &(String, String)| other != source);
                    mirrors.push((source.to_owned(), target.to_owned()));
                }
                _ => ignored.push(entry.to_owned()),
            }
        }
        (Self(mirrors), ignored)
    }

    /// Whether images of one registry get credentials of several: then credentials of one image are not for the others.
    pub fn divide(&self, image: &str) -> bool {
        let host = registry(image);
        self.0.iter().any(|(source, _)| {
            let is_part = source.trim_end_matches('/').contains('/');
            is_part && registry(source) == host
        })
    }

    /// The source and its target, if an image is of a mirrored registry: the longest source wins.
    fn of(&self, image: &str) -> Option<&(String, String)> {
        let is_of = |source: &str| {
            image.strip_prefix(source).is_some_and(|rest| {
                // A prefix of a host is not that host.
                source.ends_with('/') || rest.is_empty() || rest.starts_with(['/', ':', '@'])
            })
        };
        self.0.iter().filter(|(source, _)| is_of(source)).max_by_key(|(source, _)| source.len())
    }
}

/// The registry from which an image is pulled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The host of one of Azure's registries, with its port if the image names one; `None` for other registries.
    pub login_server: Option<String>,
    /// The source of the mirror from which the image is pulled, in the flag's spelling.
    pub mirrored_from: Option<String>,
}

impl Origin {
    /// The registry of an image, in a cloud whose registries are below this domain.
    pub fn of(image: &str, mirrors: &Mirrors, domain: &str) -> Self {
        let mirror = mirrors.of(image);
        let image = match mirror {
            Some((source, target)) => &format!("{target}{}", &image[source.len()..]),
            None => image,
        };
        Self {
            login_server: login_server(image, domain).map(str::to_owned),
            mirrored_from: mirror.map(|(source, _)| source.clone()),
        }
    }
}

/// The part of an image before the first slash, if it is one of Azure's hosts.
fn login_server<'a>(image: &'a str, domain: &str) -> Option<&'a str> {
    let server = image.split('/').next()?;
    let host = server.split(':').next()?;
    let domain = domain.trim_start_matches('.');
    let of_any_cloud = DOMAINS.iter().filter_map(|domain| below(host, domain)).any(is_name);
    let of_this_cloud =
        !domain.is_empty() && below(host, domain).is_some_and(|name| name.split('.').all(is_label));
    (of_any_cloud || of_this_cloud).then_some(server)
}

/// The part of a host's name before the domain.
fn below<'a>(host: &'a str, domain: &str) -> Option<&'a str> {
    let at = host.len().checked_sub(domain.len())?;
    let (name, end) = host.split_at_checked(at)?;
    if end.eq_ignore_ascii_case(domain) { name.strip_suffix('.') } else { None }
}

/// Whether a text can be a registry's name, with or without the hash that distinguishes equal names of several owners.
fn is_name(text: &str) -> bool {
    let (name, hash) = text.split_once('-').map_or((text, None), |(name, hash)| (name, Some(hash)));
    is_alphanumeric(name) && hash.is_none_or(is_alphanumeric)
}

fn is_alphanumeric(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_label(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Patterns of the registries for which a service principal's password is given. The kubelet compares label by label.
pub fn patterns(domain: &str) -> Vec<String> {
    let mut patterns: Vec<String> = DOMAINS.iter().map(|domain| format!("*.{domain}")).collect();
    let own = format!("*{domain}");
    if domain.contains(".azurecr.") && !patterns.iter().any(|pattern| pattern.eq_ignore_ascii_case(&own)) {
        patterns.push(own);
    }
    patterns
}

/// The part of an image before the first slash: its registry, with the port if the image names one.
pub fn registry(image: &str) -> &str {
    image.split('/').next().unwrap_or_default()
}

/// Whether the kubelet uses credentials under this key for an image: the labels of the hosts are compared one by one,
/// where `*` in a label of the key matches any text, ports must be equal, and the path of the key must be a prefix of
/// the image's.
pub fn fits(key: &str, image: &str) -> bool {
    let parts = |text: &str| {
        let (server, path) = text.split_at(text.find('/').unwrap_or(text.len()));
        let (host, port) = server.split_once(':').unwrap_or((server, ""));
        (host.to_owned(), port.to_owned(), path.to_owned())
    };
    let ((key_host, key_port, key_path), (host, port, path)) = (parts(key), parts(image));
    let key_path = key_path.strip_suffix('/').unwrap_or(&key_path);
    let (key_labels, labels) = (key_host.split('.'), host.split('.'));
    key_port == port
        && path.starts_with(key_path)
        && key_labels.clone().count() == labels.clone().count()
        && key_labels.zip(labels).all(|(pattern, label)| label_fits(pattern, label))
}

fn label_fits(pattern: &str, label: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == label,
        Some((start, rest)) => label.strip_prefix(start).is_some_and(|tail| {
            (0..=tail.len()).any(|at| tail.get(at..).is_some_and(|end| label_fits(rest, end)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Option<&str> = None;
    /// Cases that are the same in each cloud.
    const EVERYWHERE: [(&str, Option<&str>); 15] = [
        ("invalidImage", NONE),
        ("docker.io/library/busybox:latest", NONE),
        ("foo.azurecr.io/bar/image:version", Some("foo.azurecr.io")),
        ("foo.azurecr.cn/bar/image:version", Some("foo.azurecr.cn")),
        ("foo.azurecr.de/bar/image:version", Some("foo.azurecr.de")),
        ("foo.azurecr.us/bar/image:version", Some("foo.azurecr.us")),
        ("foo.azurecr.us/foo.azurecr.io/bar/image:version", Some("foo.azurecr.us")),
        ("foo.azurecr.io.example/bar/image:version", NONE),
        ("docker/foo.azurecr.io/bar/image:version", NONE),
        ("foo.azurecr.io", Some("foo.azurecr.io")),
        ("foo.azurecr.io.azurecr.cn", NONE),
        ("foo-azurecr-io.azurecr.cn", NONE),
        ("foo-a1b2.azurecr.cn/bar", Some("foo-a1b2.azurecr.cn")),
        ("foo-.azurecr.cn/bar", NONE),
        ("", NONE),
    ];

    fn server(image: &str, domain: &str) -> Option<String> {
        Origin::of(image, &Mirrors::default(), domain).login_server
    }

    /// NODE-126
    #[test]
    fn login_servers_in_a_cloud_of_ones_own() {
        let own = [("foo.azurecr.my.cloud/bar/image:version", Some("foo.azurecr.my.cloud"))];
        for (image, expected) in EVERYWHERE.into_iter().chain(own) {
            assert_eq!(server(image, ".azurecr.my.cloud").as_deref(), expected, "{image}");
        }
        assert_eq!(server("foo.azurecr.io/bar", "").as_deref(), Some("foo.azurecr.io"));
    }

    /// NODE-127
    #[test]
    fn login_servers_in_the_public_cloud_are_whole_hosts() {
        let own = [
            ("foo.azurecr.my.cloud/bar/image:version", NONE),
            ("evilazurecr.io/bar", NONE),
            (".azurecr.io/bar", NONE),
            ("a_b.azurecr.io/bar", NONE),
            ("foo.azurecr.io@evil.example/bar", NONE),
            // Names with a hash of their owner, and regional endpoints.
            ("my-reg-a1b2c3.azurecr.io/bar", Some("my-reg-a1b2c3.azurecr.io")),
            ("foo.westeurope.geo.azurecr.io/bar", Some("foo.westeurope.geo.azurecr.io")),
            ("foo.azurecr.io:443/bar:1", Some("foo.azurecr.io:443")),
        ];
        for (image, expected) in EVERYWHERE.into_iter().chain(own) {
            assert_eq!(server(image, "azurecr.io").as_deref(), expected, "{image}");
        }
    }

    /// NODE-128
    #[test]
    fn mirrored_images_have_the_login_server_of_their_target() {
        let (mirrors, ignored) = Mirrors::parse("mcr.microsoft.com:abc.azurecr.io");
        assert!(ignored.is_empty());
        let origin = |image: &str| {
            let origin = Origin::of(image, &mirrors, "azurecr.io");
            (origin.login_server.unwrap_or_default(), origin.mirrored_from.unwrap_or_default())
        };
        let both = |server: &str, source: &str| (server.to_owned(), source.to_owned());
        assert_eq!(
            origin("mcr.microsoft.com/bar/image:version"),
            both("abc.azurecr.io", "mcr.microsoft.com")
        );
        assert_eq!(origin("foo.azurecr.io/bar/image:version"), both("foo.azurecr.io", ""));
        assert_eq!(origin("mcr.microsoft.com.example/bar"), both("", ""));

        let pairs = |text: &str| Mirrors::parse(text).0.0;
        let pair = |source: &str, target: &str| (source.to_owned(), target.to_owned());
        assert_eq!(pairs(""), []);
        for text in ["aaa:bbb,ccc:ddd", "aaa: bbb, ccc:ddd"] {
            assert_eq!(pairs(text), [pair("aaa", "bbb"), pair("ccc", "ddd")]);
        }
        assert_eq!(pairs("aaa:bbb"), [pair("aaa", "bbb")]);
        assert_eq!(pairs("aaa:bbb,aaa:ccc"), [pair("aaa", "ccc")], "the last one counts");
        let (kept, ignored) = Mirrors::parse("aaa:bbb,ccc,d:e:f,:g,h:");
        assert_eq!(
            (kept.0, ignored),
            (vec![pair("aaa", "bbb")], ["ccc", "d:e:f", ":g", "h:"].map(str::to_owned).to_vec())
        );
    }

    #[test]
    fn the_longest_source_wins_and_what_is_no_registry_of_azures_stays_none() {
        let (mirrors, _) =
            Mirrors::parse("mcr.microsoft.com:a.azurecr.io,mcr.microsoft.com/oss:b.azurecr.io/x,q.io:r.io");
        let origin = |image: &str| Origin::of(image, &mirrors, "azurecr.io");
        let oss = origin("mcr.microsoft.com/oss/pause:3.9");
        assert_eq!(oss.login_server.as_deref(), Some("b.azurecr.io"));
        assert_eq!(oss.mirrored_from.as_deref(), Some("mcr.microsoft.com/oss"));
        assert_eq!(origin("mcr.microsoft.com/ossify").login_server.as_deref(), Some("a.azurecr.io"));
        assert_eq!(origin("q.io/x").login_server, None);
    }

    #[test]
    fn which_patterns_cover_a_login_server() {
        let public = patterns("azurecr.io");
        assert_eq!(public, ["*.azurecr.io", "*.azurecr.cn", "*.azurecr.de", "*.azurecr.us"]);
        assert_eq!(patterns(".azurecr.my.cloud")[4..], ["*.azurecr.my.cloud"]);
        for (server, covered) in [
            ("foo.azurecr.io", true),
            ("my-reg.azurecr.io", true),
            ("foo.azurecr.io:443", false),
            ("foo.westeurope.geo.azurecr.io", false),
            ("foo.azurecr.my.cloud", false),
        ] {
            assert_eq!(public.iter().any(|pattern| fits(pattern, server)), covered, "{server}");
        }
        for (key, image, expected) in [
            ("ghcr.io", "ghcr.io/team/app", true),
            ("ghcr.io", "ghcr.io:443/team/app", false),
            ("ghcr.io:443", "ghcr.io:443/team/app", true),
            ("ghcr.io/team", "ghcr.io/team/app", true),
            ("ghcr.io/team/", "ghcr.io/team/app", true),
            ("ghcr.io/team", "ghcr.io/other", false),
            ("*.azurecr.*", "foo.azurecr.cn/a", true),
            ("a*.azurecr.io", "abc.azurecr.io/a", true),
            ("a*.azurecr.io", "bc.azurecr.io/a", false),
        ] {
            assert_eq!(fits(key, image), expected, "{key} {image}");
        }
    }
}

//! Mutations of a request.

use rand::Rng as _;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

use super::corpus::FuzzRequest;

/// Applies one to four mutations to a request.
pub fn bend(mut request: FuzzRequest, corpus: &[FuzzRequest], random: &mut SmallRng) -> FuzzRequest {
    for _ in 0..random.random_range(1..=4) {
        match random.random_range(0..20) {
            0..9 => members(&mut request, corpus, random),
            9 => bytes(&mut request.body, random),
            10..14 => path(&mut request, random),
            14..16 => query(&mut request, random),
            16 => header(&mut request, random),
            17 => {
                request.method = (*pick(
                    &["GET", "PUT", "PATCH", "POST", "DELETE", "HEAD", "OPTIONS", "TRACE", "X"],
                    random,
                ))
                .to_owned()
            }
            // Another request's body: valid JSON in the wrong place.
            18 => request.body = pick(corpus, random).body.clone(),
            _ => whole_body(&mut request.body, random),
        }
    }
    request
}

fn pick<'a, T>(choices: &'a [T], random: &mut SmallRng) -> &'a T {
    &choices[random.random_range(0..choices.len())]
}

fn strange(random: &mut SmallRng) -> Value {
    let long = || "x".repeat(70_000);
    match random.random_range(0..30) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(0),
        3 => json!(-1),
        4 => json!(i64::MIN),
        5 => json!(u64::MAX),
        6 => json!(1e308),
        7 => json!(0.5),
        8 => json!(""),
        9 => json!(long()),
        10 => json!([]),
        11 => json!({}),
        12 => json!([[[[[null]]]]]),
        13 => json!([null, 1, "x", {}]),
        14 => json!({"id": null}),
        15 => json!({"id": "/"}),
        16 => json!({"id": "/subscriptions/x/resourceGroups//providers/M.N/a/b/c"}),
        17 => json!({"name": "a/b", "properties": null}),
        18 => json!("\u{0}\u{7f}\u{202e}\u{1f4a5}"),
        19 => json!("*"),
        20 => json!("0.0.0.0/0"),
        21 => json!("255.255.255.255/32"),
        22 => json!("::/0"),
        23 => json!("10.0.0.0/33"),
        24 => json!("65536-1"),
        25 => json!("0-65535"),
        26 => json!("İİİ"),
        27 => json!("Dynamic"),
        28 => json!(random.random::<i32>()),
        _ => deep(random.random_range(1..300)),
    }
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(
        json!(1),
        |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({"properties": inner}) },
    )
}

/// Changes one node somewhere in a JSON body.
fn members(request: &mut FuzzRequest, corpus: &[FuzzRequest], random: &mut SmallRng) {
    let Ok(mut document) = serde_json::from_slice::<Value>(&request.body) else { return };
    let count = nodes(&document);
    let target = random.random_range(0..count);
    let kind = random.random_range(0..8);
    let other = serde_json::from_slice::<Value>(&pick(corpus, random).body).unwrap_or_default();
    let mut seen = 0;
    visit(&mut document, target, &mut seen, &mut |node| match (kind, &mut *node) {
        (0, Value::Object(members)) if !members.is_empty() => {
            let name = members.keys().nth(random.random_range(0..members.len())).cloned().unwrap_or_default();
            members.remove(&name);
        }
        (1, Value::Array(items)) if !items.is_empty() => {
            let item = items[random.random_range(0..items.len())].clone();
            items.extend(std::iter::repeat_n(item, *pick(&[1, 2, 300], random)));
        }
        (2, Value::Object(members)) => {
            let name = *pick(
                &["id", "name", "etag", "provisioningState", "zones", "sku", "identity", "", "properties"],
                random,
            );
            members.insert(name.to_owned(), strange(random));
        }
        (3, Value::Object(members)) => {
            // The other case of a name.
            let name = members.keys().nth(random.random_range(0..members.len().max(1))).cloned();
            if let Some((name, value)) =
                name.and_then(|name| Some((name.to_uppercase(), members.remove(&name)?)))
            {
                members.insert(name, value);
            }
        }
        (4, node) => *node = other.clone(),
        (5, Value::String(text)) => {
            let at = text
                .char_indices()
                .map(|(at, _)| at)
                .nth(random.random_range(0..text.chars().count().max(1)));
            if let Some(at) = at {
                text.insert_str(
                    at,
                    pick::<&str>(&["/", "..", "%2f", " ", "\u{e9}", "'", "\"", "\\", "0", "-"], random),
                );
            }
        }
        (5, Value::Number(_)) => *node = json!(random.random_range(-3..70_000)),
        (_, node) => *node = strange(random),
    });
    request.body = document.to_string().into_bytes();
}

fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(nodes).sum(),
        Value::Object(members) => members.values().map(nodes).sum(),
        _ => 0,
    }
}

fn visit(value: &mut Value, target: usize, seen: &mut usize, change: &mut dyn FnMut(&mut Value)) {
    if *seen == target {
        change(value);
        *seen += 1;
        return;
    }
    *seen += 1;
    let below: Box<dyn Iterator<Item = &mut Value>> = match value {
        Value::Array(items) => Box::new(items.iter_mut()),
        Value::Object(members) => Box::new(members.values_mut()),
        _ => return,
    };
    for child in below {
        if *seen <= target {
            visit(child, target, seen, change);
        }
    }
}

fn bytes(body: &mut Vec<u8>, random: &mut SmallRng) {
    if body.is_empty() {
        body.extend((0..random.random_range(1..50)).map(|_| random.random::<u8>()));
        return;
    }
    let at = random.random_range(0..body.len());
    match random.random_range(0..4) {
        0 => body[at] ^= 1 << random.random_range(0..8),
        1 => body.truncate(at),
        2 => body.insert(at, random.random()),
        _ => drop(body.remove(at)),
    }
}

fn whole_body(body: &mut Vec<u8>, random: &mut SmallRng) {
    *body = match random.random_range(0..8) {
        0 => Vec::new(),
        1 => b"[".repeat(100_000),
        2 => br#"{"a":"#.repeat(5_000),
        3 => b"null".to_vec(),
        4 => b"\xff\xfe\xfd".to_vec(),
        5 if random.random_bool(0.05) => vec![b' '; 10 * 1024 * 1024],
        5 => b"{\"location\":\"eastus\",\"location\":\"westus\"}".to_vec(),
        6 => b"{} {}".to_vec(),
        _ => strange(random).to_string().into_bytes(),
    };
}

fn path(request: &mut FuzzRequest, random: &mut SmallRng) {
    let (path, query) = match request.path.split_once('?') {
        Some((path, query)) => (path.to_owned(), format!("?{query}")),
        None => (request.path.clone(), String::new()),
    };
    let mut segments: Vec<String> = path.split('/').map(str::to_owned).collect();
    let at = random.random_range(0..segments.len());
    match random.random_range(0..6) {
        0 => drop(segments.remove(at)),
        1 => segments.insert(
            at,
            pick(
                &[
                    "",
                    "..",
                    ".",
                    "%2e%2e",
                    "%2F",
                    "a%00b",
                    "providers",
                    "%F0%9F%92%A5",
                    "%",
                    "%zz",
                    "..;",
                    "*",
                ],
                random,
            )
            .to_string(),
        ),
        2 => segments[at] = segments[at].to_uppercase(),
        3 => segments[at] = "n".repeat(*pick(&[1, 81, 3_000], random)),
        4 => segments.truncate(at + 1),
        _ => {
            let other = random.random_range(0..segments.len());
            segments.swap(at, other);
        }
    }
    request.path = format!("{}{query}", segments.join("/"));
    if !request.path.starts_with('/') {
        request.path.insert(0, '/');
    }
}

fn query(request: &mut FuzzRequest, random: &mut SmallRng) {
    let more = *pick(
        &[
            "api-version=",
            "api-version=1999-01-01",
            "api-version=2025-05-01-preview",
            "api-version=%00",
            "api-version=2025-99-99",
            "$skiptoken=",
            "$skiptoken=AAAA",
            "$skiptoken=%FF",
            "$top=-1",
            "$top=99999999999999999999",
            "$filter=",
            "$filter=name%20eq%20'",
            "$filter='virtualMachineScaleSet/id'%20eq%20'x",
            "$expand=instanceView,userData",
            "monitor=true",
            "p=x",
            "&&=&",
            "forceDeletion=yes",
            "after=-1",
            "format=lines",
        ],
        random,
    );
    let path = request.path.split('?').next().unwrap_or_default().to_owned();
    request.path = match random.random_range(0..3) {
        0 => path,
        1 => format!("{path}?{more}"),
        _ => format!("{}{}{more}", request.path, if request.path.contains('?') { '&' } else { '?' }),
    };
}

fn header(request: &mut FuzzRequest, random: &mut SmallRng) {
    let (name, value) = *pick(
        &[
            ("if-match", "*"),
            ("if-match", "W/\"\""),
            ("if-match", "\""),
            ("if-none-match", "*"),
            ("authorization", "Bearer"),
            ("authorization", "Bearer a.b.c"),
            ("authorization", "Bearer .e30."),
            ("content-type", "text/xml"),
            ("content-length", "7"),
            ("x-ms-client-request-id", "\u{7f}"),
            ("x-ms-correlation-request-id", "x"),
            ("host", "a b"),
            ("accept", "*/*;q=2"),
        ],
        random,
    );
    request.headers.push((name.to_owned(), value.to_owned()));
}

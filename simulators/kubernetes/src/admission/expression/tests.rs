use serde_json::{Value, json};

use super::*;
use crate::schema::Schema;

fn schema() -> Value {
    let text = json!({ "type": "string" });
    json!({ "type": "object", "properties": {
        "size": { "type": "integer" },
        "ratio": { "type": "number" },
        "on": { "type": "boolean" },
        "name": text,
        "in": text,
        "a-b": text,
        "since": { "type": "string", "format": "date-time" },
        "wait": { "type": "string", "format": "duration" },
        "port": { "x-kubernetes-int-or-string": true },
        "any": { "x-kubernetes-preserve-unknown-fields": true },
        "labels": { "type": "object", "additionalProperties": text },
        "list": { "type": "array", "items": { "type": "object", "properties": { "key": text, "n": { "type": "integer" } } } },
        "spec": { "type": "object", "properties": { "replicas": { "type": "integer" } } },
    } })
}

/// The type of an expression, or the error without the text and the mark.
fn found(expression: &str) -> Result<String, String> {
    let schema = Schema::custom(&schema());
    let this = Type::of_self(&schema).unwrap();
    let variables = [("self", this.clone()), ("oldSelf", this)];
    let first = |why: String| why.lines().next().unwrap_or_default().to_owned();
    let program = compile(expression).map_err(first)?;
    check(&program, &variables).map(|of| of.to_string()).map_err(first)
}

#[test]
fn expressions_have_types() {
    for (expression, of) in [
        ("self.size > 0 && self.size < 1.5", "bool"),
        ("self.spec.replicas >= oldSelf.spec.replicas", "bool"),
        ("self.name.startsWith('a') || !self.on", "bool"),
        ("has(self.spec) && has(self.spec.replicas)", "bool"),
        ("self.list.all(item, item.n > 0 && item.key != '')", "bool"),
        ("self.list.exists(item, item.key in self.labels)", "bool"),
        ("self.list.exists_one(item, item.n == 1)", "bool"),
        ("self.list.map(item, item.n)", "list(int)"),
        ("self.list.filter(item, item.n > 0).size()", "int"),
        ("self.list.map(item, item.n > 0, item.key).join(', ')", "string"),
        ("self.labels.all(key, self.labels[key].size() < 64)", "bool"),
        ("self.labels['a'] + self.labels.b", "string"),
        ("self.?name", "optional_type(string)"),
        ("self.?spec.?replicas.orValue(0)", "int"),
        ("self.labels[?'a'].hasValue()", "bool"),
        ("optional.of(1).or(optional.none()).value()", "int"),
        ("self.since + self.wait > timestamp('2026-01-01T00:00:00Z')", "bool"),
        ("self.since.getFullYear('UTC') + self.wait.getHours()", "int"),
        ("self.port == 80 || self.port == 'http'", "bool"),
        ("type(self.port) == string", "bool"),
        ("self.spec == null", "bool"),
        ("self.__in__ + self.a__dash__b + self.metadata.name + self.kind", "string"),
        ("self.size == 0 ? 'none' : string(self.size)", "string"),
        ("quantity('1Gi').add(1).isGreaterThan(quantity(self.name))", "bool"),
        ("ip(self.name).family() == 4 && cidr('10.0.0.0/8').containsIP(self.name)", "bool"),
        ("ip.isCanonical(self.name) && isURL(self.name) && url(self.name).getHost() == ''", "bool"),
        ("!format.dns1123Label().validate(self.name).hasValue()", "bool"),
        ("sets.contains(['a', 'b'], [self.name])", "bool"),
        ("self.name.find('[0-9]+').split(',')[0].lowerAscii()", "string"),
        ("'%s is %d'.format([self.name, self.size])", "string"),
        ("[1, 2].sum() + [3].max()", "int"),
        ("{'a': 1}['a'] - 1", "int"),
        ("[]", "list(dyn)"),
        ("self.labels.all(key, value, value != '') == true", "bool"),
        ("self.ratio / 2.0", "double"),
    ] {
        assert_eq!(found(expression).as_deref(), Ok(of), "{expression}");
    }
}

#[test]
fn what_cannot_be_evaluated_is_told_with_its_place() {
    for (expression, why) in [
        ("self.color == 'red'", "1:5: undefined field 'color'"),
        ("self.any == 1", "1:5: undefined field 'any'"),
        ("self.spec.size > 0", "1:10: undefined field 'size'"),
        ("self.metadata.labels.size() > 0", "1:14: undefined field 'labels'"),
        ("has(self.color)", "1:4: undefined field 'color'"),
        ("self.size > 0 && object.size > 0", "1:18: undeclared reference to 'object' (in container '')"),
        ("self.size.value > 0", "1:10: type 'int' does not support field selection"),
        ("self.size == 'a'", "1:11: found no matching overload for '_==_' applied to '(int, string)'"),
        ("self.name > 0", "1:11: found no matching overload for '_>_' applied to '(string, int)'"),
        ("self.name == null", "1:11: found no matching overload for '_==_' applied to '(string, null)'"),
        ("self.spec > 0", "1:11: found no matching overload for '_>_' applied to '(selfType1.spec, int)'"),
        (
            "self.name.startsWith(1)",
            "1:21: found no matching overload for 'startsWith' applied to 'string.(int)'",
        ),
        ("self.size.size() > 0", "1:15: found no matching overload for 'size' applied to 'int.()'"),
        ("self.list.size > 0", "1:10: type 'list(selfType1.list.@idx)' does not support field selection"),
        ("shout(self.name)", "1:6: undeclared reference to 'shout' (in container '')"),
        ("self.name.shout()", "1:16: undeclared reference to 'shout' (in container '')"),
        (
            "self.name.all(c, c == 'a')",
            "1:5: expression of type 'string' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("self.list.all(item, item.value == 1)", "1:25: undefined field 'value'"),
        ("self.list.all(item, item.n)", "1:25: expected type 'bool' but found 'int'"),
        ("self.on && self.size", "1:16: expected type 'bool' but found 'int'"),
        ("self.size in [1, 'a']", "1:18: expected type 'int' but found 'string'"),
        ("self.name.contains('self.size') && self.sizes == 1", "1:40: undefined field 'sizes'"),
        ("self.on &&\n  self.off", "2:7: undefined field 'off'"),
    ] {
        assert_eq!(found(expression), Err(format!("ERROR: <input>:{why}")), "{expression}");
    }
}

#[test]
fn the_line_and_the_place_are_shown() {
    let schema = Schema::custom(&schema());
    let variables = [("self", Type::of_self(&schema).unwrap())];
    let told = check(&compile("self.size > 0 &&\n  self.color == other").unwrap(), &variables).unwrap_err();
    assert_eq!(
        told,
        "ERROR: <input>:2:7: undefined field 'color'\n |   self.color == other\n | ......^\n\
         ERROR: <input>:2:17: undeclared reference to 'other' (in container '')\n |   self.color == other\n \
         | ................^"
    );
    let told = compile("self.size >").unwrap_err();
    assert!(told.starts_with("ERROR: <input>:1:12: Syntax error: mismatched input '<EOF>'"), "{told}");
    assert!(told.ends_with("\n | self.size >\n | ...........^"), "{told}");
}

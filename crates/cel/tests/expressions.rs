//! Expressions and what they come to, each through one door.

use orrery_cel::{COST_LIMIT, Environment, Type, Value};

fn environment() -> Environment {
    Environment::kubernetes().variable("self", Type::Dyn)
}

/// An expression comes to true on this object.
fn holds(expression: &str, json: &serde_json::Value) {
    let program = environment().compile(expression).unwrap_or_else(|error| panic!("{error}"));
    let outcome = program.run(&[Some(Value::from_json(json))], COST_LIMIT);
    assert!(matches!(outcome.value, Ok(Value::Bool(true))), "{expression}: {:?}", outcome.value);
}

/// An expression fails with this message.
fn fails(expression: &str, message: &str) {
    let program = environment().compile(expression).unwrap_or_else(|error| panic!("{error}"));
    let outcome = program.run(&[Some(Value::Null)], COST_LIMIT);
    assert_eq!(outcome.value.err().map(|error| error.to_string()).as_deref(), Some(message), "{expression}");
}

/// An expression is refused with this text.
fn refused(expression: &str, message: &str) {
    let error = environment().compile(expression).expect_err(expression).to_string();
    assert!(error.contains(message), "{expression}: {error}");
}

#[test]
fn expressions_that_hold() {
    let json = serde_json::json!({"i": 3, "d": 1.5, "s": "héllo", "l": [1, 2, 3], "m": {"a": 1, "b": {"c": [true]}}, "n": null});
    for expression in [
        // arithmetic and precedence
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "7 / 2 == 3",
        "-7 / 2 == -3",
        "-7 % 3 == -1",
        "2.5 * 2.0 == 5.0",
        "1u + 2u == 3u",
        "-(-1) == 1",
        "--1 == 1",
        "!!true",
        "0x1F == 31",
        "1e3 == 1000.0",
        "self.i - -2 == 5",
        // equality across types
        "dyn(1) == dyn(1.0)",
        "dyn(1u) == dyn(1)",
        "dyn(1) != dyn('1')",
        "dyn([1, 2]) == dyn([1.0, 2.0])",
        "dyn({'a': 1}) == dyn({'a': 1.0})",
        "null == self.n",
        "self.m.a == 1",
        "dyn(9007199254740993) != dyn(9007199254740992.0)",
        "dyn(1) < dyn(1.5)",
        "2u > 1",
        // logic absorbs errors
        "true || 1 / 0 == 1",
        "1 / 0 == 1 || true",
        "!(false && 1 / 0 == 1)",
        "!(1 / 0 == 1 && false)",
        "true ? true : 1 / 0 == 1",
        "[1, 0].exists(x, 4 / x == 4)",
        "![0, 1].all(x, 1 / x == 0)",
        // texts
        "'a' + 'b' == 'ab'",
        "size(self.s) == 5",
        "self.s.charAt(1) == 'é'",
        "self.s.substring(1, 3) == 'él'",
        "'a,b,,c'.split(',') == ['a', 'b', '', 'c']",
        "'abc'.split('') == ['a', 'b', 'c']",
        "'a-b-c'.split('-', 2) == ['a', 'b-c']",
        "'aXbX'.replace('X', '-', 1) == 'a-bX'",
        "'abc'.replace('', '-') == '-a-b-c-'",
        "' x\\t'.trim() == 'x'",
        "'ABC'.lowerAscii() == 'abc'",
        "'hello'.indexOf('l') == 2",
        "'hello'.lastIndexOf('l') == 3",
        "'hello'.indexOf('') == 0",
        "'hello'.indexOf('l', 3) == 3",
        "['a', 'b'].join('-') == 'a-b'",
        "'abc'.matches('^a.c$')",
        "'abc'.find('[b-z]') == 'b'",
        "'a1b2'.findAll('[0-9]') == ['1', '2']",
        "'a1b2c3'.findAll('[0-9]', 2) == ['1', '2']",
        "'%s is %d, %.2f, %x, %b, %o'.format(['x', 3, 1.005, 255, 5, 8]) == 'x is 3, 1.00, ff, 101, 10'",
        "'%s'.format([[1, 'a', 2.5]]) == '[1, \"a\", 2.500000]'",
        "'%s'.format([{'b': 1, 'a': true}]) == '{\"a\":true, \"b\":1}'",
        "'%%'.format([]) == '%'",
        "strings.quote('a\"b\\n') == '\"a\\\\\"b\\\\n\"'",
        "r'\\n' == '\\\\n'",
        "'''a\nb''' == 'a\\nb'",
        "'\\u00e9' == 'é'",
        "b'\\xff' != b'a'",
        "bytes('é').size() == 2",
        // lists and maps
        "self.l[1] == 2",
        "2 in self.l",
        "!(9 in self.l)",
        "'a' in self.m",
        "self.m['a'] == 1",
        "has(self.m.b.c)",
        "!has(self.m.zz)",
        "self.l.map(x, x * 2) == [2, 4, 6]",
        "self.l.map(x, x > 1, x * 10) == [20, 30]",
        "self.l.filter(x, x > 1) == [2, 3]",
        "self.l.exists_one(x, x == 2)",
        "self.l.all(x, x > 0)",
        "{1: 'a'}[1] == 'a'",
        "dyn({1: 'a'})[1u] == 'a'",
        "self.l.map(x, self.l.filter(y, y <= x).size()) == [1, 2, 3]",
        "self.l.all(i, v, v == i + 1)",
        "self.l.transformList(i, v, i * v) == [0, 2, 6]",
        "{'a': 1, 'b': 2}.transformMap(k, v, v * 2) == {'a': 2, 'b': 4}",
        "{'a': 1, 'b': 2}.transformMap(k, v, k == 'a', v * 2) == {'a': 2}",
        "{'a': 1}.transformMapEntry(k, v, {string(v): k}) == {'1': 'a'}",
        "[1, 2, 2].existsOne(i, v, v == 1)",
        "[3, 1, 2].max() == 3",
        "['b', 'a'].min() == 'a'",
        "[1, 2].sum() == 3",
        "[1.5, 2.0].sum() == 3.5",
        "[].sum() == 0",
        "[1, 2, 2].isSorted()",
        "![2, 1].isSorted()",
        "[1, 2, 1].indexOf(1) == 0",
        "[1, 2, 1].lastIndexOf(1) == 2",
        "sets.contains([1, 2, 3], [3, 1])",
        "sets.equivalent([1, 1, 2], [2, 1])",
        "sets.intersects([1], [2, 1])",
        "!sets.intersects([], [1])",
        "[[1], [2]] == [[1], [2]]",
        // optional values
        "self.?zz.orValue(4) == 4",
        "self.?i.orValue(4) == 3",
        "self.m.?b.?c[0].orValue(false)",
        "self.l[?7].orValue(0) == 0",
        "self.l[?0].hasValue()",
        "optional.of(1).optMap(x, x + 1).value() == 2",
        "!optional.none().optMap(x, x + 1).hasValue()",
        "optional.of([1]).optFlatMap(l, l[?0]) == optional.of(1)",
        "optional.none().or(optional.of(2)).value() == 2",
        "[1, ?optional.none(), ?optional.of(3)] == [1, 3]",
        "{?'a': optional.none(), 'b': 1} == {'b': 1}",
        "!optional.ofNonZeroValue('').hasValue()",
        "[1, 2].first().value() == 1",
        "[1, 2].last() == optional.of(2)",
        "optional.unwrap([optional.of(1), optional.none()]) == [1]",
        // time
        "duration('1h30m') == duration('90m')",
        "duration('1.5s').getMilliseconds() == 1500",
        "string(duration('90m')) == '5400s'",
        "timestamp('2024-02-29T12:34:56.789Z').getDayOfYear() == 59",
        "timestamp('2024-02-29T12:34:56Z').getMonth() == 1",
        "timestamp('2024-02-29T23:34:56Z').getDate('+02:00') == 1",
        "timestamp('2024-03-01T00:00:00Z') - duration('24h') == timestamp('2024-02-29T00:00:00Z')",
        "timestamp('1970-01-01T00:00:01Z') == timestamp(1)",
        "int(timestamp('1970-01-01T00:01:00Z')) == 60",
        "timestamp('2024-01-01T00:00:00+01:00') == timestamp('2023-12-31T23:00:00Z')",
        "timestamp('2024-01-01T00:00:00Z').getDayOfWeek() == 1",
        // libraries
        "quantity('1Gi').isGreaterThan(quantity('1G'))",
        "quantity('100m').add(quantity('0.9')) == quantity('1')",
        "quantity('1k').asInteger() == 1000",
        "!quantity('1m').isInteger()",
        "sign(quantity('-5')) == -1",
        "isQuantity('1e3')",
        "!isQuantity('1x')",
        "quantity('1.5Gi').asApproximateFloat() == 1610612736.0",
        "quantity('2').sub(1).compareTo(quantity('1')) == 0",
        "quantity('12e3') == quantity('12k')",
        "quantity('0.1u') == quantity('100n')",
        "ip('10.0.0.1').family() == 4",
        "ip('::1').isLoopback()",
        "ip('fe80::1').isLinkLocalUnicast()",
        "!isIP('10.0.0')",
        "!isIP('::ffff:1.2.3.4')",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3')",
        "cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16'))",
        "!cidr('10.0.0.0/16').containsCIDR('10.0.0.0/8')",
        "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')",
        "string(cidr('10.0.0.0/8').ip()) == '10.0.0.0'",
        "!ip.isCanonical('2001:DB8::1')",
        "url('https://u:p@a.b:80/p%20q?x=1&x=2#f').getHost() == 'a.b:80'",
        "url('https://[::1]:80/').getHostname() == '::1'",
        "url('https://a/p q').getEscapedPath() == '/p%20q'",
        "url('/p?x=a+b').getQuery() == {'x': ['a b']}",
        "!isURL('a.b')",
        "!isURL('../x')",
        "semver('1.2.3-rc.1').isLessThan(semver('1.2.3'))",
        "semver('v1.2', true).compareTo(semver('1.2.0')) == 0",
        "!isSemver('01.0.0')",
        "isSemver('1.0.0+b.1')",
        "semver('1.10.0').minor() == 10",
        "!format.dns1123Label().validate('a-b').hasValue()",
        "format.dns1123Label().validate('A').value().size() == 1",
        "format.named('uuid').value().validate('x').hasValue()",
        "!format.named('zz').hasValue()",
        "!format.labelValue().validate('').hasValue()",
        // types
        "type(1) == int",
        "type('a') == string",
        "type([]) == list",
        "type(type(1)) == type",
        "type(null) == null_type",
        "type(timestamp(1)) == google.protobuf.Timestamp",
        "type(self.d) == double",
        "string(1.0) == '1'",
        "string(1e21) == '1e+21'",
        "string(0.00001) == '1e-05'",
        "string(true) == 'true'",
        "int('-12') == -12",
        "double('1e2') == 100.0",
        "bool('T')",
        "uint(3.7) == 3u",
        "int(3.7) == 3",
    ] {
        holds(expression, &json);
    }
}

#[test]
fn expressions_that_fail() {
    for (expression, message) in [
        ("1 / (1 - 1) == 1", "division by zero"),
        ("1 % (1 - 1) == 1", "modulus by zero"),
        ("9223372036854775807 + 1 > 0", "integer overflow"),
        ("-9223372036854775808 - 1 < 0", "integer overflow"),
        ("0u - 1u > 0u", "unsigned integer overflow"),
        ("[1][1] == 1", "index out of bounds: 1"),
        ("[1][-1] == 1", "index out of bounds: -1"),
        ("{'a': 1}['b'] == 1", "no such key: b"),
        ("{'a': 1}.b == 1", "no such key: b"),
        ("'abc'.charAt(4) == ''", "index out of range: 4"),
        ("'abc'.substring(2, 1) == ''", "invalid substring range. start: 2, end: 1"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        ("[0].filter(x, x > 0).max() == 1", "max called on empty list"),
        ("dyn(1) + dyn('a') == 1", "no such overload"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('1h') == timestamp(0)", "timestamp overflow"),
        ("timestamp(0).getHours('Mars/Base') == 0", "unknown time zone Mars/Base"),
        (
            "quantity('zz') == quantity('1')",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ("[1, 2].map(x, x / 0) == []", "division by zero"),
    ] {
        fails(expression, message);
    }
}

#[test]
fn expressions_that_are_refused() {
    for (expression, message) in [
        ("", "Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!'"),
        ("1 +", "<input>:1:4: Syntax error: mismatched input '<EOF>'"),
        ("(1", "<input>:1:3: Syntax error: missing ')' at '<EOF>'"),
        ("1 == 'a'", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("[1, 'a'] == []", "expected type 'int' but found 'string'"),
        ("nope(1)", "undeclared reference to 'nope' (in container '')"),
        ("'a'.size", "type 'string' does not support field selection"),
        (
            "1.all(x, true)",
            "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("[1].all(1, true)", "argument must be a simple name"),
        ("has(1)", "invalid argument to has() macro"),
        ("true && 1", "expected type 'bool' but found 'int'"),
        ("duration('zz') > duration('1s')", "invalid duration argument"),
        ("'a'.matches('(')", "invalid matches argument"),
        ("'%d'.format(['a']) == ''", "decimal clause can only be used on integers, was given string"),
        ("9223372036854775808 > 1", "invalid int literal"),
        ("a.b{c: 1} == 1", "undeclared reference to 'a.b' (in container '')"),
        ("'é' + \u{1f600}", "Syntax error: token recognition error at: '\u{1f600}'"),
    ] {
        refused(expression, message);
    }
}

#[test]
fn an_expression_of_any_depth_and_length_is_answered() {
    for expression in [
        "(".repeat(100_000),
        "[".repeat(50_000),
        "!".repeat(99_999) + "true",
        "-".repeat(50_000) + "1",
        "a".to_owned() + &".b".repeat(40_000),
        "1".to_owned() + &" + 1".repeat(20_000),
        "true".to_owned() + &" && true".repeat(10_000),
        "true ? ".repeat(10_000),
        "x".repeat(100_001),
        format!("{}1{}", "[".repeat(240), "]".repeat(240)),
        format!("{}true{}", "[1].all(x, ".repeat(60), ")".repeat(60)),
    ] {
        if let Ok(program) = environment().compile(&expression) {
            let _ = program.estimate(None);
            let _ = program.run(&[Some(Value::Null)], COST_LIMIT);
        }
    }
}

#[test]
fn what_costs_too_much_is_ended() {
    let numbers: Vec<i64> = (0..2_000).collect();
    let json = serde_json::json!(numbers);
    let program = environment().compile("self.all(x, self.all(y, self.all(z, x + y + z >= 0)))").expect("sound");
    let outcome = program.run(&[Some(Value::from_json(&json))], COST_LIMIT);
    assert_eq!(
        outcome.value.err().map(|error| error.to_string()).as_deref(),
        Some("operation cancelled: actual cost limit exceeded")
    );
    assert!(outcome.cost <= COST_LIMIT + 1_000);
}

#[test]
fn values_can_be_named_where_that_is_allowed() {
    let expression = "cel.bind(x, self.i, x + x == 6)";
    let named = environment().with_names().compile(expression).unwrap_or_else(|error| panic!("{error}"));
    let json = serde_json::json!({"i": 3});
    assert!(matches!(named.run(&[Some(Value::from_json(&json))], COST_LIMIT).value, Ok(Value::Bool(true))));
    refused(expression, "undeclared reference to 'cel'");
}

#[test]
fn an_empty_expression_is_refused_before_its_first_column() {
    let error = environment().compile("").expect_err("nothing").to_string();
    assert!(error.starts_with("ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>'"), "{error}");
    assert!(!error.contains('\n'), "{error}");
}

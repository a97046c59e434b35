//! Hostile templates end early, with an error that names the limit, and on a small stack.

use orrery_gotemplate::{Budget, Data, Limits, Template};

/// Half of what Rust gives its threads; these tests run without optimisation, where frames are largest.
const SMALL_STACK: usize = 1 << 20;

/// What a template gives: its output's length, and its error.
fn run(template: &str, limits: Limits) -> (usize, String) {
    let template = template.to_owned();
    let run = move || {
        let data = Data::from_iter([("name", "virgo"), ("region", "us-east-1")]);
        let template = match Template::parse_within("t", &template, &limits) {
            Ok(template) => template,
            Err(error) => return (0, error.to_string()),
        };
        let mut out = Vec::new();
        let error = template.execute(&data, &mut Budget::new(&limits), &mut out).err();
        (out.len(), error.map(|error| error.to_string()).unwrap_or_default())
    };
    let thread = std::thread::Builder::new().stack_size(SMALL_STACK).spawn(run).expect("a thread");
    thread.join().expect("neither panic nor stack overflow")
}

fn check(template: &str, error: &str) {
    let limits = Limits::default();
    let (length, found) = run(template, limits);
    assert!(found.ends_with(error), "{template:.80}: {found:.200}");
    assert!(length <= limits.output_bytes);
}

#[test]
fn steps_are_counted() {
    let error = "the limit of 50000 steps is exceeded";
    check("{{range 9223372036854775807}}{{end}}", error);
    check("{{range 100000}}{{range 100000}}{{end}}{{end}}", error);
    check(&format!("{{{{$x := 1}}}}{}{{{{range 100000}}}}{{{{$x}}}}{{{{end}}}}", "{{$y := 1}}".repeat(10_000)), error);
}

#[test]
fn looking_at_long_strings_costs_steps() {
    let template = r#"{{$x := printf "%200000d" 1}}{{range 10000}}{{if eq $x $x}}{{end}}{{end}}"#;
    check(template, "the limit of 50000 steps is exceeded");
}

#[test]
fn output_is_counted_with_what_is_made_on_the_way() {
    let error = "the limit of 1048576 bytes of output is exceeded";
    check(&format!("{{{{range 10000}}}}{}{{{{end}}}}", "0123456789".repeat(20)), error);
    check(r#"{{$x := "xxxxxxxxxxxxxxxx"}}{{range 60}}{{$x = print $x $x}}{{end}}"#, error);
    check(r#"{{printf "%9999999d" 1}}"#, error);
    check(r#"{{printf "%.9999999d" 1}}"#, error);
    check(r#"{{printf "%.9999999f" 1.5}}"#, error);
    check(r#"{{printf "%#.9999999g" 1.5}}"#, error);
    check(r#"{{printf "%.9999999x" 1.5}}"#, error);
    check(r#"{{printf "%.9999999U" 1}}"#, error);
    check(r#"{{printf "%9999999v" .}}"#, error);
    check(&format!("{{{{printf {:?} 1}}}}", "%1000000[1]d".repeat(10_000)), error);
    check(r#"{{range 1000}}{{$x := html (printf "%9999s" "<")}}{{end}}"#, error);
}

/// Each of these formats has 10,000 verbs for the same text or number: all but the first few, which use up the output, are left alone.
#[test]
fn verbs_are_counted() {
    let verbs = |verb: &str| verb.repeat(10_000);
    let error = "the limit of 1048576 bytes of output is exceeded";
    for verb in ["%[1]q", "%[1]x", "%[1]#q", "%[1]+q", "% [1]X"] {
        check(&format!("{{{{printf {:?} {:?}}}}}", verbs(verb), "x".repeat(100_000)), error);
    }
    let error = "the limit of 50000 steps is exceeded";
    check(&format!("{{{{printf {:?} 0.5}}}}", verbs("%[1].800g")), error);
    check(&format!("{{{{printf {:?} 1}}}}", verbs("%[1]d").repeat(6)), error);
}

#[test]
fn a_small_output_limit_is_exact() {
    let limits = Limits { output_bytes: 10, ..Limits::default() };
    assert_eq!(run("{{.name}}12345", limits), (10, String::new()));
    let (length, error) = run("{{.name}}123456", limits);
    assert_eq!(length, 5, "what was written before stays");
    assert!(error.ends_with("the limit of 10 bytes of output is exceeded"), "{error}");
}

#[test]
fn nesting_is_counted_while_parsing() {
    check(&format!("{{{{{}1{}}}}}", "(".repeat(100_000), ")".repeat(100_000)), "max expression depth exceeded");
    let too_deep = "the actions are nested deeper than the limit";
    check(&"{{if .name}}".repeat(10_000), too_deep);
    check(&"{{range .}}{{with .}}".repeat(10_000), too_deep);
    check(&r#"{{block "a" .}}"#.repeat(10_000), too_deep);
}

#[test]
fn the_deepest_nesting_still_works() {
    let nesting = Limits::default().nesting;
    let parens = format!("{{{{{}1{}}}}}", "(".repeat(nesting), ")".repeat(nesting));
    assert_eq!(run(&parens, Limits::default()), (1, String::new()));
    let ifs = format!("{}x{}", "{{if .name}}".repeat(nesting), "{{end}}".repeat(nesting));
    assert_eq!(run(&ifs, Limits::default()), (1, String::new()));
}

#[test]
fn a_chain_of_elses_is_not_nested() {
    let chain = format!("{{{{if not .name}}}}{}{{{{else}}}}x{{{{end}}}}", "{{else if false}}".repeat(10_000));
    assert_eq!(run(&chain, Limits::default()), (1, String::new()));
}

#[test]
fn calls_are_counted_with_what_stands_around_them() {
    check(r#"{{define "a"}}{{template "a"}}{{end}}{{template "a"}}"#, "exceeded maximum template depth (100)");
    let error = "the limit of 100 nested actions is exceeded";
    check(r#"{{define "a"}}{{if 1}}{{template "a"}}{{end}}{{end}}{{if 1}}{{template "a"}}{{end}}"#, error);
    let parenthesized =
        r#"{{define "a"}}{{with (len (print (print .)))}}{{range 1}}{{template "a" .}}{{end}}{{end}}{{end}}"#;
    check(&format!("{parenthesized}{{{{template \"a\" 7}}}}"), error);
}

#[test]
fn messages_that_show_values_are_paid_for() {
    let data = Data::from_iter([("long", "x".repeat(400_000))]);
    let mut budget = Budget::default();
    for (template, error) in [
        ("{{range .long}}{{end}}", "xxx"),
        ("{{eq . .}}", ": map[string]string"),
        ("{{.long | call}}", "the limit of 1048576 bytes of output is exceeded"),
        ("{{ne . .}}", "the limit of 1048576 bytes of output is exceeded"),
        ("{{range .long}}{{end}}", "the limit of 1048576 bytes of output is exceeded"),
    ] {
        let parsed = Template::parse("t", template).unwrap();
        let found = parsed.execute(&data, &mut budget, &mut Vec::new()).unwrap_err().to_string();
        assert!(found.ends_with(error), "{template}: {found:.200}");
    }
}

#[test]
fn a_template_has_a_greatest_length() {
    let limits = Limits { template_bytes: 10, ..Limits::default() };
    assert_eq!(run("0123456789", limits), (10, String::new()));
    let error = "template: t:1: the template is longer than the limit of 10 bytes";
    assert_eq!(run("0123456789{", limits), (0, error.to_owned()));
}

#[test]
fn many_variables_do_not_slow_the_parser_down() {
    let declared: String = (0..20_000).map(|i| format!("{{{{$v{i} := 1}}}}")).collect();
    let (_, error) = run(&format!("{declared}{}", "{{$v0}}".repeat(20_000)), Limits::default());
    assert!(error.ends_with("the limit of 50000 steps is exceeded"), "{error:.200}");
}

#[test]
fn executions_that_share_a_budget_stay_within_it_together() {
    let template = Template::parse("t", "{{range 10}}{{.}}{{end}}").unwrap();
    let mut budget = Budget::new(&Limits { output_bytes: 25, ..Limits::default() });
    let mut out = Vec::new();
    assert!(template.execute(&Data::new(), &mut budget, &mut out).is_ok());
    assert!(template.execute(&Data::new(), &mut budget, &mut out).is_ok());
    let error = template.execute(&Data::new(), &mut budget, &mut out).unwrap_err();
    assert_eq!(out, b"0123456789012345678901234");
    assert!(error.to_string().ends_with("the limit of 25 bytes of output is exceeded"), "{error}");
}

//! The public interface: partial output, positions, data that is not UTF-8, and repeated execution.

use orrery_gotemplate::{Budget, Data, Template, to_text};

fn data() -> Data {
    Data::from_iter([("clusterName", "virgo"), ("clusterHash", "1001-dead-beef")])
}

#[test]
fn a_template_is_executed_many_times() {
    let template = Template::parse("url", "https://my.loki.server.com/{{ .clusterName }}-{{.clusterHash}}").unwrap();
    let mut other = data();
    assert_eq!(other.insert("clusterName", "leo"), Some(b"virgo".to_vec()));
    let mut out = Vec::new();
    for data in [&data(), &other] {
        template.execute(data, &mut Budget::default(), &mut out).unwrap();
        out.push(b' ');
    }
    assert_eq!(
        to_text(&out),
        "https://my.loki.server.com/virgo-1001-dead-beef https://my.loki.server.com/leo-1001-dead-beef "
    );
}

#[test]
fn after_an_error_the_output_holds_what_came_before() {
    let template = Template::parse("c1/Deployment.apps(ns/n).spec.l[0]", "a\nb {{.clusterName}} {{.q}} c").unwrap();
    let mut out = b"kept: ".to_vec();
    let error = template.execute(&data(), &mut Budget::default(), &mut out).unwrap_err();
    assert_eq!(to_text(&out), "kept: a\nb virgo ");
    assert_eq!((error.line(), error.column()), (2, 21));
    assert_eq!(
        error.to_string(),
        "template: c1/Deployment.apps(ns/n).spec.l[0]:2:21: executing \"c1/Deployment.apps(ns/n).spec.l[0]\" \
         at <.q>: map has no entry for key \"q\""
    );
}

#[test]
fn an_error_can_be_told_under_another_name() {
    let template = Template::parse("x", r#"{{define "in"}}{{.b}}{{end}}{{template "in" .}}"#).unwrap();
    let inner = template.execute(&data(), &mut Budget::default(), &mut Vec::new()).unwrap_err();
    let outer = Template::parse("x", "{{.b}}").unwrap();
    let outer = outer.execute(&data(), &mut Budget::default(), &mut Vec::new()).unwrap_err();
    assert!(inner.renamed("c/x").to_string().starts_with(r#"template: c/x:1:17: executing "in" at <.b>: "#));
    assert!(outer.renamed("c/x").to_string().starts_with(r#"template: c/x:1:2: executing "c/x" at <.b>: "#));
    let refused = Template::parse("x", "{{").unwrap_err();
    assert_eq!(refused.renamed("c/x").to_string(), "template: c/x:1: unclosed action");
}

#[test]
fn parse_errors_name_their_line() {
    let error = Template::parse("t", "a\n{{ if }}").unwrap_err();
    assert_eq!(error.line(), 2);
    assert_eq!(error.to_string(), "template: t:2: missing value for if");
}

#[test]
fn values_need_not_be_utf8() {
    let data = Data::from_iter([("raw", vec![0xff, b'a', 0xe2, 0x98])]);
    let template =
        Template::parse("t", r#"{{.raw}}|{{len .raw}}|{{printf "%q %x" .raw .raw}}|{{slice .raw 1 2}}"#).unwrap();
    let mut out = Vec::new();
    template.execute(&data, &mut Budget::default(), &mut out).unwrap();
    assert_eq!(out, b"\xffa\xe2\x98|4|\"\\xffa\\xe2\\x98\" ff61e298|a");
    assert_eq!(to_text(&out[..4]), "\u{FFFD}a\u{FFFD}\u{FFFD}");
}

#[test]
fn a_text_without_actions_is_literal() {
    assert!(Template::is_literal("a { } }} b"));
    assert!(!Template::is_literal("a {{/* nothing */}}"));
}

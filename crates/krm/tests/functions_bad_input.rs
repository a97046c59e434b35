//! No input makes a function panic, and exit 0 always comes with a whole ResourceList.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{env, fs, path::Path};

use orrery_krm::{Context, Outcome, ResourceList, functions, process};

fn context() -> Context {
    Context { now: "2026-11-16T02:00:00Z".to_owned(), pools: Vec::new() }
}

/// Every function gives up on the input in the same way: says why, writes nothing, exits 1.
#[track_caller]
fn check_unreadable(input: &[u8], why: &str) {
    for function in functions::all() {
        let Outcome { stdout, stderr, exit } = process(*function, input, &context());
        assert_eq!((exit, stdout.as_str()), (1, ""), "{}", function.name());
        assert!(stderr.contains(why), "{}: {stderr:?} does not say {why:?}", function.name());
    }
}

#[test]
fn what_cannot_be_read_gives_no_output() {
    check_unreadable(b"kind: ResourceList\nitems:\n- name: \xff\xfe\n", "not UTF-8");
    let deep = format!("kind: ResourceList\nitems:\n- spec: {}", "[".repeat(100_000));
    check_unreadable(deep.as_bytes(), "nested deeper");
}

/// Nine levels of nine aliases each would be 400 million values.
#[test]
fn aliases_that_explode_in_a_field_that_is_read() {
    let mut spec = String::from("a0: &a0 [x]");
    for level in 1..=9 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        spec += &format!(", a{level}: &a{level} [{aliases}]");
    }
    let input = format!(
        "kind: ResourceList\nitems:\n- {{apiVersion: kpt.dev/v1, kind: Kptfile, metadata: {{name: p}}}}\n\
         - {{apiVersion: req.nephio.org/v1alpha1, kind: Interface, metadata: {{name: n3}}, spec: {{{spec}, networkInstance: *a9}}}}\n"
    );
    check_unreadable(input.as_bytes(), "aliases stand for more than");
}

/// Fields of the wrong type count as missing, or are an error about that object.
#[test]
fn fields_of_the_wrong_type() {
    let odd =
        ["null", "[]", "{}", "[[]]", "{name: [1]}", "-1", "1e400", "\"\"", "{matchLabels: [x]}", "true", "'a/b/c'"];
    let kinds = [
        "infra.nephio.org/v1alpha1, kind: ClusterContext",
        "infra.nephio.org/v1alpha1, kind: WorkloadCluster",
        "req.nephio.org/v1alpha1, kind: Interface",
        "ipam.resource.nephio.org/v1alpha1, kind: IPClaim",
        "ipam.nephio.org/v1alpha1, kind: IPAllocation",
        "ipam.resource.nephio.org/v1alpha1, kind: IPPrefix",
        "ipam.resource.nephio.org/v1alpha1, kind: NetworkInstance",
        "vlan.resource.nephio.org/v1alpha1, kind: VLANClaim",
        "vlan.resource.nephio.org/v1alpha1, kind: VLANIndex",
        "k8s.cni.cncf.io/v1, kind: NetworkAttachmentDefinition",
        "infra.nephio.org/v1alpha1, kind: Network",
    ];
    let fields = [
        "spec",
        "metadata",
        "status",
        "spec.networkInstance",
        "spec.cniType",
        "spec.cnis",
        "spec.kind",
        "spec.prefix",
        "spec.prefixLength",
        "spec.prefixes",
        "spec.selector",
        "spec.labels",
        "spec.vlanIndex",
        "spec.vlanID",
        "spec.range",
        "spec.ranges",
        "spec.size",
        "spec.siteCode",
        "spec.routingTables",
        "metadata.annotations",
        "metadata.ownerReferences",
        "status.prefix",
        "status.vlanID",
    ];
    for kind in kinds {
        for field in fields {
            for value in odd {
                let (metadata, rest) = match field.split_once('.') {
                    Some(("metadata", key)) => (format!("{{name: x, {key}: {value}}}"), String::new()),
                    Some((part, key)) => ("{name: x}".to_owned(), format!(", {part}: {{{key}: {value}}}")),
                    None if field == "metadata" => (value.to_owned(), String::new()),
                    None => ("{name: x}".to_owned(), format!(", {field}: {value}")),
                };
                let input = format!(
                    "kind: ResourceList\nitems:\n- {{apiVersion: kpt.dev/v1, kind: Kptfile, metadata: {{name: p}}, status: {{conditions: {value}}}}}\n- {{apiVersion: {kind}, metadata: {metadata}{rest}}}\n",
                );
                check_whole(input.as_bytes());
            }
        }
    }
}

/// Golden packages with lines lost, doubled, moved and mangled.
#[test]
fn mangled_packages() {
    let rounds: usize = env::var("KRM_MANGLED").map_or(3, |text| text.parse().expect("a number"));
    let mut inputs = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/functions"), &mut inputs);
    let mut state = 1_u64;
    let mut random = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    for input in &inputs {
        for _ in 0..rounds {
            let mut lines: Vec<String> = input.lines().map(str::to_owned).collect();
            for _ in 0..=random(4) {
                let (one, other) = (random(lines.len()), random(lines.len()));
                match random(5) {
                    0 => drop(lines.remove(one)),
                    1 => lines.insert(other, lines[one].clone()),
                    2 => lines.swap(one, other),
                    3 => lines[one] = lines[one].replacen(": ", ": [", 1),
                    _ => lines[one] = lines[one].chars().filter(|_| random(8) > 0).collect(),
                }
                if lines.is_empty() {
                    break;
                }
            }
            check_whole((lines.join("\n") + "\n").as_bytes());
        }
    }
}

fn collect(folder: &Path, inputs: &mut Vec<String>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            collect(&entry, inputs);
        } else if entry.ends_with("in.yaml") {
            inputs.push(fs::read_to_string(entry).unwrap());
        }
    }
}

/// Runs every function; what comes out with exit 0 can be read again, and the same function changes nothing in it.
#[track_caller]
fn check_whole(input: &[u8]) {
    for function in functions::all() {
        let outcome = process(*function, input, &context());
        let shown = String::from_utf8_lossy(input);
        if outcome.stdout.is_empty() {
            assert_eq!(outcome.exit, 1, "{} on\n{shown}", function.name());
            continue;
        }
        let list = ResourceList::parse(outcome.stdout.as_bytes());
        assert!(list.is_ok(), "{} on\n{shown}\nwrote\n{}", function.name(), outcome.stdout);
        let again = process(*function, outcome.stdout.as_bytes(), &context());
        assert_eq!(again.stdout, outcome.stdout, "{} once more on\n{shown}", function.name());
    }
}

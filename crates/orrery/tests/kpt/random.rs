//! Packages that nobody has seen: random files, subpackages and pipelines.

use super::case::{Case, File};

/// Numbers from a seed; the same on every machine.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

/// A function and its configuration, as lines of a pipeline.
const FUNCTIONS: &[&str] = &[
    "exec: set-label\n    configMap:\n      tier: front\n      n: 1",
    "exec: set-annotation\n    configMap:\n      note: 'a b'",
    "exec: append-trace one",
    "exec: append-trace two",
    "exec: add-item\n    configMap:\n      name: fresh",
    "exec: add-item\n    configMap:\n      name: placed\n      path: new/placed.yaml",
    "exec: add-item\n    configMap:\n      name: spaced\n      namespace: there",
    "exec: remove-item ConfigMap/b",
    "exec: remove-item Deployment/web",
    "exec: rename-path\n    configMap:\n      item: ConfigMap/a\n      path: moved/a.yaml",
    "exec: rename-path\n    configMap:\n      item: ConfigMap/a\n      path: b.yaml\n      index: '7'",
    "exec: set-field ConfigMap/a data.value changed",
    "exec: set-field Deployment/web spec.replicas 5",
    "exec: set-field ConfigMap/b data.deep.new x quoted",
    "exec: drop-field ConfigMap/a data.value",
    "exec: add-condition Ready False reason=Wait",
    "exec: set-field Odd/f spec.folded new",
    "exec: set-field Odd/f spec.list.deep 1",
    "exec: set-field ConfigMap/g data.one other",
    "exec: set-field ConfigMap/w data.value y",
    "exec: drop-field Odd/f spec.keep",
    "exec: add-element Odd/f spec.list 3 last",
    "exec: copy-item ConfigMap/b copy",
    "exec: swap-text value: renamed:",
    "exec: emit multi-doc",
    "exec: list-items",
    "exec: strip-comments",
    "exec: sort-keys",
    "exec: reverse-items",
    "exec: identity",
    "exec: drop-annotations ConfigMap/a config.kubernetes.io/ config.k8s.io/",
    "exec: fail-with 3",
];

const SELECTORS: &[&str] = &[
    "",
    "",
    "",
    "\n    selectors:\n    - kind: ConfigMap",
    "\n    selectors:\n    - name: a",
    "\n    exclude:\n    - kind: Kptfile",
    "\n    selectors:\n    - labels:\n        app: x",
    "\n    exclude:\n    - namespace: one",
];

const OBJECTS: &[(&str, &str)] = &[
    (
        "a.yaml",
        "# of a\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a # name\n  labels: {app: x}\ndata:\n  value: '1'\n",
    ),
    (
        "b.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n  namespace: one\ndata:\n    value: \"2\"   # far\n\n    other: x\n",
    ),
    (
        "d/web.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  labels:\n    app: x\nspec:\n  replicas: 3\n  template:\n    spec:\n      \
         containers:\n        - name: c1 # first\n          image: i:1\n          args: [a, 'b', \"c\"]\n",
    ),
    (
        "m.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m1\n---\n# second\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m2\ndata:\n  \
         text: |\n    one\n     two\n",
    ),
    (
        "s.json",
        "{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"name\": \"s\"}, \"data\": {\"k\": \"dg==\"}}\n",
    ),
    (
        "f.yaml",
        "kind: Odd\napiVersion: ex.io/v1\n\nmetadata:\n    name:   f\n    namespace: \"one\"\nspec:\n    folded: >-\n        some words\n        \
         and more\n    keep: |+\n        x\n\n    on: yes\n    hex: 0x1F\n    mode: 0755\n    none: ~\n    empty:\n    date: 2026-11-16\n    \
         number: 1_000\n    float: 1.50\n    'quoted key': 'it''s'\n    list:\n        - 1   # one\n        - two\n        - [x, {y: z}]\n    \
         maps:\n        - name: p\n          value: 1\n        - {name: q, value: 2}\n    long: aaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbb \
         cccccccccccccccccccccccccccccc dddddddddddddddddddddd\n",
    ),
    (
        "g.yml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: g\n  labels: &l\n    app: x\ndata: &d\n  one: &one 'first'\n  two: *one\nmore:\n  <<: *d\n  \
         three: 3\nselector: *l\n",
    ),
    ("w.yaml", "apiVersion: v1\r\nkind: ConfigMap\r\nmetadata:\r\n  name: w # windows\r\ndata:\r\n  value: x\r\n"),
    ("note.txt", "no object\n"),
    ("e.yaml", "# only words\n"),
];

/// A package of up to three, with files and functions at random.
pub(crate) fn package(seed: u64) -> Case {
    let mut random = Random::new(seed);
    let mut case = Case {
        name: format!("random-{seed}"),
        dir: "pkg".to_owned(),
        cwd: ".".to_owned(),
        args: vec!["--allow-exec".to_owned()],
        again: Some("same".to_owned()),
        ..Case::default()
    };
    let folders: &[&str] = match random.below(4) {
        0 => &["", "sub/"],
        1 => &["", "sub/", "sub/deep/"],
        _ => &[""],
    };
    for folder in folders {
        let mut put = |name: &str, text: String| {
            case.before.insert(format!("{folder}{name}"), File { text: Some(text), ..File::default() });
        };
        put("Kptfile", kptfile(&mut random, folder));
        for (name, text) in OBJECTS {
            if random.below(3) > 0 {
                put(name, (*text).to_owned());
            }
        }
    }
    case
}

fn kptfile(random: &mut Random, folder: &str) -> String {
    let name = folder.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("root");
    let mut text =
        format!("apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {name}\npipeline:\n  mutators:\n");
    for _ in 0..1 + random.below(4) {
        text += &format!("  - {}{}\n", random.pick(FUNCTIONS), random.pick(SELECTORS));
    }
    if random.below(3) == 0 {
        text += &format!(
            "  validators:\n  - {}\n",
            random.pick(&["exec: report info", "exec: identity", "exec: set-field ConfigMap/a data.value no"])
        );
    }
    text
}

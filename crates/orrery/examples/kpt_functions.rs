//! Small KRM functions for the recorded packages: one program that acts by the name it is called by. All but a few write
//! their output anew, without comments and layout, as functions in other languages do.

use std::{
    env, fs,
    io::{self, Read, Write},
    path::Path,
    process::ExitCode,
};

use orrery_krm::{Value, yaml::Stream};

const INTERNAL: &str = "internal.config.kubernetes.io/";
const LEGACY: &str = "config.kubernetes.io/";

fn main() -> io::Result<ExitCode> {
    let mut arguments = env::args();
    let program = arguments.next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default().to_owned();
    let arguments: Vec<String> = arguments.collect();
    let mut input = String::new();
    io::stdin().read_to_string(&mut input)?;
    remember(&name, &input)?;
    let (output, exit) = answer(&name, &arguments.iter().map(String::as_str).collect::<Vec<_>>(), &input)?;
    io::stdout().write_all(output.as_bytes())?;
    Ok(ExitCode::from(exit))
}

/// Puts a copy of the input into the folder that `FN_SEEN` names.
fn remember(name: &str, input: &str) -> io::Result<()> {
    let Some(folder) = env::var_os("FN_SEEN") else { return Ok(()) };
    fs::create_dir_all(&folder)?;
    let number = fs::read_dir(&folder)?.count() + 1;
    fs::write(Path::new(&folder).join(format!("{number:02}-{name}.yaml")), input)
}

fn answer(name: &str, arguments: &[&str], input: &str) -> io::Result<(String, u8)> {
    let lines = |word: &str| {
        let count = arguments.first().and_then(|count| count.parse().ok()).unwrap_or(2);
        (1..=count).for_each(|number: usize| eprintln!("{word} line {number}"));
    };
    match (name, arguments) {
        ("identity", _) => Ok((input.to_owned(), 0)),
        ("noisy", _) => {
            lines("noisy");
            Ok((input.to_owned(), 0))
        }
        ("noisy-fail", _) => {
            lines("trouble");
            Ok((input.to_owned(), 1))
        }
        ("crash", _) => {
            eprintln!("crash: first line\ncrash: second line");
            Ok((String::new(), 3))
        }
        ("swap-text", [old, new]) => Ok((swap_text(input, old, new), 0)),
        ("emit", [what]) => Ok((odd_output(what), 0)),
        _ => {
            let mut list = List::read(input)?;
            let exit = edit(&mut list, name, arguments)?;
            Ok((Stream::print(&list.root), exit))
        }
    }
}

/// Lines that name the function itself, in a Kptfile, stay as they are.
fn swap_text(input: &str, old: &str, new: &str) -> String {
    let swap = |line: &str| if line.contains("swap-text") { line.to_owned() } else { line.replace(old, new) };
    input.split_inclusive('\n').map(swap).collect()
}

fn odd_output(what: &str) -> String {
    const HEAD: &str = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n";
    let map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n");
    let item = |name: &str| format!("- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: {name}\n");
    match what {
        "newline" => "\n".to_owned(),
        "word" => "hello\n".to_owned(),
        "garbage" => "{]: *&%\n\t- x".to_owned(),
        "sequence" => "- a\n- b\n".to_owned(),
        "no-items" => HEAD.to_owned(),
        "empty-items" => format!("{HEAD}items: []\n"),
        "null-items" => format!("{HEAD}items:\n"),
        "multi-doc" => format!("{}---\n{}", map("one"), map("two")),
        "json" => "{\"apiVersion\":\"config.kubernetes.io/v1\",\"kind\":\"ResourceList\",\"items\":[{\"apiVersion\":\"v1\",\
                   \"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"from-json\"},\"data\":{\"n\":\"1\",\"b\":\"true\"}}]}\n"
            .to_owned(),
        "no-name" => format!("{HEAD}items:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    labels: {{}}\n"),
        "no-kind" => format!("{HEAD}items:\n- apiVersion: v1\n  metadata:\n    name: x\n"),
        "twins" => format!("{HEAD}items:\n{0}{0}", item("twin")),
        "cross-alias" => format!("{HEAD}items:\n{}  data: &d\n    x: y\n{}  data: *d\n", item("one"), item("two")),
        "old-kind" => {
            format!("apiVersion: config.kubernetes.io/v1beta1\nkind: ResourceList\nitems:\n{}", item("beta"))
        }
        "wrong-kind" => format!("apiVersion: v1\nkind: List\nitems:\n{}", item("listed")),
        _ => String::new(),
    }
}

fn edit(list: &mut List, name: &str, arguments: &[&str]) -> io::Result<u8> {
    match (name, arguments) {
        ("strip-comments", _) => {}
        ("set-label", _) => list.put_settings("labels"),
        ("set-annotation", _) => list.put_settings("annotations"),
        ("set-field", [item, field, value, style @ ..]) => {
            let value = if *style == ["quoted"] { Value::from(*value) } else { scalar(value)? };
            list.for_item(item, |object| put(object, &split(field), value.clone()));
        }
        ("drop-field", [item, field]) => list.for_item(item, |object| drop_field(object, &split(field))),
        ("add-element", [item, field, position, value]) => list.for_item(item, |object| {
            if let Some(Value::List(elements)) = at(object, &split(field)) {
                elements.insert(position.parse().unwrap_or(0), Value::from(*value));
            }
        }),
        ("drop-element", [item, field, position]) => list.for_item(item, |object| {
            if let Some(Value::List(elements)) = at(object, &split(field)) {
                elements.remove(position.parse().unwrap_or(0));
            }
        }),
        ("add-condition", [kind, status, pairs @ ..]) => add_condition(list, kind, status, pairs),
        ("append-trace", [mark, ..]) => append_trace(list, mark),
        ("add-item", _) => add_item(list),
        ("copy-item", [item, new]) => {
            let copies: Vec<Value> = list.items().iter().filter(|object| ident(object) == *item).cloned().collect();
            for mut copy in copies {
                put(&mut copy, &["metadata", "name"], Value::from(*new));
                list.items().push(copy);
            }
        }
        ("remove-item", names) => list.items().retain(|object| !names.contains(&ident(object).as_str())),
        ("reverse-items", _) => list.items().reverse(),
        ("rename-path", _) => rename_path(list),
        ("drop-annotations", [item, prefixes @ ..]) => list.for_item(item, |object| drop_annotations(object, prefixes)),
        ("sort-keys", _) => list.items().iter_mut().for_each(|object| *object = object.sorted()),
        ("echo-config", _) => echo_config(list),
        ("list-args", _) => list_arguments(list, arguments)?,
        ("list-items", names) => list_items(list, names.first().unwrap_or(&"listing")),
        ("report", [severity, names @ ..]) => report(list, severity, names),
        ("fail-with", code) => return Ok(fail(list, code)),
        _ => return Err(io::Error::other(format!("{name} does not understand {arguments:?}"))),
    }
    Ok(0)
}

struct List {
    root: Value,
}

impl List {
    fn read(input: &str) -> io::Result<Self> {
        let mut documents = Stream::parse(input).map_err(io::Error::other)?.documents;
        let root = documents.pop().map_or(Value::Null, |document| document.value());
        Ok(Self { root })
    }

    fn items(&mut self) -> &mut Vec<Value> {
        if !matches!(self.root.get("items"), Some(Value::List(_))) {
            put(&mut self.root, &["items"], Value::List(Vec::new()));
        }
        match at(&mut self.root, &["items"]) {
            Some(Value::List(items)) => items,
            _ => unreachable!("the lines above make it a list"),
        }
    }

    fn for_item(&mut self, wanted: &str, mut edit: impl FnMut(&mut Value)) {
        self.items().iter_mut().filter(|object| ident(object) == wanted).for_each(&mut edit);
    }

    /// The data of the configuration, sorted, because kpt hands it over in any order.
    fn settings(&self) -> Vec<(String, String)> {
        let data = self.root.get("functionConfig").and_then(|config| config.get("data"));
        let Some(Value::Map(entries)) = data else { return Vec::new() };
        let mut settings: Vec<_> = entries.iter().map(|(key, value)| (key.clone(), text(value))).collect();
        settings.sort();
        settings
    }

    fn setting(&self, key: &str) -> Option<String> {
        self.settings().into_iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    fn put_settings(&mut self, map: &str) {
        let settings = self.settings();
        for object in self.items() {
            for (key, value) in &settings {
                put(object, &["metadata", map, key], Value::from(value));
            }
        }
    }

    /// The ConfigMap of a name: with new data if it is there, else at the end.
    fn note(&mut self, name: &str, data: Value) {
        let wanted = format!("ConfigMap/{name}");
        if let Some(object) = self.items().iter_mut().find(|object| ident(object) == wanted) {
            put(object, &["data"], data);
            return;
        }
        let metadata = Value::map([("name", name)]);
        let object = Value::object().with("apiVersion", "v1").with("kind", "ConfigMap").with("metadata", metadata);
        self.items().push(object.with("data", data));
    }
}

fn add_condition(list: &mut List, kind: &str, status: &str, pairs: &[&str]) {
    let mut condition = Value::map([("type", kind), ("status", status)]);
    for (key, value) in pairs.iter().filter_map(|pair| pair.split_once('=')) {
        condition = condition.with(key, value);
    }
    for object in list.items().iter_mut().filter(|object| field(object, &["kind"]) == "Kptfile") {
        if at(object, &["status", "conditions"]).is_none() {
            put(object, &["status", "conditions"], Value::List(Vec::new()));
        }
        let Some(Value::List(conditions)) = at(object, &["status", "conditions"]) else { continue };
        match conditions.iter_mut().find(|old| field(old, &["type"]) == kind) {
            Some(old) => *old = condition.clone(),
            None => conditions.push(condition.clone()),
        }
    }
}

fn append_trace(list: &mut List, mark: &str) {
    for object in list.items().iter_mut().filter(|object| field(object, &["kind"]) != "Kptfile") {
        let old = field(object, &["metadata", "annotations", "trace"]);
        if !old.split(',').any(|part| part == mark) {
            let trace = if old.is_empty() { mark.to_owned() } else { format!("{old},{mark}") };
            put(object, &["metadata", "annotations", "trace"], Value::from(trace));
        }
    }
}

fn add_item(list: &mut List) {
    let setting = |key: &str| list.setting(key);
    let metadata = Value::object().with_some("name", setting("name")).with_some("namespace", setting("namespace"));
    let kind = setting("kind").unwrap_or_else(|| "ConfigMap".to_owned());
    let data = Value::object().with("value", setting("value").unwrap_or_else(|| "new".to_owned()));
    let mut object =
        Value::object().with("apiVersion", "v1").with("kind", kind).with("metadata", metadata).with("data", data);
    if let Some(path) = setting("path") {
        set_path(&mut object, &path, setting("index").as_deref(), &setting("which").unwrap_or_default());
    }
    list.items().push(object);
}

fn rename_path(list: &mut List) {
    let (item, path) = (list.setting("item").unwrap_or_default(), list.setting("path").unwrap_or_default());
    let (index, which) = (list.setting("index"), list.setting("which").unwrap_or_default());
    let legacy = list.setting("legacy");
    list.for_item(&item, |object| {
        set_path(object, &path, index.as_deref(), &which);
        if let Some(legacy) = &legacy {
            set_path(object, legacy, None, "legacy");
        }
    });
}

fn set_path(object: &mut Value, path: &str, index: Option<&str>, which: &str) {
    for (prefix, name) in [(INTERNAL, "internal"), (LEGACY, "legacy")] {
        if which.is_empty() || which == "both" || which == name {
            put(object, &["metadata", "annotations", &format!("{prefix}path")], Value::from(path));
            if let Some(index) = index {
                put(object, &["metadata", "annotations", &format!("{prefix}index")], Value::from(index));
            }
        }
    }
}

fn drop_annotations(object: &mut Value, prefixes: &[&str]) {
    let Some(Value::Map(annotations)) = at(object, &["metadata", "annotations"]) else { return };
    annotations.retain(|(key, _)| !prefixes.iter().any(|prefix| key.starts_with(prefix)));
    if annotations.is_empty() {
        drop_field(object, &["metadata", "annotations"]);
    }
}

fn echo_config(list: &mut List) {
    let text = match list.root.get("functionConfig").cloned() {
        Some(mut config) => {
            if let Some(Value::Map(data)) = at(&mut config, &["data"]) {
                data.sort_by(|a, b| a.0.cmp(&b.0));
            }
            Stream::print(&config)
        }
        None => "none\n".to_owned(),
    };
    list.note("config-seen", Value::map([("config", text)]));
}

fn list_arguments(list: &mut List, arguments: &[&str]) -> io::Result<()> {
    let here = env::current_dir()?;
    let below = env::var_os("FN_BASE").and_then(|base| Some(here.strip_prefix(base).ok()?.to_owned()));
    let cwd = below.map(|path| path.to_string_lossy().into_owned()).filter(|path| !path.is_empty());
    let arguments: String = arguments.iter().map(|argument| format!("[{argument}]\n")).collect();
    list.note("args-seen", Value::object().with("args", arguments).with("cwd", cwd.unwrap_or_else(|| ".".to_owned())));
    Ok(())
}

fn list_items(list: &mut List, name: &str) {
    let base = env::var_os("FN_BASE").unwrap_or_default();
    let mut lines = String::new();
    for object in list.items().iter().filter(|object| ident(object) != format!("ConfigMap/{name}")) {
        let annotation = |key: &str| {
            let value = field(object, &["metadata", "annotations", &format!("{INTERNAL}{key}")]);
            if value.is_empty() { "None".to_owned() } else { value }
        };
        let package = annotation("package-path");
        let package = Path::new(&package).strip_prefix(&base).map(|path| path.to_string_lossy().into_owned());
        let package = package.unwrap_or_else(|_| "-".to_owned());
        lines += &format!("{package}: {}#{} {}\n", annotation("path"), annotation("index"), ident(object));
    }
    let lines = if lines.is_empty() { "nothing\n".to_owned() } else { lines };
    list.note(name, Value::map([("items", lines)]));
}

fn report(list: &mut List, severity: &str, names: &[&str]) {
    let mut results = Vec::new();
    for object in list.items().iter().filter(|object| names.contains(&ident(object).as_str())) {
        let part = |path: &[&str]| Some(field(object, path)).filter(|text| !text.is_empty());
        let reference = Value::object()
            .with_some("apiVersion", part(&["apiVersion"]))
            .with_some("kind", part(&["kind"]))
            .with_some("name", part(&["metadata", "name"]))
            .with_some("namespace", part(&["metadata", "namespace"]));
        let file = field(object, &["metadata", "annotations", &format!("{INTERNAL}path")]);
        let result = Value::object()
            .with("message", format!("looked at {}", ident(object)))
            .with("severity", severity)
            .with("resourceRef", reference)
            .with("field", Value::map([("path", "data.value"), ("currentValue", "1"), ("proposedValue", "2")]))
            .with("file", Value::map([("path", file)]))
            .with("tags", Value::map([("team", "blue")]));
        results.push(result);
    }
    if names.is_empty() {
        let severity = Some(severity).filter(|severity| *severity != "none");
        results.push(Value::object().with("message", "general remark").with_some("severity", severity));
    }
    put(&mut list.root, &["results"], Value::List(results));
}

/// Changes items first, which nobody may see.
fn fail(list: &mut List, code: &[&str]) -> u8 {
    for object in list.items() {
        put(object, &["metadata", "labels", "half-done"], Value::from("yes"));
    }
    let result = Value::map([("message", "not acceptable"), ("severity", "error")]);
    put(&mut list.root, &["results"], Value::List(vec![result]));
    eprintln!("fail-with: giving up");
    code.first().and_then(|code| code.parse().ok()).unwrap_or(1)
}

fn scalar(text: &str) -> io::Result<Value> {
    let documents = Stream::parse(text).map_err(io::Error::other)?.documents;
    Ok(documents.first().map_or(Value::Null, |document| document.value()))
}

fn split(path: &str) -> Vec<&str> {
    path.split('.').collect()
}

fn at<'v>(value: &'v mut Value, path: &[&str]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |value, key| match value {
        Value::Map(entries) => entries.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value),
        _ => None,
    })
}

fn put(value: &mut Value, path: &[&str], new: Value) {
    let Some((key, rest)) = path.split_first() else {
        *value = new;
        return;
    };
    if !matches!(value, Value::Map(_)) {
        *value = Value::object();
    }
    let Value::Map(entries) = value else { return };
    let position = entries.iter().position(|(name, _)| name == key).unwrap_or_else(|| {
        entries.push(((*key).to_owned(), Value::Null));
        entries.len() - 1
    });
    put(&mut entries[position].1, rest, new);
}

fn drop_field(value: &mut Value, path: &[&str]) {
    let Some((last, way)) = path.split_last() else { return };
    if let Some(Value::Map(entries)) = at(value, way) {
        entries.retain(|(key, _)| key != last);
    }
}

fn field(value: &Value, path: &[&str]) -> String {
    path.iter().try_fold(value, |value, key| value.get(key)).map(text).unwrap_or_default()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Int(number) => number.to_string(),
        Value::Bool(value) => value.to_string(),
        _ => String::new(),
    }
}

fn ident(object: &Value) -> String {
    format!("{}/{}", field(object, &["kind"]), field(object, &["metadata", "name"]))
}

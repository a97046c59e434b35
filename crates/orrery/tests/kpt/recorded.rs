//! Packages that were rendered by kpt 1.0.0-beta.56 and recorded, before and after, with what each function saw: rendered
//! here they must come out the same. Where we differ on purpose is listed in `testdata/kpt/differences.txt`; a case that is
//! listed there and does not differ fails too.

use std::{collections::BTreeMap, fs, path::Path};

use orrery_krm::ResourceList;

use super::{
    case, compare,
    world::{World, orrery},
};

const DIFFERENCES: &str = include_str!("../../testdata/kpt/differences.txt");

/// The name of a case and why it differs, a line each.
fn listed() -> BTreeMap<&'static str, &'static str> {
    let lines = DIFFERENCES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(": ").expect("a line is `case: reason`")).collect()
}

#[test]
fn packages_come_out_as_from_kpt() {
    let mut listed = listed();
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in case::read_all().iter().filter(|case| case.verb == "render") {
        count += 1;
        let world = World::new(case);
        let outcome = world.render(case, orrery());
        let differences = compare::differences(case, &outcome);
        match (listed.remove(case.name.as_str()), differences.is_empty()) {
            (Some(_), true) => wrong.push(format!("{} is listed as different and is not", case.name)),
            (None, false) => wrong.push(format!("{} ({}):\n  {}", case.name, case.about, differences.join("\n  "))),
            _ => {}
        }
    }
    wrong.extend(listed.keys().map(|name| format!("{name} is listed and is no case")));
    assert!(count > 250, "only {count} cases were found");
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
}

/// Whatever kpt hands to a function goes through the SDK without the change of a byte.
#[test]
fn every_recorded_resource_list_keeps_its_bytes() {
    let mut count = 0;
    for case in case::read_all() {
        let lists = case.seen.values().filter_map(|file| file.text.as_deref());
        for text in lists.chain([case.stdout.as_str()]).filter(|text| text.contains("kind: ResourceList\n")) {
            let list = ResourceList::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{}: {error}", case.name));
            assert_eq!(list.into_text(), text, "{}", case.name);
            count += 1;
        }
    }
    assert!(count > 340, "only {count} lists were found");
}

/// The reference page is made from the list. Set `ORRERY_UPDATE_DOCS` to write it.
#[test]
fn the_reference_page_says_what_the_list_says() {
    let mut page = String::from(
        "# Where `orrery fn render` differs from kpt\n\nMade from `crates/orrery/testdata/kpt/differences.txt` by the test that \
         renders 259 packages recorded from kpt 1.0.0-beta.56 and compares exit code, files, objects, comments and what each \
         function saw. All other recorded packages come out the same; layout that kpt only reformats is left as it is.\n\n\
         | case | why |\n|---|---|\n",
    );
    for (name, reason) in listed() {
        page += &format!("| `{name}` | {} |\n", reason.replace('|', "\\|"));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/kpt-differences.md");
    if std::env::var_os("ORRERY_UPDATE_DOCS").is_some() {
        fs::write(&path, &page).expect("the page can be written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, page, "run this test with ORRERY_UPDATE_DOCS=1");
}

//! Cases about reading.

use orrery_store::{Content, ListOptions, ReadError, Requirement, Revision, Scope, Selector, Store};

use super::{delete, key, names, pod, pods, put, text};

async fn fill(store: &Store, names: &[&str]) {
    for name in names {
        put(store, &pod(name), Content::new(*name)).await;
    }
}

pub(crate) async fn ranges_are_ordered_and_bounded(store: Store) {
    fill(&store, &["c", "a", "b", "a-b", "a.b"]).await;
    put(&store, &key("/pods/root/default-2/x"), Content::new("x")).await;
    put(&store, &key("/pods/root2/default/x"), Content::new("x")).await;
    put(&store, &key("/podss/root/default/x"), Content::new("x")).await;
    let list = store.list(&Scope::namespace("", "pods", "root", "default"), &ListOptions::default()).unwrap();
    assert_eq!(names(&list.objects), ["a", "a-b", "a.b", "b", "c"]);
    assert_eq!((list.more, list.revision), (false, store.revision()));
    let all = store.list(&pods(), &ListOptions::default()).unwrap();
    // As etcd orders keys: `-` comes before `/`.
    assert_eq!(names(&all.objects), ["x", "a", "a-b", "a.b", "b", "c"]);
    let one = store.list(&Scope::object(&pod("b")), &ListOptions::default()).unwrap();
    assert_eq!(names(&one.objects), ["b"]);
    assert!(store.list(&Scope::space("", "none", "root"), &ListOptions::default()).unwrap().objects.is_empty());
}

pub(crate) async fn pages_at_a_revision_are_one_list(store: Store) {
    let all: Vec<String> = (0..25).map(|number| format!("p{number:02}")).collect();
    fill(&store, &all.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let mut pages = Vec::new();
    let mut options = ListOptions { limit: 10, ..ListOptions::default() };
    let mut last;
    loop {
        let page = store.list(&pods(), &options).unwrap();
        pages.push(page.objects.len());
        // Changes between pages are not seen by later ones.
        put(&store, &pod(&format!("p{:02}x", pages.len() * 10)), Content::new("late")).await;
        if pages.len() == 1 {
            delete(&store, &pod("p24")).await;
        }
        if !page.more {
            assert_eq!(page.objects.last().unwrap().key().name(), "p24");
            break;
        }
        last = page.objects.last().unwrap().key().clone();
        options = ListOptions { at: Some(page.revision), after: Some(&last), limit: 10, ..ListOptions::default() };
    }
    assert_eq!(pages, [10, 10, 5]);
}

pub(crate) async fn old_revisions_stay_readable(store: Store) {
    let mut seen = Vec::new();
    for number in 0..20 {
        let revision = put(&store, &pod("a"), Content::new(number.to_string())).await;
        seen.push((revision, number.to_string()));
    }
    let gone = delete(&store, &pod("a")).await;
    let back = put(&store, &pod("a"), Content::new("back")).await;
    for (revision, value) in seen {
        assert_eq!(text(&store.get_at(&pod("a"), revision).unwrap().unwrap()), value);
        let options = ListOptions { at: Some(revision), ..ListOptions::default() };
        assert_eq!(text(&store.list(&pods(), &options).unwrap().objects[0]), value);
    }
    assert!(store.get_at(&pod("a"), gone).unwrap().is_none());
    assert_eq!(text(&store.get_at(&pod("a"), back).unwrap().unwrap()), "back");
}

fn select(store: &Store, requirements: Vec<Requirement>) -> Vec<String> {
    let selector = Selector::all_of(requirements);
    let list = store.list(&pods(), &ListOptions { selector: &selector, ..ListOptions::default() }).unwrap();
    names(&list.objects).into_iter().map(str::to_owned).collect()
}

pub(crate) async fn selectors_select(store: Store) {
    for (name, labels) in [
        ("a", vec![("app", "web"), ("tier", "front")]),
        ("b", vec![("app", "web"), ("tier", "back")]),
        ("c", vec![("app", "db")]),
        ("d", vec![]),
        ("e", vec![("app", "")]),
    ] {
        let content = labels.iter().fold(Content::new("x"), |content, (key, value)| content.label(key, value));
        put(&store, &pod(name), content).await;
    }
    let app = || "app".to_owned();
    let tier = || "tier".to_owned();
    let values = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>();
    assert_eq!(select(&store, vec![]), ["a", "b", "c", "d", "e"]);
    assert_eq!(select(&store, vec![Requirement::In(app(), values(&["web"]))]), ["a", "b"]);
    assert_eq!(select(&store, vec![Requirement::In(app(), values(&["web", "db", "?"]))]), ["a", "b", "c"]);
    assert_eq!(select(&store, vec![Requirement::In(app(), values(&[""]))]), ["e"]);
    assert_eq!(select(&store, vec![Requirement::In(app(), values(&[]))]), [""; 0]);
    assert_eq!(select(&store, vec![Requirement::NotIn(app(), values(&["web"]))]), ["c", "d", "e"]);
    assert_eq!(select(&store, vec![Requirement::Exists(tier())]), ["a", "b"]);
    assert_eq!(select(&store, vec![Requirement::Absent(tier())]), ["c", "d", "e"]);
    let both = vec![Requirement::In(app(), values(&["web"])), Requirement::NotIn(tier(), values(&["back"]))];
    assert_eq!(select(&store, both), ["a"]);
    let contradiction = vec![Requirement::Exists(tier()), Requirement::Absent(tier())];
    assert_eq!(select(&store, contradiction), [""; 0]);
}

pub(crate) async fn labels_follow_changes_at_every_revision(store: Store) {
    let one = put(&store, &pod("a"), Content::new("x").label("l", "1")).await;
    let two = put(&store, &pod("a"), Content::new("x").label("l", "2")).await;
    let none = put(&store, &pod("a"), Content::new("x")).await;
    let gone = delete(&store, &pod("a")).await;
    let back = put(&store, &pod("a"), Content::new("x").label("l", "1")).await;
    for (at, value, expected) in
        [(one, "1", 1), (one, "2", 0), (two, "1", 0), (two, "2", 1), (none, "1", 0), (gone, "1", 0), (back, "1", 1)]
    {
        let selector = Selector::equals("l", value);
        let options = ListOptions { selector: &selector, at: Some(at), ..ListOptions::default() };
        assert_eq!(store.list(&pods(), &options).unwrap().objects.len(), expected, "l={value} at {at}");
    }
}

pub(crate) async fn owners_are_indexed(store: Store) {
    put(&store, &pod("a"), Content::new("x").owner("u1").owner("u2")).await;
    put(&store, &key("apps/replicasets/root/default/r"), Content::new("x").owner("u1")).await;
    assert_eq!(names(&store.owned_by("u1")), ["a", "r"]);
    assert_eq!(names(&store.owned_by("u2")), ["a"]);
    put(&store, &pod("a"), Content::new("x").owner("u2")).await;
    assert_eq!(names(&store.owned_by("u1")), ["r"]);
    delete(&store, &pod("a")).await;
    assert!(store.owned_by("u2").is_empty());
    store.compact(store.revision()).await.unwrap();
    assert_eq!(names(&store.owned_by("u1")), ["r"]);
    assert!(store.owned_by("u2").is_empty() && store.owned_by("never").is_empty());
}

pub(crate) async fn resource_scope_spans_spaces(store: Store) {
    for space in ["b", "a", "c"] {
        for name in ["2", "1"] {
            let content = Content::new("x").label("space", space);
            put(&store, &key(&format!("/pods/{space}/default/{name}")), content).await;
        }
    }
    let scope = Scope::resource("", "pods");
    let keys = |options: &ListOptions<'_>| {
        let list = store.list(&scope, options).unwrap();
        list.objects.iter().map(|object| format!("{}{}", object.key().space(), object.key().name())).collect::<Vec<_>>()
    };
    assert_eq!(keys(&ListOptions::default()), ["a1", "a2", "b1", "b2", "c1", "c2"]);
    let after = key("/pods/a/default/2");
    assert_eq!(keys(&ListOptions { after: Some(&after), limit: 3, ..ListOptions::default() }), ["b1", "b2", "c1"]);
    let selector = Selector::equals("space", "b");
    assert_eq!(keys(&ListOptions { selector: &selector, ..ListOptions::default() }), ["b1", "b2"]);
}

pub(crate) async fn the_rest_of_a_page_is_counted(store: Store) {
    fill(&store, &["a", "b", "c", "d", "e"]).await;
    delete(&store, &pod("d")).await;
    let page = store.list(&pods(), &ListOptions { limit: 2, count_rest: true, ..ListOptions::default() }).unwrap();
    assert_eq!((page.more, page.rest), (true, Some(2)));
    let all = store.list(&pods(), &ListOptions { limit: 4, count_rest: true, ..ListOptions::default() }).unwrap();
    assert_eq!((all.more, all.rest), (false, Some(0)));
}

pub(crate) async fn compaction_forgets_the_past(store: Store) {
    let first = put(&store, &pod("a"), Content::new("1").label("l", "1")).await;
    put(&store, &pod("gone"), Content::new("x")).await;
    delete(&store, &pod("gone")).await;
    let now = put(&store, &pod("a"), Content::new("2")).await;
    store.compact(now).await.unwrap();
    let refused = store.get_at(&pod("a"), first);
    assert!(matches!(refused, Err(ReadError::Compacted { requested, oldest }) if requested == first && oldest <= now));
    assert_eq!(text(&store.get_at(&pod("a"), now).unwrap().unwrap()), "2");
    assert_eq!(text(&store.get(&pod("a")).unwrap()), "2");
    assert!(select(&store, vec![Requirement::Exists("l".to_owned())]).is_empty());
    assert_eq!(store.stats().history_events, 0);
    fill(&store, &["b"]).await;
    assert_eq!(store.list(&pods(), &ListOptions::default()).unwrap().objects.len(), 2);
}

pub(crate) async fn reading_the_future_is_an_error(store: Store) {
    fill(&store, &["a"]).await;
    let future = Revision::new(store.revision().get() + 1_000_000);
    assert!(matches!(store.get_at(&pod("a"), future), Err(ReadError::Future { .. })));
    assert!(store.watch(pods(), Selector::everything(), future).is_err());
}

pub(crate) async fn objects_are_counted(store: Store) {
    fill(&store, &["a", "b", "c"]).await;
    delete(&store, &pod("b")).await;
    fill(&store, &["a"]).await;
    let stats = store.stats();
    assert_eq!((stats.objects, stats.commits, stats.changes), (2, 5, 5));
    assert_eq!((stats.revision, stats.watchers), (store.revision(), 0));
}

pub(crate) async fn resources_of_a_space_are_known(store: Store) {
    put(&store, &key("apps/deployments/s1/default/a"), Content::new("x")).await;
    put(&store, &key("/pods/s1/default/a"), Content::new("x")).await;
    put(&store, &key("/pods/s2/default/a"), Content::new("x")).await;
    let resources = |space: &str| store.resources_in(space);
    assert_eq!(resources("s1"), [(String::new(), "pods".to_owned()), ("apps".to_owned(), "deployments".to_owned())]);
    delete(&store, &key("/pods/s2/default/a")).await;
    store.compact(store.revision()).await.unwrap();
    assert!(resources("s2").is_empty());
}

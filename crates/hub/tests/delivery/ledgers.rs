//! The book of a Binding in one ledger, or in several.

use orrery_api::ledger::{KeptWork, LedgerBox};
use orrery_hub::delivery::{Ledgers, joined};

fn entry(number: u32, clusters: usize, content: usize) -> KeptWork {
    let clusters = (0..clusters).map(|cluster| format!("cluster-{cluster:04}")).collect();
    KeptWork { number, clusters, content: "x".repeat(content), encoding: "deflate".to_owned() }
}

fn check(boxes: Vec<LedgerBox>, kept: Vec<KeptWork>, max_bytes: usize) -> Ledgers {
    let ledgers = Ledgers::new("web", boxes, kept.clone(), max_bytes);
    for ledger in ledgers.further.values().chain([&ledgers.first]) {
        let bytes = serde_json::to_vec(ledger).expect("JSON").len();
        assert!(bytes <= max_bytes + 200, "{bytes} of {max_bytes}");
    }
    assert_eq!(ledgers.first.further.len(), ledgers.further.len());
    let whole = joined(&ledgers.first, |name| ledgers.further.get(name));
    let flat = |kept: &[KeptWork]| -> Vec<(u32, String, usize)> {
        let each = |entry: &KeptWork| {
            let (number, content) = (entry.number, entry.content.len());
            entry.clusters.iter().map(move |cluster| (number, cluster.clone(), content)).collect::<Vec<_>>()
        };
        kept.iter().flat_map(each).collect()
    };
    assert_eq!(flat(&whole.kept), flat(&kept), "nothing is lost, and the order stays");
    ledgers
}

#[test]
fn what_fits_is_one_ledger() {
    let one = check(Vec::new(), vec![entry(1, 2, 100), entry(2, 2, 100)], 2000);
    assert!(one.further.is_empty());
    assert_eq!(one.first.kept.len(), 2);
}

#[test]
fn what_does_not_fit_continues() {
    let kept: Vec<_> = (1..=10).map(|number| entry(number, 3, 900)).collect();
    let boxes = vec![LedgerBox { number: 1, objects: vec!["/configmaps/n/a".repeat(20)] }];
    let many = check(boxes, kept, 3000);
    assert_eq!(many.further.len(), 4, "two in the first, beside the boxes, and two in each of the others");
    assert!(many.further.keys().all(|name| name.starts_with("web.") && name.len() == 20), "{:?}", many.further.keys());
}

#[test]
fn an_entry_for_too_many_clusters_is_divided_among_ledgers() {
    let many = check(Vec::new(), vec![entry(7, 500, 300)], 2000);
    assert!(many.further.len() > 3);
    assert!(many.further.values().flat_map(|ledger| &ledger.kept).all(|kept| kept.content.len() == 300));
}

#[test]
fn names_follow_from_what_is_inside() {
    let names = |kept: Vec<KeptWork>, binding: &str| Ledgers::new(binding, Vec::new(), kept, 500).first.further;
    let (one, other) = (vec![entry(1, 1, 600), entry(2, 1, 600)], vec![entry(1, 1, 600), entry(3, 1, 600)]);
    assert_eq!(names(one.clone(), "web"), names(one.clone(), "web"));
    let (mine, theirs) = (names(one.clone(), "web"), names(other, "web"));
    assert_eq!((&mine[0], mine[1] == theirs[1]), (&theirs[0], false));
    let long = names(one.clone(), &format!("{}.-{}", "a".repeat(199), "b".repeat(50)));
    assert!(long[0].len() < 253 && long[0].starts_with(&format!("{}.", "a".repeat(199))), "{long:?}");
    let other = names(one, &format!("{}.-{}", "a".repeat(199), "c".repeat(50)));
    assert_ne!(long, other, "the same content of another Binding is another ledger");
}

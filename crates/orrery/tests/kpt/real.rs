//! Side by side with the real kpt, when it is on the PATH: the same packages, and our functions run by it.

use std::{
    env,
    path::{Path, PathBuf},
};

use super::{
    case::{Case, File},
    compare, random,
    world::{Outcome, World, orrery},
};

/// The real kpt; without it these tests say so and pass.
fn kpt() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|folder| folder.join("kpt")).find(|program| program.is_file());
    if found.is_none() {
        eprintln!("kpt is not on the PATH: nothing is compared with it");
    }
    found
}

/// What kpt made of a package, in the form of a recorded case.
fn recorded(case: &Case, outcome: Outcome) -> Case {
    Case {
        name: case.name.clone(),
        args: case.args.clone(),
        after: outcome.package,
        seen: outcome.seen,
        other: outcome.other,
        exit: outcome.exit,
        stdout: outcome.stdout,
        empty_dirs: outcome.empty_dirs,
        modes: outcome.modes,
        again: outcome.again,
        ..Case::default()
    }
}

/// Set `ORRERY_ROUNDS` for more packages and `ORRERY_SEED` for others.
#[test]
fn random_packages_come_out_as_from_kpt() {
    let Some(kpt) = kpt() else { return };
    let number = |name: &str, default| env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (seed, rounds): (u64, u64) = (number("ORRERY_SEED", 1), number("ORRERY_ROUNDS", 8));
    for seed in seed..seed + rounds {
        let case = random::package(seed);
        let theirs = recorded(&case, World::new(&case).render(&case, &kpt));
        let ours = World::new(&case).render(&case, orrery());
        let differences = compare::differences(&theirs, &ours);
        let kptfile = case.before["Kptfile"].text.as_deref().unwrap_or_default();
        assert!(differences.is_empty(), "seed {seed}:\n{kptfile}\n{}\n{}", differences.join("\n"), ours.stderr);
    }
}

const CLUSTER: &str = "# where it runs\napiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: cluster01\nspec:\n  \
                       clusterName: cluster01   # short\n  cnis:\n    - macvlan\n    - sriov\n  masterInterface: eth1\n";
const POOLS: &str = "apiVersion: ipam.resource.nephio.org/v1alpha1\nkind: IPPrefix\nmetadata:\n  name: net\nspec:\n  kind: network\n  \
                     networkInstance: {name: vpc-ran}\n  prefix: 10.0.0.1/24\n  labels:\n    nephio.org/cluster-name: cluster01\n    \
                     nephio.org/address-family: ipv4\n    nephio.org/gateway: \"true\"\n---\napiVersion: \
                     vlan.resource.nephio.org/v1alpha1\nkind: VLANIndex\nmetadata:\n  name: cluster01\n";
const SEED_CLUSTER: &str = "apiVersion: infra.nephio.org/v1alpha1\nkind: ClusterContext\nmetadata:\n  name: cluster-context\nspec:\n    \
                            cniConfig:\n        cniType: macvlan\n        masterInterface: eth1\n    siteCode: edge1\n    region: \
                            us-central1\n";

fn interface(name: &str) -> String {
    format!(
        "apiVersion: req.nephio.org/v1alpha1\nkind: Interface\nmetadata:\n  name: {name}\n  annotations:\n    \
         config.kubernetes.io/local-config: \"true\"  # not for a cluster\n    specializer.nephio.org/owner: \
         workload.nephio.org/v1alpha1.NFDeployment.upf-cluster01\n    specializer.nephio.org/namespace: upf\nspec:\n  \
         networkInstance:\n    name: vpc-ran\n  cniType: sriov\n  attachmentType: vlan\n"
    )
}

/// A package with two interfaces whose pipeline names these functions of ours.
fn package(name: &str, cluster: &str, functions: &[&str], more: &str) -> Case {
    let steps: String =
        functions.iter().map(|function| format!("  - exec: {} fn {function}{more}\n", orrery().display())).collect();
    let kptfile =
        format!("apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: upf\npipeline:\n  mutators:\n{steps}");
    let texts = [
        ("Kptfile", kptfile),
        ("cluster.yaml", cluster.to_owned()),
        ("n3.yaml", interface("n3")),
        ("n6.yaml", interface("n6")),
    ];
    let texts = texts.into_iter().chain([("pools.yaml", POOLS.to_owned())]);
    let before = texts.map(|(name, text)| (name.to_owned(), File { text: Some(text), ..File::default() })).collect();
    Case {
        name: name.to_owned(),
        dir: "pkg".to_owned(),
        cwd: ".".to_owned(),
        args: vec!["--allow-exec".to_owned()],
        again: Some("same".to_owned()),
        before,
        ..Case::default()
    }
}

fn check_same(case: &Case, kpt: &Path) -> Outcome {
    let theirs = World::new(case).render(case, kpt);
    assert_eq!(theirs.again.as_deref(), (theirs.exit == 0).then_some("same"), "{}: {}", case.name, theirs.stderr);
    let ours = World::new(case).render(case, orrery());
    let differences = compare::differences(&recorded(case, theirs), &ours);
    assert!(differences.is_empty(), "{}:\n{}\n{}", case.name, differences.join("\n"), ours.stderr);
    ours
}

#[test]
fn our_functions_give_the_same_package_under_kpt() {
    let Some(kpt) = kpt() else { return };
    for (dialect, cluster) in [("nephio", CLUSTER), ("seed", SEED_CLUSTER)] {
        let all = ["interface", "ipam", "vlan", "nad", "interface"];
        let outcome = check_same(&package(dialect, cluster, &all, ""), &kpt);
        assert_eq!(outcome.exit, 0);
        assert!(outcome.package.len() > 8, "claims and more were made: {:?}", outcome.package.keys());
        check_same(&package(dialect, cluster, &["interface"], ""), &kpt);
    }
}

/// `kpt fn eval --exec` runs one function on the whole folder.
#[test]
fn eval_gives_the_same_package_as_rendering() {
    let Some(kpt) = kpt() else { return };
    let case = package("eval", CLUSTER, &["interface"], "");
    let rendered = World::new(&case).render(&case, orrery());
    let theirs = World::new(&case).eval(&case, &kpt, &format!("{} fn interface", orrery().display()));
    let differences = compare::differences(&recorded(&case, theirs), &rendered);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn selectors_that_hide_the_kptfile_are_a_clear_error() {
    let case = package("hidden", CLUSTER, &["interface"], "\n    selectors:\n    - kind: Interface");
    let programs = [Some(orrery().to_owned()), kpt()];
    for program in programs.into_iter().flatten() {
        let outcome = World::new(&case).render(&case, &program);
        assert_eq!(outcome.exit, 1, "{}", outcome.stderr);
        assert!(outcome.stderr.contains("the package has no Kptfile"), "{}", outcome.stderr);
        assert_eq!(outcome.package, case.before, "nothing is written");
    }
}

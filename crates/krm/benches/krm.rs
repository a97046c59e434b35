//! How long functions and the renderer take: `cargo bench -p orrery-krm`. Prints the best of several runs for each size.

use std::{
    fs, hint,
    path::Path,
    time::{Duration, Instant},
};

use orrery_krm::{
    Context, Item, ResourceList, functions, process,
    render::{FunctionReport, Program, Programs, Progress, Request, render},
    yaml::Stream,
};

const RUNS: usize = 5;

fn main() {
    for count in [10, 1_000, 10_000] {
        let text = resource_list(count);
        println!("{count} interfaces, {} KiB", text.len() / 1024);
        report("parse", || drop(hint::black_box(Stream::parse(text.as_str()))));
        report("read and write", || {
            drop(hint::black_box(ResourceList::parse(text.as_bytes()).map(ResourceList::into_text)))
        });
        report("edit every item", || edit_all(&text));
        for function in functions::all() {
            let context = context();
            report(&format!("fn {}", function.name()), || drop(process(*function, text.as_bytes(), &context)));
        }
        render_package(count);
    }
}

fn report(what: &str, mut run: impl FnMut()) {
    let best = (0..RUNS).map(|_| time(&mut run)).min().unwrap_or_default();
    println!("  {what:<34} {:>9.3} ms", best.as_secs_f64() * 1000.0);
}

fn time(run: &mut impl FnMut()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

fn edit_all(text: &str) {
    let mut list = ResourceList::parse(text.as_bytes()).expect("our own text");
    for item in &mut list.items {
        item.set_annotation("example.org/seen", "true");
        item.set(&["status", "phase"], "Ready");
    }
    hint::black_box(list.into_text());
}

fn context() -> Context {
    Context { now: "2026-11-16T02:00:00Z".to_owned(), pools: Vec::new() }
}

/// A package of this many interfaces in one file each, through the four functions.
fn render_package(count: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let images = ["interface-manager", "ipam", "vlan", "nad"].map(|name| format!("  - image: nephio.org/{name}:v1\n"));
    let pipeline = if functions::all().is_empty() {
        String::new()
    } else {
        format!("pipeline:\n  mutators:\n{}", images.concat())
    };
    write(
        folder.path(),
        "Kptfile",
        &format!("apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: bench\n{pipeline}"),
    );
    for (number, item) in objects(count).enumerate() {
        write(folder.path(), &format!("item-{number}.yaml"), &item);
    }
    let context = context();
    let request =
        Request { folder: folder.path(), allow_exec: false, strict: false, context: &context, programs: &None };
    report("render the pipeline in memory", || {
        let rendered = render(&request, &mut Quiet).map_err(|failure| failure.error).expect("the package is sound");
        drop(hint::black_box(rendered.plan()));
    });
    let start = Instant::now();
    let rendered = render(&request, &mut Quiet).map_err(|failure| failure.error).expect("the package is sound");
    let plan = rendered.plan().expect("a place for every item");
    plan.apply().expect("the folder is ours");
    println!("  {:<34} {:>9.3} ms", "render and write, once", start.elapsed().as_secs_f64() * 1000.0);
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("the folder is ours");
}

struct None;

impl Programs for None {
    fn run(&self, _: &[String], _: &str) -> std::io::Result<Program> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

struct Quiet;

impl Progress for Quiet {
    fn package(&mut self, _: &str) {}
    fn begin(&mut self, _: &str, _: Option<usize>) {}
    fn end(&mut self, _: &FunctionReport) {}
}

fn resource_list(count: usize) -> String {
    let kptfile = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: bench\n".to_owned();
    let items = [kptfile].into_iter().chain(objects(count));
    let items = items.flat_map(|text| Item::parse_all(&text).expect("our own text")).collect();
    ResourceList::new(items, Option::None).into_text()
}

/// A cluster, pools, and interfaces with comments and the annotations that real packages have.
fn objects(count: usize) -> impl Iterator<Item = String> {
    let cluster = "apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: cluster01\nspec:\n  \
                   clusterName: cluster01\n  cnis:\n  - macvlan\n  - sriov\n  masterInterface: eth1\n";
    let prefix = "apiVersion: ipam.resource.nephio.org/v1alpha1\nkind: IPPrefix\nmetadata:\n  name: net\nspec:\n  kind: \
                  network\n  networkInstance:\n    name: vpc-ran\n  prefix: 10.0.0.1/8\n  labels:\n    \
                  nephio.org/cluster-name: cluster01\n    nephio.org/address-family: ipv4\n    nephio.org/gateway: \"true\"\n";
    let index = "apiVersion: vlan.resource.nephio.org/v1alpha1\nkind: VLANIndex\nmetadata:\n  name: cluster01\n";
    let interfaces = (0..count).map(|number| {
        format!(
            "# one of many\napiVersion: req.nephio.org/v1alpha1\nkind: Interface\nmetadata:\n  name: n{number}  # counted\n  \
             annotations:\n    config.kubernetes.io/local-config: \"true\"\n    specializer.nephio.org/owner: \
             workload.nephio.org/v1alpha1.NFDeployment.upf-cluster01\n    specializer.nephio.org/namespace: upf\nspec:\n  \
             networkInstance:\n    name: vpc-ran\n  cniType: sriov\n  attachmentType: vlan\n"
        )
    });
    [cluster, prefix, index].into_iter().map(str::to_owned).chain(interfaces)
}

//! A folder in which one case is run: the package, the functions, and what appears beside them.

use std::{
    collections::BTreeMap,
    env, fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

use super::case::{Case, File, Tree};

/// The functions that the recorded packages name.
const FUNCTIONS: &[&str] = &[
    "add-condition",
    "add-element",
    "add-item",
    "append-trace",
    "copy-item",
    "crash",
    "drop-annotations",
    "drop-element",
    "drop-field",
    "echo-config",
    "emit",
    "fail-with",
    "identity",
    "list-args",
    "list-items",
    "noisy",
    "noisy-fail",
    "remove-item",
    "rename-path",
    "report",
    "reverse-items",
    "set-annotation",
    "set-field",
    "set-label",
    "sort-keys",
    "strip-comments",
    "swap-text",
];

/// The program under test.
pub(crate) fn orrery() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

pub(crate) struct World {
    folder: TempDir,
    /// Without links, as functions see it.
    root: PathBuf,
}

/// What is there after a run.
pub(crate) struct Outcome {
    pub(crate) exit: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) package: Tree,
    pub(crate) seen: Tree,
    pub(crate) other: Tree,
    pub(crate) results: Option<String>,
    pub(crate) empty_dirs: Vec<String>,
    pub(crate) modes: BTreeMap<String, String>,
    pub(crate) again: Option<String>,
}

impl World {
    pub(crate) fn new(case: &Case) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let root = fs::canonicalize(folder.path()).expect("the folder is there");
        let world = Self { folder, root };
        fs::create_dir_all(world.root.join("pkg")).expect("a new folder");
        fs::create_dir(world.root.join("fns")).expect("a new folder");
        for (path, file) in &case.before {
            put(&world.root.join("pkg").join(path), file);
        }
        let program = functions_program();
        for name in FUNCTIONS {
            symlink(&program, world.root.join("fns").join(name)).expect("a new link");
        }
        world
    }

    /// Renders with a program that takes kpt's words, and looks at what is there then.
    pub(crate) fn render(&self, case: &Case, program: &Path) -> Outcome {
        for step in &case.first {
            self.start(program, "render", case, &step.dir, &step.args);
        }
        let mut outcome = self.run(program, "render", case, &case.args);
        if outcome.exit == 0 && case.again.is_some() {
            let output = self.start(program, "render", case, &case.dir, &case.args);
            let code = output.status.code().unwrap_or(-1);
            let same = if self.tree("pkg") == outcome.package { "same" } else { "differs" };
            outcome.again = Some(if code == 0 { same.to_owned() } else { format!("exit {code}") });
        }
        outcome
    }

    /// Runs one function on the package with kpt.
    pub(crate) fn eval(&self, case: &Case, kpt: &Path, exec: &str) -> Outcome {
        let outcome = self.run(kpt, "eval", case, &["--exec".to_owned(), exec.to_owned()]);
        Outcome { again: case.again.clone(), ..outcome }
    }

    fn run(&self, program: &Path, verb: &str, case: &Case, args: &[String]) -> Outcome {
        let output = self.start(program, verb, case, &case.dir, args);
        let seen = self.tree("seen");
        let exit = output.status.code().unwrap_or(-1);
        let mut outcome = Outcome {
            exit,
            stdout: self.normal(&output.stdout),
            stderr: self.normal(&output.stderr),
            package: self.tree("pkg"),
            seen,
            other: self.other(),
            results: fs::read(self.root.join("results/results.yaml")).ok().map(|bytes| self.normal(&bytes)),
            empty_dirs: Vec::new(),
            modes: BTreeMap::new(),
            again: None,
        };
        self.folders(Path::new("pkg"), &mut outcome);
        outcome
    }

    fn start(&self, program: &Path, verb: &str, case: &Case, dir: &str, args: &[String]) -> Output {
        let fill = |text: &str| text.replace("{W}", &self.root.to_string_lossy());
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([self.root.join("fns")].into_iter().chain(env::split_paths(&path)));
        Command::new(program)
            .args(["fn", verb])
            .args(Some(fill(dir)).filter(|dir| !dir.is_empty()))
            .args(args.iter().map(|argument| fill(argument)))
            .current_dir(self.root.join(&case.cwd))
            .env("PATH", path.expect("no colon in a temporary folder"))
            .env("FN_SEEN", self.root.join("seen"))
            .env("FN_BASE", &self.root)
            .env("HOME", &self.root)
            .output()
            .expect("the program starts")
    }

    /// Machine paths out of a text.
    fn normal(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        let root = self.root.to_string_lossy();
        let names = [(format!("{root}/pkg"), "{PKG}"), (format!("{root}/fns"), "{FNS}"), (root.into_owned(), "{W}")];
        names.iter().fold(text.into_owned(), |text, (path, name)| text.replace(path, name))
    }

    fn tree(&self, folder: &str) -> Tree {
        let mut tree = Tree::new();
        self.collect(&self.root.join(folder), "", &mut tree);
        tree
    }

    /// Everything but the package, the functions and what is read elsewhere.
    fn other(&self) -> Tree {
        let mut tree = Tree::new();
        for entry in fs::read_dir(self.folder.path()).expect("the folder is there") {
            let name = entry.expect("a name").file_name().to_string_lossy().into_owned();
            if !["pkg", "fns", "seen", "results"].contains(&name.as_str()) {
                self.collect(&self.root.join(&name), &name, &mut tree);
            }
        }
        tree
    }

    fn collect(&self, path: &Path, name: &str, tree: &mut Tree) {
        let Ok(metadata) = fs::symlink_metadata(path) else { return };
        if metadata.is_dir() {
            for entry in fs::read_dir(path).expect("a readable folder") {
                let entry = entry.expect("a name").file_name().to_string_lossy().into_owned();
                let below = if name.is_empty() { entry.clone() } else { format!("{name}/{entry}") };
                self.collect(&path.join(&entry), &below, tree);
            }
            return;
        }
        let file = if metadata.is_symlink() {
            let target = fs::read_link(path).expect("a link");
            File { link: Some(target.to_string_lossy().into_owned()), ..File::default() }
        } else {
            let bytes = fs::read(path).expect("a readable file");
            match String::from_utf8(bytes) {
                Ok(text) => File { text: Some(self.normal(text.as_bytes())), ..File::default() },
                Err(error) => {
                    let hex = error.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
                    File { hex: Some(hex), ..File::default() }
                }
            }
        };
        tree.insert(name.to_owned(), file);
    }

    /// Empty folders, and files with another mode than 0644.
    fn folders(&self, below: &Path, outcome: &mut Outcome) {
        let mut empty = true;
        for entry in fs::read_dir(self.root.join(below)).expect("a readable folder") {
            empty = false;
            let path = below.join(entry.expect("a name").file_name());
            let metadata = fs::symlink_metadata(self.root.join(&path)).expect("it is there");
            let recorded = Path::new("out").join(path.strip_prefix("pkg").expect("below the package"));
            if metadata.is_dir() {
                self.folders(&path, outcome);
            } else if !metadata.is_symlink() && metadata.permissions().mode() & 0o777 != 0o644 {
                let mode = format!("{:04o}", metadata.permissions().mode() & 0o777);
                outcome.modes.insert(recorded.to_string_lossy().into_owned(), mode);
            }
        }
        if empty && below != Path::new("pkg") {
            let recorded = Path::new("out").join(below.strip_prefix("pkg").expect("below the package"));
            outcome.empty_dirs.push(recorded.to_string_lossy().into_owned());
        }
    }
}

fn put(path: &Path, file: &File) {
    fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a new folder");
    match &file.link {
        Some(target) => symlink(target, path).expect("a new link"),
        None => {
            fs::write(path, file.bytes()).expect("a new file");
            let mode = if file.executable { 0o755 } else { 0o644 };
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our own file");
        }
    }
}

/// The example beside this test: cargo builds it with the tests.
fn functions_program() -> PathBuf {
    let test = env::current_exe().expect("this program has a place");
    let program = test.parent().and_then(Path::parent).expect("target/debug/deps").join("examples/kpt_functions");
    assert!(program.is_file(), "build the example first: cargo build -p orrery --example kpt_functions");
    program
}

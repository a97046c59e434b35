//! The embedded store on a real disk: locks, restarts, backups, a disk that is really full.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use orrery_store::{
    Batch, CommitError, Config, Content, Expect, Key, ListOptions, OpenError, ReadError, Revision, Scope, Store,
};

fn thing(number: u32) -> Key {
    Key::new("", "things", "root", "default", &format!("t{number:05}")).unwrap()
}

fn open(directory: &Path) -> Store {
    Store::embedded(directory, Config::default()).unwrap()
}

async fn fill(store: &Store, count: u32) {
    for number in 0..count {
        let content = Content::new(format!("value {number}")).label("even", &(number % 2 == 0).to_string());
        store.commit(Batch::new().put(thing(number), Expect::Anything, content)).await.unwrap();
    }
}

fn count(store: &Store) -> usize {
    store.list(&Scope::space("", "things", "root"), &ListOptions::default()).unwrap().objects.len()
}

#[tokio::test]
async fn nobody_but_the_owner_can_look_into_its_files() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (place, backup) = (directory.path().join("store"), directory.path().join("backup"));
    let store = open(&place);
    fill(&store, 3).await;
    store.backup(&backup).unwrap();
    store.compact(store.revision()).await.unwrap();
    store.close().await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&place), mode(&backup)), (0o700, 0o600));
    for entry in fs::read_dir(&place).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[tokio::test]
async fn a_directory_has_one_owner() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let second = Store::embedded(directory.path(), Config::default());
    let Some(OpenError::Locked { path }) = second.err() else { panic!("opened twice") };
    assert_eq!(path, directory.path());
    store.close().await;
    drop(store);
    open(directory.path()).close().await;
}

#[tokio::test]
async fn a_restart_keeps_objects_epoch_and_history() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    fill(&store, 50).await;
    let renewed = store.renew_epoch().await.unwrap();
    let before_deletion = store.commit(Batch::new().delete(thing(7), Expect::Present)).await.unwrap().revision;
    store.close().await;
    drop(store);

    let store = open(directory.path());
    assert_eq!((store.epoch(), store.revision(), count(&store)), (renewed, before_deletion, 49));
    let earlier = Revision::new(before_deletion.get() - 1);
    assert!(store.get_at(&thing(7), earlier).unwrap().is_some());
    store.compact(store.revision()).await.unwrap();
    fill(&store, 3).await;
    store.close().await;
    drop(store);

    let store = open(directory.path());
    assert_eq!((store.epoch(), count(&store)), (renewed, 49));
    assert_eq!(store.get(&thing(8)).unwrap().value().to_vec(), b"value 8");
    store.close().await;
}

#[tokio::test]
async fn compaction_frees_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    for round in 0..20 {
        let batch = Batch::new().put(thing(1), Expect::Anything, Content::new(vec![round; 1 << 20]));
        store.commit(batch).await.unwrap();
    }
    store.compact(store.revision()).await.unwrap();
    while store.stats().snapshots == 0 {
        tokio::task::yield_now().await;
    }
    // Closing waits for the removal of what the snapshot made superfluous.
    store.close().await;
    let size: u64 =
        std::fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(size < 4 << 20, "{size} bytes for one object of 1 MiB");
    drop(store);
    let store = open(directory.path());
    assert_eq!(store.get(&thing(1)).unwrap().value().to_vec(), vec![19; 1 << 20]);
    store.close().await;
}

#[tokio::test]
async fn a_backup_is_restored_under_a_new_epoch() {
    let directory = tempfile::tempdir().unwrap();
    let backup = directory.path().join("backup");
    let store = open(&directory.path().join("first"));
    fill(&store, 20).await;
    let revision = store.backup(&backup).unwrap();
    assert_eq!(revision, store.revision());
    let seen_after_backup = store.commit(Batch::new().delete(thing(0), Expect::Present)).await.unwrap().revision;

    let restored = directory.path().join("second");
    let epoch = Store::restore(&backup, &restored).unwrap();
    assert_ne!(epoch, store.epoch());
    let again = open(&restored);
    assert_eq!((again.epoch(), count(&again)), (epoch, 20));
    assert_eq!(again.get(&thing(3)).unwrap().modified(), store.get(&thing(3)).unwrap().modified());
    assert!(again.revision() > seen_after_backup);
    let old = again.get_at(&thing(0), seen_after_backup);
    assert!(matches!(old, Err(ReadError::Compacted { .. })), "{old:?}");
    let written = again.commit(Batch::new().delete(thing(0), Expect::Present)).await.unwrap();
    assert!(written.revision > seen_after_backup);

    let refused = Store::restore(&backup, &directory.path().join("first"));
    assert!(matches!(refused, Err(OpenError::Locked { .. })), "{refused:?}");
    again.close().await;
    drop(again);
    let refused = Store::restore(&backup, &restored);
    assert!(matches!(refused, Err(OpenError::NotEmpty { .. })), "{refused:?}");
    std::fs::write(&backup, b"not a backup").unwrap();
    let refused = Store::restore(&backup, &directory.path().join("third"));
    assert!(matches!(refused, Err(OpenError::Damaged { .. })), "{refused:?}");
    store.close().await;
}

/// A file system of two megabytes, where the machine lets us mount one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=3m", "none"]).arg(directory.path()).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(directory))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[tokio::test]
async fn a_really_full_disk_is_an_error_and_passes() {
    let Some(disk) = SmallDisk::mount() else {
        println!("skipped: mounting a small file system needs root; the simulated disk is tested everywhere");
        return;
    };
    let filler = disk.0.path().join("filler");
    let store = open(&disk.0.path().join("data"));
    std::fs::write(&filler, vec![1; 512 << 10]).unwrap();
    let put = |number| Batch::new().put(thing(number), Expect::Absent, Content::new(vec![7; 100_000]));
    let mut accepted = 0;
    let refused = loop {
        match store.commit(put(accepted)).await {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, CommitError::NoRoom(_)), "{refused}");
    assert!(accepted > 5, "{accepted}");
    std::fs::remove_file(&filler).unwrap();
    store.commit(put(accepted)).await.unwrap();
    store.close().await;
    drop(store);
    let store = open(&disk.0.path().join("data"));
    assert_eq!(count(&store), accepted as usize + 1);
    store.close().await;
}

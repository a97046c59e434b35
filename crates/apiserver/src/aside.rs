//! Work that may take long, off the threads that serve requests.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Does what may take long. The requests that wait for this thread are served by another meanwhile, if there can be one.
pub(crate) fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// The only thread of a runtime waits for what another task on it does: without a second thread this would not end.
    #[test]
    fn others_are_served_meanwhile() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (tell, told) = mpsc::channel();
        let served = runtime.block_on(async {
            let long = tokio::spawn(async move { aside(|| told.recv()) });
            tokio::spawn(async move { tell.send("served") }).await.unwrap().unwrap();
            long.await.unwrap()
        });
        assert_eq!(served, Ok("served"));
    }

    #[test]
    fn where_there_is_no_other_thread_it_is_just_done() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(async { aside(|| 1) }) + aside(|| 1), 2);
    }
}

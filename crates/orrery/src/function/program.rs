//! Starts the programs that a pipeline names.

use std::{
    io::{self, Read, Write},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use orrery_krm::render::{Program, Programs};

/// As long as kpt waits for a function.
const LIMIT: Duration = Duration::from_secs(300);

/// Programs of this machine, started in the folder that `orrery` was started in.
pub(crate) struct Local;

impl Programs for Local {
    fn run(&self, arguments: &[String], input: &str) -> io::Result<Program> {
        let Some((program, arguments)) = arguments.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program is named"));
        };
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (mut stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                // A program may end without reading everything: that is its own affair.
                let _ = stdin.as_mut().map(|stdin| stdin.write_all(input.as_bytes()));
                drop(stdin);
            });
            let out = scope.spawn(|| read(stdout));
            let err = scope.spawn(|| read(stderr));
            scope.spawn(move || {
                let outputs = (out.join(), err.join());
                // The receiver is gone only if the limit has passed, and then nobody wants it.
                let _ = sender.send(outputs);
            });
            let outputs = receiver.recv_timeout(LIMIT);
            if outputs.is_err() {
                child.kill()?;
            }
            let status = child.wait()?;
            let Ok((Ok(stdout), Ok(stderr))) = outputs else {
                return Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", LIMIT.as_secs())));
            };
            let exit = status.code().unwrap_or(-1);
            Ok(Program { stdout: stdout?, stderr: String::from_utf8_lossy(&stderr?).into_owned(), exit })
        })
    }
}

fn read(stream: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        stream.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

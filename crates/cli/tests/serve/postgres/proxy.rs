//! A line between a node and its database that can be cut, delayed and made deaf.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the line does with bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// Passes them on.
    Open,
    /// Ends every connection, and new ones at once.
    Cut,
    /// Keeps connections and passes nothing on, in either direction.
    Silent,
    /// Passes what the node sends, and no answer.
    Deaf,
    /// Passes everything on, late.
    Slow,
}

/// How late a slow line passes bytes on.
const LATE: Duration = Duration::from_millis(15);

struct Shared {
    line: Mutex<Line>,
    open: Mutex<Vec<(TcpStream, UnixStream)>>,
}

/// A line to a server that listens on a socket.
pub struct Proxy {
    shared: Arc<Shared>,
    port: u16,
}

impl Proxy {
    pub fn start(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared { line: Mutex::new(Line::Open), open: Mutex::default() });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                if *accepting.line.lock().unwrap() == Line::Cut {
                    continue;
                }
                let Ok(server) = UnixStream::connect(&socket) else { continue };
                let pair = (client.try_clone().unwrap(), server.try_clone().unwrap());
                accepting.open.lock().unwrap().push(pair);
                let (to_server, to_client) = (Arc::clone(&accepting), Arc::clone(&accepting));
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || {
                    pass(&to_server, &from, &to, &[Line::Open, Line::Deaf, Line::Slow]);
                    let _ = to.shutdown(Shutdown::Both);
                });
                std::thread::spawn(move || {
                    pass(&to_client, &server, &client, &[Line::Open, Line::Slow]);
                    let _ = client.shutdown(Shutdown::Both);
                });
            }
        });
        Self { shared, port }
    }

    pub fn url(&self) -> String {
        format!("postgres://tester@127.0.0.1:{}/postgres", self.port)
    }

    /// Changes what the line does, for connections that are open too.
    pub fn set(&self, line: Line) {
        *self.shared.line.lock().unwrap() = line;
        if line == Line::Cut {
            for (client, server) in self.shared.open.lock().unwrap().drain(..) {
                let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
            }
        }
    }

    /// Ends one direction of every connection: what the node sends, or what the database answers.
    pub fn half_close(&self, answers: bool) {
        for (client, server) in self.shared.open.lock().unwrap().drain(..) {
            let _ = if answers { client.shutdown(Shutdown::Write) } else { server.shutdown(Shutdown::Write) };
        }
    }
}

/// Passes bytes while the line is in one of these states; in the others they wait.
fn pass(shared: &Shared, mut from: impl Read, mut to: impl Write, passing: &[Line]) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(length @ 1..) = from.read(&mut buffer) else { return };
        while !passing.contains(&*shared.line.lock().unwrap()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if *shared.line.lock().unwrap() == Line::Slow {
            std::thread::sleep(LATE);
        }
        if to.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
}

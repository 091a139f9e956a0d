//! One session with many subscribers: how long after its request a message reaches each of them.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use qoder_testkit::{Reply, Script, ScriptedServer};
use serde_json::json;

use super::super::Bench;
use super::client::{PATIENCE, Served};

/// Messages a second. Each makes about six events.
const MESSAGES: u32 = 8;

/// What arrived at the subscribers.
pub(super) struct Arrived {
    pub(super) subscribers: usize,
    /// Events of the session a second.
    pub(super) events: f64,
    /// The time from a request to its message at a subscriber that 99 of 100 stay below.
    pub(super) late: Duration,
    /// Processor time of the server for each frame it sent.
    pub(super) frame: Duration,
}

/// A stream that is read as it comes.
struct Subscriber {
    stream: TcpStream,
    /// The end of what was read, in which a mark may be cut.
    rest: String,
    seen: usize,
    frames: usize,
}

impl Subscriber {
    fn open(served: &Served, path: &str) -> Result<Self> {
        let mut stream = TcpStream::connect(&served.address)?;
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n",
            served.token
        );
        stream.write_all(request.as_bytes())?;
        // The head is there before the first message is sent.
        let mut head = [0; 4096];
        let length = stream.read(&mut head)?;
        ensure!(head[..length].starts_with(b"HTTP/1.1 200"), "a stream is refused");
        stream.set_nonblocking(true)?;
        Ok(Self { stream, rest: String::new(), seen: 0, frames: 0 })
    }

    /// Reads what is there, and says for which messages it was the first time.
    fn take(&mut self, buffer: &mut [u8]) -> Result<Vec<usize>> {
        let mut found = Vec::new();
        loop {
            match self.stream.read(buffer) {
                Ok(0) => bail!("the server closed a stream"),
                Ok(length) => self.rest.push_str(&String::from_utf8_lossy(&buffer[..length])),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(found),
                Err(error) => return Err(error.into()),
            }
            let whole = self.rest.rfind('\n').map_or(0, |at| at + 1);
            for line in self.rest[..whole].lines().filter(|line| line.starts_with("data:")) {
                self.frames += 1;
                if line.contains("\"type\":\"user.message\"")
                    && line.contains(&format!("tick {} ", self.seen))
                {
                    found.push(self.seen);
                    self.seen += 1;
                }
            }
            self.rest.drain(..whole);
        }
    }
}

/// The processor time of a process so far.
fn processor(pid: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<u64> =
        after.split_whitespace().skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    // SAFETY: asks for a constant of the system.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    let seconds = fields.iter().sum::<u64>() as f64 / ticks as f64;
    Ok(Duration::from_secs_f64(seconds))
}

fn wait(polled: &mut [libc::pollfd]) {
    // SAFETY: the slice is valid for its length; a failure is seen as no events.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 100) };
}

/// Sends messages at a steady rate while everyone reads.
pub(super) fn run(bench: &Bench) -> Result<Arrived> {
    let subscribers = if bench.quick { 100 } else { 1_000 };
    let messages = if bench.quick { 8 } else { 48 };
    let served =
        Served::start(bench, ScriptedServer::start(Script::by(|_, _| Reply::text("done")).forget_bodies()))?;
    let mut client = served.client()?;
    let body = super::session_body(&mut client)?;
    let session = client.make("sessions", &body)?;
    let path = format!("/v1/sessions/{session}/events/stream");
    let mut streams = Vec::new();
    for _ in 0..subscribers {
        streams.push(Subscriber::open(&served, &path)?);
    }
    let mut polled: Vec<libc::pollfd> = streams
        .iter()
        .map(|one| libc::pollfd { fd: one.stream.as_raw_fd(), events: libc::POLLIN, revents: 0 })
        .collect();
    let (before, begun) = (processor(served.pid())?, Instant::now());
    let sender = std::thread::spawn(move || -> Result<Vec<Instant>> {
        let mut sent = Vec::new();
        for number in 0..messages {
            std::thread::sleep(
                (begun + Duration::from_secs(1) / MESSAGES * number)
                    .saturating_duration_since(Instant::now()),
            );
            sent.push(Instant::now());
            let text = format!("tick {number} ");
            let message = json!({ "events": [{ "type": "user.message", "content": text }] });
            client.post(&format!("sessions/{session}/events"), &message)?;
        }
        Ok(sent)
    });
    let mut arrived: BTreeMap<usize, Vec<Instant>> = BTreeMap::new();
    let (mut buffer, mut left) = (vec![0; 1 << 16], subscribers * messages as usize);
    while left > 0 {
        ensure!(begun.elapsed() < PATIENCE, "{left} messages never arrived");
        wait(&mut polled);
        for (one, polled) in streams.iter_mut().zip(&polled).filter(|(_, polled)| polled.revents != 0) {
            debug_assert_eq!(polled.fd, one.stream.as_raw_fd());
            for number in one.take(&mut buffer)? {
                arrived.entry(number).or_default().push(Instant::now());
                left -= 1;
            }
        }
    }
    let took = begun.elapsed();
    let used = processor(served.pid())?.saturating_sub(before);
    let sent = sender.join().map_err(|_| anyhow::anyhow!("the sender panicked"))??;
    let mut late: Vec<Duration> = Vec::new();
    for (number, times) in arrived {
        let sent = *sent.get(number).context("a message that was not sent")?;
        late.extend(times.into_iter().map(|time| time.saturating_duration_since(sent)));
    }
    late.sort_unstable();
    let frames: usize = streams.iter().map(|one| one.frames).sum();
    Ok(Arrived {
        subscribers,
        events: frames as f64 / subscribers as f64 / took.as_secs_f64(),
        late: late.get(late.len() * 99 / 100).copied().context("nothing arrived")?,
        frame: used / u32::try_from(frames.max(1)).unwrap_or(u32::MAX),
    })
}

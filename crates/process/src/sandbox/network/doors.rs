//! The network of a confined command: a namespace with nothing but its own loopback, and the door to our proxy in it.
//!
//! A socket belongs to the namespace it was made in, wherever it goes afterwards. So the child makes the listening
//! socket and hands it to the parent, which accepts from it and connects to the outside.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};

use crate::sandbox::error::SandboxError;

/// The ports on the command's own loopback.
pub(crate) const HTTP_PORT: u16 = 3128;
pub(crate) const SOCKS_PORT: u16 = 1080;

/// What the child sets up.
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) ports: Vec<u16>,
    pub(crate) sender: Option<OwnedFd>,
}

/// Room for one control message with one descriptor.
const CONTROL: usize = 64;

#[repr(C, align(8))]
struct Control([u8; CONTROL]);

impl Net {
    /// Starts the loopback and opens the doors.
    ///
    /// # Safety
    /// Only in a child process between fork and exec, inside its own network.
    pub(crate) unsafe fn start(&self) -> i32 {
        // SAFETY: direct system calls on local memory.
        unsafe {
            if start_loopback() < 0 {
                return -1;
            }
            let Some(sender) = &self.sender else { return 0 };
            for port in &self.ports {
                let listener = listen(*port);
                if listener < 0 || send(sender.as_raw_fd(), listener) < 0 {
                    return -1;
                }
                libc::close(listener);
            }
        }
        0
    }
}

unsafe fn start_loopback() -> i32 {
    // SAFETY: the request is a local that is large enough for what the kernel writes.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return -1;
        }
        let mut request: libc::ifreq = std::mem::zeroed();
        for (place, letter) in request.ifr_name.iter_mut().zip(*b"lo") {
            *place = libc::c_char::from_ne_bytes([letter]);
        }
        if libc::ioctl(socket, libc::SIOCGIFFLAGS, &raw mut request) < 0 {
            return -1;
        }
        request.ifr_ifru.ifru_flags |= 1;
        if libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request) < 0 {
            return -1;
        }
        libc::close(socket)
    }
}

unsafe fn listen(port: u16) -> i32 {
    // SAFETY: the address is a local of the size that is passed.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return -1;
        }
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        address.sin_family = libc::AF_INET.unsigned_abs().to_ne_bytes()[0].into();
        address.sin_port = port.to_be();
        address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
        let size = u32::try_from(size_of::<libc::sockaddr_in>()).unwrap_or(0);
        if libc::bind(socket, (&raw const address).cast(), size) < 0 || libc::listen(socket, 64) < 0 {
            return -1;
        }
        socket
    }
}

/// Sends one descriptor.
///
/// # Safety
/// Both numbers must be open descriptors.
pub(crate) unsafe fn send(sender: i32, descriptor: i32) -> isize {
    let mut control = Control([0; CONTROL]);
    let mut byte = [0_u8];
    // SAFETY: the header points to locals that live through the call, and the control buffer is large enough for one
    // message with one descriptor.
    unsafe {
        let mut piece = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut piece;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(4) as _;
        let message = libc::CMSG_FIRSTHDR(&raw const header);
        if message.is_null() {
            return -1;
        }
        (*message).cmsg_level = libc::SOL_SOCKET;
        (*message).cmsg_type = libc::SCM_RIGHTS;
        (*message).cmsg_len = libc::CMSG_LEN(4) as _;
        std::ptr::write_unaligned(libc::CMSG_DATA(message).cast::<i32>(), descriptor);
        libc::sendmsg(sender, &raw const header, libc::MSG_NOSIGNAL)
    }
}

/// Two connected sockets: the child's end and ours.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd), SandboxError> {
    let mut ends = [0_i32; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the kernel writes two numbers into the local array.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } < 0 {
        let source = io::Error::last_os_error();
        return Err(SandboxError::Setup { step: "connecting to the child".to_owned(), source });
    }
    // SAFETY: both are fresh and ours.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// The next listening socket that the child sent before it executed the command.
pub(crate) fn receive_listener(receiver: &OwnedFd) -> io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::from(receive(receiver)?);
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The next descriptor that the child sends. Waits until it has, or has ended.
pub(crate) fn receive(receiver: &OwnedFd) -> io::Result<OwnedFd> {
    let mut polled = [PollFd::new(receiver, PollFlags::IN)];
    while rustix::event::poll(&mut polled, None) == Err(rustix::io::Errno::INTR) {}
    let mut control = Control([0; CONTROL]);
    let mut byte = [0_u8];
    // SAFETY: the header points to locals that live through the call; the kernel writes at most their sizes.
    unsafe {
        let mut piece = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut piece;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = CONTROL as _;
        if libc::recvmsg(receiver.as_raw_fd(), &raw mut header, libc::MSG_CMSG_CLOEXEC) < 0 {
            return Err(io::Error::last_os_error());
        }
        let message = libc::CMSG_FIRSTHDR(&raw const header);
        if message.is_null() || (*message).cmsg_type != libc::SCM_RIGHTS {
            return Err(io::Error::other("the child sent no descriptor"));
        }
        let descriptor = std::ptr::read_unaligned(libc::CMSG_DATA(message).cast::<i32>());
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

//! Events of the kernel: of devices over netlink, of folders by inotify.

use std::fmt::Debug;
use std::io;
use std::path::PathBuf;

use async_trait::async_trait;
use rustix::fs::inotify;
use rustix::io::Errno;
use rustix::net::netlink::{KOBJECT_UEVENT, SocketAddrNetlink};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use tokio::net::unix::pipe::Receiver;

/// The group of events that come from the kernel itself. Those of udev are in another one, in a form of its own.
const KERNEL_GROUP: u32 = 1;

/// More than an event has.
const BUFFER: usize = 8 * 1024;

/// A subscription to changes. Events that come together may be reported as one.
#[async_trait]
pub trait Changes: Debug + Send {
    /// Waits for the next change.
    async fn next(&mut self) -> io::Result<()>;
}

/// Both sources of events, as far as they can be had. To the runtime they are like pipes: they are waited for and read alike.
#[derive(Debug)]
pub(super) struct KernelChanges {
    devices: Option<Receiver>,
    folders: Option<Receiver>,
}

impl KernelChanges {
    /// Subscribes. One source is enough: the other one may be denied to a container.
    pub(super) fn subscribe(folders: &[PathBuf]) -> io::Result<Self> {
        let devices = devices();
        let folders = self::folders(folders);
        match (devices, folders) {
            (Err(error), Err(_)) => Err(error),
            (devices, folders) => Ok(Self { devices: devices.ok(), folders: folders.ok() }),
        }
    }
}

fn devices() -> io::Result<Receiver> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(KOBJECT_UEVENT))?;
    bind(&socket, &SocketAddrNetlink::new(0, KERNEL_GROUP))?;
    Receiver::from_owned_fd_unchecked(socket)
}

fn folders(folders: &[PathBuf]) -> io::Result<Receiver> {
    let watcher = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    let wanted = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::ATTRIB;
    let mut watched = Err(io::Error::from(io::ErrorKind::NotFound));
    for folder in folders {
        match inotify::add_watch(&watcher, folder.as_path(), wanted) {
            Ok(_) => watched = Ok(()),
            Err(error) if watched.is_err() => watched = Err(error.into()),
            Err(_) => {}
        }
    }
    watched?;
    Receiver::from_owned_fd_unchecked(watcher)
}

#[async_trait]
impl Changes for KernelChanges {
    async fn next(&mut self) -> io::Result<()> {
        tokio::select! {
            event = event(self.devices.as_ref()) => event,
            event = event(self.folders.as_ref()) => event,
        }
    }
}

/// Waits for an event, and takes all that are there.
async fn event(source: Option<&Receiver>) -> io::Result<()> {
    let Some(source) = source else { return std::future::pending().await };
    let mut buffer = vec![0; BUFFER];
    loop {
        source.readable().await?;
        let mut has_event = false;
        loop {
            match source.try_read(&mut buffer) {
                Ok(_) => has_event = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Events were lost because there were too many: something has happened.
                Err(error) if error.raw_os_error() == Some(Errno::NOBUFS.raw_os_error()) => has_event = true,
                Err(error) => return Err(error),
            }
        }
        if has_event {
            return Ok(());
        }
    }
}

//! Events of the kernel: of devices over netlink, of folders by inotify.

use std::fmt::Debug;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use async_trait::async_trait;
use rustix::fs::inotify;
use rustix::io::Errno;
use rustix::net::netlink::{KOBJECT_UEVENT, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use tokio::io::unix::AsyncFd;

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

/// Both sources of events, as far as they can be had.
#[derive(Debug)]
pub(super) struct KernelChanges {
    devices: Option<AsyncFd<OwnedFd>>,
    folders: Option<AsyncFd<OwnedFd>>,
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

fn devices() -> io::Result<AsyncFd<OwnedFd>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(KOBJECT_UEVENT))?;
    bind(&socket, &SocketAddrNetlink::new(0, KERNEL_GROUP))?;
    AsyncFd::register(socket)
}

fn folders(folders: &[PathBuf]) -> io::Result<AsyncFd<OwnedFd>> {
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
    AsyncFd::register(watcher)
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
async fn event(source: Option<&AsyncFd<OwnedFd>>) -> io::Result<()> {
    let Some(source) = source else { return std::future::pending().await };
    loop {
        let mut ready = source.readable().await?;
        let mut taken = 0;
        let result = ready.try_io(|source| {
            loop {
                match take(source.get_ref()) {
                    Ok(()) => taken += 1,
                    // Events were lost because there were too many: something has happened.
                    Err(Errno::NOBUFS) => taken += 1,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err::<(), _>(error.into()),
                }
            }
        });
        match result {
            _ if taken > 0 => return Ok(()),
            Ok(result) => return result,
            // Nothing was there after all.
            Err(_would_block) => {}
        }
    }
}

/// Takes what can be read at once: an event of a device, or several of folders.
fn take(source: &OwnedFd) -> Result<(), Errno> {
    let mut buffer = [MaybeUninit::<u8>::uninit(); BUFFER];
    match recv(source, &mut buffer, RecvFlags::DONTWAIT) {
        Err(Errno::NOTSOCK) => rustix::io::read(source, &mut buffer).map(drop),
        received => received.map(drop),
    }
}

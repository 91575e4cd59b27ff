//! A TCP proxy that can lose what comes back, and keep what goes there for later.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// What happens to the bytes from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replies {
    /// They are passed on.
    Pass,
    /// They are read and thrown away: the server has done what it was asked, and the client never hears of it.
    Lost,
}

/// A proxy on a port of the loopback; ends when dropped.
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddr,
    server: watch::Sender<Option<String>>,
    replies: watch::Sender<Replies>,
    /// How often requests were held and let go: odd while they are held.
    holds: watch::Sender<u64>,
    connections: Arc<AtomicUsize>,
}

impl Proxy {
    /// Listens; connections wait until [`lead_to`](Self::lead_to) says where to.
    ///
    /// # Panics
    /// When there is no port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (server, to) = watch::channel(None);
        let (replies, mode) = watch::channel(Replies::Pass);
        let (holds, held) = watch::channel(0);
        let connections = Arc::default();
        tokio::spawn(accept(listener, Arc::clone(&connections), to, mode, held));
        Self { address, server, replies, holds, connections }
    }

    /// Where the server is.
    pub fn lead_to(&self, server: &str) {
        self.server.send_replace(Some(server.to_owned()));
    }

    /// How many connections were ever made to it.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// From now on, also for connections that are open. One that lost a byte loses all that follows, too.
    pub fn replies(&self, replies: Replies) {
        self.replies.send_replace(replies);
    }

    /// What comes over the connections that are open now is kept until [`release`](Self::release), also when the client
    /// has gone away. Later connections pass.
    pub fn hold(&self) {
        self.holds.send_modify(|holds| *holds |= 1);
    }

    /// What was held goes to the server now.
    pub fn release(&self) {
        self.holds.send_modify(|holds| *holds += *holds & 1);
    }
}

async fn accept(
    listener: TcpListener,
    connections: Arc<AtomicUsize>,
    to: watch::Receiver<Option<String>>,
    mode: watch::Receiver<Replies>,
    held: watch::Receiver<u64>,
) {
    let (mut gone, all) = (to.clone(), to);
    let serving = async {
        while let Ok((client, _)) = listener.accept().await {
            connections.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(carry(client, all.clone(), mode.clone(), held.clone()));
        }
    };
    tokio::select! {
        () = serving => {}
        () = async { while gone.changed().await.is_ok() {} } => {}
    }
}

async fn carry(
    client: TcpStream,
    mut to: watch::Receiver<Option<String>>,
    mode: watch::Receiver<Replies>,
    held: watch::Receiver<u64>,
) {
    let Ok(server) = to.wait_for(Option::is_some).await.map(|to| to.clone().unwrap_or_default()) else {
        return;
    };
    let Ok(server) = TcpStream::connect(server).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::join!(ask(from_client, to_server, held), answer(from_server, to_client, mode));
}

/// Passes requests on; those that come while requests are held, if that began after this connection, wait.
async fn ask(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut held: watch::Receiver<u64>) {
    let began = *held.borrow();
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if held.wait_for(|holds| holds % 2 == 0 || *holds == began).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

async fn answer(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mode: watch::Receiver<Replies>) {
    let mut buffer = vec![0; 64 * 1024];
    let mut lost = false;
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        lost |= *mode.borrow() == Replies::Lost;
        if !lost && to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

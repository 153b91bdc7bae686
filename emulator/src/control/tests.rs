//! Tests of the control socket.

use super::*;
use crate::reactor::{Clock, Wakeup};

/// A handler with one value.
struct OneValue(Value);

impl RequestHandler for OneValue {
    fn answer(&mut self, request: &Request) -> Result<Value, String> {
        match request {
            Request::Set { value, .. } if value == "bad" => Err("that is not a value".to_owned()),
            Request::Set { value, .. } => {
                self.0 = value.clone();
                Ok(value.clone())
            }
            _ => Ok(self.0.clone()),
        }
    }
}

const FIRST: Token = Token(20);

fn address(what: &str) -> Address {
    format!("test-{}-{what}", std::process::id()).parse().unwrap()
}

/// Time after which a waiting test fails.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

/// Serves a control socket until `f`, which plays the clients, returns.
fn serve<T: Send>(address: &Address, f: impl FnOnce(&Address) -> T + Send) -> T {
    let mut reactor = Reactor::new(Clock::start()).unwrap();
    let mut control = Control::listen(address.clone(), &[], FIRST, &mut reactor).unwrap();
    let mut value_of_link = OneValue(json!("as it was"));
    let limit = reactor.clock().now() + Duration::from_secs(TIMEOUT.as_secs());
    // The closure owns the control socket: if it panics, the clients are disconnected and their thread
    // ends.
    std::thread::scope(move |scope| {
        let (done, end) = UnixStream::pair().unwrap();
        reactor.register(&end, Token(0), Interest::Read).unwrap();
        let client = scope.spawn(move || {
            let _done = done;
            f(address)
        });
        loop {
            let deadline = control.next_deadline().map_or(limit, |deadline| deadline.min(limit));
            let events = reactor.wait(Some(deadline)).unwrap().to_vec();
            assert!(reactor.clock().now() < limit, "the clients have not finished within {TIMEOUT:?}");
            if events.contains(&Wakeup::Readable(Token(0))) {
                return client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
            let ready: Vec<Token> = events
                .iter()
                .filter_map(|event| match event {
                    Wakeup::Readable(token) | Wakeup::Writable(token) => Some(*token),
                    Wakeup::Deadline | Wakeup::Stop(_) => None,
                })
                .collect();
            let now = reactor.clock().now();
            control.handle_events(now, &ready, &mut reactor, &mut value_of_link).unwrap();
        }
    })
}

#[test]
fn clients_see_value_set_by_another_client() {
    serve(&address("get"), |address| {
        let get = Request::Get { key: None };
        let mut first = Client::connect(address).unwrap();
        assert_eq!(first.request(&get).unwrap(), Ok(json!("as it was")));
        let set = |value| Request::Set { key: "k".to_owned(), value: json!(value) };
        assert_eq!(first.request(&set("new")).unwrap(), Ok(json!("new")));
        assert_eq!(first.request(&set("bad")).unwrap(), Err("that is not a value".to_owned()));
        assert_eq!(Client::connect(address).unwrap().request(&get).unwrap(), Ok(json!("new")));
    });
}

#[test]
fn invalid_requests_get_errors_and_connection_stays_open() {
    serve(&address("nonsense"), |address| {
        let mut client = Client::connect(address).unwrap();
        client.stream.get_mut().write_all(b"{\"command\":\"fly\"}\n{}\nhello\n").unwrap();
        for wanted in ["unknown variant `fly`", "missing field `command`", "expected value"] {
            let error = client.next().unwrap().unwrap().unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
        assert!(client.request(&Request::Stats).unwrap().is_ok());
    });
}

#[test]
fn overlong_request_line_closes_connection() {
    serve(&address("long"), |address| {
        let mut client = Client::connect(address).unwrap();
        // The link disconnects in the middle of this write, so it may fail.
        let _ = client.stream.get_mut().write_all(&vec![b'x'; 10 * MAX_REQUEST_LEN]);
        let answers: Vec<_> = client.take(2).collect();
        assert!(answers.len() < 2 || answers[1].is_err());
        assert!(Client::connect(address).unwrap().request(&Request::Stats).unwrap().is_ok());
    });
}

#[test]
fn watch_request_is_answered_periodically() {
    serve(&address("watch"), |address| {
        let mut client = Client::connect(address).unwrap();
        let every = Duration::from_millis(5);
        assert!(client.request(&Request::Watch { every }).unwrap().is_ok());
        assert_eq!(client.take(3).filter(|answer| matches!(answer, Ok(Ok(_)))).count(), 3);
    });
}

#[test]
fn client_that_does_not_read_is_disconnected() {
    serve(&address("silent"), |address| {
        let mut silent = UnixStream::connect_addr(&address.socket().unwrap()).unwrap();
        let set = Request::Set { key: String::new(), value: json!("x".repeat(6_000)) };
        assert!(Client::connect(address).unwrap().request(&set).unwrap().is_ok());
        silent.set_write_timeout(Some(TIMEOUT)).unwrap();
        // Each answer has 6 kB and none is read, so the link disconnects long before all requests are
        // written.
        let asked = (0..100_000).try_for_each(|_| silent.write_all(b"{\"command\":\"stats\"}\n"));
        let kind = asked.expect_err("the link has not disconnected a client that does not read").kind();
        assert!(
            [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset].contains(&kind),
            "the link has not disconnected a client that does not read: {kind:?}"
        );
        assert!(Client::connect(address).unwrap().request(&Request::Stats).unwrap().is_ok());
    });
}

#[test]
fn link_name_is_exclusive_and_listed_while_open() {
    let address = address("name");
    let mut reactor = Reactor::new(Clock::start()).unwrap();
    let control = Control::listen(address.clone(), &[], FIRST, &mut reactor).unwrap();
    assert!(running().unwrap().contains(&address.to_string()));
    let second = Control::listen(address.clone(), &[], Token(40), &mut reactor).err().unwrap();
    assert!(second.to_string().contains("airlink down"), "{second}");
    drop(control);
    assert!(!running().unwrap().contains(&address.to_string()));
    let gone = Client::connect(&address).err().unwrap();
    assert!(gone.to_string().contains("airlink status"), "{gone}");
}

#[test]
fn socket_file_is_private_and_replaces_stale_one() {
    let path = std::env::temp_dir().join(format!("airlink-control-{}", std::process::id()));
    drop(UnixListener::bind(&path).unwrap());
    let address: Address = path.to_str().unwrap().parse().unwrap();
    let mut reactor = Reactor::new(Clock::start()).unwrap();
    let control = Control::listen(address.clone(), &[], FIRST, &mut reactor).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(matches!(
        Control::listen(address.clone(), &[], Token(40), &mut reactor),
        Err(ControlError::InUse(_))
    ));
    drop(control);
    assert!(!path.exists());

    fs::write(&path, "not a socket").unwrap();
    let not_a_socket = Control::listen(address, &[], Token(60), &mut reactor).err().unwrap();
    assert!(not_a_socket.to_string().contains("is not a socket"), "{not_a_socket}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "not a socket");
    fs::remove_file(&path).unwrap();
}

#[test]
fn listen_error_names_missing_directory_of_socket() {
    let address: Address = "/no/such/dir/sock".parse().unwrap();
    let mut reactor = Reactor::new(Clock::start()).unwrap();
    let error = Control::listen(address.clone(), &[], FIRST, &mut reactor).err().unwrap().to_string();
    assert!(error.contains("/no/such/dir/sock") && error.contains("directory"), "{error}");
    assert!(!error.contains("airlink status"), "{error}");
    let error = Client::connect(&address).err().unwrap().to_string();
    assert!(error.contains("airlink status"), "{error}");
}

#[test]
fn requests_of_other_users_are_rejected() {
    serve(&address("other_user"), |address| {
        let socket = format!("ABSTRACT-CONNECT:{PREFIX}{address}");
        let mut other_user = std::process::Command::new("setpriv");
        other_user.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        let output = other_user.args(["socat", "-u", &socket, "-"]).output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["ok"], false);
        assert!(answer["error"].as_str().unwrap().contains("root"), "{answer}");
        assert!(Client::connect(address).unwrap().request(&Request::Stats).unwrap().is_ok());
    });
}

#[test]
fn socket_of_another_user_is_not_trusted() {
    let address = address("impostor");
    let mut impostor = std::process::Command::new("setpriv");
    impostor.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    // The foreign listener would answer any request with a forged result.
    let answer = format!("ABSTRACT-LISTEN:{PREFIX}{address},fork");
    impostor.args(["socat", &answer, "SYSTEM:'cat; echo {\\\"result\\\":1}'"]);
    let mut impostor = impostor.spawn().unwrap();
    // A socket with a name may not listen yet. The fourth column shows whether it listens
    // (__SO_ACCEPTCON).
    let listens = || {
        let sockets = fs::read_to_string("/proc/thread-self/net/unix").unwrap();
        let name = format!("@{PREFIX}{address}");
        sockets.lines().any(|line| line.ends_with(&name) && line.split(' ').nth(3) == Some("00010000"))
    };
    let clock = Clock::start();
    let limit = clock.now() + Duration::from_secs(TIMEOUT.as_secs());
    while !listens() {
        assert!(clock.now() < limit, "socat does not listen");
        assert!(impostor.try_wait().unwrap().is_none(), "this test needs socat");
        std::thread::yield_now();
    }
    let called = Client::connect(&address).err().unwrap();
    assert!(matches!(called, ControlError::OtherUser { uid: 65534, .. }), "{called}");
    assert!(!running().unwrap().contains(&address.to_string()));
    let mut reactor = Reactor::new(Clock::start()).unwrap();
    let listened = Control::listen(address, &[], FIRST, &mut reactor).err().unwrap();
    assert!(matches!(listened, ControlError::OtherUser { uid: 65534, .. }), "{listened}");
    impostor.kill().unwrap();
    impostor.wait().unwrap();
}

#[test]
fn client_over_limit_gets_error() {
    serve(&address("many"), |address| {
        let mut clients: Vec<_> = (0..=MAX_CLIENTS).map(|_| Client::connect(address).unwrap()).collect();
        let refused = clients.last_mut().unwrap().request(&Request::Stats).unwrap().unwrap_err();
        assert!(refused.contains("already serves 64"), "{refused}");
        assert!(clients[0].request(&Request::Stats).unwrap().is_ok());
    });
}

#[test]
fn address_rejects_invalid_names_and_accepts_paths() {
    for name in ["", "a b", "a\0b", "ä"] {
        assert!(name.parse::<Address>().is_err(), "{name}");
    }
    assert_eq!("./x".parse::<Address>().unwrap(), Address::File("./x".into()));
}

//! TLS from end to end: a certificate of our own is accepted when `SSL_CERT_FILE` names it and refused, with words that
//! help, when nothing does.

use std::collections::BTreeMap;
use std::sync::Arc;

use qoder_models::ModelOptions;
use qoder_types::ModelFailureClass;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::support::{Server, anthropic_text, ask_once, events};

/// Takes TLS off and passes everything on to `target`. Returns the address and the certificate.
async fn front(target: String) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    front_with(target, &made.cert, &made.signing_key).await
}

async fn front_with(target: String, cert: &rcgen::Certificate, key: &rcgen::KeyPair) -> (String, String) {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    // As public servers do: a client that offers HTTP/2 has to speak it.
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, target) = (acceptor.clone(), target.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut plain = TcpStream::connect(target).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut plain).await;
            });
        }
    });
    (address, cert.pem())
}

fn options(base_url: &str, certificates: Option<&str>) -> ModelOptions {
    let mut environment = BTreeMap::from([("HOME".to_owned(), "/nowhere".to_owned())]);
    if let Some(path) = certificates {
        environment.insert("SSL_CERT_FILE".to_owned(), path.to_owned());
    }
    let base_url = Some(base_url.to_owned());
    ModelOptions {
        model: Some("m".to_owned()),
        base_url,
        environment,
        max_attempts: 1,
        ..ModelOptions::default()
    }
}

#[tokio::test]
async fn a_certificate_that_the_environment_names_is_accepted() {
    let server = Server::start(vec![events(&anthropic_text("over tls"))]).await;
    let (url, pem) = front(server.url.trim_start_matches("http://").to_owned()).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), pem).unwrap();
    let told = ask_once(&options(&url, file.path().to_str())).await;
    assert_eq!(qoder_types::content::join_text(&told.reply().content), "over tls");
}

#[tokio::test]
async fn an_unknown_certificate_is_refused_with_its_cause() {
    let server = Server::start(vec![events(&anthropic_text("never"))]).await;
    let (url, _) = front(server.url.trim_start_matches("http://").to_owned()).await;
    let told = ask_once(&options(&url, None)).await;
    let failure = told.failure();
    assert_eq!(failure.class, ModelFailureClass::Network);
    assert!(failure.message.to_lowercase().contains("certificate"), "{}", failure.message);
    for variable in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"] {
        assert!(failure.message.contains(variable), "{}", failure.message);
    }
    assert!(server.requests().is_empty());
}

/// `openssl req -x509` makes such certificates unless it is asked for others.
#[tokio::test]
async fn a_certificate_of_an_authority_is_refused_with_what_to_make_instead() {
    let mut asked = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    asked.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let (url, pem) = front_with("127.0.0.1:1".to_owned(), &asked.self_signed(&key).unwrap(), &key).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), pem).unwrap();
    let told = ask_once(&options(&url, file.path().to_str())).await;
    let message = &told.failure().message;
    assert!(message.contains("basicConstraints=critical,CA:FALSE"), "{message}");
}

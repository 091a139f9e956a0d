//! Files, skills, vaults, and the content that files and skills have.

use bytes::Bytes;
use futures::StreamExt;
use qoder_server::model::files::FileBody;
use qoder_server::model::ids::{CredentialId, FileId, SkillId, SkillVersionId, TenantId, VaultId};
use qoder_server::model::names::VersionName;
use qoder_server::model::skill::{SkillBody, SkillVersionBody};
use qoder_server::model::time::Time;
use qoder_server::model::vault::{CredentialBody, VaultBody};
use qoder_server::store::{
    CredentialQuery, FileQuery, FoundFile, ListQuery, NewCredential, NewFile, NewSkillVersion, SkillQuery,
    SkillVersionQuery,
};
use serde_json::json;

use super::support::{Stage, behaviours, is_conflict, is_not_found, now, plain};

behaviours!(
    content_is_there_once_it_is_finished,
    files_are_kept_listed_and_forgotten,
    a_tenant_keeps_no_more_than_its_quota,
    skills_have_versions_and_one_name,
    vaults_hold_one_credential_for_each_subject,
    a_renewed_token_counts_unless_it_was_changed,
);

async fn content_is_there_once_it_is_finished(stage: Stage) {
    let mut writer = stage.blobs.begin(stage.tenant, "file_1").await.unwrap();
    writer.write(Bytes::from(vec![b'a'; 1_500_000])).await.unwrap();
    assert!(stage.blobs.open(stage.tenant, "file_1").await.unwrap().is_none(), "not finished");
    writer.write(Bytes::from(vec![b'b'; 700_000])).await.unwrap();
    writer.finish().await.unwrap();
    assert!(stage.blobs.open(TenantId::random(), "file_1").await.unwrap().is_none(), "of another tenant");
    let mut reader = stage.blobs.open(stage.tenant, "file_1").await.unwrap().unwrap();
    let mut read = Vec::new();
    while let Some(piece) = reader.next().await {
        read.extend_from_slice(&piece.unwrap());
    }
    assert_eq!((read.len(), read[1_499_999], read[1_500_000]), (2_200_000, b'a', b'b'));
    stage.blobs.begin(stage.tenant, "file_2").await.unwrap().finish().await.unwrap();
    let empty = stage.blobs.open(stage.tenant, "file_2").await.unwrap().unwrap();
    let length: usize = empty.map(|piece| piece.unwrap().len()).collect::<Vec<_>>().await.iter().sum();
    assert_eq!(length, 0);
    for name in ["file_1", "file_1", "file_3"] {
        stage.blobs.remove(stage.tenant, name).await.unwrap();
    }
    assert!(stage.blobs.open(stage.tenant, "file_1").await.unwrap().is_none());
    assert!(stage.blobs.begin(stage.tenant, "../x").await.is_err());
}

fn file(stage: &Stage, name: &str, size: u64) -> NewFile {
    let body = FileBody {
        filename: name.to_owned(),
        media_type: "text/plain".to_owned(),
        size,
        metadata: Default::default(),
    };
    NewFile { tenant: stage.tenant, id: FileId::random(), body, session: None, expires_at: None, quota: 100 }
}

async fn files_are_kept_listed_and_forgotten(stage: Stage) {
    let (session, _) = stage.session().await;
    let one = now(stage.db.create_file(file(&stage, "a.txt", 5), plain()).await.unwrap());
    let of_session = NewFile { session: Some(session), ..file(&stage, "b.txt", 6) };
    let two = now(stage.db.create_file(of_session, plain()).await.unwrap());
    let over = NewFile { expires_at: Some(Time::now().after(-1)), ..file(&stage, "c.txt", 7) };
    let over = now(stage.db.create_file(over, plain()).await.unwrap());
    assert_eq!(stage.db.file(stage.tenant, one.id).await.unwrap(), FoundFile::There(one.clone()));
    assert_eq!(stage.db.file(stage.tenant, over.id).await.unwrap(), FoundFile::Expired);
    assert_eq!(stage.db.file(TenantId::random(), one.id).await.unwrap(), FoundFile::Unknown);
    assert_eq!(stage.db.linked_file(two.id).await.unwrap(), Some((stage.tenant, two.clone())));
    assert_eq!(stage.db.linked_file(over.id).await.unwrap(), None);
    let query = FileQuery {
        list: ListQuery { include_archived: true, ..stage.list() },
        name: None,
        session: None,
        now: Time::now(),
    };
    let listed = stage.db.list_files(query.clone()).await.unwrap().items;
    assert_eq!(listed, [two.clone(), one.clone()]);
    let named = FileQuery { name: Some("a.txt".to_owned()), ..query.clone() };
    assert_eq!(stage.db.list_files(named).await.unwrap().items, std::slice::from_ref(&one));
    let made = FileQuery { session: Some(session), ..query };
    assert_eq!(stage.db.list_files(made).await.unwrap().items, [two]);
    now(stage.db.delete_file(stage.tenant, one.id, plain()).await.unwrap());
    assert!(is_not_found(&stage.db.delete_file(stage.tenant, one.id, plain()).await));
    assert_eq!(stage.db.file(stage.tenant, one.id).await.unwrap(), FoundFile::Deleted);
    let unused = stage.db.unused_files(Time::now(), 10).await.unwrap();
    assert_eq!(unused.len(), 2);
    for file in unused {
        assert_eq!(file.tenant, stage.tenant);
        stage.db.forget_content(file.id).await.unwrap();
    }
    assert!(stage.db.unused_files(Time::now(), 10).await.unwrap().is_empty());
}

async fn a_tenant_keeps_no_more_than_its_quota(stage: Stage) {
    let uploads = (0..8).map(|number| {
        let stage = stage.clone();
        tokio::spawn(async move {
            let name = format!("{number}.txt");
            stage.db.create_file(file(&stage, &name, 40), plain()).await
        })
    });
    let done: Vec<_> = futures::future::join_all(uploads).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 2, "two of 40 bytes fit into 100");
    let refused = done.into_iter().find_map(Result::err).unwrap();
    assert!(refused.to_string().contains("100 bytes"), "{refused}");
}

fn version(stage: &Stage, name: &str) -> NewSkillVersion {
    let body = SkillVersionBody { name: name.to_owned(), description: "d".to_owned(), size: 3 };
    NewSkillVersion { tenant: stage.tenant, id: SkillVersionId::random(), body, quota: 100 }
}

async fn skills_have_versions_and_one_name(stage: Stage) {
    let tenant = stage.tenant;
    let body = || SkillBody { display_name: "For people".to_owned(), metadata: Default::default() };
    let first = now(stage.db.create_skill(body(), version(&stage, "pdf"), plain()).await.unwrap());
    let taken = stage.db.create_skill(body(), version(&stage, "pdf"), plain()).await.unwrap_err();
    assert!(taken.to_string().contains(&first.id.to_string()), "{taken}");
    let renamed = stage.db.create_skill_version(first.id, version(&stage, "doc"), plain()).await;
    assert!(renamed.unwrap_err().to_string().contains("keep the name"));
    let second = now(stage.db.create_skill_version(first.id, version(&stage, "pdf"), plain()).await.unwrap());
    assert_eq!(stage.db.skill(tenant, first.id).await.unwrap().latest, second.id);
    let query = |version| SkillVersionQuery { tenant, skill: first.id, version };
    assert_eq!(stage.db.skill_version(query(VersionName::Latest)).await.unwrap(), second);
    let old = stage.db.skill_version(query(VersionName::Id(first.latest))).await.unwrap();
    assert_eq!(stage.db.skill_version(query(VersionName::Time(old.created_at))).await.unwrap(), old);
    let list = ListQuery { include_archived: true, ..stage.list() };
    let versions = stage.db.list_skill_versions(first.id, list).await.unwrap().items;
    assert_eq!(versions.iter().map(|version| version.id).collect::<Vec<_>>(), [second.id, old.id]);
    let wanted = |name: Option<&str>, display_name: Option<&str>| SkillQuery {
        list,
        name: name.map(str::to_owned),
        display_name: display_name.map(str::to_owned),
    };
    assert_eq!(stage.db.list_skills(wanted(Some("pdf"), None)).await.unwrap().items.len(), 1);
    assert_eq!(stage.db.list_skills(wanted(None, Some("For people"))).await.unwrap().items.len(), 1);
    assert!(stage.db.list_skills(wanted(Some("doc"), None)).await.unwrap().items.is_empty());
    let deleted = now(stage.db.delete_skill_version(query(VersionName::Latest), plain()).await.unwrap());
    assert_eq!((deleted, stage.db.skill(tenant, first.id).await.unwrap().latest), (second.id, old.id));
    assert!(
        is_conflict(&stage.db.delete_skill_version(query(VersionName::Latest), plain()).await),
        "the last one"
    );
    let unused = stage.db.unused_archives(10).await.unwrap();
    assert_eq!(unused.iter().map(|archive| archive.id).collect::<Vec<_>>(), [second.id]);
    stage.db.forget_archive(second.id).await.unwrap();
    now(stage.db.delete_skill(tenant, first.id, plain()).await.unwrap());
    assert!(is_not_found(&stage.db.skill(tenant, first.id).await));
    assert!(is_not_found(&stage.db.skill(tenant, SkillId::random()).await));
    assert_eq!(stage.db.unused_archives(10).await.unwrap().len(), 1);
    now(stage.db.create_skill(body(), version(&stage, "pdf"), plain()).await.unwrap());
}

fn variable(name: &str) -> CredentialBody {
    let auth = json!({ "type": "environment_variable", "secret_name": name, "secret_value": "s3cret-value",
        "networking": { "type": "unrestricted" } });
    CredentialBody::create(&json!({ "display_name": name, "auth": auth })).unwrap().0
}

async fn vault(stage: &Stage, name: &str) -> VaultId {
    let body = VaultBody::create(&json!({ "display_name": name })).unwrap();
    now(stage.db.create_vault(stage.tenant, body, plain()).await.unwrap()).id
}

fn credential(stage: &Stage, vault: VaultId, name: &str) -> NewCredential {
    let (tenant, id) = (stage.tenant, CredentialId::random());
    NewCredential { tenant, vault, id, body: variable(name), sealed: name.as_bytes().to_vec() }
}

async fn vaults_hold_one_credential_for_each_subject(stage: Stage) {
    let (tenant, one) = (stage.tenant, vault(&stage, "one").await);
    let two = vault(&stage, "two").await;
    let twins = (0..4).map(|_| {
        let stage = stage.clone();
        tokio::spawn(async move { stage.db.create_credential(credential(&stage, one, "KEY"), plain()).await })
    });
    let made: Vec<_> = futures::future::join_all(twins).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 1);
    assert!(made.iter().all(|made| made.is_ok() || is_conflict(made)), "{made:?}");
    let other = now(stage.db.create_credential(credential(&stage, two, "KEY"), plain()).await.unwrap());
    let usable = stage.db.usable_credentials(tenant, vec![two, one]).await.unwrap();
    assert_eq!(usable.iter().map(|row| row.credential.vault).collect::<Vec<_>>(), [two, one]);
    assert_eq!(usable[0].sealed, b"KEY");
    let query = CredentialQuery { tenant, vault: two, id: other.id };
    let change: qoder_server::store::CredentialChange = Box::new(|row| {
        Ok((CredentialBody { display_name: None, ..row.credential.body.clone() }, b"new".to_vec()))
    });
    let changed = now(stage.db.update_credential(query, change, plain()).await.unwrap());
    assert_eq!(changed.body.display_name, None);
    assert_eq!(stage.db.credential(query).await.unwrap().sealed, b"new");
    let elsewhere = CredentialQuery { vault: one, ..query };
    assert!(is_not_found(&stage.db.credential(elsewhere).await));
    now(stage.db.archive_credential(query, plain()).await.unwrap());
    assert_eq!(stage.db.credential(query).await.unwrap().sealed, b"", "its secret is gone");
    assert_eq!(stage.db.list_credentials(one, stage.list(), None).await.unwrap().items.len(), 1);
    let unknown = Some("OTHER".to_owned());
    assert!(stage.db.list_credentials(one, stage.list(), unknown).await.unwrap().items.is_empty());
    now(stage.db.archive_vault(tenant, one, plain()).await.unwrap());
    assert!(is_conflict(&stage.db.create_credential(credential(&stage, one, "X"), plain()).await));
    assert!(stage.db.usable_credentials(tenant, vec![one]).await.unwrap().is_empty());
    let rename: qoder_server::store::VaultChange =
        Box::new(|vault| Ok(VaultBody { display_name: "three".to_owned(), ..vault.body.clone() }));
    now(stage.db.update_vault(tenant, two, rename, plain()).await.unwrap());
    let named = stage.db.list_vaults(stage.list(), Some("three".to_owned())).await.unwrap().items;
    assert_eq!(named.iter().map(|vault| vault.id).collect::<Vec<_>>(), [two]);
    now(stage.db.delete_credential(query, plain()).await.unwrap());
    assert!(is_not_found(&stage.db.credential(query).await));
    now(stage.db.delete_vault(tenant, two, plain()).await.unwrap());
    assert!(is_not_found(&stage.db.vault(tenant, two).await));
}

async fn a_renewed_token_counts_unless_it_was_changed(stage: Stage) {
    let (tenant, vault) = (stage.tenant, vault(&stage, "one").await);
    let id = now(stage.db.create_credential(credential(&stage, vault, "KEY"), plain()).await.unwrap()).id;
    let row = stage.db.credential(CredentialQuery { tenant, vault, id }).await.unwrap();
    let renewals = (0..4_u8).map(|number| {
        let (stage, row) = (stage.clone(), row.clone());
        tokio::spawn(async move {
            stage.db.keep_renewed(row.clone(), row.credential.body, vec![number]).await.unwrap()
        })
    });
    let kept =
        futures::future::join_all(renewals).await.into_iter().filter(|kept| *kept.as_ref().unwrap()).count();
    assert_eq!(kept, 1, "the first one counts");
}

//! Who may do what, by roles, owners and grants.

use super::*;

fn with_roles(names: &[&str]) -> Authority {
    let mut authority = Authority::default();
    for (at, name) in names.iter().enumerate() {
        let oid = 100 + at as u32;
        authority.roles.insert(oid, RoleDef::new(oid, name));
    }
    authority
}

fn member(authority: &mut Authority, member: u32, role: u32) {
    authority.memberships.push(Membership {
        role,
        member,
        admin: false,
        grantor: FIRST_ROLE_OID,
    });
}

#[test]
fn what_a_group_may_its_members_may_if_they_inherit() {
    let mut authority = with_roles(&["a", "group", "loner"]);
    member(&mut authority, 100, 101);
    member(&mut authority, 102, 101);
    authority.roles.get_mut(&102).unwrap().inherit = false;
    let table = Object::Table(20_000);
    authority.rights_mut(table.clone()).grants = Some(vec![Grant {
        grantee: 101,
        grantor: FIRST_ROLE_OID,
        privileges: Privileges::SELECT,
        grantable: Privileges::NONE,
    }]);
    assert_eq!(authority.privileges(100, &table), Privileges::SELECT);
    assert_eq!(authority.privileges(102, &table), Privileges::NONE);
    assert!(authority.is_member(102, 101), "by SET ROLE it may");
    assert!(authority.privileges(FIRST_ROLE_OID, &table) == table.all_privileges());
}

#[test]
fn memberships_in_a_circle_end() {
    let mut authority = with_roles(&["a", "b"]);
    member(&mut authority, 100, 101);
    member(&mut authority, 101, 100);
    assert_eq!(authority.roles_of(100, true), BTreeSet::from([100, 101]));
}

#[test]
fn nothing_granted_is_nothing_but_what_everybody_has() {
    let authority = with_roles(&["a"]);
    assert!(authority.privileges(100, &Object::Table(20_000)).is_empty());
    let public = Object::Schema(PUBLIC_SCHEMA_OID);
    assert_eq!(authority.privileges(100, &public), Privileges::USAGE);
    assert!(
        authority
            .privileges(100, &Object::Schema(20_001))
            .is_empty()
    );
}

#[test]
fn it_comes_back_from_its_image_and_tells_no_verifier() {
    let mut authority = with_roles(&["a"]);
    authority.roles.get_mut(&100).unwrap().verifier = Some("SCRAM-SHA-256$secret".into());
    authority.rights_mut(Object::Procedure("p".into())).owner = 100;
    let text = serde_json::to_string(&authority).unwrap();
    assert_eq!(serde_json::from_str::<Authority>(&text).unwrap(), authority);
    assert!(!format!("{authority:?}").contains("secret"));
}

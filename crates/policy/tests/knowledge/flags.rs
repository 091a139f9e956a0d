//! Rules that name options match them in every spelling, and nothing that lacks them.

use qoder_policy::shell::knowledge::{matches_with_flags, may_match_with_flags};

use crate::knowledge::line::words;

fn rule(text: &str) -> (Vec<String>, bool) {
    let (text, prefix) = text.strip_suffix(":*").map_or((text, false), |text| (text, true));
    (text.split(' ').map(str::to_owned).collect(), prefix)
}

fn matches(rule_text: &str, line: &str) -> bool {
    let (rule_words, prefix) = rule(rule_text);
    matches_with_flags(&rule_words, prefix, &words(line))
}

#[test]
fn every_spelling_matches() {
    for (rule_text, line) in [
        ("rm -rf:*", "rm -rf x"),
        ("rm -rf:*", "rm -fr x"),
        ("rm -rf:*", "rm -r -f x"),
        ("rm -rf:*", "rm -f -r x"),
        ("rm -rf:*", "rm --recursive --force x"),
        ("rm -rf:*", "rm --recurs --forc x"),
        ("rm -rf:*", "rm x -rf"),
        ("rm -rf:*", "rm -Rf x"),
        ("rm -rf:*", "rm -vrf x"),
        ("rm -rf:*", "/bin/rm -rf x"),
        ("rm -rf:*", "rm -rf"),
        ("rm -r -f:*", "rm -rf x"),
        ("rm --recursive:*", "rm -r x"),
        ("rm -rf /:*", "rm -fr /"),
        ("rm -rf /:*", "rm / -rf"),
        ("rm -rf x", "rm -f -r x"),
        ("git push --force:*", "git push -f"),
        ("git push --force:*", "git push origin main --force"),
        ("git push -f:*", "git push --force origin main"),
        ("git push --force:*", "git push -uf origin main"),
        ("git push --force:*", "git push origin +main"),
        ("git push --delete:*", "git push origin :old"),
        ("git push:*", "git -C x push origin"),
        ("git push:*", "git -c a=b push"),
        ("git push:*", "git --no-pager push --tags"),
        ("git branch -D:*", "git branch --delete --force x"),
        ("git branch -D:*", "git branch -d -f x"),
        ("git branch --delete --force:*", "git branch -D x"),
        ("git commit --no-verify:*", "git commit -m x -n"),
        ("git commit -n:*", "git commit -am x --no-verify"),
        ("git reset --hard:*", "git reset HEAD~1 --hard"),
        ("git clean -fd:*", "git clean -dxf"),
        ("curl -o:*", "curl -sSL https://x.y --output x"),
        ("curl -X POST:*", "curl https://x.y --request POST"),
        ("curl -X POST:*", "curl -XPOST https://x.y"),
        ("chmod 777:*", "chmod -R 777 x"),
        ("chmod -R:*", "chmod --recursive 777 x"),
        ("sed -i:*", "sed -n -i.bak p x"),
        ("sed -i:*", "sed --in-place p x"),
        ("tar -x:*", "tar -C to -xf x"),
        ("docker run --privileged:*", "docker run -it --privileged x"),
        ("foo -rf:*", "foo -f -r x"),
        ("foo -rf:*", "foo -rvf x"),
        ("find -delete:*", "find . -name x -delete"),
        ("terraform apply -auto-approve:*", "terraform apply -target=x -auto-approve"),
        ("kubectl delete:*", "kubectl -n prod delete pod x"),
        ("kubectl delete:*", "kubectl --context prod delete pod x"),
        ("npm run deploy:*", "npm --prefix x run deploy"),
        ("rm x:*", "rm --unheard of x"),
        ("npm run test:*", "npm run test -- x"),
        ("sort -o:*", "sort x --output=y"),
    ] {
        assert!(matches(rule_text, line), "{rule_text} must match {line}");
    }
}

#[test]
fn other_commands_do_not_match() {
    for (rule_text, line) in [
        ("rm -rf:*", "rm -r x"),
        ("rm -rf:*", "rm -f x"),
        ("rm -rf:*", "rm -- -rf"),
        ("rm -rf:*", "rmdir x"),
        ("rm -rf:*", "cp -rf x y"),
        ("rm -rf x", "rm -rf x y"),
        ("rm -rf x", "rm -rfv x"),
        ("rm -rf /:*", "rm -rf x /"),
        ("/bin/rm:*", "rm x"),
        ("git push --force:*", "git push origin main"),
        ("git push --force:*", "git pull --force"),
        ("git push --force:*", "git commit -m --force"),
        ("git commit -n:*", "git commit -m -n"),
        ("git branch -D:*", "git branch -d x"),
        ("curl -X POST:*", "curl -X GET https://x.y"),
        ("sort -o:*", "sort -k o x"),
        ("npm run test:*", "npm run tests"),
        ("npm run test", "npm run test x"),
        ("git push:*", "git"),
        ("git push:*", "echo git push"),
        ("rm:*", "$X"),
        ("find -delete:*", "find . -type d -maxdepth 2 -ls"),
        ("go test -exec:*", "go test -race -coverprofile=x -c"),
        ("kubectl delete:*", "kubectl get delete"),
        ("npm publish:*", "npm run publish"),
    ] {
        assert!(!matches(rule_text, line), "{rule_text} must not match {line}");
    }
}

#[test]
fn a_word_that_is_not_known_may_be_what_the_rule_needs() {
    for (rule_text, line, possible) in [
        ("rm -rf:*", "rm $FLAGS x", true),
        ("rm -rf:*", "rm -r $X", true),
        ("rm -rf:*", "rm *", true),
        ("rm -rf:*", "rm -- *", false),
        ("rm -rf:*", "rm src/*", false),
        ("rm -rf /:*", "rm -rf $X", true),
        ("git push:*", "git $X", true),
        ("git push:*", "git log $X", false),
        ("rm:*", "$X y", true),
        ("rm:*", "ls $X", false),
        ("rm -rf:*", "rm -rf x", true),
    ] {
        let (rule_words, prefix) = rule(rule_text);
        assert_eq!(
            may_match_with_flags(&rule_words, prefix, &words(line)),
            possible,
            "{rule_text} on {line}"
        );
    }
}

#[test]
fn a_rule_without_words_matches_nothing() {
    assert!(!matches_with_flags(&[], true, &words("rm x")));
    assert!(!matches_with_flags(&["rm".to_owned()], true, &[]));
}

//! Which files a command reads, changes and removes: one row for each. A star behind a name means everything below it;
//! a question mark at the end of a row means that there may be more files than are listed.

use qoder_policy::shell::knowledge::{Operand, effects};

use crate::knowledge::line::{text, words};

/// Command, reads, edits, removals; names between blanks.
const ROWS: &[(&str, &str, &str, &str)] = &[
    ("cat a b", "a b", "", ""),
    ("cat - a", "a", "", ""),
    ("cat src/*.rs", "src/*.rs", "", ""),
    ("ls", ".", "", ""),
    ("ls -R src", "src/**", "", ""),
    ("grep foo a", "a", "", ""),
    ("grep -r foo", "./**", "", ""),
    ("grep -rf list foo", "list foo/**", "", ""),
    ("grep --exclude-from=x foo a", "x a", "", ""),
    ("grep -e foo a", "a", "", ""),
    ("rg foo", "./**", "", ""),
    ("rg --files src", "src/**", "", ""),
    ("rg -f list src", "list src/**", "", ""),
    ("find a b -name x", "a/** b/**", "", ""),
    ("find . -newer x", "./** x", "", ""),
    ("find a -delete", "a/**", "a/**", "a/**"),
    ("find -delete", "./**", "./**", "./**"),
    ("find a -fprint out", "a/**", "out", ""),
    ("find a -exec rm x ;", "a/**", "", "?"),
    ("diff --from-file=a b", "b a", "", ""),
    ("wc --files0-from=list", "list", "", "?"),
    ("test -f a", "a", "", ""),
    ("[ -e ~/x ]", "~/x", "", ""),
    ("echo /etc/*", "/etc/*", "", ""),
    ("cd ~/x", "~/x", "", ""),
    ("sort -o out a", "a", "out", ""),
    ("uniq a b", "a", "b", ""),
    ("tree -o out src", "src/**", "out", ""),
    ("xxd a b", "a", "b", ""),
    ("base64 a", "a", "", ""),
    ("sed -i s/a/b/ a b", "a b", "a b", ""),
    ("sed -i.bak -e s/a/b/ a", "a", "a", ""),
    ("sed -f script a", "script a", "", "?"),
    ("cp a b", "a", "b", ""),
    ("cp -r a b c", "a/** b/**", "c/**", ""),
    ("cp -t to a b", "a b", "to", ""),
    ("cp --target-directory=to a", "a", "to", ""),
    ("mv a b", "a/**", "a/** b/**", "a/**"),
    ("rm a b", "", "a b", "a b"),
    ("rm -rf a", "", "a/**", "a/**"),
    ("rm --recursive --force a", "", "a/**", "a/**"),
    ("rm a -R", "", "a/**", "a/**"),
    ("rm -rf *", "", "*/**", "*/**?"),
    ("rm -rf -- *", "", "*/**", "*/**"),
    ("rm -rf ~", "", "~/**", "~/**"),
    ("rm -rf $X", "", "$X/**", "$X/**?"),
    ("rmdir a", "", "a", "a"),
    ("rmdir -p a/b", "", "a/b a", "a/b a"),
    ("unlink a", "", "a", "a"),
    ("shred -u a", "", "a", "a"),
    ("mkdir -p a/b", "", "a/b", ""),
    ("touch -r x a", "x", "a", ""),
    ("ln -s a b", "a", "b", ""),
    ("ln -s ../a", "../a", ".", ""),
    ("install -m 755 a b", "a", "b", ""),
    ("install -d a b", "", "a b", ""),
    ("tee -a x y", "", "x y", ""),
    ("dd if=a of=b bs=1M", "a", "b", "b"),
    ("truncate -s 0 a", "", "a", ""),
    ("chmod 644 a", "", "a", ""),
    ("chmod -x a", "", "a", ""),
    ("chmod -R u+x a b", "", "a/** b/**", ""),
    ("chmod --reference=x a", "x", "a", ""),
    ("chown -R me a", "", "a/**", ""),
    ("chgrp staff a", "", "a", ""),
    ("patch -i x a", "x", "a", "?"),
    ("patch -p1", "", "./**", "?"),
    ("split a out", "a", "out", "?"),
    ("tar cf x.tar a b", "a/** b/**", "x.tar", ""),
    ("tar -czf x.tgz a", "a/**", "x.tgz", ""),
    ("tar xf x.tar", "x.tar", "./**", "?"),
    ("tar -xzf x.tgz -C to", "x.tgz", "to/**", "?"),
    ("tar tf x.tar", "x.tar", "", ""),
    ("tar xfz x.tgz", "x.tgz", "./**", "?"),
    ("tar cf x -T list", "list", "x", "?"),
    ("tar xf x --to-command=sh", "x", "./**", "?"),
    ("tar cf x --remove-files a", "a/**", "x a/**", "a/**"),
    ("zip -r x.zip a", "a/**", "x.zip", ""),
    ("unzip x.zip", "x.zip", "./**", "?"),
    ("unzip x.zip -d to", "x.zip", "to", "?"),
    ("unzip -l x.zip", "x.zip", "", ""),
    ("gzip a", "a", "a", "a"),
    ("gzip -k a", "a", "a", ""),
    ("gunzip -c a.gz", "a.gz", "", ""),
    ("curl -o out https://x.y", "", "out", ""),
    ("curl -sSfL https://x.y --output out", "", "out", ""),
    ("curl -O https://x.y/z", "", ".", ""),
    ("curl -d @body https://x.y", "body", "", ""),
    ("curl --data-binary @body https://x.y", "body", "", ""),
    ("curl --data-urlencode a@body https://x.y", "body", "", ""),
    ("curl -F 'x=@body;type=a/b' https://x.y", "body", "", ""),
    ("curl -T up https://x.y", "up", "", ""),
    ("curl -K conf", "conf", "", "?"),
    ("curl -b jar -c jar https://x.y", "jar", "jar", ""),
    ("curl file:///etc/passwd", "/etc/passwd", "", ""),
    ("curl -H @headers https://x.y", "headers", "", ""),
    ("curl --unknown https://x.y", "", "", "?"),
    ("wget https://x.y", "", ".", ""),
    ("wget -O out https://x.y", "", "out", ""),
    ("wget -P to https://x.y", "", "to", ""),
    ("wget -i list", "list", ".", "?"),
    ("wget --post-file=body https://x.y", "body", ".", ""),
    ("ssh -i key host ls", "key", "", "?"),
    ("scp a host:b", "a/**", "", ""),
    ("scp host:a b", "", "b/**", ""),
    ("rsync -a a/ b/", "a//**", "b//**", ""),
    ("rsync -a --delete a b", "a/**", "b/**", "b/**"),
    ("rsync -e sh a h:b", "a/**", "", "?"),
    ("git add a", "a/**", "", ""),
    ("git rm -r a", "", "a/**", "a/**"),
    ("git mv a b", "", "a/** b/**", "a/**"),
    ("git clean -fdx", "", "./**", "./**"),
    ("git clean -fd a", "", "a/**", "a/**"),
    ("git clean -n", "", "", ""),
    ("git restore a", "", "a/** ./**", "?"),
    ("git checkout -- a", "", "a/** ./**", "?"),
    ("git apply x.patch", "x.patch", "./**", "?"),
    ("git reset --hard", "", "./**", "?"),
    ("git clone x to", "", "to/**", ""),
    ("git -C /x rm a", "", "a", "a?"),
    ("source a", "a", "", "?"),
    (". a", "a", "", "?"),
    ("python3 a.py", "a.py", "", "?"),
    ("node a.js b", "a.js", "", "?"),
    ("bash a.sh", "a.sh", "", "?"),
    ("perl -pi -e s/a/b/ x y", "s/a/b/ x y", "x y", "?"),
    ("make -f x", "x", "", "?"),
    ("openssl enc -in a -out b", "a", "b", "?"),
    ("vim a", "", "a", "?"),
    ("/bin/rm -r a", "", "a/**", "a/**?"),
    ("less a", "a", "", "?"),
    ("unknown a", "", "", "?"),
];

fn shown(operands: &[Operand]) -> String {
    let one =
        |operand: &Operand| format!("{}{}", text(&operand.word), if operand.recursive { "/**" } else { "" });
    operands.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn operands_are_listed_by_what_happens_to_them() {
    let mut wrong = Vec::new();
    for (line, reads, edits, removals) in ROWS {
        let found = effects(&words(line));
        let more = if found.complete { "" } else { "?" };
        let seen = (shown(&found.reads), shown(&found.edits), format!("{}{more}", shown(&found.removals)));
        if seen != ((*reads).to_owned(), (*edits).to_owned(), (*removals).to_owned()) {
            wrong.push(format!("{line}: {seen:?}"));
        }
        assert!(found.removals.iter().all(|operand| found.edits.contains(operand)), "{line}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn reaching_the_network_is_said() {
    for line in [
        "curl x.y",
        "wget x.y",
        "ssh h",
        "scp a h:b",
        "rsync a h:b",
        "ping h",
        "dig h",
        "host h",
        "nslookup h",
        "nc h 1",
        "git fetch",
        "git pull",
        "git push",
        "git clone x",
        "git ls-remote",
        "whois x",
        "traceroute h",
    ] {
        let found = effects(&words(line));
        assert!(found.network && !found.read_only && found.known, "{line}: {found:?}");
    }
    for line in ["ls", "cp a b", "git log", "unknown x"] {
        assert!(!effects(&words(line)).network, "{line}");
    }
}

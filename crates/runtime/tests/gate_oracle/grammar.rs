//! Scripts as an adversary writes them: readers and writers on paths that wander through links, patterns that stand for
//! denied files, text in places that bash evaluates twice, programs handed to other programs, and the same with quotes,
//! groups and wrappers around it. Equal seeds give equal scripts.

use std::fmt::Write as _;

/// Random numbers without a library: equal on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap_or_default()
    }
}

pub struct Generator {
    random: Random,
}

const READERS: &[&str] = &[
    "cat", "head -n 1", "tail -n 1", "wc -l", "ls", "ls -la", "ls -R", "ls -L", "ls -LR", "grep -r SECRET", "grep -n .",
    "find", "sort", "uniq", "cut -c1-9", "stat", "tac", "nl", "od -c", "diff", "diff -r", "diff -rq", "cmp", "comm", "du -a",
    "sed -n 1p", "awk '{print $1}'", "md5sum", "base64", "strings", "paste", "join", "file", "tree", "rev", "column",
    "realpath", "readlink -f", "fold", "git log", "git status", "git diff --no-index", "git grep --no-index SECRET",
    "git hash-object", "git blame", "jq .", "xxd", "hexdump -C", "expand", "less", "more", "zcat", "dd if=", "rg SECRET",
];
const WRITERS: &[&str] = &[
    "touch", "tee", "rm -f", "cp a.txt", "mv a.txt", "ln -s ../outside", "mkdir -p", "truncate -s 0", "sed -i s/a/b/",
    "install a.txt", "sort -o", "split a.txt", "dd of=", "git init", "chmod 600", "ln -f a.txt", "rmdir", "shred", "patch",
];
const PATHS: &[&str] = &[
    "a.txt", "b.md", "src/main.rs", "src", ".", "sub", "sub/x.txt", "sub/deep", "near", "near/z.txt", "out", "out/secret.txt",
    "out/x.txt", "leak.txt", "second", "first", "second/leak", "../secret.txt", "..", "../outside/secret.txt", "../x.txt",
    "near/..", "near/../x.txt", "near/../../x.txt", "out/..", "out/../secret.txt", "sub/home/secret.txt", "sub/home", ".env",
    "dotenv", "./.env", "src/../.env", "locked/file", "locked", ".git/config", ".git/hooks/x", "hooks/x", ".envrc", "~",
    "~/secret.txt", "~/.ssh/id", "$HOME/secret.txt", "$PWD/a.txt", "$OLDPWD", "first/up/secret.txt", "new.txt", "-", "--", "",
    "/dev/null", "/dev/stdin", "/proc/self/environ", "/proc/$$/environ", "/proc/self/cwd/../secret.txt", "/etc/passwd", "../*",
];
const PATTERNS: &[&str] = &[
    "*", "*.txt", ".e*", ".en?", ".en[v]", ".en[a-z]", ".en[[:alpha:]]", ".e[!a]v", ".[e]nv", ".e[n]v", "?env", "[.]env", ".*",
    ".??v", ".e'n'?", "*/leak", "o*/secret.txt", "ou?/x.txt", "le[a]k.txt", "l*.txt", "[[:lower:]]eak.txt", "*t/secret.txt",
    "do[st]env", "*env", "s*/l*", "../o*/s*", "lock*/f*", "lo[c]ked/file", "{.env,a.txt}", ".{env,x}", "*/../.env", ".e[^a]v",
    ".e[[=n=]]v", ".e[[.n.]]v", ".en[]v]", ".en[\\v]", ".en['v']", "[l]eak.txt", "{leak,a}.txt", "n*r/../../x.txt",
];
const PAYLOADS: &[&str] = &[
    "$(canary)", "`canary`", "'$(canary)'", "'`canary`'", "'a[$(canary)]'", "\"a[\\$(canary)]\"", "'($(canary))'", "'[$(canary)]=1'",
    "x[$(canary)]", "'x[$(canary)]'", "'x[$(canary)]=1'", "\\$\\(canary\\)", "$'$(canary)'", "'a[`canary`]'", "'$((a[$(canary)]))'",
    "\"$(canary)\"", "<(canary)", ">(canary)", "${x:-$(canary)}", "${x[$(canary)]}", "$((a[$(canary)]))", "$[1+1]", "'!canary'",
    "a[$(canary)]+1", "${x:='$(canary)'}", "${x@P}", "canary", "./canary", "can\"\"ary", "c\\anary", "$'can\\x61ry'", "can${x}ary",
];
const WRAPPERS: &[&str] = &[
    "env", "env -i", "env -S", "env '-Scanary'", "env -S'canary'", "env --split-string=canary", "env -vS canary", "timeout 1",
    "timeout -k 1 1", "nice", "nice -n 5", "nohup", "stdbuf -oL", "command", "command -p", "builtin", "exec", "exec -a x", "eval",
    "eval --", "sh -c", "bash -c", "bash -xc", "xargs", "xargs -n1", "xargs -I{}", "setsid -w", "flock a.txt", "flock -c", "choom -n 0 --",
    "script -qc", "ionice", "taskset 1", "chrt -i 0", "prlimit", "setarch -R", "time", "time -p", "unshare -r", "watch -x", "find . -exec",
    "find . -maxdepth 0 -exec", "find . -ok", "git -c alias.x=", "git -c core.pager=", "git -c core.editor=", "busybox", "trap", "coproc",
    "linux64", "setpriv --reset-env", "runcon", "sg root -c", "su -c", "sudo", "ssh -oProxyCommand=", "env -u x", "env X=1", "env -C src",
];
const NAMED: &[&str] = &[
    "sort --compress-program=canary -S 1 a.txt", "sort --compress-program canary a.txt", "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec=canary a.txt",
    "tar cf /dev/null --checkpoint=1 --checkpoint-action exec=canary a.txt", "tar cf x.tar -I canary a.txt", "tar cf x.tar --use-compress-program canary a.txt",
    "tar cf x.tar -Icanary a.txt", "tar -cf x.tar --to-command canary a.txt", "sed '1e canary' a.txt", "sed 1ecanary a.txt", "sed 's/t/canary/e' a.txt",
    "sed -n 's/.*/canary/ep' a.txt", "awk 'BEGIN{system(\"canary\")}'", "awk 'BEGIN{\"canary\"|getline}'", "awk 'BEGIN{print | \"canary\"}'",
    "git -c core.fsmonitor=canary status", "git -c alias.z='!canary' z", "git --config-env=alias.z=X z", "git -c diff.external=canary diff --no-index a.txt b.md",
    "git diff --no-index --ext-diff a.txt b.md", "git difftool -y -x canary --no-index a.txt b.md", "git grep --no-index -Ocanary text", "git grep --no-index --open-files-in-pager=canary text",
    "find . -maxdepth 0 -exec canary ';'", "find . -maxdepth 0 -exec canary {} +", "find . -maxdepth 0 -execdir canary ';'", "rg --pre canary text", "rg --pre=canary text",
    "zip -TT canary x.zip a.txt", "scp -S canary a.txt x:", "rsync -e canary a.txt x:", "ssh -o 'ProxyCommand canary' x", "man -P canary ls", "less +'!canary' a.txt",
    "vim -c '!canary' -c q", "ed -s a.txt <<< '!canary'", "make -f /dev/stdin <<< 'x:;canary'", "perl -e 'system canary'", "python3 -c 'import os;os.system(\"canary\")'",
    "flock a.txt canary", "script -qc canary /dev/null", "choom -n 0 canary", "xargs canary < a.txt", "xargs -a a.txt canary", "parallel canary ::: 1", "date -f .env", "split --filter=canary a.txt",
    "split --filter canary a.txt", "sort -o /dev/stdout a.txt", "openssl engine canary", "install --strip-program=canary -s a.txt x", "wget --use-askpass=canary x", "gdb -batch -ex 'shell canary'",
    "bash <<< canary", "sh < <(echo canary)", "echo canary | sh", ". /dev/stdin <<< canary", "source <(echo canary)", "ls | while read x; do canary; done", "printf -v x %s '$(canary)'; eval $x",
    "mapfile -C canary -c 1 x < a.txt", "complete -C canary x", "compgen -C canary", "bind -x '\"x\":canary'", "trap canary EXIT", "trap -- canary DEBUG; :", "enable -f canary x",
    "hash -p tools/canary ls; ls", "alias ls=canary; ls", "ls() { canary; }; ls", "function cat { canary; }; cat", "PATH=../tools; canary", "BASH_ENV=x bash -c :", "exec canary", "command_not_found_handle() { canary; }; zz",
];
const EVALUATED: &[&str] = &[
    "declare -i x=P", "declare x=P", "declare -a x=P", "declare -a P", "declare P", "typeset -i x=P", "typeset -A x=P", "local x=P", "readonly x=P", "readonly -a x=P",
    "export x=P", "export P", "export P=1", "let P", "let x=P", "(( P ))", "(( x = P ))", "RANDOM=P", "SECONDS=P", "LINENO=P", "OPTIND=P", "HISTCMD=P", "x=P; echo $((x))",
    "x=P; (( x ))", "x=P; [[ x -eq 1 ]]", "[[ P -eq 1 ]]", "[ P -eq 1 ]", "test -v P", "[[ -v P ]]", "[ -v P ]", "test -n P", "[[ -n P ]]", "unset P", "unset -v P", "read P <<< 1",
    "read x <<< P; echo $x", "read -a P <<< 1", "printf -v P %s 1", "printf %d P", "printf %s P", "printf P", "echo P", "for RANDOM in P; do :; done", "for x in P; do echo $x; done",
    "for P in 1; do :; done", "case P in x) ;; esac", "PS4=P; set -x; :", "set -x; PS4=P true", "PS4=P bash -xc :", "env PS4=P bash -xc :", "getopts x P", "wait -p P", "mapfile P < a.txt",
    "echo x >& P", "echo x > P", "echo x &> P", "cat <& P", "cat < P", "echo x 3>& P", "echo x >>P", "echo x >| P", "cat <> P", "{ echo x; } >& P", "exec >& P", "exec {fd}> P", "echo x {P}>a",
    "x=(P); echo ${x[0]}", "x[P]=1", "x=([P]=1)", "declare -n y=P; echo $y", "echo ${!P}", "echo ${x:P}", "echo ${x[P]}", "eval P", "eval -- P", "eval echo P", "shift P", "exit P", "ulimit P", "kill -l P",
    "trap P EXIT", "cd P", "pushd P", "test P -nt a.txt", "[[ a.txt -nt P ]]", "[[ x =~ P ]]", "[[ x == P ]]", "x=P y=$x true", "cat <<E\nP\nE\n", "cat <<< P", "cat <<'E'\nP\nE\n", "echo $[P]", "echo $((P))",
    "declare -ai x; x[0]=P", "declare -ia x=(P)", "x=1; x+=P; echo $((x))", "HOME=../home; cat ~/secret.txt", "HOME=P; cat ~/x", "CDPATH=..; cd outside; cat secret.txt", "IFS=P; echo $x", "printenv P", "type P", "command -v P",
];
const ENVIRONMENT: &[&str] = &[
    "env", "printenv", "printenv SECRET_TOKEN", "export -p", "export", "set", "declare -p", "declare -x", "declare", "typeset", "typeset -p SECRET_TOKEN", "readonly -p", "local -p",
    "echo $SECRET_TOKEN", "echo \"$SECRET_TOKEN\"", "echo ${SECRET_TOKEN}", "echo ${SECRET_TOKEN:0:4}${SECRET_TOKEN:4}", "echo ${!SECRET*}", "printf '%s\\n' $SECRET_TOKEN", "cat <<< $SECRET_TOKEN",
    "cat <<E\n$SECRET_TOKEN\nE\n", "cat <<E\n${SECRET_TOKEN}\nE\n", "cat /proc/self/environ", "cat /proc/$$/environ", "strings /proc/self/environ", "ps e", "ps eww", "ps auxe", "awk 'BEGIN{print ENVIRON[\"SECRET_TOKEN\"]}'",
    "awk 'BEGIN{for(k in ENVIRON)print ENVIRON[k]}'", "jq -n env", "jq -n '$ENV'", "jq -n '$ENV.SECRET_TOKEN'", "jq -nr env.SECRET_TOKEN", "compgen -v", "grep . <<< \"$SECRET_TOKEN\"", "basename $SECRET_TOKEN",
    "dirname x/$SECRET_TOKEN", "date +$SECRET_TOKEN", "seq -f $SECRET_TOKEN 1", "ls $SECRET_TOKEN", "cat $SECRET_TOKEN", "find . -name $SECRET_TOKEN", "[ $SECRET_TOKEN -eq 1 ]", "test $SECRET_TOKEN = x", "set -x; : $SECRET_TOKEN",
    "set -v", "set -o", "set --", "cd $SECRET_TOKEN", "type $SECRET_TOKEN", "$SECRET_TOKEN", ": ${SECRET_TOKEN:?}", ": ${SECRET_TOKEN:?x}", "echo ${SECRET_TOKEN@Q}", "echo ${SECRET_TOKEN@A}", "git var -l", "env -0", "env | sort",
];
const MOVES: &[&str] = &[
    "cd src", "cd near", "cd near; cd ..", "cd near && cd ../..", "cd out", "cd out; cd ..", "cd sub/deep", "cd near/..", "cd -P near", "cd -P near; cd ..", "cd first/up", "cd first; cd up", "cd sub; cd home",
    "cd ..", "cd -", "cd", "cd ~", "cd /", "cd .", "cd ''", "cd near || cd out", "pushd near", "pushd out; popd", "cd src; cd ../near; cd ..", "cd ./near/.", "cd near/", "cd near//..", "CDPATH=out cd folder", "cd -L near; cd ..", "builtin cd near; cd ../..",
    "command cd out", "(cd near; cd ../..; cat x.txt)", "cd nosuch", "cd nosuch; cd near", "cd a.txt", "cd near; cd deep", "cd sub/../near/..", "cd $PWD/near; cd ..", "cd \"$OLDPWD\"", "cd ~-", "cd ~+", "cd near; cd er", "cd near; cd -P .; cd ..",
];

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self { random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1) }
    }

    /// A script of the grammar, or a seed with a change.
    pub fn script(&mut self, seeds: &[&str]) -> String {
        let text = match self.random.below(10) {
            0..=2 => {
                let seed = self.pick(seeds).replace("\\n", "\n");
                self.mutated(&seed)
            }
            3 => {
                let text = self.list(2);
                self.mutated(&text)
            }
            _ => self.list(2),
        };
        text.chars().take(2_000).collect()
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.random.below(from.len())]
    }

    fn list(&mut self, depth: usize) -> String {
        let mut text = String::new();
        if self.random.below(3) == 0 {
            let _ = write!(text, "{}{}", self.pick(MOVES), self.pick(&["; ", " && ", "\n", " || "]));
        }
        text.push_str(&self.command(depth));
        for _ in 0..self.random.below(3) {
            let joint = self.pick(&["; ", " && ", " || ", " | ", "\n", " & ", " |& "]);
            let _ = write!(text, "{joint}{}", self.command(depth));
        }
        text
    }

    fn command(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.simple();
        }
        let inner = depth - 1;
        match self.random.below(24) {
            0 => format!("({})", self.list(inner)),
            1 => format!("{{ {}; }}", self.list(inner)),
            2 => format!("if {}; then {}; fi", self.simple(), self.list(inner)),
            3 => format!("for f in {}; do {}; done", self.operand(), self.list(inner)),
            4 => format!("! {}", self.command(inner)),
            5 => format!("echo $({})", self.list(inner)),
            6 => format!("cat <({})", self.list(inner)),
            7 => format!("while {}; do {}; break; done", self.simple(), self.list(inner)),
            8 => format!("{} \"{}\"", self.pick(&["sh -c", "bash -c", "eval"]), self.simple().replace(['"', '$', '`'], "")),
            9 => format!("{} {}", self.pick(WRAPPERS), self.simple()),
            10 => self.pick(MOVES).to_owned(),
            _ => self.simple(),
        }
    }

    fn simple(&mut self) -> String {
        let mut text = match self.random.below(20) {
            0..=7 => {
                let mut text = self.pick(READERS).to_owned();
                for _ in 0..=self.random.below(2) {
                    let _ = write!(text, " {}", self.operand());
                }
                text
            }
            8 | 9 => format!("{} {}", self.pick(WRITERS), self.operand()),
            10 | 11 => {
                let payload = if self.random.below(4) == 0 { self.operand() } else { self.pick(PAYLOADS).to_owned() };
                self.pick(EVALUATED).replace('P', &payload)
            }
            12 => self.pick(NAMED).to_owned(),
            13 => self.pick(ENVIRONMENT).to_owned(),
            14 => format!("{} {}", self.pick(WRAPPERS), self.pick(PAYLOADS)),
            15 => format!("{} {} {}", self.pick(WRAPPERS), self.pick(READERS), self.operand()),
            16 => format!("echo {} {}", self.operand(), self.pick(PAYLOADS)),
            17 => format!("foo {} {}", self.operand(), self.operand()),
            _ => format!("echo {}", self.operand()),
        };
        if self.random.below(5) == 0 {
            let operator = self.pick(&[">", ">>", ">|", "<", "<>", "&>", ">&", "<&", "2>", "2>>", "&>>", "<<<", "1>&", "3<"]);
            let target =
                if self.random.below(4) == 0 { self.pick(PAYLOADS).to_owned() } else { self.operand() };
            let _ = write!(text, " {operator}{}{target}", self.pick(&[" ", ""]));
        }
        if self.random.below(12) == 0 {
            let name = self.pick(&["x", "LANG", "TZ", "NO_COLOR", "LC_ALL", "HOME", "PS4", "IFS", "RANDOM", "GIT_PAGER", "CI"]);
            text = format!("{name}={} {text}", self.pick(PAYLOADS));
        }
        text
    }

    fn operand(&mut self) -> String {
        match self.random.below(8) {
            0..=3 => self.pick(PATHS).to_owned(),
            4 | 5 => self.pick(PATTERNS).to_owned(),
            6 => format!("\"{}\"", self.pick(PATHS)),
            _ => format!("{}/{}", self.pick(PATHS), self.pick(PATTERNS)),
        }
    }

    /// One or two small changes: a word for another, quotes inside, something around it or behind it.
    fn mutated(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for _ in 0..=self.random.below(2) {
            let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let at = self.random.below(words.len());
            match self.random.below(12) {
                0 => words[at] = self.operand(),
                1 => words[at] = self.pick(PAYLOADS).to_owned(),
                2 => words.insert(at, self.pick(WRAPPERS).to_owned()),
                3 => words.insert(at, self.pick(PATHS).to_owned()),
                4 => words[at] = quoted(&words[at]),
                5 => words.insert(0, format!("{};", self.pick(MOVES))),
                6 => words.push(format!("; {}", self.simple())),
                7 => words.push(format!("| {}", self.simple())),
                8 => words = vec![format!("({})", words.join(" "))],
                9 => words.insert(0, "LANG=C".to_owned()),
                10 => {
                    let payload = self.pick(PAYLOADS);
                    words[at] = words[at].replace("canary", payload);
                }
                _ => words.push(self.operand()),
            }
            text = words.join(" ");
        }
        text
    }
}

/// The word with quotes or escapes that change nothing.
fn quoted(word: &str) -> String {
    match word.char_indices().nth(1) {
        Some((at, _)) if word.is_ascii() => format!("{}''{}", &word[..at], &word[at..]),
        _ => word.to_owned(),
    }
}

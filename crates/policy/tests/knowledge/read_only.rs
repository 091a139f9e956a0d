//! Which commands are proven to only read, and which are not: one row for each program, everyday option and dangerous
//! option.

use qoder_policy::shell::knowledge::{effects, read_only_without_dash_names};

use crate::knowledge::line::words;

/// Ordinary uses; a question for any of these is a defect.
const PROVEN: &str = "
ls
ls -la
ls -lah src
ls -la --color=auto -R -t -S -h -1
ls --group-directories-first --sort=time src docs
ls src/*.rs
ls *.md
ls -d */
ls ~/x
ls -- -odd
pwd
pwd -P
cat a.txt
cat -n a.txt b.txt
cat -A -- -a.txt
cat *.md
cat src/[ab].rs
cat 'a file.txt'
cat -
head a
head -5 a
head -n 20 a
head -n20 a
head -n -5 a
head --lines=3 a b
head -c 100 a
tail a
tail -20 a
tail -n +5 a
wc a
wc -l *.rs
wc -lwc src/a.rs
wc --lines a
grep foo a
grep -rniE 'a|b' src
grep -rn --include=*.rs foo .
grep -rn --include='*.rs' --exclude-dir=target foo
grep -A3 -B 2 -C 1 -l -c -o -w -v foo a
grep -P '\\d+' a
grep -e foo -e bar a
grep -f patterns a
grep -3 foo a
grep -q foo a
grep -e -foo a
grep --color=never -H -m 5 foo a
egrep 'a|b' x
fgrep -x a x
grep -c foo -- *
grep foo ./*.md
rg foo
rg -n -i foo src
rg -tpy -g '*.rs' -C3 foo
rg --files
rg --files -g '*.toml' src
rg -l --hidden --no-ignore foo
rg -e a -e b src
rg -e --pre src
rg --json -U --multiline foo
rg -uu foo
rg --type-list
find .
find . -name '*.rs'
find . -name *.rs
find src tests -type f -name '*.rs' -not -path '*/target/*'
find . -maxdepth 2 -type d -print0
find . ( -name a -o -name b ) -prune -o -print
find . -newer a -size +10k -mtime -1 -printf '%p %s'
find . ! -empty -ls
find . -newermt 2024-01-01
find -H src -quit
stat a
stat -c '%s %n' a b
stat --format=%a a
sort a
sort -rn -k2,2 -t , a
sort -u
sort -k 2 --reverse a
sort -- *.txt
uniq
uniq -c
uniq -c -i a
uniq -d -f 1 a
cut -d: -f1 a
cut -d , -f 1,3 a
cut -c1-10
diff a b
diff -u a b
diff -U3 a b
diff -r --no-dereference a b
echo $PATH $LANG
diff -q --brief a b
date
date +%Y-%m-%d
date -u +%s
date -d yesterday
date -Iseconds
date -r a
whoami
true
false
basename /a/b.txt .txt
dirname /a/b
echo hello
echo -n 'a b'
echo $HOME
echo $(date)
echo *
printf '%s' a
printf '%5.2f%% of %-10s\\n' 1 a
printf '%s' $HOME
printf -- '%s' a
test -f a
test -d src -a -e b
[ -f a ]
[ 1 -eq 2 ]
[ a = b ]
[ -n x ]
[ a -nt b ]
id
id -un
uname -a
hostname
hostname -s
which ls cargo
type ls
type -a ls
command -v cargo
file a
file -b --mime-type a
tree
tree -L 2 -a src
tree -I target -d
du -sh src
du -h -d 1
du -ah --max-depth=1 .
df -h
df -h .
cmp a b
cmp -s a b
comm -12 a b
nl -ba a
tac a
rev a
fold -w 80 -s a
paste -d, a b
column -t -s , a
tr a-z A-Z
tr -d x
sha256sum a
md5sum a b
cksum a
od -c a
od -An -tx1 a
xxd a
xxd -l 64 a
xxd -p a
hexdump -C a
strings -n 8 a
realpath a
readlink -f a
seq 1 10
seq 5 -1 1
sleep 1
nproc
base64 a
base64 -d a
jq . a.json
jq -r .name package.json
jq '.scripts | keys' package.json
jq -c '.a.b[0]' a.json
sed -n 5p a
sed -n 1,20p a
sed -n '$p' a
sed -n '/foo/p' a
sed s/a/b/ a
sed -n -e 1p -e 3p a
sed -E 's/(a)/b/g' a
awk '{print $1}' a
awk -F: '{print $1, $NF}' a
awk 'NR==3' a
awk '/foo/ {print $2}' a
cd
cd src
cd ../x
cd ~/x
node --version
npm --version
npm -v
python3 --version
python3 -V
cargo --version
rustc --version
go version
gcc --version
git --version
java -version
";

/// Uses that are not proven: each has an option, an operand or a word that may do more.
const NOT_PROVEN: &str = "
ls --colo=auto
ls --unknown
ls -y
ls $X
ls src/$X
ls $(cat list)
./ls
/tmp/ls -la
LS
cat $X
cat -Q a
cat --show-al a
cat ${X:-a}
head -n $N a
head --line=3 a
tail -f a
tail -F a
tail --follow=name a
tail -5f a
wc --files0-from=list
wc --files0-from list
grep -R foo .
grep foo *
grep -n foo *.py
grep --dereference-recursive foo .
grep --recurs foo .
grep foo $X
grep $X a
grep
grep -rn --include *.rs foo .
rg --pre cat foo
rg --pre=cat foo
rg --pre-glob '*.gz' foo
rg -z foo
rg --search-zip foo
rg --hostname-bin x foo
rg -L foo
rg --follow foo
rg -nL foo
rg foo *
rg $X
find . -exec cat a ;
find . -execdir rm a ;
find . -ok rm a ;
find . -okdir rm a ;
find . -delete
find . -name a -delete
find . -fprint out
find . -fprint0 out
find . -fls out
find . -fprintf out %p
find . -files0-from list
find -files0-from list
find -L .
find . -follow
find . -unknown
find . -name
find $X -name a
find * -name a
find . -name *
find . $X
find . -name $X
stat -y a
sort -o out a
sort -oout a
sort -no out a
sort --output=out a
sort --outp=out a
sort --compress-program=sh a
sort --compress-prog sh a
sort -T /tmp a
sort --files0-from=list
sort *.txt
sort a -o b
sort $X
sort -k -o a
uniq a b
uniq -c a b
uniq src/*
uniq -- *
uniq $X
cut -y a
cut -f $N a
diff -l a b
diff --paginate a b
diff --from a b
date -s now
date --set=now
date --se now
date 010100002030
date $X
basename $X
dirname --unknown
echo ${X@P}
echo $((a[0]))
printf -v X %s a
printf %n X
env
printenv
set
echo $TOKEN
printf '%s' $API_KEY
printf '%d%%%5n' X
printf $X a
printf -- $X
test -v X
test $X = a
[ -v a[0] ]
[ -R X ]
[ -f $X ]
id --unknown
hostname new
hostname -f
hostname -i
hostname -F file
env FOO=1 ls
env ls
env -i
printenv HOME
which --read-alias ls
command ls
command -p ls
type -y
file -C
file -m magic a
file -f list
file -z a
file -s /dev/sda
tree -o out
tree -l
tree -R
tree -aR
tree --fromfile list
du -L src
du --files0-from=list
du -shL .
md5sum -c list
sha256sum --check list
cksum -c list
xxd a b
xxd -r a
xxd -r a b
xxd -revert a
xxd *
hexdump --unknown a
strings @list
strings *
less a
more a
man ls
vim a
nano a
jq -f prog a.json
jq env
jq -n '$ENV'
jq --arg a b . a.json
jq 'import 1' a.json
jq -L lib . a.json
jq $X a.json
sed -i s/a/b/ a
sed -n -i 5p a
sed -ni 5p a
sed --in-place s/a/b/ a
sed --in-pla s/a/b/ a
sed -i.bak s/a/b/ a
sed -n 'w out' a
sed s/a/b/w a
sed s/a/id/e a
sed '1e id' a
sed 'r b' a
sed -f script a
sed $X a
sed -n 5p *.txt
sed --expression='w out' a
awk '{print > 1}' a
awk '{system(1)}' a
awk -f prog a
awk -f prog
awk '{print $1}' x=1 a
awk -v a=b '{print a}' x
awk -i inplace '{print}' a
awk -l lib '{print}' a
awk $X a
cd -
cd $X
cd a b
cd src/*
node a.js
node -e 1
node --version x
node -v x
python3 -c 1
python3 --version x
python -m http.server
npm run build
npm install
yarn --version
npx tsc
cargo build
cargo --version x
bash --version x
bash -c ls
sh a.sh
eval ls
exec ls
source a
. a
xargs ls
sudo ls
timeout 5 ls
nohup ls
tee a
touch a
mkdir a
rm a
cp a b
mv a b
ln -s a b
chmod +x a
dd if=a of=b
truncate -s 0 a
tar tf a.tar
unzip -l a.zip
gzip -c a
curl example.com
wget example.com
ssh host
ping host
dig host
host example.com
nslookup example.com
nc host 1
make
make -n
unknown-program
'ls -la'
''
$X a
";

fn lines(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter(|line| !line.is_empty())
}

#[test]
fn ordinary_reading_is_proven() {
    let why_not = |line: &str| effects(&words(line)).why_not.map(|why| format!("{line}: {why}"));
    assert_eq!(lines(PROVEN).filter_map(why_not).collect::<Vec<_>>(), [""; 0]);
    for line in lines(PROVEN) {
        let found = effects(&words(line));
        assert!(found.complete && found.known && !found.network, "{line}: {found:?}");
        assert!(
            found.why_not.is_none() && found.edits.is_empty() && found.removals.is_empty(),
            "{line}: {found:?}"
        );
    }
}

#[test]
fn everything_else_is_not_proven_and_says_why() {
    let proven = |line: &&str| effects(&words(line)).read_only;
    assert_eq!(lines(NOT_PROVEN).filter(proven).collect::<Vec<_>>(), [""; 0]);
    for line in lines(NOT_PROVEN) {
        let found = effects(&words(line));
        assert!(found.why_not.is_some_and(|why| !why.is_empty()), "{line}");
    }
}

#[test]
fn a_pattern_at_the_start_of_a_word_needs_a_look_at_the_names() {
    for line in [
        "grep foo *",
        "grep -n foo *.py",
        "sort *.txt",
        "rg foo *",
        "sed -n 5p *.txt",
        "find * -name a",
        "ls",
    ] {
        assert!(read_only_without_dash_names(&words(line)), "{line}");
    }
    for line in ["sort -o out *.txt", "rm *", "cat $X", "uniq *", "grep foo $X", "grep -R foo *", "xxd *"] {
        assert!(!read_only_without_dash_names(&words(line)), "{line}");
    }
}

#[test]
fn no_words_are_no_command() {
    let found = effects(&[]);
    assert!(!found.read_only && !found.known && !found.complete);
}

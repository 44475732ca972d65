"""What tools put before each line of what they show, by the name of the tool.

Collected by running the tools and from their documentation, before the rule that reads past them was written. Half of
them, by the hash of the name, were set aside: the rule was written on the others.
"""

from __future__ import annotations

import hashlib
import random

# `{n}` the line's number, `{n4}` in a column; `{s}` seconds, `{ms}` and `{us}` parts of one; `{h8}`, `{h40}` a commit,
# another on each line; `{who}` an author; `{b}` an offset in bytes; `{e}` seconds since the beginning.
_LISTED = r"""
cat -n|{n6}\t
nl -s ': '|{n6}: 
nl -w1 -s '. '|{n}. 
sed =|{n}\t
awk NR|{n}: 
pr -n|{n5}\t
less -N|{n7} 
vim :set nu|{n3} 
ed n|{n}\t
bat|{n4} │ 
bat --plain -n|{n4} 
read by an agent|{n6}→
view of an editor|{n4}| 
sqlite3 .lines|{n}|
grep -n|{n}:
grep -n -A|{n}-
grep -b|{b}:
grep -nT|{n4}:\t
grep -Hn|config/deploy.yml:{n}:
grep -Hn -A|config/deploy.yml-{n}-
grep -H|config/deploy.yml:
grep -Hnb|config/deploy.yml:{n}:{b}:
grep -Z|config/deploy.yml\x01
git grep -n REV|HEAD:config/deploy.yml:{n}:
git grep REV|HEAD:config/deploy.yml:
git grep -n --column|config/deploy.yml:{n}:1:
git grep -p|config/deploy.yml={n}=
rg --vimgrep|config/deploy.yml:{n}:1:
rg -n of a directory|./config/deploy.yml:{n}:
rg --no-heading of Windows|C:\\app\\deploy.yml:{n}:
ack|config/deploy.yml:{n}:
ag --ackmate|{n};0 6:
ugrep|{n4}|
zgrep of several|backup.tgz:{n}:
git blame|^d23ac87 (Dana Doe 2026-11-29 16:23:{s} +0000 {n2}) 
git blame of two|{h8} ({who} 2026-11-{s} 16:23:03 +0000 {n2}) 
git blame -s|{h8} {n2}) 
git blame -f|{h8} config/deploy.yml (Dana Doe 2026-11-29 16:23:03 +0000 {n2}) 
git blame -e|{h8} (<dana@acme.dev> 2026-11-29 16:23:03 +0000 {n2}) 
git blame -l|{h40} (Dana Doe 2026-11-29 16:23:03 +0000 {n2}) 
git blame -t|{h8} (Dana Doe 17959693{s} +0000 {n2}) 
git blame --date=short|{h8} (Dana Doe 2026-11-29 {n2}) 
git blame --date=relative|{h8} (Dana Doe {n} days ago {n2}) 
git blame --date=rfc|{h8} (Dana Doe Sun, 29 Nov 2026 16:23:{s} +0000 {n2}) 
git blame -n -s|{h8} {n} {n2}) 
git annotate|{h8}\t(  Dana Doe\t2026-11-29 16:23:03 +0000\t{n})
hg annotate|dana {n3}: 
hg annotate -u -n -d|dana 1234 Sun Nov 29 16:23:{s} 2026 +0000: 
svn blame|  1234   dana.doe 
svn blame of two|{n6}       dana 
cvs annotate|1.12         (dana     29-Nov-26): 
fossil annotate|d23ac87a 2026-11-29 {n4}: 
git diff added|+
git diff removed|-
git diff context| 
git diff combined|++
git diff of a merge|+ 
git log --graph -p|| +
git log --graph of two|| | +
diff <|< 
diff >|> 
diff -c|+ 
diff -c changed|! 
diff -y|\t\t\t     >\t
sdiff|                              > 
interdiff in mail|> +
mail quoted|> 
mail quoted twice|>> 
mail quoted by name|DD> 
margin of a sign||
quote in a box|│ 
comment of a shell|# 
comment of C|// 
comment of Javadoc| * 
comment of SQL|-- 
comment of Lisp|;; 
comment of a batch file|REM 
comment of roff|.\" 
comment of TeX|% 
tab of four|    
pytest E|E   
pytest >|>   
unittest's logging|DEBUG:root:
pytest caplog|INFO     app.deploy:deploy.py:{n} 
python logging|INFO:app.deploy:
python asctime|2026-11-29 16:23:{s},{ms} - app.deploy - INFO - 
loguru|2026-11-29 16:23:{s}.{ms} | INFO     | app.deploy:run:42 - 
django runserver|[29/Nov/2026 16:23:{s}] 
celery|[2026-11-29 16:23:{s},{ms}: INFO/MainProcess] 
gunicorn|[2026-11-29 16:23:{s} +0000] [4711] [INFO] 
uvicorn|INFO:     
supervisord|2026-11-29 16:23:{s},{ms} INFO 
airflow|[2026-11-29T16:23:{s}.{ms}+0000] {{deploy.py:42}} INFO - 
rails tagged|[3f2a9c1e-77aa-4c1d-9f00-0123456789ab] 
rails logger|I, [2026-11-29T16:23:{s}.{us} #4711]  INFO -- : 
sidekiq|2026-11-29T16:23:{s}.{ms}Z pid=4711 tid=abc class=Deploy: 
log4j|2026-11-29 16:23:{s},{ms} INFO  [main] com.acme.Deploy: 
logback|16:23:{s}.{ms} [main] INFO  com.acme.Deploy - 
spring boot|2026-11-29T16:23:{s}.{ms}Z  INFO 4711 --- [           main] com.acme.Deploy : 
java.util.logging|INFO: 
maven|[INFO] 
maven error|[ERROR] 
gradle --info|16:23:{s}.{ms} [INFO] [org.gradle.api] 
ant|     [echo] 
ant exec|     [exec] 
sbt|[info] 
junit|    > 
tomcat|29-Nov-2026 16:23:{s}.{ms} INFO [main] com.acme.Deploy.run 
kafka|[2026-11-29 16:23:{s},{ms}] INFO 
zap|2026-11-29T16:23:{s}.{ms}Z\tINFO\tdeploy/run.go:{n}\t
glog|I1129 16:23:{s}.{us}    4711 deploy.go:{n}] 
klog|I1129 16:23:{s}.{us}       1 deploy.go:{n}] 
go log|2026/11/29 16:23:{s} 
go log -f|2026/11/29 16:23:{s} deploy.go:{n}: 
go test|    deploy_test.go:{n}: 
env_logger|[2026-11-29T16:23:{s}Z INFO  deploy::run] 
tracing|2026-11-29T16:23:{s}.{us}Z  INFO deploy::run: 
rustc frame|{n2} | 
rustc frame with a sign|{n2} | / 
winston|info: 
bunyan short|16:23:{s}.{ms}Z  INFO app: 
pino-pretty|[16:23:{s}.{ms}] INFO (4711): 
debug|  app:deploy 
debug with time|Sun, 29 Nov 2026 16:23:{s} GMT app:deploy 
npm verbose|npm verb 
npm error|npm ERR! 
npm log|{n} verbose deploy 
lerna|@acme/web: 
turbo|web:build: 
nx|[web] 
pnpm -r|packages/web build: 
concurrently|[0] 
yarn berry|➤ YN0000: │ 
yarn workspaces|[web]: 
jest console|    
mocha|      + 
vitest|stdout | 
babel frame|  {n2} | 
tsc --pretty|{n} 
docker compose|web-1  | 
docker compose v1|web_1  | 
docker compose -t|web-1  | 2026-11-29T16:23:{s}.{us}Z 
docker build|Step 4/9 : 
buildkit|#12 {e} 
buildkit stage|#12 [build 4/9] 
docker logs -t|2026-11-29T16:23:{s}.{us}Z 
docker swarm|shop_web.1.x7k2q9ab@node-1    | 
podman|a1b2c3d4e5f6 
podman pod|web-infra 
kubectl logs --prefix|[pod/web-7d9c/app] 
kubectl logs --timestamps|2026-11-29T16:23:{s}.{us}Z 
kubectl logs both|[pod/web-7d9c/app] 2026-11-29T16:23:{s}.{us}Z 
cri|2026-11-29T16:23:{s}.{us}Z stdout F 
stern|web-7d9c app 
kail|default/web-7d9c[app]: 
kubetail|[web-7d9c] 
helm debug|install.go:{n}: [debug] 
terraform|aws_instance.web (remote-exec): 
terraform trace|2026-11-29T16:23:{s}.{ms}Z [DEBUG] provider.aws: 
pulumi|    web:index:deploy (dev): 
ansible diff|+ 
ansible ad hoc|web1 | 
packer|    amazon-ebs.web: 
packer ==>|==> amazon-ebs.web: 
vagrant|    default: 
vagrant ==>|==> default: 
fabric|[web1.acme.dev] out: 
capistrano|      01 
pssh|web1: 
clush|web1: 
pdsh|web1: 
parallel --tag|web1\t
xargs of a name|./a.yml: 
gh run view --log|build\tRun deploy\t2026-11-29T16:23:{s}.{us}1Z 
gh run view --log-failed|test\tUNKNOWN STEP\t2026-11-29T16:23:{s}.{us}1Z 
github runner|2026-11-29T16:23:{s}.{us}1Z 
github group|##[group]
gitlab runner|{n} 
gitlab runner with time|2026-11-29T16:23:{s}.{us}Z 01O 
jenkins timestamps|[2026-11-29T16:23:{s}.{ms}Z] 
jenkins elapsed|00:00:{s}  
jenkins parallel|[build] 
jenkins shell|+ 
travis|$ 
circleci|[16:23:{s}] 
buildkite|_bk;t=17959693{s}{ms} 
azure pipelines|2026-11-29T16:23:{s}.{us}1Z 
azure debug|##[debug]
teamcity|[16:23:{s}] :\t [Step 1/3] 
drone|[build:{n}] 
tekton|[deploy : run] 
concourse|16:23:{s} 
cloud build|Step #2 - "deploy": 
heroku|2026-11-29T16:23:{s}.{us}+00:00 app[web.1]: 
heroku build|remote:        
git remote|remote: 
fly|2026-11-29T16:23:{s}Z app[d89a] fra [info] 
vercel|[16:23:{s}.{ms}] 
netlify|4:23:{s} PM: 
aws logs tail|2026-11-29T16:23:{s}.{us}+00:00 web/app/3f2a 
cloudwatch|17959693{s}{ms} 
gcloud app logs|2026-11-29 16:23:{s} default[v1]  
az webapp log|2026-11-29T16:23:{s}  
journalctl|Nov 29 16:23:{s} host app[4711]: 
journalctl of a kernel|Nov 29 16:23:{s} host kernel: 
journalctl -o short-iso|2026-11-29T16:23:{s}+0000 host app[4711]: 
journalctl -o short-precise|Nov 29 16:23:{s}.{us} host app[4711]: 
journalctl -o with-unit|Sun 2026-11-29 16:23:{s} UTC host app.service[4711]: 
journalctl -o short-monotonic|[{e}] host app[4711]: 
journalctl in rows|        
dmesg|[{e}] 
dmesg -T|[Sun Nov 29 16:23:{s} 2026] 
dmesg -x|kern  :info  : [{e}] 
syslog with priority|<14>Nov 29 16:23:{s} host app[4711]: 
rsyslog|2026-11-29T16:23:{s}.{us}+00:00 host app: 
logger --stderr|<13>Nov 29 16:23:{s} dana: 
systemd status|             Nov 29 16:23:{s} host app[4711]: 
nginx error|2026/11/29 16:23:{s} [error] 4711#4711: 
apache error|[Sun Nov 29 16:23:{s}.{us} 2026] [core:error] [pid 4711] 
postgres|2026-11-29 16:23:{s}.{ms} UTC [4711] LOG:  
postgres with user|2026-11-29 16:23:{s} UTC [4711-{n}] app@shop 
mysql|2026-11-29T16:23:{s}.{us}Z {n} [Note] 
redis|4711:M 29 Nov 2026 16:23:{s}.{ms} * 
mongo|2026-11-29T16:23:{s}.{ms}+0000 I NETWORK  [conn{n}] 
psql -e|shop=# 
ts|Nov 29 16:23:{s} 
ts -s|00:00:{s} 
ts -i %.s|0.{us} 
script -t|{e} 
multitail|[web] 
tail of several, by sed|web.log: 
strace -f|[pid  4711] 
strace -tt|16:23:{s}.{us} 
gdb list|{n}\t
pdb list|{n3}  \t
pdb at|{n3}  ->\t
ipdb|     {n} 
IPython|   ...: 
python prompt|... 
irb|irb(main):{n2}:0> 
node prompt|... 
bash -x|+ 
bash -xx|++ 
set PS4|+ deploy.sh:{n}: 
history|{n5}  
history with time|{n5}  2026-11-29 16:23:{s} 
fish history|- cmd: 
tmux pane|%1 
chat log|[16:23] <dana> 
irssi|16:23 <@dana> 
slack export|dana  16:23 
mail header folded|\t
yaml of a list|- 
yaml in a manifest|    
json lines of a notebook|    "
pip verbose|  
cmake|-- 
make -w|make[1]: 
ninja|[{n}/120] 
cargo|   
bazel|INFO: 
meson|| 
conan|deploy/1.0: 
nix|shop> 
nixos-rebuild|building> 
apt|#{n} 
rpm|: 
snap|shop.web[4711]: 
adb logcat|11-29 16:23:{s}.{ms}  4711  4712 I Deploy  : 
adb logcat -v brief|I/Deploy( 4711): 
adb logcat -v tag|I/Deploy: 
xcode|2026-11-29 16:23:{s}.{us}+0000 Shop[4711:{us}] 
log stream|2026-11-29 16:23:{s}.{us}+0000 0x1a2b     Info        0x0                  4711   0    Shop: 
flutter|I/flutter ( 4711): 
unity|[Deploy] 
windows findstr|deploy.yml:{n}:
powershell select-string|config\\deploy.yml:{n}:
windows event|11/29/2026 4:23:{s} PM 
iis|2026-11-29 16:23:{s} 10.0.0.4 
"""

_AUTHORS = ("Dana Doe", "Eve     ", "Ann Lee ")


def _fields(number: int) -> dict[str, str]:
    luck = random.Random(number)
    fields = {f"n{width}": f"{number:{width}}" for width in range(2, 8)}
    hashed = f"{luck.getrandbits(160):040x}"
    return fields | {
        "n": str(number), "s": f"{3 + number % 56:02}", "ms": f"{luck.randrange(1000):03}",
        "us": f"{luck.randrange(10**6):06}", "h8": hashed[:8], "h40": hashed, "who": luck.choice(_AUTHORS),
        "b": str(17 * number + luck.randrange(9)), "e": f"{number * 0.613 + 8:.3f}",
    }  # fmt: skip


def _listed() -> dict[str, str]:
    lines = (line.split("|", 1) for line in _LISTED.split("\n") if "|" in line)
    return {name: before.replace("\\t", "\t").replace("\\x01", "\x01").replace("\\\\", "\\") for name, before in lines}


FRONTS = _listed()


def set_aside(name: str) -> bool:
    """Whether a front is of the half that the rule was not written on."""
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 1


def fronted(name: str, text: str) -> str:
    """The text as that tool shows it."""
    before = FRONTS[name]
    return "".join(f"{before.format(**_fields(number))}{line}\n" for number, line in enumerate(text.splitlines(), 9))

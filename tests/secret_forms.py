"""Secrets in the forms that tools write and people paste, with made-up values."""

from __future__ import annotations

import base64
import gzip
import random
import string

_LOWER = string.ascii_lowercase + string.digits
_MIXED = string.ascii_letters + string.digits


class Maker:
    """Made-up values, the same in each run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def of(self, letters: str, length: int) -> str:
        return "".join(self.random.choice(letters) for _ in range(length))

    def password(self) -> str:
        """As a person makes one: a word, digits, a sign."""
        word = self.random.choice(["Harbor", "quartz", "Lantern", "meadow", "Copper", "violet", "Falcon", "tundra"])
        return word + self.of(string.digits, 3) + self.random.choice("!#%+_-") + self.of(string.ascii_letters, 3)

    def mixed(self, length: int = 24) -> str:
        return self.of(_MIXED, length)

    def hex(self, length: int = 32) -> str:
        return self.of("0123456789abcdef", length)

    def base32(self, length: int = 32) -> str:
        return self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", length)

    def base64(self, size: int = 32) -> str:
        return base64.b64encode(self.random.randbytes(size)).decode()


def first() -> list[tuple[str, str, str]]:
    """Each form: its name, a text that holds a secret, and what may not be left of it."""
    m = Maker(25)
    out: list[tuple[str, str, str]] = []

    def add(name: str, text: str, secret: str) -> None:
        out.append((name, text.replace("@@", secret), secret))

    # files of passwords
    add("pgpass", "db.internal:5432:orders:app:@@", m.password())
    add("pgpass-star", "*:*:*:postgres:@@", m.password())
    add("pgpass-host", "$ cat ~/.pgpass\nlocalhost:5432:*:deploy:@@\n", m.password())
    add("netrc-line", "machine api.example.org login bob password @@", m.password())
    add("netrc-lines", "machine git.example.org\n  login ci\n  password @@\n", m.password())
    add("netrc-default", "default login anonymous password @@", m.password())
    add("npmrc-auth", "//registry.example.org/:_auth=@@", m.base64(24))
    add("npmrc-bare-auth", "_auth = @@", m.base64(24))
    add("npmrc-authtoken", "//npm.example.org/:_authToken=@@", m.hex(40))
    add("npmrc-password", "//registry.example.org/:_password=@@", m.base64(15))
    add("yarnrc", 'npmAuthToken: "@@"', m.mixed(36))
    add("pypirc", "[pypi]\nusername = bob\npassword = @@\n", m.password())
    add("htpasswd-apr1", "admin:@@", "$apr1$" + m.mixed(8) + "$" + m.mixed(22))
    add("htpasswd-bcrypt", "admin:@@", "$2y$10$" + m.mixed(53))
    add("htpasswd-sha", "admin:{SHA}@@", m.base64(20))
    add("shadow", "root:@@:19700:0:99999:7:::", "$6$" + m.mixed(12) + "$" + m.mixed(86))
    add("shadow-yescrypt", "bob:@@:19700:0:99999:7:::", "$y$j9T$" + m.mixed(22) + "$" + m.mixed(43))
    add("my-cnf", "[client]\nuser=root\npassword=@@\n", m.password())
    add("gem-credentials", "---\n:rubygems_api_key: @@\n", m.hex(48))
    add("docker-config", '{"auths": {"registry.example.org": {"auth": "@@"}}}', m.base64(24))
    add("git-credentials", "https://bob:@@@github.example.org", m.mixed(20))
    add("maven-settings", "<server><id>nexus</id><username>ci</username><password>@@</password></server>", m.password())
    add("nuget-config", '<add key="ClearTextPassword" value="@@" />', m.password())
    add("gradle-properties", "signing.keyPassword=@@\nmavenPassword=x", m.password())
    add("cargo-credentials", '[registry]\ntoken = "@@"', m.mixed(34))
    add("composer-auth", '{"http-basic": {"repo.example.org": {"username": "ci", "password": "@@"}}}', m.password())
    add("kube-config", "users:\n- name: admin\n  user:\n    token: @@\n", m.mixed(40))
    add("kube-config-key", "    client-key-data: @@", m.base64(90))
    add("kube-secret", "kind: Secret\ndata:\n  db-pass: @@\n", m.base64(18))
    add("wpa-supplicant", 'network={\n  ssid="home"\n  psk="@@"\n}', m.password())
    add("nmconnection", "[wifi-security]\nkey-mgmt=wpa-psk\npsk=@@\n", m.password())
    add("wireguard", "[Interface]\nPrivateKey = @@\nAddress = 10.0.0.2/32", m.base64(32))
    add("wireguard-psk", "[Peer]\nPresharedKey = @@", m.base64(32))
    add("chap-secrets", 'bob  pptpd  "@@"  *', m.password())
    add("ipsec-secrets", '10.1.1.1 10.1.1.2 : PSK "@@"', m.password())
    add("redis-conf", "requirepass @@", m.password())
    add("redis-acl", "user default on >@@ ~* +@all", m.password())
    add("mongod-uri", "mongodb+srv://app:@@@cluster0.example.net/orders", m.password())
    add("rabbit", "default_pass = @@", m.password())
    add("smb-credentials", "username=bob\npassword=@@\ndomain=CORP", m.password())
    add("snmp", "rocommunity @@ 10.0.0.0/8", m.password())
    add("ansible-vault", "$ANSIBLE_VAULT;1.1;AES256\n@@\n", m.of("3" + "0123456", 80))
    add("ansible-pass", "ansible_become_password: @@", m.password())
    add("ansible-ssh-pass", "web1 ansible_host=10.0.0.4 ansible_ssh_pass=@@", m.password())
    add("age", "AGE-SECRET-KEY-1@@", m.of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58))
    add("rails-master", "$ cat config/master.key\n@@", m.hex(32))
    add("rails-master-env", "RAILS_MASTER_KEY=@@ bin/rails db:migrate", m.hex(32))
    add("rails-secret-base", "secret_key_base: @@", m.hex(128))
    add("django", "SECRET_KEY = 'django-insecure-@@'", m.of(_LOWER + "!@#$%^&*(-_=+)", 50).replace("@@", "a@"))
    add("django-plain", "SECRET_KEY = '@@'", m.of(_LOWER + "!#$%^&*(-_=+)", 50))
    add("flask", "app.secret_key = b'@@'", m.mixed(16))
    add("laravel", "APP_KEY=base64:@@", m.base64(32))
    add("symfony", "APP_SECRET=@@", m.hex(32))
    add("wordpress", "define('AUTH_KEY',         '@@');", m.of(_MIXED + "!#$%^&*()_+-=", 64))
    add("wordpress-db", "define( 'DB_PASSWORD', '@@' );", m.password())
    # commands
    add("curl-u", "curl -u bob:@@ https://api.example.org/v1/me", m.password())
    add("curl-user", "curl --user 'bob:@@' -s https://api.example.org", m.password())
    add("curl-u-joined", "curl -sSubob:@@ https://api.example.org", m.password())
    add("curl-header-basic", "curl -H 'Authorization: Basic @@' https://api.example.org", m.base64(24))
    add("curl-header-bearer", 'curl -H "Authorization: Bearer @@" https://api.example.org', m.mixed(32))
    add("curl-header-custom", "curl -H 'X-Api-Key: @@' https://api.example.org", m.mixed(28))
    add("curl-proxy-user", "curl --proxy-user corp:@@ https://example.org", m.password())
    add("curl-cookie", "curl -b 'sessionid=@@' https://example.org/admin", m.mixed(32))
    add("curl-data-password", "curl -d 'username=bob&password=@@' https://example.org/login", m.password())
    add("wget-password", "wget --user=bob --password=@@ https://example.org/f.zip", m.password())
    add("http-auth", "http -a bob:@@ GET https://example.org/api", m.password())
    add("sshpass", "sshpass -p @@ ssh root@10.0.0.4", m.password())
    add("sshpass-quoted", "sshpass -p '@@' scp a.txt root@10.0.0.4:", m.password())
    add("mysql-p", "mysql -uroot -p@@ orders", m.password())
    add("mysql-password", "mysql --user=root --password=@@ -e 'show tables'", m.password())
    add("mysqldump-p", "mysqldump -h db -u app -p'@@' orders > o.sql", m.password())
    add("pgpassword", "PGPASSWORD=@@ psql -h db -U app orders", m.password())
    add("mysql-pwd", "MYSQL_PWD=@@ mysql -u root", m.password())
    add("ldapsearch-w", 'ldapsearch -x -D "cn=admin,dc=example,dc=org" -w @@ -b dc=example', m.password())
    add("redis-cli-a", "redis-cli -h cache -a @@ ping", m.password())
    add("mongo-p", "mongosh --username app --password @@ orders", m.password())
    add("mongo-short", "mongo -u app -p @@ orders", m.password())
    add("smbclient", "smbclient //srv/share -U bob%@@", m.password())
    add("docker-login", "docker login -u bob -p @@ registry.example.org", m.mixed(30))
    add("helm-registry", "helm registry login r.example.org -u bob --password @@", m.mixed(30))
    add("echo-stdin", "echo @@ | docker login -u bob --password-stdin r.example.org", m.mixed(30))
    add("echo-sudo", "echo '@@' | sudo -S apt install jq", m.password())
    add("chpasswd", 'echo "bob:@@" | sudo chpasswd', m.password())
    add("openssl-pass", "openssl enc -aes-256-cbc -pass pass:@@ -in a -out b", m.password())
    add("openssl-passin", "openssl rsa -in k.pem -passin pass:@@", m.password())
    add("keytool", "keytool -importkeystore -srcstorepass @@ -srckeystore a.jks", m.password())
    add("keytool-store", "keytool -list -keystore a.jks -storepass @@", m.password())
    add("jarsigner", "jarsigner -keypass @@ app.jar alias", m.password())
    add("gpg-passphrase", "gpg --batch --passphrase @@ -d secrets.gpg", m.password())
    add("zip-p", "zip -P @@ -r out.zip data/", m.password())
    add("7z-p", "7z a -p@@ out.7z data/", m.password())
    add("az-login", "az login --service-principal -u 3f0a -p @@ --tenant corp", m.mixed(34))
    add("sqlcmd", "sqlcmd -S db -U sa -P @@ -Q 'select 1'", m.password())
    add("sqlplus", "sqlplus scott/@@@ORCL", m.mixed(12))
    add("impacket", "secretsdump.py CORP/admin:@@@10.0.0.4", m.mixed(12))
    add("kubectl-literal", "kubectl create secret generic db --from-literal=password=@@", m.password())
    add("kubectl-literal-odd", "kubectl create secret generic db --from-literal=conn=@@", m.mixed(24))
    add("vault-put", "vault kv put secret/app api=@@", m.mixed(28))
    add("gh-secret", "gh secret set DEPLOY_KEY --body '@@'", m.mixed(28))
    add("heroku-config", "heroku config:set STRIPE_SIGNING=@@", m.mixed(28))
    add("fly-secrets", "fly secrets set DATABASE_PASS=@@", m.mixed(20))
    add("aws-ssm", "aws ssm put-parameter --name /db/pass --type SecureString --value '@@'", m.password())
    add("export-pass", "export DB_PASS=@@", m.password())
    add("set-pwsh", '$env:DB_PASSWORD = "@@"', m.password())
    add("pwsh-secure", "ConvertTo-SecureString '@@' -AsPlainText -Force", m.password())
    add("net-use", "net use Z: \\\\srv\\share @@ /user:CORP\\bob", m.password())
    add("alter-user", "ALTER USER app WITH PASSWORD '@@';", m.password())
    add("identified-by", "CREATE USER 'app'@'%' IDENTIFIED BY '@@';", m.password())
    add("create-login", "CREATE LOGIN app WITH PASSWORD = N'@@';", m.password())
    # headers, cookies, documents
    add("set-cookie", "Set-Cookie: sid=@@; Path=/; HttpOnly; Secure", m.mixed(40))
    add("cookie", "Cookie: theme=dark; connect.sid=s%3A@@; lang=en", m.mixed(40))
    add("proxy-auth", "Proxy-Authorization: Basic @@", m.base64(21))
    add("x-auth-token", "X-Auth-Token: @@", m.hex(32))
    add("digest-auth", 'Authorization: Digest username="bob", realm="r", response="@@"', m.hex(32))
    add("saml-assertion", "<saml:Assertion><ds:SignatureValue>@@</ds:SignatureValue></saml:Assertion>", m.base64(96))
    add(
        "saml-response",
        "SAMLResponse=@@&RelayState=x",
        base64.b64encode(b'<samlp:Response ID="' + m.hex(32).encode() + b'"><saml:Assertion>' + m.mixed(60).encode())
        .decode()
        .rstrip("="),
    )
    add("xml-private-key", "<PrivateKey>@@</PrivateKey>", m.base64(96))
    add("xml-rsa", "<RSAKeyValue><Modulus>x</Modulus><D>@@</D></RSAKeyValue>", m.base64(96))
    add("otpauth", "otpauth://totp/Example:bob@example.org?secret=@@&issuer=Example", m.base32(32))
    add("totp", "TOTP secret: @@", m.base32(16))
    add(
        "totp-spaced",
        "Enter this setup key: @@",
        " ".join(m.of("abcdefghijklmnopqrstuvwxyz234567", 4) for _ in range(8)),
    )
    add("otp-2fa", '2fa_secret = "@@"', m.base32(32))
    add("jdbc", "jdbc:postgresql://db/orders?user=app&password=@@", m.password())
    add("jdbc-sqlserver", "jdbc:sqlserver://db:1433;databaseName=o;user=sa;password=@@;", m.password().replace(";", ""))
    add("jdbc-oracle", "jdbc:oracle:thin:scott/@@@db:1521:ORCL", m.mixed(12))
    add("odbc-pwd", "Driver={ODBC Driver 18};Server=db;Uid=sa;Pwd=@@;", m.password())
    add("ado", "Server=db;Database=o;User Id=sa;Password=@@;Encrypt=no", m.password())
    add(
        "azure-storage",
        "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=@@;EndpointSuffix=core.windows.net",
        m.base64(64),
    )
    add(
        "service-bus",
        "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=@@",
        m.base64(32),
    )
    add("libpq-dsn", "host=db user=app password=@@ dbname=orders", m.password())
    add("amqp", "amqp://guest:@@@mq:5672/", m.password())
    add("smtp-url", "smtp://mailer%40example.org:@@@smtp.example.org:587", m.mixed(16))
    add("redis-url", "redis://:@@@cache:6379/0", m.mixed(20))
    add("sas", "https://x.blob.core.windows.net/c/b?sv=2022-11-02&sr=b&sig=@@", m.mixed(43) + "%3D")
    add("presigned", "https://b.s3.amazonaws.com/k?X-Amz-Credential=x&X-Amz-Signature=@@", m.hex(64))
    add("url-token", "https://example.org/callback?code=x&access_token=@@", m.mixed(40))
    add("url-reset", "https://example.org/reset?token=@@", m.mixed(32))
    add(
        "gcp-json",
        '{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY-----\\n@@\\n-----END PRIVATE KEY-----\\n"}',
        m.base64(48),
    )
    add("gcp-json-id", '"private_key_id": "@@"', m.hex(40))
    add("firebase", 'const firebaseConfig = { apiKey: "AIza@@" };', m.of(_MIXED + "-_", 35))
    add("firebase-fcm", 'serverKey: "AAAA@@"', m.of(_MIXED, 7) + ":APA91b" + m.of(_MIXED + "-_", 134))
    # money
    add(
        "wif",
        "the wallet's key is 5@@",
        m.of("JK", 1) + m.of("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", 49),
    )
    add("wif-compressed", "privkey L@@", m.of("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", 51))
    add("xprv", "xprv@@", m.of("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", 107))
    add("mnemonic", "mnemonic: @@", "legal winner thank year wave sausage worth useful legal winner thank yellow")
    add(
        "seed-phrase",
        'MNEMONIC="@@"',
        "letter advice cage absurd amount doctor acoustic avoid letter advice cage above",
    )
    add("eth-key", "PRIVATE_KEY=0x@@", m.hex(64))
    add("eth-key-words", "private key 0x@@", m.hex(64))
    # wrapped
    env = f"DB_PASSWORD={m.password()}\nSECRET_TOKEN={m.mixed(32)}\nPORT=8080\n"
    add("gzip-base64-env", "ENV_FILE: @@", base64.b64encode(gzip.compress(env.encode(), mtime=0)).decode())
    add("base64-env", "@@", base64.b64encode(env.encode()).decode())
    add("hex-env", "@@", env.encode().hex())
    add("url-env", "password%3D@@", m.mixed(20))
    # programs
    add("python-kw", 'connect(host="db", user="app", passwd="@@")', m.password())
    add("python-positional", 'smtp.login("bob@example.org", "@@")', m.password())
    add("python-auth-tuple", 'requests.get(url, auth=("bob", "@@"))', m.password())
    add("js-object", "const pool = new Pool({ user: 'app', pass: '@@' })", m.password())
    add("go-struct", 'cfg := Config{Passwd: "@@"}', m.password())
    add("java-getconn", 'DriverManager.getConnection(url, "sa", "@@")', m.password())
    add("java-store", 'ks.load(in, "@@".toCharArray());', m.password())
    add("spring", "spring.datasource.password=@@", m.password())
    add("spring-keystore", "server.ssl.key-store-password=@@", m.password())
    add("terraform", 'variable "db_password" {\n  default = "@@"\n}', m.password())
    add("yaml-passphrase", "passphrase: @@", m.password())
    add("yaml-camel", "adminPass: @@", m.password())
    add("json-client-secret", '"client_secret": "@@"', m.mixed(32))
    add("json-refresh", '{"refresh_token":"@@"}', m.mixed(48))
    add("toml-salt", 'pepper = "@@"', m.mixed(32))
    add("ini-encryption", "encryption_key=@@", m.base64(32))
    add("env-signing", "JWT_SIGNING_SECRET='@@'", m.mixed(32))
    add("env-dsn", "SENTRY_DSN=https://@@@o1.ingest.sentry.io/2", m.hex(32))
    add("github-actions-mask", "::add-mask::@@", m.mixed(24))
    add("prompt-password", "Password for bob: @@", m.password())
    add("prose-password", "the admin password is @@ for staging", m.password())
    add("prose-login", "log in with admin / @@", m.password())
    add("prose-token", "use token @@ for the api", m.mixed(36))
    return out


def second() -> list[tuple[str, str, str]]:
    """A second list, written after the rules had learnt from the first."""
    m = Maker(52)
    out: list[tuple[str, str, str]] = []

    def add(name: str, text: str, secret: str) -> None:
        out.append((name, text.replace("@@", secret), secret))

    add("mssql-cli", "mssql-cli -S db -U sa -P @@", m.password())
    add("psql-url", "psql 'postgresql://app:@@@db/orders'", m.mixed(14))
    add("pg-service", "[prod]\nhost=db\nuser=app\npassword=@@\n", m.password())
    add("mylogin", "mysql_config_editor set --login-path=prod --user=app --password @@", m.password())
    add("influx", "influx -username admin -password @@ -execute 'show databases'", m.password())
    add("etcdctl", "etcdctl --user root:@@ get /", m.password())
    add("rabbitmqctl", "rabbitmqctl add_user app @@", m.password())
    add("mosquitto", "mosquitto_pub -h mq -u app -P @@ -t a -m b", m.password())
    add("mosquitto-passwd", "mosquitto_passwd -b /etc/p app @@", m.password())
    add("neo4j", "cypher-shell -u neo4j -p @@", m.password())
    add(
        "kafka-jaas",
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="app" password="@@";',
        m.password(),
    )
    add("elastic", "curl --user elastic:@@ localhost:9200", m.password())
    add("kinit", "echo @@ | kinit admin@EXAMPLE.ORG", m.password())
    add("useradd", "net user bob @@ /add", m.password())
    add("runas-psexec", "psexec \\\\srv -u bob -p @@ cmd", m.password())
    add("schtasks", "schtasks /create /tn x /ru bob /rp @@", m.password())
    add("cmdkey", "cmdkey /add:srv /user:bob /pass:@@", m.password())
    add("winrm", "winrs -r:srv -u:bob -p:@@ ipconfig", m.password())
    add("mount-cifs", "mount -t cifs //srv/s /mnt -o username=bob,password=@@", m.password())
    add("fstab", "//srv/s /mnt cifs user=bob,pass=@@,uid=1000 0 0", m.password())
    add("lftp", "lftp -e ls sftp://bob:@@@host", m.mixed(12))
    add("ncftp", "ncftpput -u bob -p @@ host /dir f", m.password())
    add("restic", "RESTIC_PASSWORD=@@ restic snapshots", m.password())
    add("borg", "export BORG_PASSPHRASE='@@'", m.password())
    add("rclone", "[remote]\ntype = sftp\npass = @@\n", m.mixed(32))
    add("duplicity", "PASSPHRASE=@@ duplicity full / file:///b", m.password())
    add("luks", "echo -n '@@' | cryptsetup luksOpen /dev/sda2 c -", m.password())
    add("nmcli", "nmcli dev wifi connect home password @@", m.password())
    add("hostapd", "wpa_passphrase=@@", m.password())
    add("openvpn-auth", "<auth-user-pass>\nbob\n@@\n</auth-user-pass>", m.password())
    add("strongswan", "eap-bob { id = bob\n secret = @@ }", m.password())
    add("grafana-ini", "[security]\nadmin_user = admin\nadmin_password = @@\n", m.password())
    add("jenkins-xml", "<hudson.util.Secret><token>@@</token></hudson.util.Secret>", m.mixed(34))
    add("tomcat-users", '<user username="admin" password="@@" roles="manager"/>', m.password())
    add("web-config", '<add name="x" connectionString="Server=db;User ID=sa;Password=@@"/>', m.password())
    add("hikari", 'dataSource.setPassword("@@");', m.password())
    add("python-environ", "os.environ['DB_PASS'] = '@@'", m.password())
    add("python-dict", "DATABASES = {'default': {'USER': 'app', 'PASSWORD': '@@'}}", m.password())
    add("ruby-hash", "config.smtp_settings = { user_name: 'bob', password: '@@' }", m.password())
    add("php-mysqli", "$c = new mysqli('db', 'app', '@@', 'orders');", m.password())
    add("php-pdo", "new PDO('mysql:host=db', 'app', '@@');", m.password())
    add("go-basicauth", 'req.SetBasicAuth("bob", "@@")', m.password())
    add("node-nodemailer", "auth: { user: 'bob@example.org', pass: '@@' }", m.password())
    add("rust-const", 'const DB_PASSWORD: &str = "@@";', m.password())
    add("csharp", 'new NetworkCredential("bob", "@@")', m.password())
    add("swift", 'let apiSecret = "@@"', m.mixed(28))
    add("kotlin", 'buildConfigField("String", "API_SECRET", "\\"@@\\"")', m.mixed(28))
    add("docker-env", "docker run -e MYSQL_ROOT_PASSWORD=@@ mysql", m.password())
    add("compose", "    environment:\n      - POSTGRES_PASSWORD=@@\n", m.password())
    add("compose-map", "    environment:\n      POSTGRES_PASSWORD: @@\n", m.password())
    add("helm-set", "helm install db x/pg --set auth.postgresPassword=@@", m.password())
    add("tf-vars", 'db_admin_pass = "@@"', m.password())
    add("circle", "echo 'export NPM_TOKEN=@@' >> $BASH_ENV", m.hex(36))
    add("table", "| admin password | @@ |", m.password())
    add("markdown", "**Password:** `@@`", m.password())
    add("korean-note", "관리자 비밀번호: @@", m.password())
    add("mail", "Your temporary password is: @@\nPlease change it.", m.password())
    add("slack", "pw: @@", m.password())
    add("dump-sql", "INSERT INTO users VALUES (1,'bob','$2b$12$@@');", m.mixed(53))
    add("jwt-secret-base64", "jwt.secret=@@", m.base64(48))
    add("keepass-attr", "<Key>Password</Key><Value>@@</Value>", m.password())
    add("zsh-history", ": 1700000000:0;export TWILIO_AUTH=@@", m.hex(32))
    return out


def third() -> list[tuple[str, str, str]]:
    """Strings of other languages, joined strings, what mails announce, and keys and tokens of some services."""
    m, url_safe = Maker(31), _MIXED + "-_"
    forms = {
        'Password = @"@@" };': m.password, 'const string ApiKey = $@"@@";': m.mixed,
        'new NetworkCredential { UserName = "dana", Password = @"@@" }': m.password,
        'let api_key = String::from("@@");': m.mixed, 'secret: "@@".to_owned(),': m.mixed,
        'Config { db_password: Some(String::from("@@")) }': m.password,
        'env.insert("DB_PASSWORD", String::from("@@"));': m.password,
        "TOKEN = rb'@@'": m.mixed, 'password = b"@@"': m.password,
        "kubectl -n shop create secret generic db --from-literal=dsn='@@'": m.mixed,
        "oc create secret generic db \\\n  --from-literal=admin=@@": m.password,
        "Temp password - @@": m.password, "Your temporary password is @@. It ends tonight.": lambda: m.mixed(10) + "7",
        "임시 비밀번호: @@": m.password,
        'eyJhbGciOiJkaXIifQ..abcdefghijklmnop.@@.abcdefghijklmnopqrstuv': lambda: m.of(url_safe, 60),
        '{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9","d":"@@"}': lambda: m.of(url_safe, 43),
        '{"k": "@@",\n "kty": "oct"': lambda: m.of(url_safe, 43),
        '{\\"kty\\":\\"RSA\\",\\"q\\":\\"@@\\"}': lambda: m.of(url_safe, 171),
        '---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: "dana"\n@@\n': lambda: m.base64(51),
        "---- BEGIN SSH2 PRIVATE KEY ----\n@@\n---- END SSH2 PRIVATE KEY ----": lambda: m.base64(51),
        "POST /bot@@/getMe HTTP/1.1": lambda: f"{m.of(string.digits, 10)}:AA{m.of(url_safe, 33)}",
        'Client("AC0123456789abcdef0123456789abcdef", "@@")': m.hex,
        "require('twilio')('AC0123456789abcdef0123456789abcdef', '@@')": m.hex,
        "of the store: @@": lambda: f"pscale_oauth_{m.of(url_safe, 43)}",
        "the token @@ of Asana": lambda: f"2/{m.of(string.digits, 16)}/{m.of(string.digits, 16)}:{m.hex()}",
    }  # fmt: skip
    out = [(text, text.replace("@@", secret := make()), secret) for text, make in forms.items()]
    for joint in ('" + "', '" +\n    "', "' . '", "' || '", '" & "'):
        whole = m.mixed(32)
        mark = joint[0]
        out.append((joint, f"api_key = {mark}{whole[:7]}{joint}{whole[7:14]}{joint}{whole[14:]}{mark}", whole[14:]))
    return out


NO_THIRD = (
    'let token = String::from("bearer");', 'return Err(String::from("invalid token2"));',
    'path = @"C:\\tokens\\file2.txt"',
    'title = "Reset " + "the password2"', 'key = "user:" + "profile2"', 'token = "prefix-" + uuid4().hex',
    "kubectl create configmap shop --from-literal=level=debug2", "Temporary password: see the vault",
    'header = b"content-type2"', '{"d": "M12 2C6.48 2 2 6.48 2 12s4.48 10 10 10 10-4.48 10-10S17.52 2 12 2zm0"}',
    '{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}',
    "---- BEGIN SSH2 PUBLIC KEY ----\nAAAAB3NzaC1yc2EAAAABIwAAAIEA1on8gxCGJJWSRT4uOrR13mUaUk0hRf4RzxSZ1zRbYYFw8",
    "https://shop.dev/bot1/getMe", 'Client("localhost", "8080")', "done 1/1202345678901234: ok",
)  # fmt: skip
"""Texts in these forms, without a secret."""


def pairs() -> list[tuple[str, str, str]]:
    """A name of a secret and its value in whatever stands between them: fields, cells, strings, lines."""
    m = Maker(131)
    forms = {
        "kubernetes env": "env:\n  - name: DB_PASSWORD\n    value: @@\n  - name: PORT\n    value: '80'\n",
        "kubernetes env json": '{"env": [{"name": "DB_PASSWORD", "value": "@@"}]}',
        "kubernetes patch": "+        - name: SMTP_PASSWORD\n+          value: '@@'\n",
        "ecs": '{"name": "API_SECRET", "value": "@@"}, {"name": "PORT", "value": "80"}',
        "cloudformation": '[{"ParameterKey": "MasterPassword", "ParameterValue": "@@"}]',
        "cloudformation yaml": "Parameters:\n  - ParameterKey: DbPassword\n    ParameterValue: @@\n",
        "postman": '{"key": "clientSecret", "value": "@@", "enabled": true}',
        "postman typed": '{"key": "clientSecret", "type": "secret", "value": "@@"}',
        "tags": '{"Key": "AdminPassword", "Value": "@@"}',
        "web.config": '<add key="SmtpPassword" value="@@"/>',
        "spring": '<property name="password" value="@@"/>',
        "ant": '<property name="keystore.password" value="@@" />',
        "plist": "<dict>\n<key>WifiPassword</key>\n<string>@@</string>\n</dict>",
        "github input": "- name: DEPLOY_SECRET\n  default: x\n  value: @@\n",
        "table": "| what | value |\n|---|---|\n| DB password | @@ |\n",
        "table code": "| `ADMIN_PASSWORD` | `@@` |",
        "table bold": "| **Root password** | @@ |",
        "getenv": 'password = os.getenv("DB_PASSWORD", "@@")',
        "environ get": "pw = os.environ.get('DB_PASSWORD', '@@')",
        "environ default": 'pw = env("DB_PASSWORD", default="@@")',
        "ruby fetch": 'ENV.fetch("DB_PASSWORD", "@@")',
        "ruby or": 'ENV["DB_PASSWORD"] || "@@"',
        "node or": 'const p = process.env.DB_PASSWORD || "@@";',
        "node nullish": "const p = process.env.DB_PASSWORD ?? '@@';",
        "python or": 'p = os.environ.get("DB_PASSWORD") or "@@"',
        "go": 'getEnv("DB_PASSWORD", "@@")',
        "php": "env('DB_PASSWORD', '@@')",
        "laravel": "'password' => env('DB_PASSWORD', '@@'),",
        "java": 'System.getenv().getOrDefault("DB_PASSWORD", "@@")',
        "properties": 'props.setProperty("DB_PASSWORD", "@@");',
        "setdefault": 'os.environ.setdefault("DB_PASSWORD", "@@")',
        "monkeypatch": 'monkeypatch.setenv("DB_PASSWORD", "@@")',
        "shell default": "PGPASS=${DB_PASSWORD:-@@}",
        "shell default quoted": 'PGPASS="${DB_PASSWORD:-"@@"}"',
        "shell assign": ": ${DB_PASSWORD:=@@}",
        "compose default": "POSTGRES_PASSWORD: ${DB_PASSWORD:-@@}",
        "triple": 'DB_PASSWORD = """@@"""',
        "triple lines": "db_password = '''\n@@\n'''",
        "yaml block": "db_password: |\n  @@\nport: 80\n",
        "yaml folded": "db_password: >-\n    @@\n",
        "dockerfile": "FROM alpine\nENV DB_PASSWORD @@\n",
        "dockerfile arg": "ARG DB_PASSWORD @@",
        "csh": "setenv DB_PASSWORD @@",
        "fish": "set -gx DB_PASSWORD @@",
        "windows": "setx DB_PASSWORD @@",
    }
    tokens = ("kubernetes env", "ecs", "postman", "web.config", "plist", "table", "getenv", "environ get", "ruby or",
              "node or", "node nullish", "shell default", "triple", "yaml block", "dockerfile", "tags")  # fmt: skip
    named = {"PASSWORD": "ACCESS_TOKEN", "Password": "AccessToken", "password": "api_token", "SECRET": "TOKEN",
             "Secret": "Token"}  # fmt: skip
    out = [(name, text.replace("@@", secret := m.password()), secret) for name, text in forms.items()]
    for name in tokens:
        text = forms[name]
        for of, other in named.items():
            text = text.replace(of, other)
        out.append((f"{name}, a token", text.replace("@@", secret := m.mixed()), secret))
    out.append(("header", 'request.setHeader("X-Api-Key", "@@")'.replace("@@", secret := m.mixed()), secret))
    out.append(("tuple", '("x-auth-token", "@@")'.replace("@@", secret := m.hex()), secret))
    return out


def of_tools() -> list[tuple[str, str, str]]:
    """What servers, routers and programs are configured with, what calls are given, and what some commands print."""
    m, url_safe = Maker(207), _MIXED + "-_"
    uuid = lambda: "-".join(m.hex(len(part)) for part in _BODIES["G"].split("-"))  # noqa: E731
    b64 = lambda: m.base64(32)  # noqa: E731
    pkcs8 = lambda: "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" + m.base64(90)  # noqa: E731
    forms = {
        # files and lines of configuration
        "account default\nhost smtp.acme.dev\nuser dana\npassword @@\n": m.password,
        "[smtp.acme.dev]:587 dana@acme.dev:@@": m.password,
        "smtp.acme.dev:587    dana:@@": m.password,
        "username admin privilege 15 password 0 @@": m.password,
        "username admin secret 9 @@": lambda: "$9$" + m.mixed(14) + "$" + m.mixed(43),
        "crypto isakmp key @@ address 10.0.0.1": m.password,
        "tacacs-server key 7 @@": m.password,
        "radius-server host 10.0.0.1 key @@": m.password,
        "neighbor 10.0.0.1 password @@": m.password,
        "set system root-authentication plain-text-password-value @@": m.password,
        'set system login user dana encrypted-password "@@"': lambda: "$6$" + m.mixed(8) + "$" + m.mixed(86),
        "/user add name=dana group=full password=@@": m.password,
        "/ppp secret add name=vpn1 password=@@ service=l2tp": m.password,
        "/interface wireless security-profiles set default wpa2-pre-shared-key=@@": m.password,
        "user dana insecure-password @@": m.password,
        "user dana password @@": lambda: "$5$" + m.mixed(8) + "$" + m.mixed(43),
        "stats auth admin:@@": m.password,
        "cache_peer proxy.acme.dev parent 3128 0 login=dana:@@": m.password,
        'proxy_set_header Authorization "Basic @@";': m.base64,
        '"dana" "@@"': lambda: "md5" + m.hex(),
        "rolpassword: @@": lambda: f"SCRAM-SHA-256$4096:{m.base64(16)}${m.base64(32)}:{m.base64(32)}",
        "IDENTIFIED WITH mysql_native_password AS '@@'": lambda: "*" + m.hex(40).upper(),
        "AUTH @@\r\n+OK": m.password,
        "127.0.0.1:6379> AUTH @@": m.password,
        "d-i passwd/root-password password @@": m.password,
        "d-i passwd/user-password-again password @@": m.password,
        "rootpw --plaintext @@": m.password,
        "user --name=dana --password=@@ --plaintext": m.password,
        "chpasswd:\n  list: |\n    root:@@\n    dana:x\n": m.password,
        "chpasswd <<EOF\ndana:@@\nEOF": m.password,
        "$pw = Sensitive('@@')": m.password,
        "spark.hadoop.fs.azure.account.key.acme.blob.core.windows.net @@": lambda: m.base64(64),
        'encrypt = "@@"': b64,
        '"encrypt": "@@"': b64,
        "K10@@": lambda: m.hex(64) + "::server:" + m.hex(32),
        "mc alias set prod https://s3.acme.dev ACMEUSER @@": lambda: m.mixed(32),
        "poetry config http-basic.acme dana @@": m.password,
        "poetry config pypi-token.acme @@": m.mixed,
        "composer config http-basic.repo.acme.dev dana @@": m.password,
        "bundle config set --global gems.acme.dev dana:@@": m.password,
        'dotnet user-secrets set "Db:Conn" "@@"': m.password,
        "openssl enc -aes-256-cbc -k @@ -in a": m.password,
        "openssl enc -aes-256-cbc -K @@ -iv 00": lambda: m.hex(64),
        "openssl rsa -in k.pem -passin 'pass:@@'": m.password,
        "plink -ssh dana@host -pw @@ uptime": m.password,
        "pscp -pw @@ a.txt dana@host:": m.password,
        "docker login -u dana --password-stdin <<< '@@'": m.password,
        "sudo -S true <<< @@": m.password,
        'send "@@\\r"': m.password,
        'expect "assword:" { send -- "@@\\r" }': m.password,
        # calls
        'Fernet(b"@@")': lambda: m.of(url_safe, 43) + "=",
        "hmac.new(b'@@', body, 'sha256')": m.mixed,
        "crypto.createHmac('sha256', '@@')": m.mixed,
        "AES.new(b'@@', AES.MODE_CBC, iv)": lambda: m.mixed(32),
        'jwt.encode(payload, "@@", algorithm="HS256")': m.mixed,
        "jwt.sign({ sub: id }, '@@')": m.mixed,
        "jwt.verify(token, '@@')": m.mixed,
        'ssh.connect("10.0.0.4", 22, "root", "@@")': m.password,
        "pymysql.connect('db', 'app', '@@', 'shop')": m.password,
        'sql.Open("mysql", "app:@@@tcp(db:3306)/shop")': lambda: m.mixed(14) + "7",
        # keys without a header, keys in lists
        "key: @@": pkcs8,
        "pasted\n@@\nhere": pkcs8,
        "b3BlbnNzaC1rZXktdjE@@": lambda: "AAAAABG5vbmUAAAAEbm9uZQAAAAAAAAAB" + m.mixed(120),
        "$ cat id.json\n[@@]": lambda: ",".join(str(m.random.randrange(256)) for _ in range(64)),
        "const seed = Buffer.from([@@])": lambda: ", ".join(str(m.random.randrange(256)) for _ in range(32)),
        "private_key = [@@]": lambda: ", ".join(f"0x{m.hex(2)}" for _ in range(32)),
        "secretKey: <Buffer @@>": lambda: " ".join(m.hex(2) for _ in range(32)),
        "WALLET_KEY=0x@@": lambda: m.hex(64),
        "accounts: ['0x@@']": lambda: m.hex(64),
        "SUA@@": lambda: m.base32(55),
        '{"username":"dana","key":"@@"}': m.hex,
        # what commands print
        "$ vault kv get -field=password secret/app\n@@": m.password,
        "$ op read op://prod/db/password\n@@\n": m.password,
        "$ pass show work/db\n@@\nuser: dana": m.password,
        "$ az keyvault secret show --name db --query value -o tsv\n@@": m.password,
        "$ terraform output -raw db_password\n@@": m.password,
        "$ openssl rand -hex 32\n@@": lambda: m.hex(64),
        "$ openssl rand -base64 32\n@@": b64,
        "$ wg genkey\n@@": b64,
        "$ gcloud secrets versions access latest --secret=db\n@@": m.password,
        "$ aws secretsmanager get-secret-value --secret-id db --query SecretString --output text\n@@": m.password,
        "$ gh auth token\n@@": lambda: m.mixed(40),
        "$ kubectl get secret db -o jsonpath='{.data.pin}' | base64 -d\n@@": m.password,
        "$ security find-generic-password -w -s db\n@@": m.password,
        "$ pwgen 20 1\n@@": lambda: m.mixed(20),
        "$ heroku config:get DB_PASS\n@@": m.password,
        # UUIDs, groups of four
        "API_TOKEN=@@": uuid, 'client_secret: "@@"': uuid, "x-api-key: @@": uuid, "HEROKU_API_KEY=@@": uuid,
        "app password: @@": lambda: " ".join(m.of(string.ascii_lowercase, 4) for _ in range(4)),
        'GMAIL_APP_PASSWORD="@@"': lambda: " ".join(m.of(string.ascii_lowercase, 4) for _ in range(4)),
    }  # fmt: skip
    return [(text, text.replace("@@", secret := make()), secret) for text, make in forms.items()]


NOT_OF_TOOLS = (
    "username admin privilege 15 secret", "neighbor 10.0.0.1 remote-as 65001", "stats auth admin:${STATS_PASSWORD}",
    "AUTH LOGIN", "AUTH required for 2 users", '"encrypt": "aes-256-gcm-v2"', "mc alias set prod https://s3.acme.dev",
    "openssl enc -aes-256-cbc -k $KEY -in a", "plink -pw %PW% host", 'send "hello 2 you\\r"', "Fernet(key)",
    "hmac.new(secret_key, body, 'sha256')", "crypto.createHmac('sha256', secret2)", "AES.new(key, AES.MODE_CBC)",
    'jwt.encode(payload, settings.SECRET, algorithm="HS256")', "cursor.connect('db', 'app', '')",
    "sizes = [16, 32, 64, 128, 256]", "Buffer.from([1, 2, 3, 4])", "<Buffer 68 65 6c 6c 6f>",
    "0x" + "0" * 64, "tx 0x" + "9f8e7d6c5b4a3928" * 4, "$ vault kv list secret\nKeys\n----\napp2\n",
    "$ terraform output -raw db_host\ndb1.acme.internal", "$ openssl version\nOpenSSL 3.0.2 15 Mar 2022",
    "$ gh auth status\nLogged in to github.com as dana42", "$ op read --help\nRead the value of fields in 1Password.",
    "$ vault kv get -field=password secret/app\nError: no value found at secret/data/app 404",
    "request_id: 018427c2-6807-4b10-b33b-3bfc78dd5c73", "token_id=018427c2-6807-4b10-b33b-3bfc78dd5c73",
    "app password: four words they want", "PUBLIC_KEY=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A",
    "chpasswd:\n  list: |\n    root:$PASSWORD\n", "K10 is a mountain", "[smtp.acme.dev]:587 relay",
)  # fmt: skip
"""The same lines without a secret."""


def between_quotes() -> list[tuple[str, str, str]]:
    """Passwords of all signs, in the quotes of several languages."""
    m = Maker(94)
    signs = "".join(sorted(set(string.punctuation) - set("\"'`\\")))
    forms = (
        '"password":"@@"', 'DB_PASSWORD="@@"', "password: '@@'", '{\\"adminPass\\": \\"@@\\"}', 'setPassword("@@")',
        "os.getenv('DB_PASSWORD', '@@')", '{"name": "DB_PASSWORD", "value": "@@"}', "const pwd = `@@`;",
        'String dbPassword = "@@";', '<add key="SmtpPassword" value="@@"/>',
    )  # fmt: skip
    named = ("7x{Kq2}Lm9)vTz(", "gR8(harbor)Mx2", "$ecur3Harb0r!9", "correct-horse 42 Battery!", "%Copp3r9%Violet")
    values = [*named, *(m.of(_MIXED + signs, 20) for _ in range(15)), *(m.of(_MIXED + signs, 12) for _ in range(10))]
    return [(f"{form}: {value}", form.replace("@@", value), value) for form in forms for value in values]


_BODIES = {
    "X": _MIXED, "H": "0123456789abcdef", "L": _LOWER, "U": _MIXED + "-_", "D": string.digits, "B": _MIXED + "+/",
    "C": string.ascii_uppercase + string.digits, "S": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "G": "HHHHHHHH-HHHH-HHHH-HHHH-HHHHHHHHHHHH",
}  # fmt: skip
"""What `{X40}` stands for in a service's token: forty of those characters. `{G}` is a UUID."""

SERVICES = """
github ghp_{X36} gho_{X36} ghu_{X36} ghs_{X36} ghr_{X36} github_pat_{X22}_{X59}
gitlab glpat-{U20} glrt-{U20} gldt-{U20} glcbt-{U20} glptt-{H40} glsoat-{U20}
slack xoxb-{D12}-{D12}-{X24} xoxp-{D12}-{D12}-{D12}-{H32} xapp-1-A{C10}-{D13}-{H64} xoxe.xoxp-1-{B160} xoxe-1-{B140}
stripe sk_live_{X24} rk_live_{X24} whsec_{X32}
openai sk-proj-{U74}T3BlbkFJ{U74} sk-svcacct-{U58}T3BlbkFJ{U58} sk-admin-{U58}T3BlbkFJ{U58}
anthropic sk-ant-api03-{U93}AA sk-ant-oat01-{U93}AA
groq gsk_{X52}
huggingface hf_{X34} api_org_{X34}
replicate r8_{X37}
perplexity pplx-{X48}
xai xai-{X80}
openrouter sk-or-v1-{H64}
fireworks fw_{X24}
together tgp_v1_{U43}
cerebras csk-{L48}
nvidia nvapi-{U64}
elevenlabs sk_{H48}
deepseek sk-{H32}
tavily tvly-{X32} tvly-dev-{X32}
firecrawl fc-{H32}
brave BSA{U28}
jina jina_{X60}
voyage pa-{U43}
pinecone pcsk_{X6}_{X64}
langsmith lsv2_pt_{H32}_{H10} lsv2_sk_{H32}_{H10}
langfuse sk-lf-{G}
helicone sk-helicone-{L7}-{L7}-{L7}-{L7}
e2b e2b_{H40}
modal ak-{X22} as-{X22}
runpod rpa_{C40}{X6}
cursor key_{H64} crsr_{H64}
linear lin_api_{X40} lin_oauth_{H64}
notion ntn_{D11}{X35} secret_{X43}
airtable pat{X14}.{H64}
clickup pk_{D8}_{C32}
trello ATTA{H64}{C8}
atlassian ATATT3xFfGF0{U160}={C8} ATCTT3xFfGN0{U160}={C8} ATBB{X32}{C8} ATSTT3xFfGN0{U160}={C8}
figma figd_{U40} figo_{U40}
dropbox sl.{U130} sl.u.{U130}
discord MT{X22}.G{U5}.{U38}
telegram {D10}:AA{U33}
twilio SK{H32}
sendgrid SG.{U22}.{U43}
mailgun key-{H32} {H32}-{H8}-{H8}
mailchimp {H32}-us14
resend re_{X8}_{X24}
brevo xkeysib-{H64}-{X16} xsmtpsib-{H64}-{X16}
mailersend mlsn.{H64}
klaviyo pk_{H34}
hubspot pat-na1-{G} pat-eu1-{G}
shopify shpat_{H32} shpss_{H32} shpca_{H32} shppa_{H32} shptka_{H32}
square EAAA{U60} sq0atp-{U22} sq0csp-{U43} sq0idp-{U22}
paypal access_token$production${L16}${H32}
razorpay rzp_live_{X14}
plaid access-sandbox-{G} access-production-{G} public-production-{G}
flutterwave FLWSECK-{H32}-{L12}-X FLWSECK_TEST-{H32}-X
mollie live_{X30}
paddle pdl_live_apikey_{L26}_{X22}_{X3}
midtrans Mid-server-{U24}
xendit xnd_production_{X60}
duffel duffel_live_{U43}
easypost EZAK{X54} EZTK{X54}
shippo shippo_live_{H40}
lob live_{H35}
doppler dp.pt.{X43} dp.st.prd.{X43} dp.ct.{X43}
infisical st.{H24}.{H32}.{H32}
1password ops_eyJ{U300}
bitwarden 0.{G}.{X30}:{B22}==
vault hvs.{U90} hvb.{U130} hvr.{U90} s.{X24}
terraform {X14}.atlasv1.{U67}
pulumi pul-{H40}
digitalocean dop_v1_{H64} doo_v1_{H64} dor_v1_{H64}
cloudflare v1.0-{H24}-{H146} cfut_{X40}{H8} cfat_{X40}{H8}
fly fo1_{U43} fm2_{B160} fm1r_{B160}
heroku HRKU-AA{U58} HRKU-{G}
render rnd_{X28}
netlify nfp_{X40} nfc_{X40} nfo_{X40}
vercel vcp_{X56} vck_{X56} vci_{X56}
supabase sbp_{H40} sb_secret_{U22}_{U8} sbp_oauth_{H40}
neon napi_{L64}
planetscale pscale_tkn_{U43} pscale_pw_{U43} pscale_oauth_{U43}
mongodb mdb_sa_sk_{U40}
convex prod:{L5}-{L6}-{D3}|{H60} dev:{L5}-{L6}-{D3}|{B88}
xata xau_{X40}
fauna fnA{U40}
databricks dapi{H32} dapi{H32}-2 dose{H32}
dbt dbtc_{U40} dbtu_{U40}
aiven AVNS_{U19} aivenv1_{U90}
grafana glc_{B120} glsa_{X32}_{H8}
newrelic NRAK-{C27} NRII-{U32} NRJS-{H19} {H36}NRAL
honeycomb hcaik_{L58} hcxik_{L58}
sentry sntrys_{B120}_{B43} sntryu_{H64}
dynatrace dt0c01.{C24}.{C64} dt0s01.{C24}.{C64} dt0s16.{C8}.{C64}
axiom xaat-{G} xapt-{G}
checkly cu_{H32}
sonarqube sqp_{H40} sqa_{H40} squ_{H40}
circleci CCIPAT_{X22}_{H40} CCIPRJ_{X22}_{H40}
buildkite bkua_{H40} bkaj_{X60}
harness pat.{U22}.{H24}.{X20} sat.{U22}.{H24}.{X20}
octopus API-{C27}
npm npm_{X36}
pypi pypi-AgEIcHlwaS5vcmc{U90}
rubygems rubygems_{H48}
crates cio{X32}
nuget oy2{L43}
docker dckr_pat_{U27} dckr_oat_{U32}
artifactory AKCp{X69} cmVmdGtuOj{X54}
clojars CLOJARS_{H60}
packagist packagist_ack_{H64} packagist_org_{H64}
google AIza{U35} ya29.{U150} GOCSPX-{U28} 1//0{U98}
aws AKIA{S16} ASIA{S16} IQoJb3JpZ2luX2Vj{B400}= ABSK{B109}= FwoGZXIvYXdzE{B300}= bedrock-api-key-{B120}
azure {X3}8Q~{U34} {X3}7Q~{U31} {X52}JQQJ99{X26} {X52}AzSe{X8} {X76}AZDO{X4} {B76}+ASt{B6}== {B76}ACDb{B6}==
alibaba LTAI5t{X18}
tencent AKID{X32}
yandex t1.{U60}.{U86} AQVN{U36} y0_{U55}
facebook EAAG{X150} EAAB{X150}ZD IGQV{X140} IGAA{X140}
twitter AAAAAAAAAAAAAAAAAAAAA{X30}%3D{X50}
linkedin WPL_AP1.{X16} AQ{U300}
twitch oauth:{L30}
mapbox sk.eyJ{X70}.{U22}
launchdarkly sdk-{G} api-{G} mob-{G}
posthog phx_{X43} phs_{X43}
contentful CFPAT-{U43}
ghost {H24}:{H64}
typeform tfp_{U44}_{U14}
prefect pnu_{X36} pnb_{X36}
wandb wandb_v1_{U76}
readme rdme_{L70}
postman PMAK-{H24}-{H34} PMAT-{C26}
sourcegraph sgp_{H40} sgp_{H16}_{H40} sgd_{H64} slk_{H64}
stytch secret-live-{U35}=
okta 00{U40}
frameio fio-u-{U64}
tailscale tskey-auth-{X17}-{X32} tskey-api-{X17}-{X32} tskey-client-{X17}-{X32}
ngrok 2{X26}_{X20}
age AGE-SECRET-KEY-1{C58}
nats SU{S56} SA{S56} SO{S56}
nostr nsec1{L58}
lightning 0201036c6e64{H200}
matrix syt_{X12}_{X20}_{X6} mct_{X30}_{X6}
dingtalk SEC{H64}
dnsimple dnsimple_u_{X32} dnsimple_a_{X32}
deepl {G}:fx
adafruit aio_{X28}
stackhawk hawk.{U20}.{U20}
socket sktsec_{U43}_api
rootly rootly_{H64}
ably {X6}.{X6}:{U43}
pubnub sec-c-{X48}
telnyx KEY{U32}_{U22}
nylas nyk_v0_{X64}
ramp ramp_sec_{X48}
mercury secret-token:mercury_production_wma_{X40}_yrucrem
onfido api_live.{U11}.{U32}
trigger tr_prod_{X40} tr_pat_{L40}
inngest signkey-prod-{H64}
svix sk_{X32}.eu testsk_{X32}
unkey unkey_{X24}
zuplo zpka_{H32}_{H8}
mintlify mint_{X24}
"""


def alone() -> list[tuple[str, str, str]]:
    """Tokens of some services, each alone in a line of output."""
    m = Maker(311)
    out: list[tuple[str, str, str]] = []
    for service, *tokens in (line.split() for line in SERVICES.split("\n") if line):
        for token in tokens:
            drawn = "".join(
                m.of(_BODIES[each[0]], int(each[1:])) if turn and each[1:] else each if not turn
                else "-".join(m.hex(len(part)) for part in _BODIES[each].split("-"))
                for turn, each in _turns(token)
            )  # fmt: skip
            out += ((f"{service} {token}", f"Created.\n{drawn}\nDone in 2 s.", drawn),)
    return out


def _turns(token: str) -> list[tuple[bool, str]]:
    """What stands outside of braces in a token, and by turns within."""
    parts = token.replace("}", "{").split("{")
    return [(n % 2 == 1, part) for n, part in enumerate(parts)]


NOT_BETWEEN_QUOTES = (
    'password: "${DB_PASSWORD_1}!"', 'DB_PASSWORD="$DB_PASS_2"', "password: '{{ vault_password_2! }}'",
    'password="<your password 1!>"', "'password': '%(password)s-1'", "password = \"os.environ['DB_PASS_1']\"",
    'password = f"{user}-{number}!1"', 'passwordHint: "At least 8 characters, 1 digit!"', 'pass: "2 of 3 tests!"',
    'password: "#{ENV[:password_2]}!"', "set PASSWORD=%DB_PASSWORD_2%", 'password: "/^(?=.*[0-9]).{8,}$/"',
    'Transport("user", "pass", "http://10.0.0.1:9001/")', "compass=northeast45deg", "bypass: 'n(45)deg+3'",
    "tool --bypass rule12x",
)  # fmt: skip
"""Templates, rules and words in the same places."""


NO_PAIRS = (
    "- name: PASSWORD_MIN_LENGTH\n  value: '12'\n",
    "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: {name: db-secret-v2, key: password}\n",
    '{"key": "token_url", "value": "https://acme.dev/oauth2/token"}',
    '{"name": "password", "value": "{{password}}"}',
    '{"name": "secretName", "value": "app-tls-2024"}',
    '<input name="password" value="" type="password">',
    "<key>PasswordRules</key>\n<string>minlength: 20;</string>",
    "| password | string | at least 8 characters |",
    "| token | `string` | from /oauth2/token |",
    "| Token | Type | Description |\n| --- | --- | --- |\n",
    'os.getenv("TOKEN_FILE", "/run/secrets/token2")',
    'os.environ.get("API_KEY", "")',
    'env("DB_PASSWORD", default=None)',
    'choices = ["password", "sha256", "oauth2"]',
    'fields = ("token", "user_id2")',
    'it("asks for a password", () => {})',
    'getByLabel("Password", "exact")',
    "const t = process.env.TOKEN || undefined",
    "const t = process.env.TOKEN ?? readToken2()",
    "${DB_PASSWORD:-}",
    "${DB_PASSWORD:?set it in .env}",
    "${TOKEN_FILE:-/run/secrets/token2}",
    "token: |\n  see the vault\n",
    "password: >-\n  {{ lookup('env', 'PW2') }}\n",
    "ENV TOKEN_FILE /run/secrets/token2",
    "ARG GITHUB_TOKEN\nRUN make all2",
    "set -gx TOKEN_DIR ~/.tokens2",
    "Environment variables:\n  API_TOKEN   the token to use (default: none)\n",
    't("auth.password", "Passwort")',
    "password or passkey2",
    "| API key | see 1Password |",
)
"""Texts in the same forms, without a secret."""

ON_LINES = {
    "kubernetes": '        - name: DB_PASSWORD\n          value: "@@"\n',
    "kubernetes-between": "- name: DB_PASSWORD\n  type: x\n  value: @@\n",
    "ecs": '  {\n    "name": "DB_PASSWORD",\n    "value": "@@"\n  },\n',
    "ecs-first": '  {\n    "value": "@@",\n    "name": "DB_PASSWORD"\n  },\n',
    "literal": "db:\n  password: |\n    @@\n  port: 80\n",
    "folded": "password: >-\n  @@\n",
    "xml": "<password>\n    @@\n</password>\n",
    "xml-property": "<property>\n <name>db.password</name>\n <value>@@</value>\n</property>\n",
    "plist": "<key>apiToken</key>\n<string>@@</string>\n",
    "python": 'PASSWORD = (\n    "@@"\n)\n',
    "python-typed": 'PASSWORD: Final[str] = (\n    "@@"\n)\n',
    "heredoc": "cat > db_password <<EOF\n@@\nEOF\n",
    "heredoc-variable": "PASSWORD=$(cat <<'EOF'\n@@\nEOF\n)\n",
    "vault": "Key         Value\n---         -----\npassword    @@\nusername    app\n",
    "pgpass": "db.acme.dev:5432:shop:dana:@@\n",
    "netrc": "machine api.acme.dev\n  login dana\n  password @@\n",
    "table": " id | login | password\n----+-------+--------\n  1 | dana  | @@\n",
    "csv": "login,password,city\ndana,@@,Bonn\n",
    "flag": "deploy \\\n  --api-key \\\n  @@ \\\n  --yes\n",
    "flag-list": "command:\n  - deploy\n  - --api-token\n  - @@\n",
    "secret": "kind: Secret\nstringData:\n  conn: @@\n",
    "chpasswd": "chpasswd <<EOF\nroot:@@\nEOF\n",
    "printed": "$ vault kv get -field=password secret/app\n@@\n",
    "toml": '[[env]]\nname = "DB_PASSWORD"\nvalue = "@@"\n',
}
"""Secrets that stand on another line than their names, or are known by standing first on theirs."""

FRONTS = {
    "bare": "",
    "read": "{:6}→",
    "read-by-tab": "{:6}\t",
    "escaped": "{:6}\\u2192",
    "grep": "{}:",
    "grep-context": "{}-",
    "file": "deploy/app-x.yaml:{}:",
    "log": "2026-11-20T09:00:{:02}Z ",
    "log-level": "[2026-11-20 09:00:{:02},123] INFO ",
    "runner": "2026-11-20T09:00:{:02}.1234567Z ",
    "syslog": "Nov 20 09:00:{:02} host app[12]: ",
    "added": "+",
    "removed": "-",
    "quote": "> ",
    "margin": "  | ",
    "bat": "{:4} │ ",
    "pytest": "E       ",
    "blame": "^a1b2c3d4 (Dana Doe 2026-11-20 09:00:00 +0000 {}) ",
    "blame-file": "a1b2c3d45 app/x.yml (Dana Doe 2026-11-20 09:00:00 +0000 {}) ",
    "compose": "web_1  | ",
    "comment": "# ",
    "read-of-a-patch": "{:6}→+",
}
"""What tools put before each line of what they show."""


def fronted(front: str, text: str) -> str:
    """The text with that before each line."""
    return "".join(f"{front.format(number)}{line}\n" for number, line in enumerate(text.splitlines(), 9))

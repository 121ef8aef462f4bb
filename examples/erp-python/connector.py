"""A small ERP connector: keeps a copy of Millwright's work orders and feedback in SQLite.

    connector.py run                            receive webhooks, send orders, sync, until SIGTERM
    connector.py once                           send all orders and sync to the end, then exit
    connector.py order NODE TITLE [EXTERNAL_ID] put a work order into the outbox
    connector.py show                           print what is stored, as JSON

README.md explains the settings, and why nothing is lost or doubled.
"""

import base64
import hashlib
import hmac
import json
import os
import re
import signal
import sqlite3
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from contextlib import contextmanager
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KINDS = {"work_orders": "/work-orders", "issues": "/issues"}
SCHEMA = """
CREATE TABLE IF NOT EXISTS work_orders (id TEXT PRIMARY KEY, title TEXT, status TEXT, changed_at TEXT, body TEXT);
CREATE TABLE IF NOT EXISTS issues (id TEXT PRIMARY KEY, title TEXT, status TEXT, changed_at TEXT, body TEXT);
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS outbox (key TEXT PRIMARY KEY, body TEXT NOT NULL, work_order_id TEXT, error TEXT);
CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, type TEXT, received_at REAL);
"""


class Crash:
    """Ends the process at the n-th point of a write (CRASH_AT=n): tests of restarts use it."""

    left = int(os.environ.get("CRASH_AT", "0"))
    lock = threading.Lock()

    @classmethod
    def point(cls):
        with cls.lock:
            cls.left -= 1
            if cls.left == 0:
                os._exit(137)


class Stop(Exception):
    """The connector was told to end."""


class Store:
    """The ERP's database. Every thread has its own connection."""

    def __init__(self, path):
        self.path, self.local = path, threading.local()
        with self.transaction() as db:
            for statement in SCHEMA.split(";"):
                db.execute(statement)

    @contextmanager
    def transaction(self):
        db = getattr(self.local, "db", None)
        if db is None:
            db = self.local.db = sqlite3.connect(self.path, timeout=30, isolation_level=None)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")  # what is committed survives a power cut
        db.execute("BEGIN IMMEDIATE")
        try:
            yield db
            Crash.point()
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        Crash.point()

    def select(self, sql, *args):
        with self.transaction() as db:
            return db.execute(sql, args).fetchall()

    @staticmethod
    def set(db, name, value):
        db.execute("INSERT INTO state VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (name, value))

    @staticmethod
    def keep(db, kind, record):
        """Stores the record unless a newer state of it is there: webhooks and pages may cross."""
        db.execute(
            f"""INSERT INTO {kind} (id, title, status, changed_at, body) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET title = excluded.title, status = excluded.status,
                changed_at = excluded.changed_at, body = excluded.body WHERE excluded.changed_at >= changed_at""",
            (record["id"], record.get("title") or record.get("subject"), record["status"]["code"],
             record["changed_at"], json.dumps(record)))


def seconds(after):
    """Returns how long a Retry-After says to wait, 0 without one: it is a number or a date."""
    try:
        return max(float(after), 0)
    except (TypeError, ValueError):
        pass
    try:
        return max((parsedate_to_datetime(after) - datetime.now(timezone.utc)).total_seconds(), 0)
    except (TypeError, ValueError):
        return 0


class API:
    """Calls the API, and repeats what may be repeated until it is answered."""

    def __init__(self, url, client_id, client_secret, stopped):
        self.url, self.stopped, self.token = url.rstrip("/"), stopped, None
        pair = urllib.parse.quote_plus(client_id) + ":" + urllib.parse.quote_plus(client_secret)
        self.basic = "Basic " + base64.b64encode(pair.encode()).decode()

    def call(self, method, path, body=None, key=None):
        """Returns status and body. Waits and repeats after 401, 429, 5xx and lost responses."""
        wait = 0.2
        while True:
            try:
                if self.token is None:
                    status, after, answer = self.new_token()
                if self.token is not None:
                    headers = {"Authorization": "Bearer " + self.token}
                    if key:
                        headers["Idempotency-Key"] = key
                    status, after, answer = self.send(method, path, headers, body)
            except (OSError, ValueError):  # no response, or not all of one
                status, after, answer = 0, None, None
            if status == 401:
                self.token = None
            elif self.token is not None and status != 0 and status != 429 and status < 500:
                return status, answer
            if self.stopped.wait(seconds(after) or wait):
                raise Stop
            wait = min(2 * wait, 30)

    def new_token(self):
        headers = {"Authorization": self.basic, "Content-Type": "application/x-www-form-urlencoded"}
        status, after, answer = self.send("POST", "/oauth/token", headers, b"grant_type=client_credentials")
        if status in (400, 401):
            raise SystemExit("The API rejects the client id or secret: " + str(answer.get("error")))
        if status == 200:
            self.token = answer["access_token"]
        return status, after, answer

    def send(self, method, path, headers, body):
        if isinstance(body, str):
            headers["Content-Type"], body = "application/json", body.encode()
        request = urllib.request.Request(self.url + path, data=body, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, None, json.loads(response.read())
        except urllib.error.HTTPError as e:
            with e:
                return e.code, e.headers.get("Retry-After"), json.loads(e.read() or b"{}")


class Connector:
    def __init__(self, store, api):
        self.store, self.api = store, api

    def send_orders(self):
        """Creates the work orders of the outbox, and returns whether the integration may. The key of
        each was stored before, so a repeated call creates nothing again, whatever was lost between."""
        for key, body in self.store.select("SELECT key, body FROM outbox WHERE work_order_id IS NULL AND error IS NULL ORDER BY rowid"):
            Crash.point()
            status, answer = self.api.call("POST", "/work-orders", body, key)
            Crash.point()
            if status == 403:  # a matter of the integration, not of the order
                print("orders wait: the integration may not create work orders:", answer.get("code"), file=sys.stderr)
                return False
            with self.store.transaction() as db:
                if status == 201:
                    self.store.keep(db, "work_orders", answer)
                    db.execute("UPDATE outbox SET work_order_id = ? WHERE key = ?", (answer["id"], key))
                else:  # it can never succeed: a person has to look at it
                    db.execute("UPDATE outbox SET error = ? WHERE key = ?", (f"{status} {answer.get('code')}", key))
        return True

    def sync(self):
        """Reads all changes of each list. The records of a page and its token are stored together."""
        for kind, path in KINDS.items():
            more = True
            while more:
                stored = self.store.select("SELECT value FROM state WHERE name = ?", "token of " + kind)
                since = stored[0][0] if stored else "2000-01-01T00:00:00Z"
                status, page = self.api.call("GET", path + "?limit=200&changed_since=" + urllib.parse.quote(since))
                if status == 410:  # the token is too old or void: read everything again
                    with self.store.transaction() as db:  # and then check what no longer comes
                        db.execute("DELETE FROM state WHERE name IN (?, ?)", ("token of " + kind, "check of " + kind))
                    continue
                if status == 403:  # the integration lacks the scope of this list
                    break
                if status != 200:
                    raise SystemExit(f"GET {path} responds with {status} {page.get('code')}")
                with self.store.transaction() as db:
                    for record in page["data"]:
                        self.store.keep(db, kind, record)
                    Crash.point()
                    self.store.set(db, "token of " + kind, page["sync_token"])
                more = page["has_more"]
            else:
                self.check(kind, path)

    def check(self, kind, path):
        """Removes the records that the integration may no longer read, once a day: that a record left
        its view is no change of the record, so no sync shows it."""
        stored = self.store.select("SELECT value FROM state WHERE name = ?", "check of " + kind)
        if stored and time.time() - float(stored[0][0]) < float(setting("CHECK_INTERVAL", "86400")):
            return
        held = self.store.select(f"SELECT id, changed_at FROM {kind} ORDER BY id")
        for start in range(0, len(held), 100):
            asked = held[start:start + 100]
            status, page = self.api.call("GET", path + "?limit=100&id=" + ",".join(id for id, _ in asked))
            if status != 200:
                raise SystemExit(f"GET {path} responds with {status} {page.get('code')}")
            shown = {record["id"] for record in page["data"]}
            with self.store.transaction() as db:  # a webhook may have brought a newer state since: it stays
                db.executemany(f"DELETE FROM {kind} WHERE id = ? AND changed_at = ?", [row for row in asked if row[0] not in shown])
        with self.store.transaction() as db:
            self.store.set(db, "check of " + kind, str(time.time()))

    def receive(self, event):
        """Stores what a webhook says, once for each event, before it is acknowledged."""
        if event.get("test"):  # someone tests the address: the record is made up
            return
        with self.store.transaction() as db:
            known = db.execute("INSERT INTO events VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                               (event["id"], event["type"], time.time())).rowcount == 0
            if known:
                return
            for kind, name in (("work_orders", "work_order"), ("issues", "issue")):
                if event["data"].get(name):
                    self.store.keep(db, kind, event["data"][name])


def verify(header, body, secret):
    """Reports whether body, the request's raw bytes, was signed with secret within 300 seconds of now."""
    parts = (header or "").split(",")
    times = [part[2:] for part in parts if part.startswith("t=")]
    signatures = [part[3:].encode() for part in parts if part.startswith("v1=")]
    if len(times) != 1 or not re.fullmatch("[0-9]{1,12}", times[0]) or abs(time.time() - int(times[0])) > 300:
        return False
    want = hmac.new(secret.encode(), times[0].encode() + b"." + body, hashlib.sha256).hexdigest().encode()
    return any(hmac.compare_digest(given, want) for given in signatures)


def receiver(connector, secret):
    class Receiver(BaseHTTPRequestHandler):
        timeout = 10  # seconds of silence before the connection closes

        def do_POST(self):
            length = int(self.headers.get("Content-Length", 0))
            if not 0 <= length <= 1 << 20:
                return self.respond(413)
            body = self.rfile.read(length)
            if not verify(self.headers.get("Service-Signature"), body, secret):
                return self.respond(400)
            connector.receive(json.loads(body))  # after an exception there is no 2xx: it is sent again
            self.respond(204)

        def respond(self, status):
            self.send_response(status)
            self.end_headers()

        def log_message(self, *args):
            pass

    return Receiver


def setting(name, default=None):
    value = os.environ.get(name, default)
    if not value:
        raise SystemExit(f"{name} is not set")
    return value


def main(arguments):
    store = Store(setting("DATABASE"))
    if len(arguments) in (3, 4) and arguments[0] == "order":
        order = dict(zip(("inventory_id", "title", "external_id"), arguments[1:]))
        with store.transaction() as db:
            db.execute("INSERT INTO outbox (key, body) VALUES (?, ?)", (str(uuid.uuid4()), json.dumps(order)))
        return
    if arguments == ["show"]:
        show = {table: dict(store.select(f"SELECT id, changed_at FROM {table}")) for table in KINDS}
        show["outbox"] = [dict(zip(("key", "work_order_id", "error"), row)) for row in store.select("SELECT key, work_order_id, error FROM outbox ORDER BY rowid")]
        show["events"] = store.select("SELECT count(*) FROM events")[0][0]
        print(json.dumps(show))
        return
    if arguments not in (["run"], ["once"]):
        raise SystemExit(__doc__)
    stopped = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stopped.set())
    connector = Connector(store, API(setting("MILLWRIGHT_URL"), setting("MILLWRIGHT_CLIENT_ID"), setting("MILLWRIGHT_CLIENT_SECRET"), stopped))
    try:
        if arguments == ["once"]:
            connector.send_orders()
            connector.sync()
            return
        host, port = setting("LISTEN", "127.0.0.1:9090").rsplit(":", 1)
        server = ThreadingHTTPServer((host, int(port)), receiver(connector, setting("WEBHOOK_SECRET")))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print("ready", flush=True)
        interval, synced, may_order = float(setting("INTERVAL", "60")), None, True
        while not stopped.wait(0.2):
            due = synced is None or time.monotonic() - synced >= interval
            if may_order or due:
                may_order = connector.send_orders()
            if due:
                connector.sync()
                synced = time.monotonic()
    except Stop:
        pass


if __name__ == "__main__":
    main(sys.argv[1:])

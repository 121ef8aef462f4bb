"""Receives Millwright's webhooks: WEBHOOK_SECRET=whsec_… PORT=8000 python3 verify.py"""

import hashlib
import hmac
import json
import os
import re
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def verify(header, body, secret):
    """Reports whether body, the request's raw bytes, was signed with secret within 300 seconds of now."""
    parts = (header or "").split(",")
    times = [part[2:] for part in parts if part.startswith("t=")]
    signatures = [part[3:].encode() for part in parts if part.startswith("v1=")]
    if len(times) != 1 or not re.fullmatch("[0-9]{1,12}", times[0]):
        return False
    if abs(time.time() - int(times[0])) > 300:
        return False
    signed = times[0].encode() + b"." + body
    want = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest().encode()
    return any(hmac.compare_digest(given, want) for given in signatures)


def keep(event):
    """Put your table or queue here, with a unique id: ignore a known event."""
    data = event["data"]
    record = data.get("work_order") or data.get("issue") or {}  # a ping has neither
    print(event["id"], event["type"], record.get("id"), record.get("changed_at"), flush=True)


class Receiver(BaseHTTPRequestHandler):
    timeout = 10  # seconds of silence before the connection closes

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        if not 0 <= length <= 1 << 20:
            return self.respond(413)
        body = self.rfile.read(length)
        if not verify(self.headers.get("Service-Signature"), body, SECRET):
            return self.respond(400)
        keep(json.loads(body))  # after an exception there is no 2xx: it is sent again
        self.respond(204)  # stored; do the work later

    def respond(self, status):
        self.send_response(status)
        self.end_headers()


SECRET = os.environ.get("WEBHOOK_SECRET")
if not SECRET:
    raise SystemExit("WEBHOOK_SECRET is not set")
server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 8000))), Receiver)
print("listening on http://127.0.0.1:%d" % server.server_address[1], flush=True)
server.serve_forever()

// Receives Millwright's webhooks: WEBHOOK_SECRET=whsec_… PORT=8000 node verify.js
const crypto = require('node:crypto');
const http = require('node:http');

// Reports whether body, the request's raw bytes, was signed with secret within 300 seconds of now.
function verify(header, body, secret) {
  const times = [], signatures = [];
  for (const part of (header ?? '').split(',')) {
    if (part.startsWith('t=')) times.push(part.slice(2));
    if (part.startsWith('v1=')) signatures.push(Buffer.from(part.slice(3)));
  }
  if (times.length !== 1 || !/^[0-9]{1,12}$/.test(times[0])) return false;
  if (Math.abs(Date.now() / 1000 - Number(times[0])) > 300) return false;
  const mac = crypto.createHmac('sha256', secret).update(times[0] + '.').update(body);
  const want = Buffer.from(mac.digest('hex'));
  return signatures.some((given) => given.length === want.length && crypto.timingSafeEqual(given, want));
}

// Put your table or queue here, with a unique id: ignore a known event.
function keep({ id, type, data }) {
  const record = data.work_order ?? data.issue; // a ping has neither
  console.log(id, type, record?.id, record?.changed_at);
}

const secret = process.env.WEBHOOK_SECRET;
if (!secret) throw new Error('WEBHOOK_SECRET is not set');

const server = http.createServer((request, response) => {
  const chunks = [];
  let size = 0;
  request.on('data', (chunk) => {
    chunks.push(chunk);
    if ((size += chunk.length) > 1 << 20) request.destroy();
  });
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    if (!verify(request.headers['service-signature'], body, secret)) return response.writeHead(400).end();
    try {
      keep(JSON.parse(body));
      response.writeHead(204).end(); // stored; do the work later
    } catch (error) {
      console.error(error);
      response.writeHead(500).end(); // not stored: it is sent again
    }
  });
});
server.listen(process.env.PORT ?? 8000, '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});

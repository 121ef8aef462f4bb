/*
A small ERP connector: keeps a copy of Millwright's work orders and feedback in SQLite.

    node dist/connector.js run                            receive webhooks, send orders, sync, until SIGTERM
    node dist/connector.js once                           send all orders and sync to the end, then exit
    node dist/connector.js order NODE TITLE [EXTERNAL_ID] put a work order into the outbox
    node dist/connector.js show                           print what is stored, as JSON

README.md explains the settings, and why nothing is lost or doubled.
*/
import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { components } from "./api.js";
import { MillwrightClient } from "./client.js";
import { crashPoint, type Issue, type Kind, Store, type WorkOrder } from "./store.js";

type NewWorkOrder = components["schemas"]["NewWorkOrder"];
type Page = { data: (WorkOrder | Issue)[]; has_more: boolean; sync_token?: string };
type Event = { id: string; type: string; test?: boolean; data: { work_order?: WorkOrder; issue?: Issue } };

/** Returns a setting from the environment. */
function setting(name: string, otherwise?: string): string {
  const value = process.env[name] || otherwise;
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

/**
 * Creates the work orders of the outbox, and returns whether the integration may. The key of
 * each was stored before, so a repeated call creates nothing again, whatever was lost between.
 */
async function sendOrders(store: Store, client: MillwrightClient): Promise<boolean> {
  for (const order of store.waiting()) {
    crashPoint();
    const { status, data, problem } = await client.call(() =>
      client.api.POST("/work-orders", { params: { header: { "Idempotency-Key": order.key } }, body: JSON.parse(order.body) as NewWorkOrder }),
    );
    crashPoint();
    if (status === 403) { // a matter of the integration, not of the order
      console.error("orders wait: the integration may not create work orders:", problem.code);
      return false;
    }
    store.write(() => {
      if (data) {
        store.keep("work_orders", data);
        store.run("UPDATE outbox SET work_order_id = ? WHERE key = ?", data.id, order.key);
      } else { // it can never succeed: a person has to look at it
        store.run("UPDATE outbox SET error = ? WHERE key = ?", `${status} ${problem.code}`, order.key);
      }
    });
  }
  return true;
}

/** Reads all changes of each list. The records of a page and its token are stored together. */
async function sync(store: Store, client: MillwrightClient): Promise<void> {
  for (const [kind, path] of [["work_orders", "/work-orders"], ["issues", "/issues"]] as const) {
    for (let more = true; more; ) more = await syncPage(store, client, kind, path);
  }
}

/** Stores the next page of changes, and returns whether there are more. */
async function syncPage(store: Store, client: MillwrightClient, kind: Kind, path: "/work-orders" | "/issues"): Promise<boolean> {
  const query = { limit: 200, changed_since: store.token(kind) };
  const { status, data: page, problem } = await client.call<Page>(() =>
    client.api.GET(path, { params: { query } }),
  );
  if (status === 410) { // the token is too old or void: read everything again, then check what no longer comes
    store.write(() => store.run("DELETE FROM state WHERE name IN (?, ?)", kind, `check of ${kind}`));
    return true;
  }
  if (status === 403) return false; // the integration lacks the scope of this list
  if (!page?.sync_token) throw new Error(`GET ${path} responds with ${status} ${problem.code}`);
  const { data: records, sync_token: token, has_more: more } = page;
  store.write(() => {
    for (const record of records) store.keep(kind, record);
    crashPoint();
    store.set(kind, token);
  });
  if (!more) await check(store, client, kind, path);
  return more;
}

/**
 * Removes the records that the integration may no longer read, once a day: that a record left
 * its view is no change of the record, so no sync shows it.
 */
async function check(store: Store, client: MillwrightClient, kind: Kind, path: "/work-orders" | "/issues"): Promise<void> {
  const name = `check of ${kind}`;
  if (Date.now() - Number(store.get(name) ?? "-Infinity") < Number(setting("CHECK_INTERVAL", "86400")) * 1000) return;
  const held = store.all<WorkOrder>(`SELECT id, changed_at FROM ${kind} ORDER BY id`);
  for (let start = 0; start < held.length; start += 100) {
    const asked = held.slice(start, start + 100);
    const query = { limit: 100, id: asked.map((record) => record.id) };
    const { status, data: page, problem } = await client.call<Page>(() => client.api.GET(path, { params: { query } }));
    if (!page) throw new Error(`GET ${path} responds with ${status} ${problem.code}`);
    const shown = new Set(page.data.map((record) => record.id));
    store.write(() => {
      for (const { id, changed_at } of asked) { // a webhook may have brought a newer state since: it stays
        if (!shown.has(id)) store.run(`DELETE FROM ${kind} WHERE id = ? AND changed_at = ?`, id, changed_at);
      }
    });
  }
  store.write(() => store.set(name, String(Date.now())));
}

/** Stores what a webhook says, once for each event, before it is acknowledged. */
function receive(store: Store, event: Event): void {
  if (event.test) return; // someone tests the address: the record is made up
  store.write(() => {
    const isNew = store.run("INSERT INTO events VALUES (?, ?, ?) ON CONFLICT DO NOTHING", event.id, event.type, new Date().toISOString());
    if (!isNew) return;
    if (event.data.work_order) store.keep("work_orders", event.data.work_order);
    if (event.data.issue) store.keep("issues", event.data.issue);
  });
}

/** Reports whether body, the request's raw bytes, was signed with secret within 300 seconds of now. */
function verify(header: string | string[] | undefined, body: Buffer, secret: string): boolean {
  const parts = String(header ?? "").split(",");
  const times = parts.filter((part) => part.startsWith("t=")).map((part) => part.slice(2));
  const [time] = times;
  if (time === undefined || times.length !== 1 || !/^[0-9]{1,12}$/.test(time) || Math.abs(Date.now() / 1000 - Number(time)) > 300) return false;
  const want = Buffer.from(createHmac("sha256", secret).update(time + ".").update(body).digest("hex"));
  return parts.some((part) => {
    const given = Buffer.from(part.startsWith("v1=") ? part.slice(3) : "");
    return given.length === want.length && timingSafeEqual(given, want);
  });
}

/** Reads a body of at most 1 MiB; undefined if it is larger. */
async function read(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    if ((size += chunk.length) > 1 << 20) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function receiver(store: Store, secret: string): Server {
  return createServer({ requestTimeout: 10_000 }, async (request, response) => {
    let status = 500; // not stored: it is sent again
    try {
      const body = await read(request);
      if (body === undefined) status = 413;
      else if (!verify(request.headers["service-signature"], body, secret)) status = 400;
      else {
        receive(store, JSON.parse(body.toString()) as Event);
        status = 204;
      }
    } catch (error) {
      console.error("a webhook is not stored:", error instanceof Error ? error.name : "");
    }
    response.writeHead(status).end();
  });
}

/** Receives webhooks, sends orders and syncs until it is told to stop. */
async function run(store: Store, client: MillwrightClient, stopped: AbortSignal): Promise<void> {
  const interval = Number(setting("INTERVAL", "60")) * 1000;
  const listen = setting("LISTEN", "127.0.0.1:9090");
  const colon = listen.lastIndexOf(":");
  const server = receiver(store, setting("WEBHOOK_SECRET"));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(Number(listen.slice(colon + 1)), listen.slice(0, colon), resolve);
  });
  console.log("ready");
  try {
    for (let synced = -Infinity, mayOrder = true; ; await sleep(200, undefined, { signal: stopped })) {
      const due = performance.now() - synced >= interval;
      if (mayOrder || due) mayOrder = await sendOrders(store, client);
      if (due) {
        await sync(store, client);
        synced = performance.now();
      }
    }
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

async function main(command: string | undefined, ...args: string[]): Promise<void> {
  const store = new Store(setting("DATABASE"));
  const [inventory_id, title, external_id] = args;
  if (command === "order" && inventory_id !== undefined && title !== undefined && args.length <= 3) {
    const order: NewWorkOrder = { inventory_id, title, external_id };
    store.write(() => store.run("INSERT INTO outbox (key, body) VALUES (?, ?)", randomUUID(), JSON.stringify(order)));
    return;
  }
  if (command === "show" && args.length === 0) {
    const changed = (kind: Kind) => Object.fromEntries(store.all<WorkOrder>(`SELECT id, changed_at FROM ${kind}`).map((r) => [r.id, r.changed_at]));
    const outbox = store.all("SELECT key, work_order_id, error FROM outbox ORDER BY rowid");
    const [{ events } = { events: 0 }] = store.all<{ events: number }>("SELECT count(*) AS events FROM events");
    console.log(JSON.stringify({ work_orders: changed("work_orders"), issues: changed("issues"), outbox, events }));
    return;
  }
  if ((command !== "run" && command !== "once") || args.length > 0) {
    throw new Error("usage: connector.js run | once | order NODE TITLE [EXTERNAL_ID] | show");
  }
  const stop = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop.abort());
  const client = new MillwrightClient(
    setting("MILLWRIGHT_URL").replace(/\/$/, ""), setting("MILLWRIGHT_CLIENT_ID"), setting("MILLWRIGHT_CLIENT_SECRET"), stop.signal,
  );
  try {
    if (command === "run") return await run(store, client, stop.signal);
    await sendOrders(store, client);
    await sync(store, client);
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  }
}

main(...(process.argv.slice(2) as [string?, ...string[]])).catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});

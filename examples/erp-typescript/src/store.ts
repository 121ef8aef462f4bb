import Database from "libsql";
import type { components } from "./api.js";

export type WorkOrder = components["schemas"]["WorkOrder"];
export type Issue = components["schemas"]["Feedback"];
export type Kind = "work_orders" | "issues";
export type Order = { key: string; body: string; work_order_id: string | null; error: string | null };

const schema = `
CREATE TABLE IF NOT EXISTS work_orders (id TEXT PRIMARY KEY, title TEXT, status TEXT, changed_at TEXT, body TEXT);
CREATE TABLE IF NOT EXISTS issues (id TEXT PRIMARY KEY, title TEXT, status TEXT, changed_at TEXT, body TEXT);
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS outbox (key TEXT PRIMARY KEY, body TEXT NOT NULL, work_order_id TEXT, error TEXT);
CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, type TEXT, received_at TEXT);`;

let crashIn = Number(process.env.CRASH_AT ?? 0);

/** Ends the process at the n-th point of a write (CRASH_AT=n): tests of restarts use it. */
export function crashPoint(): void {
  if (--crashIn === 0) process.exit(137);
}

/** The ERP's database. */
export class Store {
  private readonly db: Database.Database;

  constructor(path: string) {
    this.db = new Database(path);
    this.db.exec("PRAGMA busy_timeout = 30000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"); // a commit survives a power cut
    this.write(() => this.db.exec(schema));
  }

  /** Runs a transaction: all that it stores is stored, or nothing. */
  write<T>(store: () => T): T {
    this.db.exec("BEGIN IMMEDIATE");
    let result: T;
    try {
      result = store();
      crashPoint();
      this.db.exec("COMMIT");
    } catch (error) {
      if (this.db.inTransaction) this.db.exec("ROLLBACK");
      throw error;
    }
    crashPoint();
    return result;
  }

  /** Runs a statement and returns how many rows it changed. */
  run(sql: string, ...values: unknown[]): number {
    return this.db.prepare(sql).run(...values).changes;
  }

  all<T>(sql: string, ...values: unknown[]): T[] {
    return this.db.prepare(sql).all(...values) as T[];
  }

  /** Stores the record unless a newer state of it is there: webhooks and pages may cross. */
  keep(kind: Kind, record: WorkOrder | Issue): void {
    this.run(
      `INSERT INTO ${kind} (id, title, status, changed_at, body) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET title = excluded.title, status = excluded.status,
        changed_at = excluded.changed_at, body = excluded.body WHERE excluded.changed_at >= changed_at`,
      record.id, "title" in record ? record.title : record.subject, record.status.code, record.changed_at, JSON.stringify(record),
    );
  }

  /** The orders that are neither sent nor rejected, oldest first. */
  waiting(): Order[] {
    return this.all("SELECT * FROM outbox WHERE work_order_id IS NULL AND error IS NULL ORDER BY rowid");
  }

  token(kind: Kind): string {
    return this.get(kind) ?? "2000-01-01T00:00:00Z";
  }

  get(name: string): string | undefined {
    return this.all<{ value: string }>("SELECT value FROM state WHERE name = ?", name)[0]?.value;
  }

  set(name: string, value: string): void {
    this.run("INSERT INTO state VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, value);
  }
}

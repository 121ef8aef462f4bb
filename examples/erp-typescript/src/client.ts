import { setTimeout as sleep } from "node:timers/promises";
import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "./api.js";

export type Problem = components["schemas"]["Problem"];
type Answer<Data> = { data?: Data; error?: unknown; response: Response };

const timeout = 30_000;

/** Calls the API, and repeats what may be repeated until it is answered. */
export class MillwrightClient {
  /** The typed calls; pass them to call. */
  readonly api: Client<paths>;
  private token: string | undefined;

  constructor(
    private readonly url: string,
    private readonly id: string,
    private readonly secret: string,
    private readonly stopped: AbortSignal,
  ) {
    this.api = createClient<paths>({
      baseUrl: url,
      querySerializer: { array: { style: "form", explode: false } }, // id=a,b
      fetch: (request) => fetch(request, { signal: AbortSignal.timeout(timeout) }),
    });
    this.api.use({ onRequest: ({ request }) => request.headers.set("Authorization", `Bearer ${this.token}`) });
  }

  /**
   * Sends a request until it is answered, and returns its status, and its record or its
   * problem. Waits and repeats after 401, 429, 5xx and lost responses, of token requests too.
   */
  async call<Data>(send: () => Promise<Answer<Data>>): Promise<{ status: number; data?: Data; problem: Partial<Problem> }> {
    for (let wait = 200; ; wait = Math.min(2 * wait, 30_000)) {
      let response: Response | undefined;
      try {
        this.token ?? (response = await this.newToken());
        if (this.token !== undefined) {
          const answer = await send();
          response = answer.response;
          const { status } = response;
          if (status === 401) this.token = undefined;
          else if (status !== 429 && status < 500) return { status, data: answer.data, problem: (answer.error ?? {}) as Partial<Problem> };
        }
      } catch (error) {
        if (error instanceof Rejected) throw error;
        response = undefined; // no response, or not all of one
      }
      await sleep(retryAfter(response?.headers.get("Retry-After")) || wait, undefined, { signal: this.stopped });
    }
  }

  private async newToken(): Promise<Response> {
    const pair = encodeURIComponent(this.id) + ":" + encodeURIComponent(this.secret);
    const response = await fetch(this.url + "/oauth/token", {
      method: "POST",
      headers: { Authorization: "Basic " + Buffer.from(pair).toString("base64") },
      body: new URLSearchParams({ grant_type: "client_credentials" }),
      signal: AbortSignal.timeout(timeout),
    });
    const answer = await response.text();
    if (response.status === 400 || response.status === 401) {
      throw new Rejected(`The API rejects the client id or secret: ${JSON.parse(answer).error}`);
    }
    if (response.ok) this.token = JSON.parse(answer).access_token;
    return response;
  }
}

/** The credentials are wrong: no repetition helps. */
class Rejected extends Error {}

/** How long a Retry-After says to wait, in milliseconds: it is a number of seconds or a date. 0 without one. */
function retryAfter(after: string | null | undefined): number {
  if (!after) return 0;
  const wait = /^[0-9]{1,9}$/.test(after) ? Number(after) * 1000 : Date.parse(after) - Date.now();
  return wait > 0 ? Math.min(wait, 2 ** 31 - 1) : 0;
}

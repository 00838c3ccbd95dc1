import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

/** A request that a server got. */
export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Readonly<Record<string, unknown>>;
}

/** What a server answers: the status, and a body as JSON. "never" leaves the request open, "a part" closes the connection in the body. */
export type Answer = readonly [status: number, body: unknown] | "never" | "a part";

export interface LoopbackServer extends AsyncDisposable {
  /** `http://127.0.0.1:PORT` */
  readonly address: string;
  readonly received: readonly Received[];
}

/** A server on the loopback that keeps what it receives. */
export async function loopbackServer(
  answer: (request: Received) => Answer,
): Promise<LoopbackServer> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const { method = "", url: path = "", headers } = request;
    const each: Received = { method, path, headers, body: text === "" ? {} : JSON.parse(text) };
    received.push(each);
    const answered = answer(each);
    if (answered === "never") return;
    if (answered === "a part") {
      response.writeHead(200, { "content-type": "application/json", "content-length": 100 });
      response.write('{"data":', () => response.destroy());
      return;
    }
    const [status, body] = answered;
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** An address of the loopback where nothing listens. */
export async function deadAddress(): Promise<string> {
  const server = await loopbackServer(() => "never");
  await server[Symbol.asyncDispose]();
  return server.address;
}

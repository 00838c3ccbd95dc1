import type { Worker } from "node:worker_threads";
import type { Carrier, CollectiveOptions, Hosts, Scope, Traffic } from "../carrier.js";
import { requireChunks, requireRoom } from "../collective-sizes.js";
import { ExchangeError } from "../errors.js";
import { hostsOf, membersOf } from "../hosts.js";
import type { Answer, CollectiveCall, Greeting, Request } from "./protocol.js";

type Ready = Extract<Greeting, { kind: "ready" }>;

/** A carrier over MPI, whose calls run in a thread. */
export class MpiCarrier implements Carrier {
  readonly rank: number;
  readonly size: number;
  readonly hosts: Hosts;
  /** The file of the MPI library, and what it says of itself. */
  readonly library: string;
  readonly #thread: Worker;
  readonly #deadline: number;
  readonly #answers = new Map<number, (answer: Answer) => void>();
  readonly #traffic = { collectives: 0, bytes: 0, bytesAcrossHosts: 0 };
  #requests = 0;
  #queue: Promise<unknown> = Promise.resolve();
  #underWay: string | undefined;
  #failure: ExchangeError | undefined;

  /** @internal Use init(). */
  constructor(
    thread: Worker,
    { rank, size, hostNumbers, library }: Ready,
    { deadline }: { readonly deadline: number },
  ) {
    this.rank = rank;
    this.size = size;
    this.hosts = hostsOf(hostNumbers.map(String), rank);
    this.library = library;
    this.#thread = thread;
    this.#deadline = deadline;
    const lost = (fact: string): void => {
      const failure = { kind: "carrier", fact } as const;
      for (const [id, answer] of this.#answers) answer({ kind: "answer", id, failure });
    };
    thread.on("message", (answer: Answer) => this.#answers.get(answer.id)?.(answer));
    thread.on("error", (error) => lost(`the thread of MPI failed: ${error.message}`));
    thread.on("exit", () => lost("the thread of MPI has ended"));
    // A program that only waits for nothing may end; requests keep it.
    thread.unref();
  }

  get traffic(): Traffic {
    return { ...this.#traffic };
  }

  get underWay(): string | undefined {
    return this.#underWay;
  }

  members(scope: Scope): readonly number[] {
    return membersOf(this.hosts, scope, this.rank);
  }

  allocate(bytes: number): Uint8Array {
    return new Uint8Array(new SharedArrayBuffer(bytes));
  }

  allToAll(send: Uint8Array, receive: Uint8Array, options?: CollectiveOptions): Promise<void> {
    const members = this.members(options?.scope ?? "world");
    requireChunks(send, receive, members.length);
    return this.#moving("allToAll", members, { send, receive }, options);
  }

  allGather(send: Uint8Array, receive: Uint8Array, options?: CollectiveOptions): Promise<void> {
    const members = this.members(options?.scope ?? "world");
    requireRoom(send, receive, members.length);
    return this.#moving("allGather", members, { send, receive }, options);
  }

  max(values: Int32Array, { scope = "world", label }: CollectiveOptions = {}): Promise<void> {
    return this.#inTurn(nameOf("max", label), async (name) => {
      const send = new Int32Array(new SharedArrayBuffer(values.byteLength));
      const receive = new Int32Array(new SharedArrayBuffer(values.byteLength));
      send.set(values);
      await this.#ask(name, { kind: "max", scope, send, receive });
      values.set(receive);
      this.#count(this.members(scope), values.byteLength);
    });
  }

  barrier({ scope = "world", label }: CollectiveOptions = {}): Promise<void> {
    return this.#inTurn(nameOf("barrier", label), (name) =>
      this.#ask(name, { kind: "barrier", scope }),
    );
  }

  async close(): Promise<void> {
    if (!this.#failure) {
      await this.barrier({ label: "the end" });
      await this.#inTurn("finalize", (name) => this.#ask(name, { kind: "finalize" }));
    }
    this.#failure ??= this.#error("closed", "close", "the carrier was closed");
    await this.#thread.terminate();
  }

  #moving(
    kind: "allToAll" | "allGather",
    members: readonly number[],
    { send, receive }: { readonly send: Uint8Array; readonly receive: Uint8Array },
    { scope = "world", label }: CollectiveOptions = {},
  ): Promise<void> {
    return this.#inTurn(nameOf(kind, label), async (name) => {
      const shared = { send: sharedCopy(send, true), receive: sharedCopy(receive, false) };
      await this.#ask(name, { kind, scope, members: members.length, ...shared });
      if (shared.receive !== receive) receive.set(shared.receive);
      this.#count(members, receive.length / members.length);
    });
  }

  #inTurn(name: string, run: (name: string) => Promise<void>): Promise<void> {
    const done = this.#queue.then(async () => {
      if (this.#failure) throw this.#failure;
      await run(name);
    });
    this.#queue = done.catch(() => {});
    return done;
  }

  async #ask(name: string, call: Request["call"]): Promise<void> {
    const id = this.#requests++;
    this.#underWay = name;
    this.#thread.ref();
    const { failure } = await new Promise<Answer>((resolve) => {
      this.#answers.set(id, resolve);
      this.#thread.postMessage({ id, call, deadline: this.#deadline } satisfies Request);
    });
    this.#answers.delete(id);
    this.#thread.unref();
    this.#underWay = undefined;
    if (!failure) return;
    this.#failure = this.#error(failure.kind, name, failure.fact);
    throw this.#failure;
  }

  /** Counts what was sent to each of the other members. */
  #count(members: readonly number[], bytes: number): void {
    const { hostOf } = this.hosts;
    const others = members.filter((member) => member !== this.rank);
    const remote = others.filter((member) => hostOf[member] !== hostOf[this.rank]);
    this.#traffic.collectives++;
    this.#traffic.bytes += others.length * bytes;
    this.#traffic.bytesAcrossHosts += remote.length * bytes;
  }

  #error(failure: ExchangeError["failure"], collective: string, fact: string): ExchangeError {
    return new ExchangeError(failure, { rank: this.rank, collective, fact });
  }
}

const nameOf = (kind: CollectiveCall["kind"], label: string | undefined): string =>
  label === undefined ? kind : `${kind} of ${label}`;

/** The bytes in memory that threads share: themselves, if they are. */
function sharedCopy(bytes: Uint8Array, hasContent: boolean): Uint8Array {
  if (bytes.buffer instanceof SharedArrayBuffer) return bytes;
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.length));
  if (hasContent) copy.set(bytes);
  return copy;
}

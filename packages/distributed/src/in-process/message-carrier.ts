import type { Carrier, CollectiveOptions, Hosts, Scope, Traffic } from "../carrier.js";
import { requireChunks, requireRoom } from "../collective-sizes.js";
import { ExchangeError, type ExchangeFailure } from "../errors.js";
import { hostsOf, membersOf } from "../hosts.js";
import type { Message, Network } from "./network.js";

/** What a message carrier needs besides its rank. */
export interface MessageSetting {
  readonly network: Network;
  /** The host of each rank. */
  readonly hostNames: readonly string[];
  readonly deadline: number;
}

/** A collective that waits for messages. */
interface Waiting {
  readonly tag: string;
  readonly call: string;
  readonly members: readonly number[];
  readonly received: (parts: readonly Uint8Array[]) => void;
  readonly failed: (failure: ExchangeFailure, fact: string) => void;
}

/** A carrier over messages: every collective sends one message to each other member, and waits for one from each. */
export class MessageCarrier implements Carrier {
  readonly rank: number;
  readonly hosts: Hosts;
  readonly #setting: MessageSetting;
  readonly #deliver: (message: Message) => void;
  readonly #inbox = new Map<string, Map<number, Message>>();
  readonly #calls = new Map<Scope, number>();
  readonly #traffic = { collectives: 0, bytes: 0, bytesAcrossHosts: 0 };
  #waiting: Waiting | undefined;
  #queue: Promise<unknown> = Promise.resolve();
  #failure: ExchangeError | undefined;

  /** @param deliver hands a message to the carrier of the rank that it is for */
  constructor(rank: number, setting: MessageSetting, deliver: (message: Message) => void) {
    this.rank = rank;
    this.hosts = hostsOf(setting.hostNames, rank);
    this.#setting = setting;
    this.#deliver = deliver;
  }

  get size(): number {
    return this.hosts.hostOf.length;
  }

  get traffic(): Traffic {
    return { ...this.#traffic };
  }

  members(scope: Scope): readonly number[] {
    return membersOf(this.hosts, scope, this.rank);
  }

  allocate(bytes: number): Uint8Array {
    return new Uint8Array(bytes);
  }

  allToAll(send: Uint8Array, receive: Uint8Array, options?: CollectiveOptions): Promise<void> {
    const members = this.members(options?.scope ?? "world").length;
    requireChunks(send, receive, members);
    const chunk = send.length / members;
    const parts = (member: number): Uint8Array =>
      send.subarray(member * chunk, (member + 1) * chunk);
    return this.#collective("allToAll", options, send.length, parts, (received) => {
      for (const [member, part] of received.entries()) receive.set(part, member * chunk);
    });
  }

  allGather(send: Uint8Array, receive: Uint8Array, options?: CollectiveOptions): Promise<void> {
    requireRoom(send, receive, this.members(options?.scope ?? "world").length);
    return this.#collective(
      "allGather",
      options,
      send.length,
      () => send,
      (received) => {
        for (const [member, part] of received.entries()) receive.set(part, member * send.length);
      },
    );
  }

  max(values: Int32Array, options?: CollectiveOptions): Promise<void> {
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    return this.#collective(
      "max",
      options,
      bytes.length,
      () => bytes,
      (received) => {
        const columns = received.map((part) => new Int32Array(part.slice().buffer));
        for (const i of values.keys())
          values[i] = Math.max(...columns.map((column) => column[i] as number));
      },
    );
  }

  barrier(options?: CollectiveOptions): Promise<void> {
    return this.#collective(
      "barrier",
      options,
      0,
      () => new Uint8Array(),
      () => {},
    );
  }

  async close(): Promise<void> {
    if (!this.#failure) await this.barrier({ label: "close" });
    this.#failure ??= this.#error("closed", "close", "the carrier was closed");
  }

  /** Takes a message from the network. */
  accept(message: Message): void {
    const box = this.#inbox.get(message.tag) ?? new Map<number, Message>();
    this.#inbox.set(message.tag, box.set(message.from, message));
    this.#look();
  }

  /** Runs a collective after those that were called before it. */
  #collective(
    kind: string,
    { scope = "world", label }: CollectiveOptions = {},
    bytes: number,
    partFor: (member: number) => Uint8Array,
    take: (received: readonly Uint8Array[]) => void,
  ): Promise<void> {
    const name = label === undefined ? kind : `${kind} of ${label}`;
    const run = async (): Promise<void> => {
      if (this.#failure) throw this.#failure;
      take(await this.#exchange(scope, name, bytes, partFor));
      this.#traffic.collectives++;
    };
    const done = this.#queue.then(run);
    this.#queue = done.catch(() => {});
    return done;
  }

  #exchange(
    scope: Scope,
    name: string,
    bytes: number,
    partFor: (member: number) => Uint8Array,
  ): Promise<readonly Uint8Array[]> {
    const members = this.members(scope);
    const count = this.#calls.get(scope) ?? 0;
    this.#calls.set(scope, count + 1);
    const tag = `${scope} ${members[0]} ${count}`;
    const call = `${name}, ${bytes} bytes`;
    return new Promise((resolve, reject) => {
      const { network, deadline } = this.#setting;
      const end = (): void => {
        cancel();
        this.#waiting = undefined;
        this.#inbox.delete(tag);
      };
      const failed = (failure: ExchangeFailure, fact: string): void => {
        end();
        this.#failure = this.#error(failure, name, fact);
        reject(this.#failure);
      };
      const cancel = network.after(deadline, () => {
        const box = this.#inbox.get(tag);
        const absent = members.filter((member) => !box?.has(member));
        failed("deadline", `no answer from rank ${absent.join(", ")} within ${deadline} ms`);
      });
      this.#waiting = {
        ...{ tag, call, members, failed },
        received(parts) {
          end();
          resolve(parts);
        },
      };
      for (const [index, to] of members.entries()) {
        // The array may change when the collective has ended here, while the message is still on its way.
        const message = { from: this.rank, to, tag, call, bytes: partFor(index).slice() };
        if (to === this.rank) this.accept(message);
        else {
          this.#count(message);
          network.send(message, this.#deliver);
        }
      }
    });
  }

  #count({ to, bytes }: Message): void {
    this.#traffic.bytes += bytes.length;
    const { hostOf } = this.hosts;
    if (hostOf[to] !== hostOf[this.rank]) this.#traffic.bytesAcrossHosts += bytes.length;
  }

  /** Ends the collective that waits, where its messages are here or do not fit. */
  #look(): void {
    const waiting = this.#waiting;
    const box = waiting && this.#inbox.get(waiting.tag);
    if (!waiting || !box) return;
    const other = [...box.values()].find(({ call }) => call !== waiting.call);
    if (other)
      waiting.failed(
        "mismatch",
        `this rank calls ${waiting.call}, rank ${other.from} calls ${other.call}`,
      );
    else if (waiting.members.every((member) => box.has(member)))
      waiting.received(waiting.members.map((member) => (box.get(member) as Message).bytes));
  }

  #error(failure: ExchangeFailure, collective: string, fact: string): ExchangeError {
    return new ExchangeError(failure, { rank: this.rank, collective, fact });
  }
}

import type { Carrier } from "@halfstep/distributed";

/** A collective of a noted carrier. */
export interface Call {
  readonly label: string;
  readonly begin: number;
  readonly end: number;
  /** Sent to each other rank. */
  readonly bytes: number;
}

/** A carrier whose collectives are noted. */
export const notingCarrier = (carrier: Carrier, note: (call: Call) => void): Carrier => {
  const noted = async (label: string | undefined, bytes: number, run: Promise<void>) => {
    const begin = performance.now();
    await run;
    note({ label: label ?? "", begin, end: performance.now(), bytes });
  };
  return {
    ...{ rank: carrier.rank, size: carrier.size, hosts: carrier.hosts },
    get traffic() {
      return carrier.traffic;
    },
    members: (scope) => carrier.members(scope),
    allocate: (bytes) => carrier.allocate(bytes),
    allToAll: (send, receive, options) =>
      noted(options?.label, send.length / carrier.size, carrier.allToAll(send, receive, options)),
    allGather: (send, receive, options) =>
      noted(options?.label, send.length, carrier.allGather(send, receive, options)),
    max: (values, options) =>
      noted(options?.label, values.byteLength, carrier.max(values, options)),
    barrier: (options) => carrier.barrier(options),
    close: () => carrier.close(),
  };
};

/** A carrier of two ranks on two hosts of which the other always sends what this one does, at once. */
export const emptyCarrier = (): Carrier => {
  const copies = (send: Uint8Array, receive: Uint8Array): void => {
    for (let start = 0; start < receive.length; start += send.length) receive.set(send, start);
  };
  return {
    ...{ rank: 0, size: 2, traffic: { collectives: 0, bytes: 0, bytesAcrossHosts: 0 } },
    hosts: { hostOf: [0, 1], count: 2, isEven: true, localRank: 0, localSize: 1 },
    members: (scope) => (scope === "host" ? [0] : [0, 1]),
    allocate: (bytes) => new Uint8Array(new SharedArrayBuffer(bytes)),
    allToAll: async (send, receive) => receive.set(send),
    allGather: async (send, receive) => copies(send, receive),
    max: async () => {},
    barrier: async () => {},
    close: async () => {},
  };
};

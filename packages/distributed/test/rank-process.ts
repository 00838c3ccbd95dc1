// One rank of a job. Its argument names what it does; it prints what it found as a line of JSON.
import { readFileSync } from "node:fs";
import { Exchange } from "../src/index.js";
import { init, MpiCarrier, SetupError } from "../src/node.js";

const print = (found: object): void => console.log(JSON.stringify(found));

/** Functions that change the memory of a process. */
const watched = ["mmap", "munmap", "mremap", "madvise", "brk", "sbrk"];

/** The first bytes of these functions. */
const functionBytes = async (): Promise<readonly string[]> => {
  const { default: koffi } = await import("koffi");
  const library = koffi.load("libc.so.6");
  return watched.map((name) => `${koffi.decode(library.symbol(name, "uint8_t"), "uint8_t", 16)}`);
};

const scenarios: Readonly<Record<string, () => Promise<void>>> = {
  /** Every collective, and means that are exact on each wire. */
  async exchange() {
    const carrier = await init({ deadline: 60_000 });
    const { rank, size, hosts } = carrier;
    const largest = Int32Array.of(rank, -rank);
    await carrier.max(largest);
    const areExact: boolean[] = [];
    const exchange = async (wire: "float32" | "float16", length: number): Promise<void> => {
      const values = new Float32Array(length);
      for (let i = 0; i < length; i++) values[i] = size * (i % 500) + 2 * rank;
      await new Exchange(carrier, { wire }).mean(values, { label: "bucket 0" });
      areExact.push(values.every((value, i) => value === size * (i % 500) + size - 1));
    };
    for (const wire of ["float32", "float16"] as const) await exchange(wire, 100_001);
    const local = new Uint8Array(hosts.localSize);
    await carrier.allGather(Uint8Array.of(rank), local, { scope: "host" });
    const peers = new Uint8Array(hosts.count);
    await carrier.allGather(Uint8Array.of(rank), peers, { scope: "peers" });
    const { bytes } = carrier.traffic;
    // In slices.
    await exchange("float16", size * 2 ** 21 + 1001);
    await carrier.close();
    print({
      rank,
      size,
      largest: [...largest],
      areExact,
      local: [...local],
      peers: [...peers],
      bytes,
    });
  },

  /** Many exchanges at once while the event loop runs; the longest time for which it did not. */
  async concurrent() {
    const carrier = await init();
    const exchange = new Exchange(carrier, { wire: "float32" });
    const buckets = Array.from({ length: 20 }, (_, i) =>
      new Float32Array(4096).fill(10 ** (i % 5)),
    );
    await Promise.all(buckets.map((values) => exchange.mean(values)));
    const isRight = buckets.every((values, i) => values.every((value) => value === 10 ** (i % 5)));
    await carrier.close();
    print({ isRight });
  },

  /** The functions of the C library that MPI has overwritten. */
  async functions() {
    const before = await functionBytes();
    const carrier = await init();
    const after = await functionBytes();
    await carrier.close();
    print({ overwritten: watched.filter((_, i) => before[i] !== after[i]) });
  },

  /** Whether the library is in memory when the thread that called it has ended. */
  async afterwards() {
    const carrier = await init();
    await carrier.close();
    process.on("exit", () => {
      const isLoaded = /libmpi|libmpich/.test(readFileSync("/proc/self/maps", "utf8"));
      process.stdout.write(`${JSON.stringify({ isLoaded })}\n`);
    });
  },

  /** Joins again, during the job and after it. */
  async twice() {
    const again = (): Promise<unknown> => init().catch(({ message }: Error) => message);
    const carrier = await init();
    const during = await again();
    await carrier.close();
    print({ during, after: await again() });
  },

  /** Rank 1 has more numbers than others. MPI does not compare lengths, or has written past them when it does. */
  async unlike() {
    const carrier = await init({ deadline: 5000 });
    const exchange = new Exchange(carrier, { wire: "float32" });
    const values = new Float32Array(carrier.rank === 1 ? 200 : 100).fill(1 + carrier.rank);
    const end = await exchange.mean(values, { label: "bucket 3" }).then(
      () => "done",
      ({ message }: Error) => message,
    );
    console.error(end);
    process.exit(end === "done" ? 0 : 1);
  },

  /** Rank 1 does not come. */
  async deadline() {
    const carrier = await init({ deadline: 500 });
    if (carrier.rank === 1) await new Promise((resolve) => setTimeout(resolve, 60_000));
    await new Exchange(carrier).mean(new Float32Array(8), { label: "bucket 7" }).catch((error) => {
      console.error(error.message);
      process.exit(1);
    });
  },

  /** Rank 1 is killed within an exchange. */
  async killed() {
    const carrier = await init();
    const exchange = new Exchange(carrier);
    await exchange.mean(new Float32Array(8));
    if (carrier.rank === 1) process.kill(process.pid, "SIGKILL");
    await exchange.mean(new Float32Array(8), { label: "bucket 1" });
  },

  /** What keeps this process from joining. */
  async setup() {
    try {
      const carrier = await init();
      print({ rank: carrier.rank, size: carrier.size, isMpi: carrier instanceof MpiCarrier });
      await carrier.close();
    } catch (error) {
      if (!(error instanceof SetupError)) throw error;
      print({ problem: error.problem, message: error.message });
    }
  },
};

await scenarios[process.argv[2] ?? ""]?.();

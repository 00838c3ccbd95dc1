/**
 * Times all contestants on this Node alternately, and prints one line of JSON for each task and length. Arguments: the
 * lengths.
 */
import { bulkBackend } from "../src/index.js";
import { type Contestant, type Task, tasksFor } from "./contestants.js";

export interface Result {
  readonly task: string;
  readonly length: number;
  /** The same traffic as a copy from one array to another, in nanoseconds an element. */
  readonly memcpy: number;
  readonly entries: readonly {
    readonly name: string;
    readonly isPeer: boolean;
    /** Median nanoseconds an element. */
    readonly time: number;
  }[];
}

/** Normal numbers over twelve powers of two, some zeros, some that are subnormal or overflow in float16. */
function sample(length: number): Float32Array {
  const values = new Float32Array(length);
  let state = 1;
  const random = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return (state >>> 8) / 2 ** 24;
  };
  for (let i = 0; i < length; i++) {
    const kind = random();
    const scale =
      kind < 0.01 ? 0 : kind < 0.02 ? 2 ** -18 : kind < 0.021 ? 2 ** 20 : 2 ** (12 * random() - 9);
    values[i] = (random() - 0.5) * scale;
  }
  return values;
}

/** Runs each contestant once and compares its result with this package's. Returns the nanoseconds of each. */
function checked(task: Task): number[] {
  let want: ArrayLike<number> | undefined;
  return task.contestants.map(({ name, run }) => {
    const started = performance.now();
    const result = run();
    const elapsed = (performance.now() - started) * 1e6;
    want ??= result;
    for (let i = 0; i < want.length; i++) {
      if (!Object.is(result[i], want[i])) {
        throw new Error(`${task.name}: ${name} has ${result[i]} where we have ${want[i]}`);
      }
    }
    return elapsed;
  });
}

const median = (times: number[]): number =>
  times.toSorted((a, b) => a - b)[times.length >> 1] as number;

function time(length: number, task: Task): Result {
  // A copy reads as much as it writes.
  const from = new Uint8Array((length * task.bytes) / 2);
  const to = new Uint8Array(from.length);
  const copy: Contestant = {
    name: "copy",
    isPeer: false,
    run: () => {
      to.set(from);
      return to;
    },
  };
  const first = [0, ...checked(task)];
  const turns = [copy, ...task.contestants].map((contestant, i) => {
    const once = first[i] as number;
    // Contestants that take most of a second are not run again.
    if (once > 4e8) return { contestant, repeats: 0, times: [once / length] };
    // The compiler sees each contestant at work before it is timed, in samples of some milliseconds.
    const warm = performance.now();
    let runs = 0;
    while (runs < 3 || (performance.now() - warm < 30 && length < 2 ** 20)) {
      contestant.run();
      runs++;
    }
    const each = (performance.now() - warm) / runs;
    return { contestant, repeats: Math.ceil(4 / each), times: [] as number[] };
  });
  for (let round = 0; round < 11; round++) {
    for (const { contestant, repeats, times } of turns) {
      if (repeats === 0) continue;
      const started = performance.now();
      for (let i = 0; i < repeats; i++) contestant.run();
      times.push(((performance.now() - started) * 1e6) / repeats / length);
    }
  }
  const [memcpy, ...entries] = turns.map(({ contestant, times }) => ({
    name: contestant.name,
    isPeer: contestant.isPeer,
    time: median(times),
  }));
  return { task: task.name, length, memcpy: memcpy?.time as number, entries };
}

if (bulkBackend() !== "webassembly") throw new Error("this Node has no WebAssembly SIMD");
for (const length of process.argv.slice(2).map(Number)) {
  const values = sample(length);
  for (const task of tasksFor(values)) {
    process.stdout.write(`${JSON.stringify(time(length, task))}\n`);
  }
}

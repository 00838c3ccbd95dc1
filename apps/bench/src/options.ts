import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";

export interface BenchOptions {
  readonly isQuick: boolean;
  /** Workloads and cases to run: those whose name contains one of these. Empty: all. */
  readonly only: readonly string[];
  readonly withPeers: boolean;
  readonly rounds: number;
  /** Fresh processes of each library that the rounds are divided among. */
  readonly processes: number;
  /** Folder of bench.json, bench.md and bench.html. */
  readonly out: string;
  readonly adapter?: string;
  /** A Python with PyTorch. Undefined: `python3`, where its PyTorch has a GPU. */
  readonly python?: string;
  /** The bundle of another checkout, whose Halfstep is measured beside. */
  readonly before?: string;
  /** Write a tar for a machine without Node and network, instead of measuring. */
  readonly pack?: string;
  /** Print JSON instead of the table. */
  readonly json: boolean;
  /** Print the plans of the chosen workloads instead of measuring them. */
  readonly dumpPlan: boolean;
}

export const help: string = `npm run bench -- [flags]

  --quick            a few minutes: fewer cases, fewer rounds
  --only A,B         workloads or cases whose name contains A or B
  --no-peers         Halfstep alone
  --rounds N         interleaved repetitions (15; with --quick 7)
  --processes N      fresh processes of each library that the rounds are divided among (3; with --quick 2)
  --out DIR          where bench.json, bench.md and bench.html go (runs/bench)
  --adapter NAME|N   the GPU, also HALFSTEP_ADAPTER
  --python PATH      a Python whose PyTorch is measured, too (python3, where its PyTorch has a GPU)
  --before DIR       another checkout of this repository: its Halfstep is a lane beside (run npm run bench -- --help there once)
  --pack FILE        write a .tar.xz for a machine without Node and network, where \`sh bench/run.sh [flags]\` measures
  --dump-plan        print how Halfstep would run what is chosen, launch by launch, and measure nothing
  --json             print the results as JSON
  --help`;

/** Wrong flags, which the message names. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export function parseOptions(args: readonly string[]): BenchOptions | "help" {
  const { values } = parse(args);
  if (values.help) return "help";
  const isQuick = values.quick ?? false;
  const rounds = Number(values.rounds ?? (isQuick ? 7 : 15));
  if (!Number.isSafeInteger(rounds) || rounds < 2)
    throw new UsageError(`--rounds ${values.rounds}: it must be a whole number from 2 on`);
  const processes = Number(values.processes ?? Math.min(rounds, isQuick ? 2 : 3));
  if (!Number.isSafeInteger(processes) || processes < 1 || processes > rounds)
    throw new UsageError(
      `--processes ${values.processes}: it must be a whole number from 1 to ${rounds}, that of the rounds`,
    );
  return {
    isQuick,
    rounds,
    processes,
    only: (values.only ?? "").split(",").filter((part) => part !== ""),
    withPeers: !values["no-peers"],
    out: values.out ?? "runs/bench",
    json: values.json ?? false,
    dumpPlan: values["dump-plan"] ?? false,
    ...(values.adapter !== undefined && { adapter: values.adapter }),
    ...(values.python !== undefined && { python: values.python }),
    ...(values.before !== undefined && { before: bundleIn(values.before) }),
    ...(values.pack !== undefined && { pack: values.pack }),
  };
}

/** The bundle that `npm run bench` leaves in a checkout. */
function bundleIn(checkout: string): string {
  const bundle = resolve(checkout, "apps/bench/dist/main.js");
  if (existsSync(bundle)) return bundle;
  throw new UsageError(
    `--before ${checkout}: it has no apps/bench/dist/main.js; run npm run bench -- --help there`,
  );
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        quick: { type: "boolean" },
        only: { type: "string" },
        "no-peers": { type: "boolean" },
        rounds: { type: "string" },
        processes: { type: "string" },
        out: { type: "string" },
        adapter: { type: "string" },
        python: { type: "string" },
        json: { type: "boolean" },
        "dump-plan": { type: "boolean" },
        before: { type: "string" },
        pack: { type: "string" },
        help: { type: "boolean", short: "h" },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

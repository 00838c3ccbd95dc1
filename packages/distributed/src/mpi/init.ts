import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { requireDeadline, requireOptions } from "../arguments.js";
import type { Carrier } from "../carrier.js";
import { inProcess } from "../in-process/in-process.js";
import { libraryFiles } from "./families.js";
import { type LaunchedRank, launchedRank } from "./launcher.js";
import { MpiCarrier } from "./mpi-carrier.js";
import type { Greeting, ThreadSetting } from "./protocol.js";
import { SetupError } from "./setup-error.js";

type Ready = Extract<Greeting, { kind: "ready" }>;

/** Variables for libraries below MPI, which read them when they are loaded. Those of the user have precedence. */
const librarySettings = {
  // UCX would take the signals by which WebAssembly bounds its memory.
  UCX_ERROR_SIGNALS: "",
  // UCX and Open MPI would watch the C library release memory: they overwrite its functions while other threads run, and UCX grows and shrinks
  // the heap to test that. Memory that the main thread allocates meanwhile is lost, and the process crashes later.
  UCX_MEM_EVENTS: "n",
  OMPI_MCA_memory: "^patcher",
};

/** Options of joining a job. */
export interface InitOptions {
  /** The file of an MPI library. Default: `HALFSTEP_MPI`, or the library of the launcher's family. */
  readonly library?: string | undefined;
  /** Milliseconds within which a collective must end. Default 600 000. */
  readonly deadline?: number | undefined;
}

/**
 * Joins the job that `mpirun`, `srun` or Kubernetes' MPI Operator has started this process in. In a process that was not launched, the
 * carrier has one rank, and needs neither MPI nor koffi.
 *
 * @example
 * const carrier = await init();
 * console.log(`rank ${carrier.rank} of ${carrier.size}`);
 * …
 * await carrier.close();
 *
 * @throws SetupError where koffi or MPI is missing, the library is not that of the launcher, or the process has called it before
 */
export async function init(options: InitOptions = {}): Promise<Carrier> {
  requireOptions("init({ library?, deadline? })", options, ["library", "deadline"]);
  const { library = process.env.HALFSTEP_MPI, deadline = 600_000 } = options;
  requireDeadline(deadline);
  const launched = launchedRank();
  if (!launched) return inProcess(1)[0] as Carrier;
  requireFirst();
  for (const [name, value] of Object.entries(librarySettings)) process.env[name] ??= value;
  const files = library ? [library] : libraryFiles(launched.family);
  const thread = new Worker(new URL("./mpi-thread.js", import.meta.url), {
    workerData: { files } satisfies ThreadSetting,
  });
  try {
    const greeting = await greetingOf(thread);
    (globalThis as Joined)[joined] = true;
    requireLauncher(launched, greeting);
    return new MpiCarrier(thread, greeting, { deadline });
  } catch (error) {
    await thread.terminate();
    throw error;
  }
}

const joined: unique symbol = Symbol.for("@halfstep/distributed/joined");

/** What all copies of this package in a process know. */
interface Joined {
  [joined]?: boolean;
}

/** MPI ends a process that initializes it again. */
function requireFirst(): void {
  if ((globalThis as Joined)[joined])
    throw new SetupError(
      "mpi",
      "this process has joined its job already, which MPI allows once, also after close(): call init() once, and pass its carrier on",
    );
}

async function greetingOf(thread: Worker): Promise<Ready> {
  const [greeting] = (await once(thread, "message").catch((error: unknown) => {
    const { message } = error as Error;
    // Errors of threads have no code in Deno and Bun.
    if (/cannot find package|could not find package/i.test(message) && message.includes("koffi"))
      throw new SetupError("koffi", "koffi is not installed: npm install koffi");
    throw new SetupError("mpi", `the thread of MPI does not start: ${message}`);
  })) as [Greeting];
  if (greeting.kind === "unavailable") throw new SetupError("mpi", greeting.fact);
  return greeting;
}

/** A library that does not belong to the launcher makes a job of its own out of each process, and reports no error. */
function requireLauncher({ launcher, rank, size }: LaunchedRank, found: Ready): void {
  if (found.size === size && found.rank === rank) return;
  throw new SetupError(
    "launcher",
    `${launcher} started rank ${rank} of ${size}, but ${found.library} says rank ${found.rank} of ${found.size}: use the MPI library of the launcher, which HALFSTEP_MPI names`,
  );
}

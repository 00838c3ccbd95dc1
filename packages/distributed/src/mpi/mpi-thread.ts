// The thread of a carrier over MPI: it alone calls MPI, one collective at a time, and sleeps between its tests. Blocking calls of MPI
// would occupy a core.
import { parentPort, workerData } from "node:worker_threads";
import { type Communicators, initialize } from "./communicators.js";
import {
  type FunctionName,
  type Handle,
  MpiCallError,
  type MpiLibrary,
  openLibrary,
} from "./library.js";
import type { Answer, CollectiveCall, Greeting, Request, ThreadSetting } from "./protocol.js";

/** Milliseconds between two tests of a collective: the first, and the longest. */
const firstSleep = 0.05;
const longestSleep = 0.2;

const sleeper = new Int32Array(new SharedArrayBuffer(4));
/** Requests of MPI have at most 8 bytes. Shared memory does not move while MPI holds its address. */
const request = new Uint8Array(new SharedArrayBuffer(64));

/** Keeps the arrays of the collective in memory, which MPI may still write to after a deadline. */
let underWay: CollectiveCall | undefined;

const port = parentPort;
if (port) serve((message) => port.postMessage(message));

function serve(post: (message: Greeting | Answer) => void): void {
  let mpi: MpiLibrary;
  let communicators: Communicators;
  try {
    mpi = openLibrary((workerData as ThreadSetting).files);
    communicators = initialize(mpi);
  } catch (error) {
    post({ kind: "unavailable", fact: (error as Error).message });
    port?.close();
    return;
  }
  const { rank, size, hostNumbers } = communicators;
  post({ kind: "ready", rank, size, hostNumbers, library: `${mpi.file} (${mpi.version})` });
  port?.on("message", ({ id, call, deadline }: Request) => {
    try {
      if (call.kind === "finalize") {
        mpi.call("MPI_Finalize");
      } else {
        underWay = call;
        mpi.call(...beginningOf(mpi, communicators, underWay));
        if (!isDoneWithin(mpi, deadline)) {
          const fact = `no end within ${deadline} ms`;
          return post({ kind: "answer", id, failure: { kind: "deadline", fact } });
        }
      }
      post({ kind: "answer", id });
    } catch (error) {
      if (!(error instanceof MpiCallError)) throw error;
      post({ kind: "answer", id, failure: { kind: "carrier", fact: error.message } });
    }
  });
}

/** The function of MPI that begins a collective, with its arguments. */
function beginningOf(
  mpi: MpiLibrary,
  communicators: Communicators,
  call: CollectiveCall,
): readonly [FunctionName, ...unknown[]] {
  const { byte, int, max } = mpi.handles;
  const within = communicators.of[call.scope] as Handle;
  if (call.kind === "barrier") return ["MPI_Ibarrier", within, request];
  const { send, receive } = call;
  if (call.kind === "max")
    return ["MPI_Iallreduce", send, receive, send.length, int, max, within, request];
  const name = call.kind === "allToAll" ? "MPI_Ialltoall" : "MPI_Iallgather";
  const count = receive.length / call.members;
  return [name, send, count, byte, receive, count, byte, within, request];
}

function isDoneWithin(mpi: MpiLibrary, deadline: number): boolean {
  const end = performance.now() + deadline;
  const flag = new Int32Array(1);
  for (let sleep = firstSleep; ; sleep = Math.min(sleep * 1.5, longestSleep)) {
    mpi.call("MPI_Test", request, flag, mpi.family.statusIgnore);
    if (flag[0] !== 0) return true;
    if (performance.now() > end) return false;
    Atomics.wait(sleeper, 0, 0, sleep);
  }
}

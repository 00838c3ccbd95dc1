import type { Scope } from "../carrier.js";
import { hostsOf } from "../hosts.js";
import type { Handle, MpiLibrary } from "./library.js";

/** The communicators of a job, which carry no messages of others. */
export interface Communicators {
  readonly rank: number;
  readonly size: number;
  /** The least rank on the host of each rank. */
  readonly hostNumbers: readonly number[];
  /** "peers" is undefined where hosts have different numbers of ranks. */
  readonly of: Readonly<Record<Scope, Handle | undefined>>;
}

/** Initializes MPI for the calling thread, and makes the communicators. */
export function initialize(mpi: MpiLibrary): Communicators {
  const { family, handles } = mpi;
  mpi.number("MPI_Init_thread", null, null, family.funneled);
  mpi.call("MPI_Comm_set_errhandler", handles.world, handles.errorsReturn);
  const world = mpi.communicator("MPI_Comm_dup", handles.world);
  const rank = mpi.number("MPI_Comm_rank", world);
  const size = mpi.number("MPI_Comm_size", world);
  const host = mpi.communicator(
    "MPI_Comm_split_type",
    world,
    family.typeShared,
    0,
    handles.infoNull,
  );
  const onHost = allGathered(mpi, rank, host, mpi.number("MPI_Comm_size", host));
  const hostNumbers = allGathered(mpi, Math.min(...onHost), world, size);
  const { isEven, localRank } = hostsOf(hostNumbers.map(String), rank);
  const peers = isEven ? mpi.communicator("MPI_Comm_split", world, localRank, rank) : undefined;
  return { rank, size, hostNumbers, of: { world, host, peers } };
}

function allGathered(
  mpi: MpiLibrary,
  value: number,
  within: Handle,
  size: number,
): readonly number[] {
  const all = new Int32Array(size);
  const { int } = mpi.handles;
  mpi.call("MPI_Allgather", Int32Array.of(value), 1, int, all, 1, int, within);
  return [...all];
}

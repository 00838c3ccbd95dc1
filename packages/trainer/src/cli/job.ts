import type { Carrier } from "@halfstep/distributed";
import { init, launchedRank } from "@halfstep/distributed/node";

/** The place of a process among those that train one model together. */
export interface Job {
  readonly rank: number;
  readonly size: number;
  /**
   * Number of ranks whose batches make one global batch: that of the job in which training began. A resumed job of another size keeps the
   * global batch, which its ranks share.
   */
  readonly ranks: number;
  /** Undefined where this process is the only one. */
  readonly carrier: Carrier | undefined;
}

const launched = launchedRank();

/** Whether this process speaks for its job: rank 0, or a process that was not launched in a job. */
export const isFirstRank: boolean = (launched?.rank ?? 0) === 0;

/** The beginning of the errors of a process: its rank, in a job of several. */
export const rankPrefix: string = launched && launched.size > 1 ? `rank ${launched.rank}: ` : "";

/**
 * Joins the job of this process; undefined where it has only one rank.
 * @param isWanted whether the flag `--distributed` is given. Launchers say so, too: `WORLD_SIZE`, `mpirun`
 * @param deadline seconds within which a collective must end
 * @throws SetupError
 */
export async function joinJob(
  isWanted: boolean,
  deadline: number | undefined,
): Promise<Carrier | undefined> {
  if (!isWanted && (launched?.size ?? 1) === 1) return undefined;
  const carrier = await init({ deadline: deadline === undefined ? undefined : 1000 * deadline });
  if (carrier.size > 1) return carrier;
  await carrier.close();
  return undefined;
}

/** Says which exchange a signal to end has interrupted, if any: its launcher stops a rank where another has failed. */
export const noteInterrupted = (
  carrier: Carrier,
  signal: AbortSignal,
  note: (line: string) => void,
): void =>
  signal.addEventListener("abort", () => {
    const { underWay } = carrier;
    note(
      `${rankPrefix}told to end ${underWay === undefined ? "between exchanges" : `during ${underWay}`}`,
    );
  });

/**
 * Compares the parameters of all ranks after training, which must have the same bits.
 * @throws Error that names the ranks with others than rank 0
 */
export async function requireEqualParameters(carrier: Carrier, sha256: string): Promise<void> {
  const own = new TextEncoder().encode(sha256);
  const all = new Uint8Array(own.length * carrier.size);
  await carrier.allGather(own, all, { label: "the hashes of parameters" });
  const hashOf = (rank: number): string =>
    new TextDecoder().decode(all.slice(rank * own.length, (rank + 1) * own.length));
  const others = carrier.members("world").filter((rank) => hashOf(rank) !== hashOf(0));
  if (others.length > 0)
    throw new Error(
      `the parameters of rank ${others.join(", ")} differ from those of rank 0 after training: ${sha256} on rank ${carrier.rank}`,
    );
}

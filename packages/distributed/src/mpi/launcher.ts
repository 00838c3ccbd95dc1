import type { FamilyName } from "./families.js";

/** The place of this process in its job, as its launcher says in environment variables. */
export interface LaunchedRank {
  readonly launcher: string;
  readonly rank: number;
  readonly size: number;
  /** Undefined where the launcher does not say. */
  readonly localRank: number | undefined;
  /** The family of MPI that the launcher belongs to; undefined where it starts any. */
  readonly family: FamilyName | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

interface Launcher {
  readonly name: string;
  readonly family?: FamilyName;
  readonly variables: readonly [rank: string, size: string, localRank: string];
  /** A variable without which the others mean something else. */
  readonly needs?: string;
}

const launchers: readonly Launcher[] = [
  {
    name: "mpirun of Open MPI",
    family: "Open MPI",
    variables: ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"],
  },
  {
    name: "mpirun of MPICH",
    family: "MPICH",
    variables: ["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"],
  },
  {
    name: "srun of Slurm",
    variables: ["SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"],
    // Batch scripts, which are one process, have the other variables, too.
    needs: "SLURM_STEP_NUM_TASKS",
  },
  { name: "a launcher that sets WORLD_SIZE", variables: ["RANK", "WORLD_SIZE", "LOCAL_RANK"] },
];

/** The place of this process by the variables of Open MPI, MPICH, Slurm or torch; undefined where nothing launched it. */
export function launchedRank(env: Environment = process.env): LaunchedRank | undefined {
  for (const { name, family, variables, needs } of launchers) {
    const [rank, size, localRank] = variables.map((variable) => wholeNumber(env[variable]));
    if (rank === undefined || size === undefined) continue;
    if (needs !== undefined && env[needs] === undefined) continue;
    return { launcher: name, rank, size, localRank, family };
  }
  return undefined;
}

const wholeNumber = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;

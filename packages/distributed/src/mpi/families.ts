/** Implementations of MPI by their binary interface. */
export type FamilyName = "Open MPI" | "MPICH" | "MPI ABI";

/** Constants of MPI that are handles: addresses of symbols or numbers. */
export type HandleName = "world" | "byte" | "int" | "max" | "infoNull" | "errorsReturn";

/** The binary interface of a family. */
export interface Family {
  readonly name: FamilyName;
  /** The C type of handles. */
  readonly handle: "void *" | "int";
  /** Handles as symbols of the library, or as numbers. */
  readonly handles: Readonly<Record<HandleName, string | number>>;
  readonly statusIgnore: bigint;
  /** The level at which one thread of the process makes all calls. */
  readonly funneled: number;
  /** Splits a communicator by shared memory. */
  readonly typeShared: number;
}

const openMpi: Family = {
  name: "Open MPI",
  handle: "void *",
  handles: {
    world: "ompi_mpi_comm_world",
    byte: "ompi_mpi_byte",
    int: "ompi_mpi_int",
    max: "ompi_mpi_op_max",
    infoNull: "ompi_mpi_info_null",
    errorsReturn: "ompi_mpi_errors_return",
  },
  statusIgnore: 0n,
  funneled: 1,
  typeShared: 0,
};

/** MPICH, and what shares its binary interface: Intel MPI, MVAPICH, Cray MPICH. */
const mpich: Family = {
  name: "MPICH",
  handle: "int",
  handles: {
    world: 0x44000000,
    byte: 0x4c00010d,
    int: 0x4c000405,
    max: 0x58000001,
    infoNull: 0x1c000000,
    errorsReturn: 0x54000001,
  },
  statusIgnore: 1n,
  funneled: 1,
  typeShared: 1,
};

/** The standard binary interface of MPI 5. */
const standard: Family = {
  name: "MPI ABI",
  handle: "void *",
  handles: {
    world: 0x101,
    byte: 0x247,
    int: 0x209,
    max: 0x23,
    infoNull: 0x130,
    errorsReturn: 0x143,
  },
  statusIgnore: 0n,
  funneled: 1024,
  typeShared: 221,
};

/** The family of a library, by its file and by what it says of itself; undefined where it is unknown. */
export function familyOf(file: string, version: string): Family | undefined {
  if (file.includes("libmpi_abi")) return standard;
  if (/Open MPI/i.test(version)) return openMpi;
  return /MPICH|Intel|MVAPICH|CRAY/i.test(version) ? mpich : undefined;
}

/** Files in which the libraries of each family lie. */
const filesOf: Readonly<Record<FamilyName, readonly string[]>> = {
  "Open MPI": ["libmpi.so.40"],
  MPICH: ["libmpi.so.12", "libmpich.so.12"],
  "MPI ABI": ["libmpi_abi.so.0"],
};

/** Library files to try, those of the launcher's family first. */
export function libraryFiles(launcher: FamilyName | undefined): readonly string[] {
  const names: readonly FamilyName[] = ["Open MPI", "MPI ABI", "MPICH"];
  const ordered =
    launcher === undefined ? names : [launcher, ...names.filter((n) => n !== launcher)];
  return [...ordered.flatMap((name) => filesOf[name]), "libmpi.so"];
}

import koffi from "koffi";
import { type Family, familyOf, type HandleName } from "./families.js";

/** A communicator, datatype, operation or another object of MPI. */
export type Handle = number | bigint | object;

/** A function of MPI returned an error. The message is MPI's own. */
export class MpiCallError extends Error {}

/** The part of an MPI library that carriers use, with errors as exceptions. */
export interface MpiLibrary {
  readonly file: string;
  /** What the library says of itself: "Open MPI v4.1.4, …". */
  readonly version: string;
  readonly family: Family;
  readonly handles: Readonly<Record<HandleName, Handle>>;
  call(name: FunctionName, ...args: unknown[]): void;
  /** Calls a function whose last argument receives a communicator. */
  communicator(name: FunctionName, ...args: unknown[]): Handle;
  /** Calls a function whose last argument receives an int. */
  number(name: FunctionName, ...args: unknown[]): number;
}

// Parameters: p a pointer, i an int, h a handle, o the place for a result.
const signatures = {
  MPI_Init_thread: "ppio",
  MPI_Initialized: "o",
  MPI_Finalize: "",
  MPI_Comm_rank: "ho",
  MPI_Comm_size: "ho",
  MPI_Comm_dup: "ho",
  MPI_Comm_split: "hiio",
  MPI_Comm_split_type: "hiiho",
  MPI_Comm_set_errhandler: "hh",
  MPI_Allgather: "pihpihh",
  MPI_Allreduce: "ppihhh",
  MPI_Ialltoall: "pihpihhp",
  MPI_Iallgather: "pihpihhp",
  MPI_Iallreduce: "ppihhhp",
  MPI_Ibarrier: "hp",
  MPI_Test: "pop",
} as const;

/** Functions of MPI that carriers call. */
export type FunctionName = keyof typeof signatures;

/**
 * Opens the first of some libraries that is there.
 * @throws MpiCallError where none is, or where its family is unknown
 */
export function openLibrary(files: readonly string[]): MpiLibrary {
  // MPICH and UCX need more than the 128 kB of koffi's default stacks.
  koffi.config({ sync_stack_size: 8 << 20, async_stack_size: 4 << 20 });
  const { library, file } = load(files);
  const version = versionOf(library);
  const family = familyOf(file, version);
  if (!family) throw new MpiCallError(`${file} is of an unknown family: ${version}`);
  const types = { p: "void *", o: "void *", i: "int", h: family.handle };
  const functions = new Map<FunctionName, (...args: unknown[]) => number>();
  for (const [name, signature] of Object.entries(signatures)) {
    const parameters = [...signature].map((each) => types[each as keyof typeof types]);
    functions.set(name as FunctionName, library.func(name, "int", parameters));
  }
  const errorString = library.func("MPI_Error_string", "int", ["int", "void *", "void *"]);
  const call = (name: FunctionName, ...args: unknown[]): void => {
    const code = functions.get(name)?.(...args);
    if (code !== 0) throw new MpiCallError(`${name}: ${text(errorString, code)}`);
  };
  const handleOf = (handle: string | number): Handle => {
    if (typeof handle === "string") return library.symbol(handle) as Handle;
    return family.handle === "int" ? handle | 0 : BigInt(handle);
  };
  return {
    ...{ file, version, family, call },
    handles: Object.fromEntries(
      Object.entries(family.handles).map(([name, handle]) => [name, handleOf(handle)]),
    ) as Record<HandleName, Handle>,
    communicator(name, ...args) {
      const place = new BigInt64Array(1);
      call(name, ...args, place);
      return family.handle === "int"
        ? (new Int32Array(place.buffer)[0] as number)
        : (place[0] as bigint);
    },
    number(name, ...args) {
      const place = new Int32Array(1);
      call(name, ...args, place);
      return place[0] as number;
    },
  };
}

type Library = ReturnType<typeof koffi.load>;

function load(files: readonly string[]): { readonly library: Library; readonly file: string } {
  const failures: string[] = [];
  for (const file of files)
    try {
      const library = koffi.load(file, { global: true, lazy: true });
      keepLoaded(file);
      return { library, file };
    } catch (error) {
      failures.push(`${file}: ${(error as Error).message}`);
    }
  throw new MpiCallError(`no MPI library was found: ${failures.join("; ")}`);
}

/**
 * Opens a library once more, and never closes it. koffi unloads libraries when their thread ends, but MPI leaves its own functions in the
 * place of some of the C library, such as that by which memory is unmapped.
 */
function keepLoaded(file: string): void {
  const lazily = 1;
  koffi.load(null).func("dlopen", "void *", ["str", "int"])(file, lazily);
}

/** MPI allows this call before it is initialized. */
const versionOf = (library: Library): string =>
  text(library.func("MPI_Get_library_version", "int", ["void *", "void *"]))
    .split("\n", 1)
    .join()
    .replace(/\s+/g, " ");

/** The text that a function writes, whose last parameters are its place and its length. */
function text(write: (...args: unknown[]) => unknown, ...args: unknown[]): string {
  const bytes = new Uint8Array(8192);
  const length = new Int32Array(1);
  write(...args, bytes, length);
  return new TextDecoder("latin1")
    .decode(bytes.subarray(0, length[0]))
    .replace(/\0.*$/s, "")
    .trim();
}

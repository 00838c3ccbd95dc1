import type { DType, HalfDType } from "@halfstep/formats/dtypes";
import type { Hardware } from "./hardware.js";

/** What a launch does to one of its buffers. `write` overwrites every element; `readwrite` keeps elements that it does not write. */
export type Access = "read" | "write" | "readwrite";

/** A range of elements inside a buffer, and how they are stored there. */
export interface Binding<B> {
  readonly buffer: B;
  /** Bytes from the start of the buffer, a multiple of 256. */
  readonly offset: number;
  /** Number of elements. On a GPU a launch may overwrite the rest of the 16 bytes in which the last of those that it writes lies. */
  readonly length: number;
  readonly dtype: DType;
  /**
   * Set when a cast was folded into this kernel: values are rounded to this format after they are loaded, or before they are stored, so
   * that the bits equal those of a separate cast kernel.
   */
  readonly rounding?: HalfDType;
}

/** One buffer parameter of a kernel. */
export interface KernelBinding {
  readonly name: string;
  readonly access: Access;
  /** Elements that one invocation loads or stores at a time. Stores of 16-bit elements need at least 2, of 8-bit ones 4. Default 4. */
  readonly unit?: 1 | 2 | 4;
  /** True where invocations may change one element at a time together: uint32 of unit 1, set by `or_x(i, bits)` only. */
  readonly atomic?: boolean;
  /** Storage that the kernel accepts; by default every floating dtype. */
  readonly dtypes?: readonly DType[];
}

/** One number that a kernel receives at run time. Changing it never compiles a program anew. */
export interface KernelScalar {
  readonly name: string;
  readonly type: "f32" | "i32" | "u32";
  /** True for values that may differ from step to step (learning rates, JavaScript operands): they stay out of plan keys. */
  readonly runtime?: boolean;
}

/** The properties for which a program is compiled. */
export interface ProgramContext {
  readonly tier: "native" | "packed";
  /** The size of subgroups on which a program may count, which `hardware.pinsSubgroups` tells it to pin; 0 where there is none. */
  readonly subgroupSize: number;
  /** Absent where the hardware is unknown: programs then use only features of every device. */
  readonly hardware?: Hardware;
  /** Storage of each binding, in the kernel's order. */
  readonly bindings: readonly { readonly dtype: DType; readonly rounding?: HalfDType }[];
}

/** Number of workgroups of a dispatch, in each dimension. */
export type Workgroups = readonly [x: number, y: number, z: number];

/** The source of a WGSL module with entry point `main`: storage bindings first, in order, then the scalars as one uniform. */
export interface Program {
  readonly code: string;
  /** The number of workgroups for the work, at most 65,535 in each dimension. */
  workgroups(scalars: Readonly<Record<string, number>>, lengths: readonly number[]): Workgroups;
}

/** A view that a CPU reference reads and writes: half storage is decoded before, and rounded when the reference returns. */
export type KernelView = Float32Array | Float64Array | Int32Array | Uint32Array;

/**
 * A kernel: a WGSL program for every storage it accepts, and the same arithmetic on the CPU. Kernels are identified by their objects:
 * make each once, outside of steps, because programs and plans are cached by the object.
 */
export interface Kernel {
  /** For people: messages, plans as text, profiles. */
  readonly name: string;
  /** For people: every static choice besides the dtypes. */
  readonly variant: string;
  readonly bindings: readonly KernelBinding[];
  readonly scalars: readonly KernelScalar[];
  program(context: ProgramContext): Program;
  reference(views: readonly KernelView[], scalars: Readonly<Record<string, number>>): void;
  /** Floating-point operations of one launch. Absent for kernels whose time is spent on memory accesses. */
  operations?(scalars: Readonly<Record<string, number>>): number;
}

/** One use of a kernel: plain data, which a target encodes, interprets or records. */
export interface Launch<B> {
  readonly kernel: Kernel;
  /** In the order of `kernel.bindings`. */
  readonly bindings: readonly Binding<B>[];
  /** A value for each of `kernel.scalars`. */
  readonly scalars: Readonly<Record<string, number>>;
}

/** A target of launches: a command encoder, the CPU, or a recording. */
export interface LaunchTarget<B> {
  launch(launch: Launch<B>): void;
  /** A zeroed buffer of at least this many bytes. */
  allocate(bytes: number): B;
  /**
   * A zeroed buffer for what one launch passes to the next, which the target takes back when these launches are submitted. Absent where
   * `allocate` gives memory that needs no release.
   */
  scratch?(bytes: number): B;
  /**
   * The class of the hardware (`capabilities.hardware.class`) that runs the launches, where it is known. Products are divided into more
   * launches by it.
   */
  readonly hardwareClass?: string | undefined;
}
